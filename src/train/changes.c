/* Overrides of a run that goes on. */
#include "train/changes.h"

#include <stdlib.h>
#include <string.h>

/* Whether an override is of that key, or of that section ("model."). */
static bool is_of(const char *override, const char *start)
{
    size_t n = strlen(start);

    return strncmp(override, start, n) == 0 &&
           (start[n - 1] == '.' || override[n] == '=');
}

static bool is_among(const char *override, const char *const *list)
{
    for (; *list; list++)
        if (is_of(override, *list))
            return true;
    return false;
}

void sp_changes_warn(const sp_changes *c, const sp_manifest *m, sp_text *out)
{
    static const char *const past[] = { "lowrank.rank", "lowrank.warmup_epochs",
                                        "lowrank.at_switch", "lowrank.residual",
                                        NULL };
    static const char *const chosen[] = { "lowrank.rank_ratio", "lowrank.full",
                                          NULL };

    for (size_t i = 0; m->low && i < c->count; i++)
        if (is_among(c->all[i], past) ||
            (m->autorank.chosen && is_among(c->all[i], chosen)))
            sp_text_add(out,
                        "warning: %s has no effect: the network is one of low "
                        "rank already\n",
                        c->all[i]);
}

sp_err sp_changes_blame(const sp_changes *c, sp_err e)
{
    static const char *const network[] = { "model.", "lowrank.", "data.",
                                           NULL };
    char *text = sp_copy(sp_last_error(), strlen(sp_last_error()));
    sp_text out = { 0 };

    for (size_t i = 0; i < c->count; i++)
        if (is_among(c->all[i], network))
            sp_text_add(&out, "%s%s", out.size ? ", " : "", c->all[i]);
    if (text && out.size)
        sp_fail(e,
                "%s\nwhat is given now may have changed it, %s: leave that as "
                "it was",
                text, sp_text_string(&out));
    else if (text)
        sp_fail(e, "%s", text);
    sp_text_free(&out);
    free(text);
    return e;
}
