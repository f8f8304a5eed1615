/* What a run has sent in all of its training, warm-ups included. */
#ifndef SP_TABLE_SENT_H
#define SP_TABLE_SENT_H

#include "sprat/base.h"

/* Bytes of gradients in a step, as the mean over all epochs in the run's
 * metrics.jsonl; NAN without a file, or where some epoch tells of none. */
typedef struct sp_run_sent {
    double packet; /* encoded */
    double dense;  /* as floats */
} sp_run_sent;

/* Errors: SP_EIO, SP_EFORMAT, SP_ENOMEM. */
SP_MUST sp_err sp_sent_in_run(const char *run, sp_run_sent *sent);

#endif
