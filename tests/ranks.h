/* Ranks in one process that exchange the gradient of one parameter through a
 * compressor, for the tests of compressors. */
#ifndef SP_TESTS_RANKS_H
#define SP_TESTS_RANKS_H

#include "sprat/compress.h"

enum { RANKS_MAX = 4 };

typedef struct ranks_opt {
    const sp_compressor *compressor;
    const char *settings[8]; /* "ratio=0.01", ...; the rest: defaults */
    int count;
    int rows, columns;
    double ratio; /* density; 0: 1 */
    double momentum;
    bool nesterov;
    double weight[RANKS_MAX]; /* all 0: equal */
} ranks_opt;

typedef struct ranks {
    const sp_compressor *c;
    const void *own;
    int count;
    size_t n;
    sp_slot slot[RANKS_MAX];
    float *grad[RANKS_MAX]; /* to be set before a step */
    float *got[RANKS_MAX];  /* what a step made of them */
    /* Of the last round: its packets, each in a block that ends with it. */
    sp_packet packet[RANKS_MAX];
    sp_registry *registry;
    sp_config *config;
    uint8_t *work[RANKS_MAX]; /* of a step */
} ranks;

ranks *ranks_new(const ranks_opt *o);
void ranks_free(ranks *r);

/* Exchange: all ranks encode and decode everything, with room for not a byte
 * more than they said; the same must arrive everywhere. The step counts on. */
void ranks_step(ranks *r);

/* Settings of a compressor, in r->own. */
void ranks_settings(ranks *r, const sp_compressor *c,
                    const char *const *settings);

/* A number in [-1, 1). */
float ranks_noise(uint64_t a, uint64_t b);

#endif
