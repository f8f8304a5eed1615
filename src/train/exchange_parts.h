/* What the files of the exchange share. */
#ifndef SP_TRAIN_EXCHANGE_PARTS_H
#define SP_TRAIN_EXCHANGE_PARTS_H

#include "train/dense.h"
#include "train/exchange.h"
#include "train/packets.h"

enum { SP_LEVELS = SP_LIST_MAX + 2 }; /* a list, before it and after it */

struct sp_exchange {
    sp_exchange_args args;
    sp_param **params; /* all that are trained, in recording order: a step's
                          slots */
    size_t count;
    int *slot_of; /* by the parameter's index; -1: a buffer */
    int *taken;   /* by slot: its number among those; -1: dense */
    float **own;  /* memory of the slots' states, to free */

    /* What the compressor takes, packed: the packets' slots. */
    sp_slot *packed;
    float **packed_grads;
    size_t packed_count;

    sp_group among;      /* who exchanges packets */
    bool leads;          /* this rank is in that group */
    sp_dense *dense;     /* sums among them */
    sp_dense *node;      /* sums within the host, with `args.node` */
    sp_packets *packets; /* NULL: none are taken */

    bool until_dense; /* training was dense up to here */
    bool compressing; /* in this step */
    double ratio;
    double squares; /* of this rank's gradients that are final */
    double weight, waited;
    double *dense_bytes;        /* that travelled so, by slot */
    int64_t steps;              /* done */
    sp_level levels[SP_LEVELS]; /* steps and bytes before each */
    int level_count;
};

static inline const sp_compressor *sp_exchange_rule(const sp_exchange *x)
{
    return x->args.compressor;
}

/* Set the density of all slots that are taken. */
void sp_exchange_set_ratio(sp_exchange *x, double ratio);

/* Floats of a slot's state i. */
size_t sp_exchange_state_floats(const sp_exchange *x, const sp_slot *s, int i);

#endif
