/* Overrides of a run that goes on. */
#include "train/changes.h"

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

    for (size_t i = 0; i < c->count; i++)
        if (is_of(c->all[i], "model.init"))
            sp_text_add(out,
                        "warning: %s has no effect: weights come from the "
                        "checkpoint\n",
                        c->all[i]);
        else if (m->low &&
                 (is_among(c->all[i], past) ||
                  (m->autorank.chosen && is_among(c->all[i], chosen))))
            sp_text_add(out,
                        "warning: %s has no effect: the network is one of low "
                        "rank already\n",
                        c->all[i]);
}

sp_err sp_changes_blame(const sp_changes *c, sp_err e)
{
    static const char *const network[] = { "model.", "lowrank.", "data.",
                                           NULL };
    sp_text out = { 0 };

    for (size_t i = 0; i < c->count; i++)
        if (is_among(c->all[i], network))
            sp_text_add(&out, "%s%s", out.size ? ", " : "", c->all[i]);
    if (out.size)
        sp_fail(e,
                "%s\nwhat is given now may have changed it, %s: leave that as "
                "it was",
                sp_last_error(), sp_text_string(&out));
    sp_text_free(&out);
    return e;
}
