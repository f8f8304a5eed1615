/* Models by name: a builder is the forward pass. */
#ifndef SPRAT_MODEL_H
#define SPRAT_MODEL_H

#include "sprat/config.h"
#include "sprat/graph.h"

/* What every model may need to know besides its own keys. */
typedef struct sp_model_args {
    int classes;     /* outputs wanted; for text, tokens of the vocabulary */
    const void *own; /* the model's own settings, as its keys filled them */
} sp_model_args;

/* A model: its name in `model.name`, its keys, its builder. */
typedef struct sp_model {
    sp_entry entry;
    bool text; /* takes tokens of text, not images */
    /* Record the network on images {n,h,w,c} of floats, or on tokens
     * {t,n,1,1,1} of ints in [0, classes); gives the logits, {t,n,1,1,classes}.
     * A value that does not fit is said with sp_graph_fail(). */
    sp_tensor *(*build)(sp_graph *g, sp_tensor *x, const sp_model_args *a);
    /* The layers that low-rank training leaves at full rank, as published:
     * a list for sp_layer_listed(), "conv1 layer1.0 .downsample fc". NULL: no
     * layer is. */
    const char *(*full)(const void *own);
} sp_model;

#endif
