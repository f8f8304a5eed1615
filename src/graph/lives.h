/* The buffers of a program, and from when to when each holds something.
 *
 * Time: forward of step i is at i, its backward at 2 * steps - 1 - i.
 */
#ifndef SP_LIVES_H
#define SP_LIVES_H

#include "graph/plan.h"
#include "graph/program.h"

/* The buffers under planning. */
typedef struct sp_blocks {
    sp_block *at;
    int count;
    size_t unplanned; /* bytes without sharing; SIZE_MAX: too many */
} sp_blocks;

static inline int sp_backward_time(const sp_graph *g, int step)
{
    return 2 * g->steps.count - 1 - step;
}

/* The last time at which anything runs. */
static inline int sp_end_time(const sp_graph *g)
{
    return g->opt.train ? 2 * g->steps.count - 1 : g->steps.count - 1;
}

/* How many blocks a program has at most, for the size of sp_blocks.at. */
int sp_lives_most(const sp_graph *g);

/* List the buffers of a program whose backward is marked; each value and step
 * learns the number of its blocks. */
void sp_lives(sp_graph *g, sp_blocks *b);

/* Let element-wise steps write over inputs that nobody reads afterwards: with
 * their outputs in forward, with their gradients in backward. */
void sp_lives_in_place(sp_graph *g, sp_blocks *b);

/* Choose the values that are not kept from forward to backward but computed
 * again (see recompute.c): of those that an operator can compute from what is
 * there anyway, as many as lower the most that is live at one time. Errors:
 * SP_ENOMEM. */
SP_MUST sp_err sp_recompute_choose(sp_graph *g, const sp_blocks *b);

/* Cut the lives of the chosen ones in two, and tell the steps in front of
 * whose backward they are computed. */
void sp_recompute_apply(sp_graph *g, sp_blocks *b);

/* Undo both. */
void sp_recompute_undo(sp_graph *g, sp_blocks *b);

/* One more buffer; returns its number. */
int sp_lives_add(sp_blocks *b, size_t size, int first, int last);

#endif
