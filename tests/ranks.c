#include "ranks.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/registry.h"
#include "sprat/random.h"

enum { GUARD = 64 };

static const sp_section section = { .name = "compress", .fallback = "" };

float ranks_noise(uint64_t a, uint64_t b)
{
    uint32_t r[4];

    sp_random(77, SP_FOR_TEST, a, b, r);
    return 2 * sp_unit(r[0]) - 1;
}

void ranks_settings(ranks *r, const sp_compressor *c,
                    const char *const *settings)
{
    static const sp_section *const sections[] = { &section };
    char text[9][96];
    const char *overrides[9];
    size_t count = 0;

    snprintf(text[count++], sizeof text[0], "compress.name=%s", c->entry.name);
    for (; settings && settings[count - 1]; count++)
        snprintf(text[count], sizeof text[0], "compress.%s",
                 settings[count - 1]);
    for (size_t i = 0; i < count; i++)
        overrides[i] = text[i];
    r->c = c;
    r->registry = sp_registry_create(sections, 1);
    ck_assert_int_eq(sp_registry_add(r->registry, "compress", &c->entry),
                     SP_OK);
    ck_assert_msg(sp_config_load(&r->config, r->registry, NULL, 0, overrides,
                                 count) == SP_OK,
                  "%s", sp_last_error());
    r->own = sp_config_own(r->config, "compress");
}

static void *array(size_t bytes)
{
    void *x = calloc(bytes + 1, 1);

    ck_assert_ptr_nonnull(x);
    return x;
}

static void make_slot(ranks *r, const ranks_opt *o, int k)
{
    sp_slot *s = &r->slot[k];
    double sum = 0;

    for (int i = 0; i < o->count; i++)
        sum += o->weight[i];
    *s = (sp_slot){ .name = "layer.weight",
                    .n = r->n,
                    .ndim = 2,
                    .dims = { o->rows, o->columns },
                    .rank = k,
                    .ranks = o->count,
                    .seed = 5,
                    .weight = sum > 0 ? o->weight[k] : 1.0 / o->count,
                    .scale = 1,
                    .ratio = o->ratio > 0 ? o->ratio : 1,
                    .momentum = o->momentum,
                    .nesterov = o->nesterov,
                    .cfg = r->own };
    for (int i = 0; i < r->c->state_count; i++) {
        size_t floats = r->c->state_floats ? r->c->state_floats(s, i) : r->n;
        s->state[i] = floats ? array(floats * sizeof(float)) : NULL;
    }
    r->grad[k] = array(r->n * sizeof(float));
    r->got[k] = array(r->n * sizeof(float));
}

ranks *ranks_new(const ranks_opt *o)
{
    ranks *r = array(sizeof *r);

    ranks_settings(r, o->compressor, o->settings);
    r->count = o->count;
    r->n = (size_t)o->rows * (size_t)o->columns;
    for (int k = 0; k < o->count; k++)
        make_slot(r, o, k);
    return r;
}

void ranks_free(ranks *r)
{
    for (int k = 0; k < r->count; k++) {
        for (int i = 0; i < r->c->state_count; i++)
            free(r->slot[k].state[i]);
        free(r->grad[k]);
        free(r->got[k]);
        free(r->packet[k].bytes);
    }
    sp_config_free(r->config);
    sp_registry_free(r->registry);
    free(r);
}

static void check_guard(const uint8_t *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (at[i] != 0xA5)
            ck_abort_msg("written %zu bytes beyond the room", i + 1);
}

static size_t work_of(const ranks *r, int k)
{
    return r->c->work_bytes ? r->c->work_bytes(&r->slot[k]) : 0;
}

/* Work space of a step, with a guard behind it. */
static void begin(ranks *r, int k)
{
    size_t size = work_of(r, k) + GUARD;

    ck_assert_int_eq(posix_memalign((void **)&r->work[k], 64, size), 0);
    memset(r->work[k], 0xA5, size);
    r->slot[k].work = r->work[k];
}

static void end(ranks *r, int k)
{
    check_guard(r->work[k] + work_of(r, k), GUARD);
    free(r->work[k]);
    r->slot[k].work = r->work[k] = NULL;
}

/* Encode into room with a guard, and cut the packet to size. */
static void encode(ranks *r, int k, int round)
{
    sp_slot *s = &r->slot[k];
    size_t room = r->c->packet_room(s, round);
    sp_packet p = { .bytes = array(room + GUARD) };
    size_t size;

    memset(p.bytes, 0xA5, room + GUARD);
    r->c->encode(s, round, r->grad[k], &p);
    size = sp_packet_size(&p);
    ck_assert_uint_le(size, room);
    check_guard(p.bytes + room, GUARD);
    free(r->packet[k].bytes);
    r->packet[k] = p;
    r->packet[k].bytes = malloc(size ? size : 1);
    memcpy(r->packet[k].bytes, p.bytes, size);
    free(p.bytes);
}

/* The sum of the ranks' packets, in rank 0's. */
static void add(ranks *r, sp_combine combine)
{
    size_t size = sp_packet_size(&r->packet[0]);

    for (int k = 1; k < r->count; k++) {
        uint8_t *to = r->packet[0].bytes, *from = r->packet[k].bytes;
        ck_assert_uint_eq(sp_packet_size(&r->packet[k]), size);
        if (combine == SP_SUM_FP16)
            sp_half_add(size / 2, (const uint16_t *)(void *)from,
                        (uint16_t *)(void *)to);
        for (size_t i = 0; combine == SP_SUM && i < size / 4; i++)
            ((float *)(void *)to)[i] += ((float *)(void *)from)[i];
    }
}

static void decode(ranks *r, int k, int round)
{
    const sp_slot *s = &r->slot[k];
    int count = r->c->combine[round] == SP_GATHER ? r->count : 1;

    if (r->c->combine[round] == SP_GATHER)
        memset(r->got[k], 0, r->n * sizeof(float));
    for (int i = 0; i < count; i++) {
        sp_err e = r->c->decode(s, round, r->packet[i].bytes,
                                sp_packet_size(&r->packet[i]), r->got[k]);
        ck_assert_msg(e == SP_OK, "%s", sp_last_error());
    }
}

void ranks_step(ranks *r)
{
    for (int k = 0; k < r->count; k++) {
        memcpy(r->got[k], r->grad[k], r->n * sizeof(float));
        begin(r, k);
    }
    for (int round = 0; round < r->c->rounds; round++) {
        for (int k = 0; k < r->count; k++)
            encode(r, k, round);
        if (r->c->combine[round] != SP_GATHER)
            add(r, r->c->combine[round]);
        for (int k = 0; k < r->count; k++)
            decode(r, k, round);
    }
    for (int k = 0; k < r->count; k++) {
        if (r->c->finish)
            r->c->finish(&r->slot[k], r->got[k]);
        end(r, k);
        ck_assert_int_eq(memcmp(r->got[k], r->got[0], r->n * sizeof(float)), 0);
        r->slot[k].step++;
    }
}
