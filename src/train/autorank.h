/* Ranks that training itself shows: `lowrank.rank: auto`.
 *
 * The stable rank of a layer, see sp_stable_rank(), is looked at before the
 * first step and after every epoch at full rank. When that of no layer changes
 * any more, the network becomes one of low rank, and each layer's rank is
 *
 *   min(full, ceil(scale * stable rank)),  scale = full / that at the start,
 *
 * since the weights are random then, and of full rank.
 *
 * A layer's sequence is smoothed by an exponential moving average; the layer is
 * stable when the mean of |slope| over the average's last points is small; once
 * it is, it stays so. The last two layers may change more.
 *
 * Source: Wang et al. 2023, "Cuttlefish: Low-rank model training without all
 *         the tuning", section 3; the constants are those of its code for
 *         CIFAR-10.
 * Differs: there the stable rank is cut to an integer, here it is not; there
 *          one more epoch is trained at full rank when all are stable; there
 *          layers that would not get faster are found by measuring them, here
 *          those stay at full rank that are in `lowrank.full`, and those whose
 *          factors would not be smaller.
 */
#ifndef SP_TRAIN_AUTORANK_H
#define SP_TRAIN_AUTORANK_H

#include "base/json.h"

/* Slopes that are judged: central differences, but for the last; they come of
 * one point more. */
enum { SP_AUTORANK_SLOPES = 11, SP_AUTORANK_POINTS = SP_AUTORANK_SLOPES + 1 };

/* A layer that may become one of low rank. */
typedef struct sp_autorank_layer {
    char *whole;               /* the name of its weights */
    int blocks, rows, columns; /* its matrix: blocks of rows, each its own */
    double scale;              /* 0: not known yet */
    double stable_rank;        /* the last one */
    double points[SP_AUTORANK_POINTS]; /* smoothed, the oldest first */
    bool stable;
    int rank; /* that was chosen; 0: full */
} sp_autorank_layer;

typedef struct sp_autorank {
    sp_autorank_layer *layers;
    int count;
    int epochs;  /* that were looked at, beside the start */
    bool chosen; /* the ranks are */
} sp_autorank;

/* Room for so many layers, all of it zero. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_autorank_room(sp_autorank *a, int count);
SP_MUST sp_err sp_autorank_copy(sp_autorank *to, const sp_autorank *from);

/* Free what it owns, and leave it empty. */
void sp_autorank_free(sp_autorank *a);

/* Take every layer's stable rank before the first step. */
void sp_autorank_start(sp_autorank *a, const double *stable_ranks);

/* Take those behind one more epoch. Layers are judged when there are enough
 * points, those of 11 epochs and of the start, and from `warmup` epochs on. */
void sp_autorank_add(sp_autorank *a, const double *stable_ranks, int warmup);

/* Layers that are not stable yet. */
int sp_autorank_left(const sp_autorank *a);

/* The rank that a layer would get now, at least 1; and whether factors of it
 * are smaller than the layer. */
int sp_autorank_estimate(const sp_autorank_layer *l);
bool sp_autorank_pays(const sp_autorank_layer *l);

/* Choose the ranks, if all layers are stable and it pays for one of them;
 * whether they are chosen. */
bool sp_autorank_choose(sp_autorank *a);

/* The layer of that name, as an sp_rank_rule is asked for; NULL: none. */
const sp_autorank_layer *sp_autorank_find(const sp_autorank *a,
                                          const char *layer);

/* Into an open object, as "autorank", if there are layers; and out of one that
 * may have none. Errors: SP_EFORMAT naming what is wrong, SP_ENOMEM. */
void sp_autorank_write(sp_json *j, const sp_autorank *a);
SP_MUST sp_err sp_autorank_read(const sp_json_value *object, sp_autorank *a);

#endif
