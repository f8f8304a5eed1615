/* The states that a network leaves from one batch to the next (sp_state()),
 * for every row of a batch: truncated backpropagation through time carries the
 * values on, and no gradient. */
#ifndef SP_TRAIN_CARRY_H
#define SP_TRAIN_CARRY_H

#include "sprat/graph.h"

/* One state: `rows` rows of c floats. */
typedef struct sp_carried {
    const char *name; /* the graph's, "rnn.h_l0" */
    int c;
    float *now, *next; /* before this batch, and after it */
} sp_carried;

typedef struct sp_carry {
    sp_graph *graph; /* whose states they are */
    sp_carried *at;
    int count;
    int rows;
} sp_carry;

/* The states of a program, all zero, for batches of up to `rows` rows, of
 * which a run computes up to the program's capacity. The graph must outlive
 * them. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_carry_open(sp_carry *c, sp_graph *g, int rows);
void sp_carry_close(sp_carry *c);

/* Zero: where a text begins. */
void sp_carry_reset(sp_carry *c);

/* What rows [first, first + n) of a batch start from, into the program. */
void sp_carry_put(const sp_carry *c, int first, int n);

/* Run the program forward on rows [first, first + run->n) of a batch, from the
 * states that they start from; what they end with is kept for the next batch.
 */
void sp_carry_forward(sp_carry *c, const sp_run *run, int first);

/* The batch is done: the next one starts where it ended. */
void sp_carry_advance(sp_carry *c);

#endif
