/* A gradient compressor of one's own, added at run time: a byte for each
 * element, with what rounding loses kept for the next step.
 *   ./compressor            mpirun -n 2 ./compressor
 */
#include <math.h>
#include <sprat/compress.h>
#include <sprat/dist.h>
#include <sprat/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*   v = residual + gradient, scale = max |v| / 127
 *   send scale and q = round(v / scale); residual = v - scale q
 *
 * Packet: the scale, 4 bytes, then n signed bytes. */

static size_t packet_room(const sp_slot *s, int round)
{
    (void)round;
    return sizeof(float) + s->n;
}

/* Not a number where anything is not finite: the step is then not taken. */
static float scale_of(const float *v, size_t n)
{
    float most = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            return NAN;
        most = fmaxf(most, fabsf(v[i]));
    }
    return most / 127.0f;
}

static void encode(const sp_slot *s, int round, const float *grad, sp_packet *p)
{
    float *v = s->state[0], scale;
    int8_t *q = (int8_t *)p->bytes + sizeof scale;

    (void)round;
    for (size_t i = 0; i < s->n; i++)
        v[i] += grad[i];
    scale = scale_of(v, s->n);
    memcpy(p->bytes, &scale, sizeof scale);
    for (size_t i = 0; i < s->n; i++) {
        q[i] = scale > 0 ? (int8_t)lrintf(v[i] / scale) : 0;
        v[i] -= scale > 0 ? scale * (float)q[i] : 0;
    }
    p->headers = sizeof scale;
    p->values = s->n;
}

/* Of one rank; the exchange calls it for each. A packet may be any bytes. */
static sp_err decode(const sp_slot *s, int round, const void *packet,
                     size_t bytes, float *grad)
{
    const int8_t *q = (const int8_t *)packet + sizeof(float);
    float scale;

    if (bytes != packet_room(s, round))
        return sp_fail(SP_EFORMAT, "packet of %s: %zu bytes instead of %zu",
                       s->name, bytes, packet_room(s, round));
    memcpy(&scale, packet, sizeof scale);
    for (size_t i = 0; i < s->n; i++)
        grad[i] += scale * (float)q[i];
    return SP_OK;
}

static const sp_compressor bytes = {
    .entry = { .name = "bytes", .help = "a byte for each element" },
    .rounds = 1,
    .combine = { SP_GATHER },
    .state_count = 1,
    .state_names = { "bytes_residual" },
    .state_adds = { true },
    .residual = "bytes_residual",
    .packet_room = packet_room,
    .encode = encode,
    .decode = decode,
};

static sp_err train(sp_registry *r, sp_comm *comm)
{
    static const char *const settings[] = {
        "compress.name=bytes", "model.name=mlp",     "model.hidden=[32]",
        "data.name=synthetic", "data.shape=[6,6,1]", "data.classes=4",
        "data.train=512",      "train.batch=32",     "train.epochs=5",
        "optim.lr=0.05",       "optim.momentum=0.9",
    };
    sp_job job = { .run = "runs/compressor",
                   .overwrite = true,
                   .terminal = sp_comm_rank(comm) == 0 ? stdout : NULL,
                   .comm = comm };
    sp_config *c = NULL;
    sp_err e;

    SP_TRY(sp_registry_add(r, "compress", &bytes.entry));
    SP_TRY(sp_config_load(&c, r, NULL, 0, settings,
                          sizeof settings / sizeof *settings));
    e = sp_train(c, &job);
    sp_config_free(c);
    return e;
}

int main(void)
{
    sp_registry *r = sp_registry_new();
    sp_comm *comm = NULL;
    sp_err e = sp_comm_open(&comm);

    if (e == SP_OK)
        e = r ? train(r, comm) : sp_fail(SP_ENOMEM, "out of memory");
    if (e != SP_OK) {
        fprintf(stderr, "compressor: %s\n", sp_last_error());
        sp_comm_abort(comm, EXIT_FAILURE); /* the others may wait */
    }
    sp_comm_close(comm);
    sp_registry_free(r);
    return EXIT_SUCCESS;
}
