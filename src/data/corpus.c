/* Text files as one stream of tokens. */
#include <stdlib.h>
#include <string.h>

#include "data/scan.h"
#include "data/vocab.h"
#include "sprat/data.h"

enum { WORD_LIMIT = 1 << 16, FIRST_ROOM = 1 << 12 };

static const size_t size_limit = (size_t)1 << 40;
static const uint8_t mark[] = { 0xef, 0xbb, 0xbf }; /* byte-order mark */

struct sp_corpus {
    bool chars;
    sp_vocab vocab;
    int32_t *tokens;
    size_t count, room;
    size_t *lines; /* of each word's first appearance */
    size_t line_room;
};

sp_corpus *sp_corpus_new(bool chars)
{
    sp_corpus *c = calloc(1, sizeof *c);

    if (c)
        c->chars = chars;
    return c;
}

void sp_corpus_free(sp_corpus *c)
{
    if (!c)
        return;
    sp_vocab_free(&c->vocab);
    free(c->tokens);
    free(c->lines);
    free(c);
}

/* An array of `room` elements of `size` bytes, grown for one more after
 * `count`; NULL: out of memory, and the array is as it was. */
static void *grown(void *array, size_t count, size_t *room, size_t size)
{
    size_t more = *room > 0 ? 2 * *room : FIRST_ROOM;

    if (count < *room)
        return array;
    array = realloc(array, more * size);
    if (array)
        *room = more;
    return array;
}

static sp_err append(sp_corpus *c, const sp_token *t)
{
    size_t known = c->vocab.count;
    int32_t *tokens = grown(c->tokens, c->count, &c->room, sizeof *c->tokens);
    size_t *lines = grown(c->lines, known, &c->line_room, sizeof *c->lines);

    if (tokens)
        c->tokens = tokens;
    if (lines)
        c->lines = lines;
    if (!tokens || !lines)
        return sp_fail(SP_ENOMEM, "text: no memory for more than %zu tokens",
                       c->count);
    SP_TRY(sp_vocab_add(&c->vocab, t->bytes, t->size, &c->tokens[c->count]));
    c->count++;
    if (c->vocab.count > known)
        c->lines[known] = t->line;
    return SP_OK;
}

static sp_err too_long(const char *path, const uint8_t *text, const sp_token *t)
{
    return sp_fail(SP_EDATA,
                   "%s: line %zu, column %zu: a word of %zu bytes; words have "
                   "at most %d: is white space missing? data.level=char needs "
                   "none",
                   path, t->line, sp_scan_column(text, t->bytes), t->size,
                   WORD_LIMIT);
}

/* The text of a file, without its mark. */
static sp_err append_text(sp_corpus *c, const char *path, const uint8_t *text,
                          size_t size)
{
    sp_scan s = {
        .bytes = text, .end = text + size, .line = 1, .chars = c->chars
    };
    sp_token t;

    if (size == 0)
        return sp_fail(SP_EDATA, "%s: is empty", path);
    SP_TRY(sp_scan_check(path, text, size));
    while (sp_scan_next(&s, &t)) {
        if (t.size > WORD_LIMIT)
            return too_long(path, text, &t);
        SP_TRY(append(c, &t));
    }
    return SP_OK;
}

sp_err sp_corpus_read(sp_corpus *c, const char *path)
{
    size_t size, skip;
    uint8_t *bytes;
    sp_err err;

    SP_TRY(sp_read_file(path, size_limit, &bytes, &size));
    skip = size >= sizeof mark && memcmp(bytes, mark, sizeof mark) == 0
               ? sizeof mark
               : 0;
    err = append_text(c, path, bytes + skip, size - skip);
    free(bytes);
    return err;
}

int32_t *sp_corpus_tokens(sp_corpus *c, size_t *count)
{
    *count = c->count;
    return c->tokens;
}

const char *const *sp_corpus_words(const sp_corpus *c, size_t *count)
{
    *count = c->vocab.count;
    return c->vocab.words;
}

int32_t sp_corpus_find(const sp_corpus *c, const char *word)
{
    return sp_vocab_find(&c->vocab, word, strlen(word));
}

size_t sp_corpus_line(const sp_corpus *c, int32_t token)
{
    return c->lines[token];
}
