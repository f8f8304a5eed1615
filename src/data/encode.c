/* A text by the vocabulary of a data set. */
#include <stdlib.h>
#include <string.h>

#include "data/scan.h"
#include "data/vocab.h"
#include "sprat/data.h"

enum { SHOWN = 60 }; /* bytes of a word that a message shows */

static sp_err load(sp_vocab *v, const sp_data_info *info)
{
    if (!info->text || !info->class_names)
        return sp_fail(SP_EDATA, "the data set has no words, so that no text "
                                 "can be turned into its tokens");
    for (int i = 0; i < info->classes; i++) {
        const char *word = info->class_names[i];
        int32_t token;

        SP_TRY(sp_vocab_add(v, word, strlen(word), &token));
        if (token != i)
            return sp_fail(SP_EDATA, "the vocabulary has '%s' twice", word);
    }
    return SP_OK;
}

static sp_err look_up(const sp_vocab *v, const sp_token *t, int32_t *token)
{
    *token = sp_vocab_find(v, t->bytes, t->size);
    if (*token < 0)
        *token = sp_vocab_find(v, SP_UNK, sizeof SP_UNK - 1);
    if (*token < 0)
        return sp_fail(SP_EDATA,
                       "text: line %zu: '%.*s' is not among the %zu of the "
                       "vocabulary, which has no " SP_UNK " either",
                       t->line, (int)(t->size < SHOWN ? t->size : SHOWN),
                       (const char *)t->bytes, v->count);
    return SP_OK;
}

static sp_err encode(const sp_vocab *v, sp_scan s, int32_t *tokens,
                     size_t *count)
{
    sp_token t;

    for (*count = 0; sp_scan_next(&s, &t); ++*count)
        SP_TRY(look_up(v, &t, &tokens[*count]));
    return SP_OK;
}

sp_err sp_text_encode(const sp_data_info *info, const char *text,
                      int32_t **tokens, size_t *count)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t size = strlen(text);
    sp_scan s = { .bytes = bytes,
                  .end = bytes + size,
                  .line = 1,
                  .chars = info->chars,
                  .open = true };
    sp_vocab v = { 0 };
    sp_err err = load(&v, info);
    /* There are no more tokens than bytes. */
    int32_t *out = malloc((size + 1) * sizeof *out);

    if (err == SP_OK && !out)
        err = sp_fail(SP_ENOMEM, "text: no memory for %zu tokens", size);
    if (err == SP_OK)
        err = sp_scan_check("text", bytes, size);
    if (err == SP_OK)
        err = encode(&v, s, out, count);
    sp_vocab_free(&v);
    if (err) {
        free(out);
        return err;
    }
    *tokens = out;
    return SP_OK;
}
