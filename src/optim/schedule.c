/* The learning-rate factor: warm-up times schedule. */
#include "optim/schedule.h"

#include <math.h>

sp_schedule_state sp_schedule_start(void)
{
    return (sp_schedule_state){ .factor = 1, .best = INFINITY };
}

sp_err sp_schedule_check(const sp_schedule *s, const void *own)
{
    return s->check ? s->check(own) : SP_OK;
}

double sp_schedule_share(const sp_schedule_at *at)
{
    double length = at->epochs - at->warmup, done = at->progress - at->warmup;

    if (length <= 0 || done <= 0)
        return 0;
    return done < length ? done / length : 1;
}

double sp_schedule_factor(const sp_schedule *s, const void *own,
                          const sp_schedule_cfg *cfg, const sp_schedule_at *at,
                          const sp_schedule_state *state)
{
    sp_schedule_at here = *at;
    double factor;

    here.warmup = cfg->warmup_epochs;
    factor = s->factor(own, &here, state);
    if (at->progress >= cfg->warmup_epochs)
        return factor;
    return factor * (cfg->warmup_from + (1 - cfg->warmup_from) * at->progress /
                                            cfg->warmup_epochs);
}
