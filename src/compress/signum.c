/* Signum with majority vote: each rank sends the signs of its momentum, one bit
 * an element, and the step is the sign that most ranks have.
 *
 *   m = momentum * m + (1 - momentum) * gradient
 *   send the sign of m
 *   step = sign of the sum over ranks of the signs;  0 where they are as many
 *
 * Every rank has one vote, whatever its share of the batch. What arrives is a
 * step of plain SGD, x -= lr * step, in which each element moves by lr.
 *
 * One bit cannot tell a momentum of 0, as of a word that no sample has had. It
 * votes + if step + rank is even, else -: two neighbours cancel in one step,
 * and a rank cancels itself in two. A rank whose momenta of a parameter are all
 * 0 has no vote about it. What is too small for a normal float becomes 0:
 * rounding would keep it, and its vote, for ever.
 *
 * State:  m, n floats, each rank's own.
 * Packet: a byte: 0: signs follow; 1: no vote; 2: what was to be sent is not
 *         finite. Then 1 bit an element, eight of them in a byte, the first
 *         lowest: 1 for -. Bits of the last byte that stand for no element
 *         are 0.
 * Source: Bernstein, Wang, Azizzadenesheli, Anandkumar 2018, "signSGD:
 *         Compressed optimisation for non-convex problems", algorithms 2
 *         (Signum) and 3 (majority vote); Bernstein, Zhao, Azizzadenesheli,
 *         Anandkumar 2019, "signSGD with majority vote is communication
 *         efficient and fault tolerant", algorithm 1.
 * Differs: the paper does not say how a momentum of 0 is sent; were it always
 *         the same sign, what has no gradient would move by lr in every step.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "compress/bytes.h"
#include "sprat/compress.h"
#include "sprat/op.h"

typedef struct signum_cfg {
    double momentum;
} signum_cfg;

static const sp_key keys[] = {
    { "momentum", SP_FLOAT, offsetof(signum_cfg, momentum), "0.9", 0, 0.999999,
      "share of the momentum that stays; 0: signs of gradients (signSGD)",
      NULL },
};

/* The first byte of a packet. */
enum { SIGNS, NO_VOTE, NOT_FINITE };

enum {
    HEADER = 1,
    PART = 1 << 16, /* elements that one thread takes at one time */
    BLOCK = 64
};

static sp_err check(const void *own, const sp_compress_use *use)
{
    (void)own;
    if (!use->has_momentum)
        return sp_fail(SP_ECONFIG,
                       "compress.name: signum gives steps of plain SGD, but "
                       "optim.name is %s: set optim.name=sgd",
                       use->optimizer);
    if (use->momentum != 0)
        return sp_fail(SP_ECONFIG,
                       "compress.name: signum has a momentum of its own, "
                       "compress.momentum, but optim.momentum is %g too: set "
                       "optim.momentum=0%s",
                       use->momentum,
                       use->nesterov ? " and optim.nesterov=false" : "");
    if (use->clip > 0)
        return sp_fail(SP_ECONFIG,
                       "compress.name: signum gives steps of one length, which "
                       "optim.clip, %g, would only make shorter: set "
                       "optim.clip=0, and optim.lr as it is to be",
                       use->clip);
    return SP_OK;
}

static size_t sign_bytes(size_t n) { return n / 8 + (n % 8 > 0); }

static size_t packet_room(const sp_slot *s, int round)
{
    (void)round;
    return HEADER + sign_bytes(s->n);
}

static double nominal_bytes(const sp_slot *s, int round)
{
    (void)round;
    return (double)s->n / 8;
}

/* ---- Encoding ------------------------------------------------------------ */

/* What the momenta of a part are; of all, if one part is so. */
typedef struct found {
    int32_t nonzero, not_finite;
} found;

static size_t parts_of(const sp_slot *s) { return (s->n + PART - 1) / PART; }

static size_t work_bytes(const sp_slot *s)
{
    return parts_of(s) * sizeof(found);
}

typedef struct job {
    const sp_slot *s;
    const float *grad;
    float keep, take; /* of momentum and gradient */
    bool zero_minus;  /* how 0 votes */
    uint8_t *bits;
} job;

/* The momenta of a block, and for each whether it votes -. */
static void move(const job *j, size_t first, size_t n, uint8_t *restrict minus,
                 found *f)
{
    const float *restrict g = j->grad + first;
    float *restrict m = j->s->state[0] + first;
    float keep = j->keep, take = j->take;
    int32_t nonzero = 0, not_finite = 0, zero_minus = j->zero_minus;

    for (size_t i = 0; i < n; i++) {
        float x = keep * m[i] + take * g[i];

        m[i] = fabsf(x) < FLT_MIN ? 0 : x;
    }
    for (size_t i = 0; i < n; i++) {
        nonzero |= m[i] != 0;
        not_finite |= !(fabsf(m[i]) <= FLT_MAX);
    }
    for (size_t i = 0; i < n; i++)
        minus[i] = (uint8_t)((m[i] < 0) | ((m[i] == 0) & zero_minus));
    f->nonzero |= nonzero;
    f->not_finite |= not_finite;
}

/* Eight bytes of 0 or 1 as bits: byte k's copy at 56 + k is the only one of its
 * eight copies there, and none carries. */
static uint8_t pack(const uint8_t *flag)
{
    uint64_t x = (uint64_t)sp_get32(flag) | (uint64_t)sp_get32(flag + 4) << 32;

    return (uint8_t)(x * 0x0102040810204080 >> 56);
}

static void encode_part(void *arg, size_t begin, size_t end)
{
    const job *j = arg;
    found f = { 0 };

    for (size_t i = begin; i < end; i += BLOCK) {
        size_t n = end - i < BLOCK ? end - i : BLOCK;
        uint8_t minus[BLOCK] = { 0 };

        move(j, i, n, minus, &f);
        for (size_t k = 0; k < n; k += 8)
            j->bits[(i + k) / 8] = pack(minus + k);
    }
    ((found *)j->s->work)[begin / PART] = f;
}

static uint8_t header_of(const sp_slot *s)
{
    const found *part = s->work;
    found all = { 0 };

    for (size_t i = 0; i < parts_of(s); i++) {
        all.nonzero |= part[i].nonzero;
        all.not_finite |= part[i].not_finite;
    }
    return all.not_finite ? NOT_FINITE : all.nonzero ? SIGNS : NO_VOTE;
}

static void encode(const sp_slot *s, int round, const float *grad, sp_packet *p)
{
    const signum_cfg *c = s->cfg;
    job j = { .s = s,
              .grad = grad,
              .keep = (float)c->momentum,
              .take = (float)((1 - c->momentum) * s->scale),
              .zero_minus = (s->step + s->rank) % 2 != 0,
              .bits = p->bytes + HEADER };

    (void)round;
    sp_parallel_for(s->threads, s->n, PART, encode_part, &j);
    p->bytes[0] = header_of(s);
    p->headers = HEADER;
    p->values = p->bytes[0] == SIGNS ? sign_bytes(s->n) : 0;
}

/* ---- Votes --------------------------------------------------------------- */

/* Eight bits as bytes of 0 or 1: byte k of the copies keeps bit k, and becomes
 * 1 where that is set. */
static void unpack(uint8_t bits, uint8_t *flag)
{
    uint64_t x = (uint64_t)bits * 0x0101010101010101 & 0x8040201008040201;

    x = (x + 0x7F7F7F7F7F7F7F7F) >> 7 & 0x0101010101010101;
    sp_put32(flag, (uint32_t)x);
    sp_put32(flag + 4, (uint32_t)(x >> 32));
}

static void count(const uint8_t *bits, size_t n, float *restrict votes)
{
    uint8_t minus[BLOCK];

    for (size_t i = 0; i < n; i += BLOCK) {
        size_t size = n - i < BLOCK ? n - i : BLOCK;

        for (size_t k = 0; k < size; k += 8)
            unpack(bits[(i + k) / 8], minus + k);
        for (size_t k = 0; k < size; k++)
            votes[i + k] += 1.0f - 2.0f * (float)minus[k];
    }
}

static sp_err check_packet(const sp_slot *s, const uint8_t *packet,
                           size_t bytes)
{
    size_t want = HEADER;

    if (bytes < HEADER || packet[0] > NOT_FINITE)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: its first byte is none that is written; "
                       "it is damaged",
                       s->name);
    if (packet[0] == SIGNS)
        want += sign_bytes(s->n);
    if (bytes != want)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: %zu bytes instead of %zu; it is damaged, "
                       "or from a rank with other settings",
                       s->name, bytes, want);
    if (packet[0] == SIGNS && s->n % 8 > 0 &&
        packet[bytes - 1] >> s->n % 8 != 0)
        return sp_fail(SP_EFORMAT,
                       "packet of %s: bits that stand for no element are set; "
                       "it is damaged",
                       s->name);
    return SP_OK;
}

static sp_err decode(const sp_slot *s, int round, const void *packet,
                     size_t bytes, float *grad)
{
    const uint8_t *at = packet;

    (void)round;
    SP_TRY(check_packet(s, at, bytes));
    if (at[0] == SIGNS)
        count(at + HEADER, s->n, grad);
    else if (at[0] == NOT_FINITE)
        grad[0] = NAN;
    return SP_OK;
}

/* What is not a number stays so. */
static void finish(const sp_slot *s, float *grad)
{
    for (size_t i = 0; i < s->n; i++)
        grad[i] = grad[i] > 0 ? 1.0f : grad[i] < 0 ? -1.0f : grad[i];
}

const sp_compressor sp_compressor_signum = {
    .entry = { .name = "signum",
               .help = "signs of each rank's momentum; the step is that of "
                       "most",
               .cfg_size = sizeof(signum_cfg),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .rounds = 1,
    .combine = { SP_GATHER },
    .state_count = 1,
    .state_names = { "signum_momentum" },
    .state_adds = { false },
    .check = check,
    .packet_room = packet_room,
    .nominal_bytes = nominal_bytes,
    .work_bytes = work_bytes,
    .encode = encode,
    .decode = decode,
    .finish = finish,
};
