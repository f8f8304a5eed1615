/* JSON: what is read can be written, and reads back as the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"

static void write_value(sp_json *j, const sp_json_value *v)
{
    switch (v->kind) {
    case SP_JSON_NULL:
        sp_json_null(j, v->key);
        return;
    case SP_JSON_BOOL:
        sp_json_bool(j, v->key, v->truth);
        return;
    case SP_JSON_NUMBER:
        /* Whole numbers know no -0. */
        if (v->whole && (v->integer != 0 || !signbit(v->number)))
            sp_json_int(j, v->key, v->integer);
        else
            sp_json_number(j, v->key, v->number);
        return;
    case SP_JSON_TEXT:
        sp_json_text(j, v->key, v->text);
        return;
    case SP_JSON_LIST:
    case SP_JSON_OBJECT:
        break;
    }
    if (v->kind == SP_JSON_LIST)
        sp_json_list(j, v->key);
    else
        sp_json_open(j, v->key);
    for (const sp_json_value *m = v->first; m; m = m->next)
        write_value(j, m);
    sp_json_close(j);
}

/* Read and write it; NULL if it is no JSON. */
static char *again(const void *bytes, size_t size)
{
    sp_json_doc *doc;
    sp_json j = { 0 };
    const char *text;
    char *copy;

    if (sp_json_parse(&doc, "input", bytes, size) != SP_OK)
        return NULL;
    write_value(&j, sp_json_root(doc));
    fuzz_law(sp_json_finish(&j, &text) == SP_OK,
             "what was read can be written");
    copy = sp_copy(text, strlen(text));
    sp_json_free(&j);
    sp_json_doc_free(doc);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *once = again(bytes, size), *twice;

    if (!once)
        return 0;
    twice = again(once, strlen(once));
    fuzz_law(twice && strcmp(once, twice) == 0, "and is the same");
    free(once);
    free(twice);
    return 0;
}
