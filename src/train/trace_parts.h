/* What the files of the timeline share. */
#ifndef SP_TRAIN_TRACE_PARTS_H
#define SP_TRAIN_TRACE_PARTS_H

#include <stdatomic.h>
#include <stdio.h>

#include "base/json.h"
#include "train/trace.h"

enum {
    SP_TRACKS = 32, /* of messages: as many operations side by side are told
                      apart */
    SP_WORKERS = SP_TRACKS + 1 /* track of the first thread for data */
};

/* A span that is kept. */
typedef struct sp_kept_span {
    sp_span_of of;
    int64_t step, epoch; /* within or behind which it was */
} sp_kept_span;

/* An operation between ranks that is kept. */
typedef struct sp_kept_op {
    sp_comm_done done;
    int64_t step;
} sp_kept_op;

/* What a rank has to say at the end. */
typedef struct sp_trace_sums {
    double seconds[SP_TIMES], all; /* of recorded steps */
    double steps, lost;            /* lost: spans for which there was no room */
    double first, last;            /* of those steps */
    double error;                  /* of the clock, in seconds, at most */
} sp_trace_sums;

struct sp_trace {
    sp_trace_args args;
    sp_train_state at; /* where it began */
    char *folder, *path;
    FILE *file;
    bool filled;   /* the file has an event */
    double origin; /* time of day, in seconds, that is 0 in the file */
    double ahead;  /* from sp_now() to seconds since then, on this rank */

    /* The thread's that computes. */
    sp_kept_span *spans;
    size_t span_count, span_room;
    double before[SP_TIMES];
    double began; /* of the step, and ... */
    double lap;   /* ... of the operator under way */
    sp_watch watch;

    /* The one's that carries out operations fills these, up to `op_count`. */
    sp_kept_op *ops;
    size_t op_room, op_written;
    _Atomic size_t op_count, op_lost;
    _Atomic int64_t step; /* that is recorded; 0: none is */
    sp_comm_watch follow;
    double track_end[SP_TRACKS];
    int tracks;  /* of messages that have a name */
    int workers; /* for data that have one */
    double opened;

    int recorded; /* steps */
    sp_trace_sums sums;
};

/* A time by sp_now() in the file's microseconds, on this rank's clock. */
double sp_trace_time(const sp_trace *t, double moment);

/* Open this rank's part, cut back to where the run stands; and write what is
 * kept (trace_part.c). The former is collective. */
SP_MUST sp_err sp_trace_part_open(sp_trace *t);

/* Compare the clocks and write down how they stand; `end`: for the second time.
 * Collective. Errors: SP_EIO, SP_ENOMEM, those of waiting. */
SP_MUST sp_err sp_trace_clock(sp_trace *t, bool end);

/* The parts that there are, and their ranks: *count paths, to be freed with
 * the list. Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_trace_list(const sp_trace *t, char ***paths, size_t *count);
void sp_trace_list_free(char **paths, size_t count);

/* Put all parts together as RUN/trace.json; and lines that say who waited for
 * whom, from every rank's sums (trace_merge.c, trace_told.c). */
SP_MUST sp_err sp_trace_merge(const sp_trace *t, const sp_trace_sums *sums,
                              sp_text *told);

/* When a rank has come to an operation of all ranks of a group. */
typedef struct sp_arrival {
    int64_t step, number, lane, leader;
    int rank;
    double at; /* seconds, on one clock */
} sp_arrival;

void sp_trace_tell(const sp_trace *t, const sp_trace_sums *sums,
                   sp_arrival *arrivals, size_t count, sp_text *told);

#endif
