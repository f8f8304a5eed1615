/* Packets on their way between ranks, without training. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "ranks_laws.h"
#include "sprat/random.h"
#include "train/packets.h"

enum { SLOTS = 3, RANKS = 16 };

static const size_t slot_sizes[SLOTS] = { 1, 700, 70000 };

/* Gradients of a rank at a step: numbers that are easy to make anew; of the
 * last slot all zero in one step. */
static void fill(float *x, int slot, int step, int rank)
{
    for (size_t i = 0; i < slot_sizes[slot]; i++) {
        uint32_t r[4];

        sp_random(7, SP_FOR_TEST, (uint64_t)(step * 100 + slot * 10 + rank), i,
                  r);
        x[i] = step == 1 && slot == 2 ? 0 : sp_unit(r[0]) - 0.5f;
    }
}

/* All slots of one rank, with their own memory. */
typedef struct side {
    sp_slot slots[SLOTS];
    float *grads[SLOTS], *state[SLOTS], *work[SLOTS];
} side;

static void side_free(side *s)
{
    for (int i = 0; i < SLOTS; i++) {
        free(s->grads[i]);
        free(s->state[i]);
        free(s->work[i]);
    }
}

static bool side_open(side *s, const sp_compressor *c, const void *own,
                      int rank, int ranks)
{
    *s = (side){ 0 };
    for (int i = 0; i < SLOTS; i++) {
        sp_slot *q = &s->slots[i];

        *q = (sp_slot){ .name = "slot",
                        .n = slot_sizes[i],
                        .ndim = 2,
                        .dims = { 1, (int)slot_sizes[i] },
                        .rank = rank,
                        .ranks = ranks,
                        .weight = 1.0 / ranks,
                        .scale = 1,
                        .ratio = 0.01,
                        .momentum = 0.9,
                        .cfg = own };
        s->grads[i] = calloc(q->n, sizeof(float));
        s->state[i] = calloc(2 * q->n, sizeof(float));
        s->work[i] = aligned_alloc(64, (c->work_bytes(q) / 64 + 1) * 64);
        if (!s->grads[i] || !s->state[i] || !s->work[i])
            return false;
        q->state[0] = s->state[i];
        q->state[1] = s->state[i] + q->n;
        q->work = s->work[i];
    }
    return true;
}

/* The sum that all ranks' packets should give, of sides that are all here. */
static sp_err add_all(const sp_compressor *c, side *sides, int ranks, int slot,
                      int step, float *sum)
{
    uint8_t *bytes = malloc(c->packet_room(&sides[0].slots[slot], 0));
    sp_err e = bytes ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    memset(sum, 0, slot_sizes[slot] * sizeof *sum);
    for (int r = 0; e == SP_OK && r < ranks; r++) {
        sp_packet p = { .bytes = bytes };

        fill(sides[r].grads[slot], slot, step, r);
        sides[r].slots[slot].step = step;
        c->encode(&sides[r].slots[slot], 0, sides[r].grads[slot], &p);
        e = c->decode(&sides[r].slots[slot], 0, bytes, sp_packet_size(&p), sum);
    }
    free(bytes);
    return e;
}

/* A rank's side of the packets, and those of all beside it. */
typedef struct scene {
    world *w;
    sp_config *config;
    sp_compressor c; /* dgc, which a check may change */
    side own, sides[RANKS];
    int rank, ranks;
    sp_packets *p;
} scene;

static void scene_close(scene *s)
{
    sp_packets_free(s->p);
    side_free(&s->own);
    for (int r = 0; r < s->ranks; r++)
        side_free(&s->sides[r]);
    sp_config_free(s->config);
}

/* How packets are to travel. */
typedef struct route {
    const char *name;
    bool merge;
    int window;
} route;

static sp_err scene_open(scene *s, world *w, const route *how)
{
    const char *const set[] = { "compress.name=dgc", "compress.index=run16" };
    const void *own;

    *s = (scene){ .w = w,
                  .rank = sp_comm_rank(w->comm),
                  .ranks = sp_comm_ranks(w->comm) };
    SP_TRY(sp_config_load(&s->config, w->registry, &w->config, 1, set, 2));
    if (s->ranks > RANKS)
        return sp_fail(SP_EARG, "at most %d ranks", RANKS);
    s->c = *(const sp_compressor *)sp_config_entry(s->config, "compress");
    own = sp_config_own(s->config, "compress");
    if (!side_open(&s->own, &s->c, own, s->rank, s->ranks))
        return sp_fail(SP_ENOMEM, "out of memory");
    for (int r = 0; r < s->ranks; r++)
        if (!side_open(&s->sides[r], &s->c, own, r, s->ranks))
            return sp_fail(SP_ENOMEM, "out of memory");
    SP_TRY(sp_packets_new(&s->p, &(sp_packets_args){ .comm = w->comm,
                                                     .group = SP_ALL,
                                                     .compressor = &s->c,
                                                     .slots = s->own.slots,
                                                     .grads = s->own.grads,
                                                     .count = SLOTS,
                                                     .merge = how->merge,
                                                     .always_gather = true,
                                                     .window = how->window,
                                                     .threads = 1 }));
    return sp_packets_resize(s->p);
}

static sp_err pass(scene *s, int step)
{
    for (int i = 0; i < SLOTS; i++) {
        s->own.slots[i].step = step;
        sp_packets_add(s->p, (size_t)i);
    }
    return sp_packets_wait(s->p);
}

/* *far: whether what came has other bits than what came together here. */
static sp_err compare(scene *s, int step, double *far)
{
    float *sum = malloc(slot_sizes[SLOTS - 1] * sizeof *sum);
    sp_err e = sum ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    for (int i = 0; e == SP_OK && i < SLOTS; i++) {
        e = add_all(&s->c, s->sides, s->ranks, i, step, sum);
        if (memcmp(sum, s->own.grads[i], slot_sizes[i] * sizeof *sum) != 0)
            *far = 1;
    }
    free(sum);
    return e;
}

/* What arrives has the bits of all ranks' packets decoded in their order, from
 * encoders that run here beside: nothing is lost, or depends on who was
 * first. */
static void packets_arrive(world *w, const route *how)
{
    double far = 0;
    scene s;
    sp_err e = scene_open(&s, w, how);

    for (int step = 0; e == SP_OK && step < 4; step++) {
        for (int i = 0; i < SLOTS; i++)
            fill(s.own.grads[i], i, step, s.rank);
        e = pass(&s, step);
        if (e == SP_OK)
            e = compare(&s, step, &far);
    }
    tell(w, how->name, e, far, 0);
    scene_close(&s);
}

/* Sums of what is finite that are not reach every rank as such. */
static void sums_overflow(world *w, const route *how)
{
    double far = 0;
    scene s;
    sp_err e = scene_open(&s, w, how);

    for (int i = 0; e == SP_OK && i < SLOTS; i++)
        s.own.grads[i][0] = 3e38f;
    if (e == SP_OK)
        e = pass(&s, 0);
    for (int i = 0; e == SP_OK && i < SLOTS; i++)
        far += !isfinite(s.own.grads[i][0]) != (s.ranks > 1);
    tell(w, how->name, e, far, 0);
    scene_close(&s);
}

static sp_err refuse(const sp_slot *s, const void *a, size_t a_bytes,
                     const void *b, size_t b_bytes, sp_packet *out)
{
    (void)a;
    (void)a_bytes;
    (void)b;
    (void)b_bytes;
    (void)out;
    return sp_fail(SP_EFORMAT, "%s is not merged", s->name);
}

/* Who cannot merge leaves nobody waiting: either all ranks, or one that has
 * something to merge. */
static void merging_fails(world *w, const route *how, bool one)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    double failed = 0;
    scene s;
    sp_err e = scene_open(&s, w, how);

    if (e == SP_OK && (!one || s.rank == 1))
        s.c.merge = refuse;
    if (e == SP_OK)
        failed = pass(&s, 0) != SP_OK;
    if (e == SP_OK)
        e = sp_op_wait(w->comm, sp_sum_doubles(w->comm, on, &failed, 1));
    if (e == SP_OK && s.ranks > 1)
        e = one ? (failed >= 1 ? SP_OK : sp_fail(SP_EARG, "none failed"))
            : failed == s.ranks
                ? SP_OK
                : sp_fail(SP_EARG, "%g ranks of %d failed", failed, s.ranks);
    tell(w, how->name, e, 0, 0);
    scene_close(&s);
}

void check_packets(world *w)
{
    packets_arrive(w, &(route){ "packets arrive as sent, in order", false, 0 });
    packets_arrive(w, &(route){ "packets arrive in windows of 1", false, 1 });
    packets_arrive(w, &(route){ "packets arrive in windows of 2", false, 2 });
    packets_arrive(w, &(route){ "packets arrive in windows of 3", false, 3 });
    sums_overflow(w, &(route){ "gathered sums overflow on all", false, 0 });
    sums_overflow(w, &(route){ "merged sums overflow on all", true, 0 });
    merging_fails(w, &(route){ "merging fails on all", true, 0 }, false);
    merging_fails(w, &(route){ "merging fails on one", true, 0 }, true);
}
