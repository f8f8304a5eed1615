/* A clock for every operator and pass of a program's steps. */
#ifndef SP_TRAIN_BENCH_OPS_H
#define SP_TRAIN_BENCH_OPS_H

#include "sprat/op.h"
#include "sprat/train.h"

/* A pass over an operator. */
typedef struct sp_op_row {
    const sp_node *node;
    sp_pass pass;
    double flops, bytes; /* of a step, see sp_bench_op */
    double *ms;          /* of every timed step */
} sp_op_row;

typedef struct sp_op_clock {
    sp_op_row *rows; /* in the order of a step */
    int count, room;
    int at; /* the row that should be next */
    int steps;
    int step; /* that runs: times go there from 0 on; at -1 the work is counted
               */
    double last; /* when the present lap began */
    bool lost;   /* there was no memory for a row */
    sp_watch watch;
} sp_op_clock;

/* Ready for `steps` timed steps; the caller sets c->step before each, which
 * must be -1 once, and lets c->watch follow the runs. It must stay where it
 * is. */
void sp_op_clock_open(sp_op_clock *c, int steps);
void sp_op_clock_close(sp_op_clock *c);

/* All passes of one timed step together, ms. */
double sp_op_clock_sum(const sp_op_clock *c, int step);

/* The rows with the times of one timed step and copies of the names, without
 * share and bound. *out has room for c->count. Errors: SP_ENOMEM, of any row
 * before, too. */
SP_MUST sp_err sp_op_clock_read(const sp_op_clock *c, int step,
                                sp_bench_op *out);

/* The step whose time is the median, with an even number the shorter of the
 * two in the middle; `sorted` gets all times, the shortest first. */
int sp_median_step(const double *ms, double *sorted, int n);

#endif
