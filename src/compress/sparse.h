/* What compressors share that send the largest of their residual: of what their
 * gradients have left unsent so far. */
#ifndef SP_COMPRESS_SPARSE_H
#define SP_COMPRESS_SPARSE_H

#include "sprat/compress.h"

/* Stands first in the settings of such a compressor, whose ratio, in a slot,
 * is the density of the step. */
typedef struct sp_sparse_cfg {
    double ratio;
    double sample;
    int index;  /* an sp_places */
    int values; /* an sp_values */
} sp_sparse_cfg;

/* Errors: SP_ECONFIG for a ratio that is not below 1. */
SP_MUST sp_err sp_sparse_check(const sp_sparse_cfg *c);

/* Matrices and larger: vectors are few and travel dense, with the optimizer's
 * momentum. */
bool sp_sparse_accepts(const sp_slot *s);

size_t sp_sparse_room(const sp_slot *s, int round);
double sp_sparse_nominal(const sp_slot *s, int round);
size_t sp_sparse_work(const sp_slot *s);

/* Part of a parameter, to which gradients are to be added. */
typedef struct sp_sparse_part {
    size_t n;
    const float *grad;
    float *momentum, *residual;
    float share; /* of the momentum that stays */
    float scale; /* of the gradient */
} sp_sparse_part;

/* How a compressor accumulates and what it forgets. */
typedef struct sp_sparse_rule {
    void (*add)(const sp_sparse_part *p); /* to `residual`, by parts */
    float *momentum;                      /* n each; NULL: none */
    float *residual;
    bool masking; /* momentum becomes 0 where something is sent */
} sp_sparse_rule;

/* residual += scale * gradient. */
void sp_sparse_add(const sp_sparse_part *p);

/* Add the gradient, send the largest of the residual, and take out of it what
 * the others receive. Where it is not finite (a sum that overflows, say) the
 * packet tells so, and the step is as if a gradient were not. */
void sp_sparse_encode(const sp_slot *s, const sp_sparse_rule *rule,
                      const float *grad, sp_packet *p);

/* As in an sp_compressor. */
sp_err sp_sparse_decode(const sp_slot *s, int round, const void *packet,
                        size_t bytes, float *grad);
sp_err sp_sparse_merge(const sp_slot *s, const void *a, size_t a_bytes,
                       const void *b, size_t b_bytes, sp_packet *out);
bool sp_sparse_merges(const void *own);

#endif
