/* What schedules share. */
#ifndef SP_OPTIM_SCHEDULE_H
#define SP_OPTIM_SCHEDULE_H

#include "sprat/optim.h"

/* The part of the epochs after the warm-up that is done, 0 to 1. */
double sp_schedule_share(const sp_schedule_at *at);

#endif
