/* Gradient dropping: the largest of the accumulated gradients are sent, the
 * rest waits. The optimizer's momentum follows on what arrives.
 *
 *   v = v + gradient
 *   send the largest |v|; there v = 0
 *
 * State:  v, the residual, n floats.
 * Packet: compress/wire.h.
 * Source: Aji, Heafield 2017, "Sparse communication for distributed gradient
 *         descent".
 * Differs: a threshold for each parameter instead of one for all, as in the
 *         comparison of Lin, Han, Mao, Wang, Dally 2018, "Deep gradient
 *         compression", algorithm 1.
 */
#include <stddef.h>

#include "compress/sparse.h"

#define AT(field) offsetof(sp_sparse_cfg, field)

static const sp_key keys[] = {
    { "ratio", SP_FLOAT, AT(ratio), "0.001", 1e-6, 1,
      "density: share of a parameter's gradients that is sent", NULL },
    { "index", SP_CHOICE, AT(index), "run16", 0, 0,
      "places of what is sent: run lengths of 16 bits or indices of 32",
      "run16|index32" },
    { "values", SP_CHOICE, AT(values), "float", 0, 0,
      "fp16: half-precision values; what rounding takes is sent later",
      "float|fp16" },
    { "sample", SP_FLOAT, AT(sample), "0.01", 1e-4, 1,
      "share of a parameter that is looked at for its threshold", NULL },
};

static sp_err check(const void *own, const sp_compress_use *use)
{
    (void)use;
    return sp_sparse_check(own);
}

static double density(const void *own, double progress)
{
    const sp_sparse_cfg *c = own;

    (void)progress;
    return c->ratio;
}

static void encode(const sp_slot *s, int round, const float *grad, sp_packet *p)
{
    const sp_sparse_rule rule = { sp_sparse_add, NULL, s->state[0], false };

    (void)round;
    sp_sparse_encode(s, &rule, grad, p);
}

const sp_compressor sp_compressor_gradient_dropping = {
    .entry = { .name = "gradient_dropping",
               .help = "the largest of the accumulated gradients",
               .cfg_size = sizeof(sp_sparse_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .rounds = 1,
    .combine = { SP_GATHER },
    .state_count = 1,
    .state_names = { "dropping_residual" },
    .state_adds = { true },
    .residual = "dropping_residual",
    .check = check,
    .density = density,
    .accepts = sp_sparse_accepts,
    .packet_room = sp_sparse_room,
    .nominal_bytes = sp_sparse_nominal,
    .work_bytes = sp_sparse_work,
    .encode = encode,
    .decode = sp_sparse_decode,
    .merge = sp_sparse_merge,
    .merges = sp_sparse_merges,
};
