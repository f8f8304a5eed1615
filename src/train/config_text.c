/* The configuration of a run. */
#include "train/config_text.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "sprat/train.h"
#include "train/rundir.h"

typedef sp_err (*printer)(const sp_config *c, FILE *out);

static sp_err print_into(char **text, printer print, const sp_config *c)
{
    size_t size;
    FILE *out;
    sp_err e;

    *text = NULL;
    out = open_memstream(text, &size);
    if (!out)
        return sp_fail(SP_ENOMEM, "out of memory");
    e = print(c, out);
    if (fclose(out) != 0 && e == SP_OK)
        e = sp_fail(SP_ENOMEM, "out of memory");
    if (e != SP_OK) {
        free(*text);
        *text = NULL;
    }
    return e;
}

sp_err sp_config_text(const sp_config *c, char **text)
{
    return print_into(text, sp_config_print, c);
}

sp_err sp_config_values(const sp_config *c, char **text)
{
    return print_into(text, sp_config_print_values, c);
}

sp_err sp_config_of_run(sp_config **c, const sp_registry *r, const char *run,
                        const char *const *overrides, size_t override_count)
{
    char *path;
    sp_err e;

    SP_TRY(sp_rundir_check(run));
    path = sp_rundir_config(run);
    if (!path)
        return sp_fail(SP_ENOMEM, "out of memory");
    e = sp_config_read_back(c, r, path, overrides, override_count);
    free(path);
    return e;
}

sp_err sp_config_keep_isa(sp_config *c, const char *isa)
{
    const sp_train_cfg *cfg = sp_config_section(c, "train");
    char set[32];

    if (cfg->isa != 0)
        return SP_OK;
    if (!sp_kernels_find(isa))
        return sp_fail(SP_EARG,
                       "the run computes with %s, which this CPU has not: "
                       "train.isa=base (or another) goes on with results that "
                       "differ in the last digits",
                       isa);
    snprintf(set, sizeof set, "train.isa=%s", isa);
    return sp_config_set(c, set, "checkpoint");
}
