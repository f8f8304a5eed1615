/* JSON: a writer that can only write valid JSON, and a strict reader.
 *
 * Source: RFC 8259.
 */
#ifndef SPRAT_BASE_JSON_H
#define SPRAT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "sprat/base.h"

enum { SP_JSON_DEPTH = 64 }; /* deepest nesting, written or read */

/* ---- Writing -----------------------------------------------------------
 *
 *   sp_json j = { 0 };
 *   sp_json_open(&j, NULL);
 *   sp_json_int(&j, "epoch", 3);
 *   sp_json_list(&j, "shape");
 *   sp_json_int(&j, NULL, 16);
 *   sp_json_close(&j);
 *   sp_json_close(&j);
 *   SP_TRY(sp_json_finish(&j, &text));    {"epoch":3,"shape":[16]}
 *   sp_json_free(&j);
 *
 * Within an object every value has a key; within a list and at the top, NULL.
 * Out of memory and wrong use stick and are told by sp_json_finish(). */
typedef struct sp_json {
    bool pretty; /* set by the caller: one value a line, indented */
    sp_text text;
    int depth;
    char closer[SP_JSON_DEPTH]; /* '}' or ']' of each open level */
    bool filled;                /* the present level has a value */
    bool misused;
} sp_json;

void sp_json_open(sp_json *j, const char *key); /* an object */
void sp_json_list(sp_json *j, const char *key);
void sp_json_close(sp_json *j); /* the innermost object or list */

/* A number in the fewest digits that give it back; one that is not finite,
 * which JSON cannot express, becomes null. */
void sp_json_number(sp_json *j, const char *key, double value);
void sp_json_int(sp_json *j, const char *key, int64_t value);
void sp_json_bool(sp_json *j, const char *key, bool value);
void sp_json_null(sp_json *j, const char *key);

/* A string; malformed UTF-8 in it becomes U+FFFD. NULL becomes null. */
void sp_json_text(sp_json *j, const char *key, const char *value);

/* The finished text, without a line end; valid until sp_json_free().
 * Errors: SP_ENOMEM; SP_EARG when it is not one complete value: a level left
 * open or closed too often, a key missing or too many, nesting too deep. */
SP_MUST sp_err sp_json_finish(const sp_json *j, const char **text);

/* Free the text; `pretty` stays, and another value may be written. */
void sp_json_free(sp_json *j);

/* ---- Reading ----------------------------------------------------------- */

typedef enum sp_json_kind {
    SP_JSON_NULL,
    SP_JSON_BOOL,
    SP_JSON_NUMBER,
    SP_JSON_TEXT,
    SP_JSON_LIST,
    SP_JSON_OBJECT
} sp_json_kind;

/* One value. Those of a list or object are reached by `first` and `next`, in
 * the order of the file. Owned by the document. */
typedef struct sp_json_value sp_json_value;
struct sp_json_value {
    sp_json_kind kind;
    bool truth;        /* of a BOOL */
    bool whole;        /* a NUMBER written as an integer that fits `integer` */
    int64_t integer;   /* of a whole NUMBER */
    double number;     /* of every NUMBER */
    const char *text;  /* of a TEXT; has no 0 bytes within */
    const char *key;   /* within an object; else NULL */
    const char *where; /* the document's name, for messages */
    size_t count;      /* members of a LIST or OBJECT */
    const sp_json_value *first, *next;
};

typedef struct sp_json_doc sp_json_doc;

/* Read one JSON value and nothing after it. `name` is what messages call the
 * document, usually its path. Refused besides what the RFC forbids: repeated
 * keys, \u0000, malformed UTF-8, numbers beyond a double, nesting beyond
 * SP_JSON_DEPTH. Errors: SP_EFORMAT with name:line:column; SP_ENOMEM. */
SP_MUST sp_err sp_json_parse(sp_json_doc **doc, const char *name,
                             const void *bytes, size_t size);

/* The same for a file of at most `limit` bytes. Errors: SP_EIO, too. */
SP_MUST sp_err sp_json_read(sp_json_doc **doc, const char *path, size_t limit);

void sp_json_doc_free(sp_json_doc *doc);

const sp_json_value *sp_json_root(const sp_json_doc *doc);

/* The member of that key, or NULL; NULL too if `object` is NULL or not an
 * object. */
const sp_json_value *sp_json_find(const sp_json_value *object, const char *key);

/* A member that must be there and of its kind. Errors: SP_EFORMAT naming the
 * document and the key. */
SP_MUST sp_err sp_json_get(const sp_json_value *object, const char *key,
                           sp_json_kind kind, const sp_json_value **out);
SP_MUST sp_err sp_json_get_int(const sp_json_value *object, const char *key,
                               int64_t *out);
SP_MUST sp_err sp_json_get_number(const sp_json_value *object, const char *key,
                                  double *out);
SP_MUST sp_err sp_json_get_bool(const sp_json_value *object, const char *key,
                                bool *out);
SP_MUST sp_err sp_json_get_text(const sp_json_value *object, const char *key,
                                const char **out);

#endif
