/* Values of a pickle, and lists of them; shared by the files that run it and
 * that look at its result. */
#ifndef SP_CONVERT_PICKLE_VALUE_H
#define SP_CONVERT_PICKLE_VALUE_H

#include <stdbool.h>

#include "convert/pickle.h"

typedef struct sp_pickle_value sp_pickle_value;

/* A growing list in an arena. */
typedef struct sp_pickle_list {
    sp_pickle_value **at;
    size_t count, room;
} sp_pickle_list;

typedef enum sp_pickle_kind {
    SP_PICKLE_OTHER, /* None, a truth value, a number with a point */
    SP_PICKLE_INT,
    SP_PICKLE_TEXT,
    SP_PICKLE_TUPLE,
    SP_PICKLE_LIST,
    SP_PICKLE_DICT, /* keys and values in turn */
    SP_PICKLE_GLOBAL,
    SP_PICKLE_STORAGE, /* items as PyTorch has them: "storage", class, ... */
    SP_PICKLE_TENSOR,  /* storage, offset, sizes, strides, ... */
    SP_PICKLE_MARK     /* on the stack alone */
} sp_pickle_kind;

struct sp_pickle_value {
    sp_pickle_kind kind;
    int64_t integer;
    const char *text; /* of a TEXT; "module name" of a GLOBAL */
    sp_pickle_list items;
};

/* Errors: SP_ENOMEM. */
SP_MUST sp_err sp_pickle_add(sp_arena *arena, sp_pickle_list *l,
                             sp_pickle_value *v);

/* Run a pickle; *out is what it leaves, in the arena. Errors: as
 * sp_pickle_read(). */
SP_MUST sp_err sp_pickle_run(const char *path, const uint8_t *bytes,
                             size_t size, sp_arena *arena,
                             sp_pickle_value **out);

#endif
