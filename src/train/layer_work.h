/* Work on the weights of layers that ranks and threads share. */
#ifndef SP_TRAIN_LAYER_WORK_H
#define SP_TRAIN_LAYER_WORK_H

#include "dist/comm.h"
#include "sprat/graph.h"

typedef struct sp_layer_work {
    sp_comm *comm;
    int threads;
    const sp_param *const *whole;       /* the weights of each layer, and ... */
    size_t count;                       /* ... how many there are */
    sp_err (*one)(void *arg, size_t i); /* does layer i; threads call it at once
                                           for different ones */
    void *arg;
    const char *failed; /* told behind a layer's name: "cannot be ..." */
} sp_layer_work;

/* Do each layer on one rank, which owner[i] becomes: the one that has least to
 * do up to there, by the operations of a singular value decomposition.
 * Collective. Errors: that of the first layer that failed, SP_ENOMEM, SP_EPEER;
 * on all ranks together. */
SP_MUST sp_err sp_layer_work_do(const sp_layer_work *w, int *owner);

#endif
