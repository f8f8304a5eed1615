#include "report/compare.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

sp_err sp_tell_finish(sp_json *j, FILE *out)
{
    const char *text;
    sp_err e = sp_json_finish(j, &text);

    if (e == SP_OK)
        fprintf(out, "%s\n", text);
    sp_json_free(j);
    return e;
}

/* The weights that a path means: those of a checkpoint's folder, or the file
 * itself; *out NULL: neither. */
static sp_err find_weights(const char *path, char **out)
{
    *out = sp_is_dir(path) ? sp_path(path, "model.safetensors")
                           : sp_copy(path, strlen(path));
    if (!*out)
        return sp_fail(SP_ENOMEM, "out of memory");
    if (!sp_is_file(*out)) {
        free(*out);
        *out = NULL;
    }
    return SP_OK;
}

static sp_err compare_runs(const sp_compare_opt *o, bool *differ)
{
    sp_run_comparison c;
    sp_err e = sp_compare_runs(&c, o->a, o->b);

    if (e == SP_OK && o->json)
        e = sp_tell_json(&c, o->out);
    else if (e == SP_OK)
        sp_tell_text(&c, o->out);
    *differ = c.differ;
    sp_run_comparison_free(&c);
    return e;
}

static sp_err neither(const char *path)
{
    return sp_fail(SP_EARG,
                   "%s: neither a run folder (with metrics.jsonl, result.json "
                   "or config.yaml) nor a checkpoint (with model.safetensors)",
                   path);
}

static sp_err compare(const sp_compare_opt *o, bool *differ)
{
    bool is_run[2];
    char *a = NULL, *b = NULL;
    sp_err e;

    SP_TRY(sp_run_is(o->a, &is_run[0]));
    SP_TRY(sp_run_is(o->b, &is_run[1]));
    if (is_run[0] && is_run[1])
        return compare_runs(o, differ);
    e = find_weights(o->a, &a);
    if (e == SP_OK)
        e = find_weights(o->b, &b);
    if (e == SP_OK && !a && !is_run[0])
        e = neither(o->a);
    else if (e == SP_OK && !b && !is_run[1])
        e = neither(o->b);
    else if (e == SP_OK && (is_run[0] || is_run[1]))
        e = sp_fail(SP_EARG,
                    "%s is a run and %s a checkpoint: compare two of a kind, "
                    "as RUN/checkpoints/last",
                    is_run[0] ? o->a : o->b, is_run[0] ? o->b : o->a);
    if (e == SP_OK)
        e = sp_compare_weights(o, a, b, differ);
    free(a);
    free(b);
    return e;
}

/* In the "C" locale, for points in numbers; newlocale() gives a constant for
 * it that needs no freeing. */
sp_err sp_compare(const sp_compare_opt *o, bool *differ)
{
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    sp_err e;

    *differ = false;
    e = compare(o, differ);
    uselocale(before);
    return e;
}
