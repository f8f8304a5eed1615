/* Gradient compressors: how the gradient of a parameter crosses the network.
 *
 * Gradients are sums: rank k's gradient is (sum over its own samples) / B, B
 * the whole job's batch, and the exchange adds what the ranks give. Each
 * parameter is a slot. In every step and round each rank encodes a packet for
 * each slot; the packets come together as the round says, and what arrives is
 * decoded into the gradient. Nothing here knows of MPI.
 *
 * Adding a compressor: one file in src/compress/ with a `const sp_compressor
 * sp_compressor_NAME`, its keys among it, and a word in src/meson.build.
 */
#ifndef SPRAT_COMPRESS_H
#define SPRAT_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sprat/config.h"

enum {
    SP_MAX_ROUNDS = 2,
    SP_MAX_SLOT_STATE = 3,
    SP_SLOT_DIMS = 4 /* as many as a parameter may have */
};

/* How the packets of a round come together. */
typedef enum sp_combine {
    SP_GATHER,  /* all-gather: every rank decodes every rank's packet, in their
                   order */
    SP_SUM,     /* all-reduce: arrays of floats, of one size on all ranks, are
                   added */
    SP_SUM_FP16 /* the same of half-precision numbers, IEEE 754 binary16 */
} sp_combine;

/* One parameter, as a compressor sees it in one step. */
typedef struct sp_slot {
    const char *name;
    size_t n; /* elements */
    int ndim, dims[SP_SLOT_DIMS];
    int rank, ranks; /* of the exchange */
    int64_t step;    /* from 0 */
    uint64_t seed;
    double weight;   /* this rank's share of the batch, n_k / B */
    double scale;    /* of the gradient: 1 unless clip_scale() clips */
    double ratio;    /* density: share of the elements to send */
    double momentum; /* the optimizer's */
    bool nesterov;
    double clip;                     /* optim.clip; 0: none */
    float *state[SP_MAX_SLOT_STATE]; /* zero at first */
    void *work;  /* work_bytes() of the compressor, aligned to 64 bytes; what is
                    in it does not last beyond the step */
    int threads; /* that encode() and sums' decode() may use; 0, 1: its own */
    const void *cfg;
} sp_slot;

/* A packet under construction: packet_room() bytes at `bytes`. Its size is the
 * sum of the three, which are counted apart for reports. */
typedef struct sp_packet {
    uint8_t *bytes;
    size_t headers, values, places; /* places: runs or indices */
} sp_packet;

static inline size_t sp_packet_size(const sp_packet *p)
{
    return p->headers + p->values + p->places;
}

/* What else is configured, for check(). */
typedef struct sp_compress_use {
    const char *optimizer; /* its name */
    bool has_momentum;     /* it is SGD, whose momentum may be corrected */
    double momentum;
    bool nesterov;
    double clip;
} sp_compress_use;

typedef struct sp_compressor {
    sp_entry entry;
    int rounds;
    sp_combine combine[SP_MAX_ROUNDS];

    /* Arrays of floats that a rank keeps for each slot and that checkpoints
     * hold as PARAMETER.NAME. Of those that add up, the sum over ranks is what
     * counts (a residual: gradients not yet sent): a run that goes on with
     * other ranks shares them out. The others start anew then. Those of 0
     * floats are not kept. */
    int state_count;
    const char *state_names[SP_MAX_SLOT_STATE];
    bool state_adds[SP_MAX_SLOT_STATE];
    size_t (*state_floats)(const sp_slot *s, int i); /* NULL: s->n each */
    /* That of them which holds what is not yet sent, n floats, to be applied
     * before the network changes (lowrank.residual); NULL: there is none. */
    const char *residual;

    /* Refuse settings that contradict each other or what else is configured
     * (SP_ECONFIG, beginning with "compress.KEY: "); NULL: none can. */
    sp_err (*check)(const void *own, const sp_compress_use *use);

    /* The density at so many epochs since the start, in (0, 1]; at 1 all slots
     * travel dense, with the optimizer's momentum. NULL: always `1`, and
     * packets all the same. */
    double (*density)(const void *own, double progress);
    /* Epochs until the density has reached its last value; NULL: 0. */
    double (*settled)(const void *own);

    /* The optimizer's momentum is within what is sent: what arrives is the
     * step, to be applied as plain SGD does. NULL: never. */
    bool (*owns_momentum)(const void *own);
    /* Gradients are clipped by each rank, before the exchange, so that the sum
     * is not. NULL: never, and gradients leave one by one, as backward gives
     * them. */
    bool (*clips)(const void *own, double clip);
    /* With clips(): by what all of this rank's gradients are multiplied, those
     * that travel dense too; `norm` is the Euclidean norm of all, `s` any slot.
     */
    double (*clip_scale)(const sp_slot *s, double norm);

    /* Whether it takes the slot; the others travel dense, with the optimizer's
     * momentum. Of the shape and settings alone. NULL: all. */
    bool (*accepts)(const sp_slot *s);
    /* The most bytes of a packet, at s->ratio. */
    size_t (*packet_room)(const sp_slot *s, int round);
    /* Bytes of it as papers count them, for predictions: of ratio x n entries,
     * without headers. NULL: packet_room(). */
    double (*nominal_bytes)(const sp_slot *s, int round);
    size_t (*work_bytes)(const sp_slot *s); /* NULL: 0 */

    /* Of the slots accepted, before the first step at a density below 1, when
     * training was dense up to there: take over the optimizer's momentum (n
     * floats, the same on all ranks). NULL: nothing is taken. */
    void (*take_over)(const sp_slot *s, const float *momentum);

    /* Encode the rank's gradient; it is only read. What is not finite must not
     * make a packet that decode() refuses, but one that makes the sum not
     * finite if the state has become so. NULL (and no rounds): nothing is
     * compressed. */
    void (*encode)(const sp_slot *s, int round, const float *grad,
                   sp_packet *p);
    /* Decode into `grad`. SP_GATHER: add one rank's packet to what is there
     * (zero before the first). Sums: the packet is the sum; set it (and in a
     * round that is not the last, leave `grad` as it is). A gathered packet
     * may be any bytes. Errors: SP_EFORMAT; grad may then be changed in part.
     */
    sp_err (*decode)(const sp_slot *s, int round, const void *packet,
                     size_t bytes, float *grad);
    /* After the last round's decoding, on every rank alike. NULL: nothing. */
    void (*finish)(const sp_slot *s, float *grad);

    /* Packet of the sum of two of SP_GATHER, for an exchange that merges on
     * the way; `out` has room for both together. A sum that is not finite is
     * no error: it stays so when it is decoded. The same bits whichever of
     * two is first. Errors: SP_EFORMAT. NULL: packets cannot be merged. */
    sp_err (*merge)(const sp_slot *s, const void *a, size_t a_bytes,
                    const void *b, size_t b_bytes, sp_packet *out);
    /* Whether these settings allow it; NULL: all do. */
    bool (*merges)(const void *own);
} sp_compressor;

/* The compressor's check of its settings. Errors: SP_ECONFIG. */
SP_MUST sp_err sp_compressor_check(const sp_compressor *c, const void *own,
                                   const sp_compress_use *use);

#endif
