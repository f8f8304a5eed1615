/* What all compressors have in common, and those that have no test of their
 * own. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compressor_list.h"
#include "ranks.h"
#include "sprat/random.h"

#define X(name) extern const sp_compressor sp_compressor_##name;
SP_COMPRESSOR_LIST
#undef X

static const sp_compressor *const all[] = {
#define X(name) &sp_compressor_##name,
    SP_COMPRESSOR_LIST
#undef X
};
enum { ALL = sizeof all / sizeof *all };

/* Every compressor with the settings that change its packets. */
static const struct {
    const sp_compressor *c;
    const char *settings[3];
    bool exact; /* what is not sent is kept */
} forms[] = {
    { &sp_compressor_dgc, { NULL }, true },
    { &sp_compressor_dgc, { "index=index32" }, true },
    { &sp_compressor_dgc, { "values=fp16" }, true },
    { &sp_compressor_dgc, { "values=fp16", "index=index32" }, true },
    { &sp_compressor_gradient_dropping, { NULL }, true },
    { &sp_compressor_gradient_dropping, { "values=fp16" }, true },
    { &sp_compressor_terngrad, { NULL }, false },
    { &sp_compressor_powersgd, { NULL }, false },
    { &sp_compressor_powersgd, { "warm_start=false", "rank=3" }, false },
    { &sp_compressor_signum, { NULL }, false },
    { &sp_compressor_fp16, { NULL }, false },
};
enum { FORMS = sizeof forms / sizeof *forms };

static ranks_opt options(int form, int count)
{
    ranks_opt o = { .compressor = forms[form].c,
                    .count = count,
                    .rows = 23,
                    .columns = 41,
                    .ratio = 0.01 };

    memcpy(o.settings, forms[form].settings, sizeof forms[form].settings);
    return o;
}

/* Multiples of 2^-12 below 4: their sums are exact. */
static float exact(int step, int rank, size_t i)
{
    return floorf(16384 *
                  powf(ranks_noise((uint64_t)(step * 8 + rank), i), 3)) *
           0x1p-12f;
}

static void fill(ranks *r, int step)
{
    for (int k = 0; k < r->count; k++)
        for (size_t i = 0; i < r->n; i++)
            r->grad[k][i] = exact(step, k, i);
}

/* ---- All of the registry ------------------------------------------------- */

START_TEST(none_takes_nothing)
{
    sp_slot s = { .n = 6, .ndim = 2, .dims = { 2, 3 } };

    ck_assert(!sp_compressor_none.accepts(&s));
    ck_assert(!sp_compressor_none.encode);
    ck_assert_int_eq(sp_compressor_none.rounds, 0);
}
END_TEST

START_TEST(descriptors_are_whole)
{
    const sp_compressor *c = all[_i];

    ck_assert_str_ne(c->entry.help, "");
    ck_assert_int_le(c->rounds, SP_MAX_ROUNDS);
    ck_assert_int_le(c->state_count, SP_MAX_SLOT_STATE);
    for (int i = 0; i < c->state_count; i++)
        ck_assert_ptr_nonnull(c->state_names[i]);
    if (c->rounds > 0)
        ck_assert(c->packet_room && c->encode && c->decode);
    ck_assert(!c->merge || c->combine[0] == SP_GATHER);
    ck_assert(!c->clips == !c->clip_scale);
}
END_TEST

/* Without momentum: all that arrived and all that waits are all gradients. */
START_TEST(sent_and_kept_are_what_was_put_in)
{
    int form = _i / RANKS_MAX;
    ranks_opt o = options(form, _i % RANKS_MAX + 1);
    ranks *r = ranks_new(&o);
    double *rest = calloc(r->n, sizeof *rest);

    for (int t = 0; t < 12; t++) {
        fill(r, t);
        ranks_step(r);
        for (int k = 0; k < r->count; k++)
            for (size_t i = 0; i < r->n; i++)
                rest[i] += (double)r->grad[k][i];
        for (size_t i = 0; i < r->n; i++)
            rest[i] -= (double)r->got[0][i];
    }
    for (int k = 0; k < r->count; k++)
        for (int a = 0; a < r->c->state_count; a++)
            for (size_t i = 0;
                 r->c->state_adds[a] && r->slot[k].state[a] && i < r->n; i++)
                rest[i] -= (double)r->slot[k].state[a][i];
    for (size_t i = 0; forms[form].exact && i < r->n; i++)
        if (rest[i] != 0)
            ck_abort_msg("element %zu: %g is missing", i, rest[i]);
    free(rest);
    ranks_free(r);
}
END_TEST

/* Zeros stay zeros, and take next to nothing where entries are chosen. */
START_TEST(zeros_are_fine)
{
    ranks_opt o = options(_i / RANKS_MAX, _i % RANKS_MAX + 1);
    ranks *r = ranks_new(&o);

    for (int t = 0; t < 2; t++) {
        ranks_step(r);
        for (size_t i = 0; i < r->n; i++)
            if (r->got[0][i] != 0)
                ck_abort_msg("%g came of zeros", (double)r->got[0][i]);
    }
    if (forms[_i / RANKS_MAX].exact)
        ck_assert_uint_le(sp_packet_size(&r->packet[0]), 6);
    ranks_free(r);
}
END_TEST

/* From a tensor that is not 0, something is sent; wherever it is. */
START_TEST(something_is_always_sent)
{
    static const int shapes[][2] = { { 1, 1 }, { 1, 2 }, { 60, 700 } };
    int form = _i / 3;
    ranks_opt o = options(form, 2);
    ranks *r;

    o.rows = shapes[_i % 3][0];
    o.columns = shapes[_i % 3][1];
    o.ratio = 0.001;
    r = ranks_new(&o);
    r->grad[1][r->n - 1] = -0x1p-30f;
    ranks_step(r);
    /* TernGrad clips it, Signum sends its sign. */
    ck_assert_float_lt(r->got[0][r->n - 1], 0);
    if (forms[form].exact)
        ck_assert_float_eq(r->got[0][r->n - 1], -0x1p-30f);
    ranks_free(r);
}
END_TEST

/* What is not finite is never sent as an entry: that the step cannot be taken
 * is told by other means. */
START_TEST(broken_gradients_break_no_packet)
{
    ranks_opt o = options(_i, 2);
    ranks *r = ranks_new(&o);

    for (int t = 0; t < 3; t++) {
        fill(r, t);
        r->grad[0][5] = NAN;
        r->grad[0][6] = INFINITY;
        r->grad[1][7] = -INFINITY;
        for (int k = 0; k < 2; k++)
            memcpy(r->got[k], r->grad[k], r->n * sizeof(float));
        ranks_step(r);
    }
    ranks_free(r);
}
END_TEST

START_TEST(steps_are_functions_of_their_slot)
{
    ranks_opt o = options(_i, 3);
    ranks *a = ranks_new(&o), *b = ranks_new(&o);

    for (int t = 0; t < 4; t++) {
        fill(a, t);
        fill(b, t);
        ranks_step(a);
        ranks_step(b);
        ck_assert_mem_eq(a->got[0], b->got[0], a->n * sizeof(float));
    }
    ranks_free(a);
    ranks_free(b);
}
END_TEST

/* Of a slot that is large enough to be cut. */
START_TEST(threads_change_nothing)
{
    ranks_opt o = options(_i, 1);
    ranks *a, *b;

    o.rows = 700;
    o.columns = 901;
    a = ranks_new(&o);
    b = ranks_new(&o);
    b->slot[0].threads = 3;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < a->n; i++)
            a->grad[0][i] = b->grad[0][i] = ranks_noise((uint64_t)t, i);
        ranks_step(a);
        ranks_step(b);
        ck_assert_mem_eq(a->got[0], b->got[0], a->n * sizeof(float));
    }
    for (int i = 0; i < a->c->state_count; i++) {
        size_t n = a->c->state_floats ? a->c->state_floats(a->slot, i) : a->n;
        if (a->slot[0].state[i])
            ck_assert_mem_eq(a->slot[0].state[i], b->slot[0].state[i],
                             n * sizeof(float));
    }
    ranks_free(a);
    ranks_free(b);
}
END_TEST

/* A residual that overflows is told to all, since it would never be sent. */
START_TEST(what_overflows_is_told)
{
    ranks_opt o = options(_i, 2);
    ranks *r = ranks_new(&o);
    int t = 0;

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < r->n; i++)
            r->grad[k][i] = k == 1 ? 3e38f : 1;
    for (; t < 3 && isfinite(r->got[0][0]); t++)
        ranks_step(r);
    /* 1 in 100 is sent each time: others have been added up. */
    ck_assert(!forms[_i].exact || !isfinite(r->got[0][0]));
    ranks_free(r);
}
END_TEST

/* The sum of two packets is the packet of their sum. */
START_TEST(merging_is_adding)
{
    ranks_opt o = options(_i, 2);
    ranks *r = ranks_new(&o);
    size_t size[2], both;
    float *x = calloc(r->n, sizeof *x);
    sp_packet out = { 0 };

    if (r->c->merge && (!r->c->merges || r->c->merges(r->own))) {
        fill(r, 0);
        ranks_step(r);
        for (int k = 0; k < 2; k++)
            size[k] = sp_packet_size(&r->packet[k]);
        both = size[0] + size[1];
        out.bytes = malloc(both);
        ck_assert_int_eq(r->c->merge(&r->slot[0], r->packet[0].bytes, size[0],
                                     r->packet[1].bytes, size[1], &out),
                         SP_OK);
        ck_assert_uint_le(sp_packet_size(&out), both);
        ck_assert_int_eq(
            r->c->decode(&r->slot[0], 0, out.bytes, sp_packet_size(&out), x),
            SP_OK);
        ck_assert_mem_eq(x, r->got[0], r->n * sizeof *x);
        free(out.bytes);
    } else {
        ck_assert(!forms[_i].exact || strstr(forms[_i].settings[0], "fp16"));
    }
    free(x);
    ranks_free(r);
}
END_TEST

/* ---- Foreign bytes ------------------------------------------------------- */

static uint32_t dice(uint64_t round, uint64_t b)
{
    uint32_t r[4];

    sp_random(12, SP_FOR_TEST, round, b, r);
    return r[0];
}

/* Any bytes are decoded into the gradient or refused with a text. */
START_TEST(any_bytes_are_refused_or_decoded)
{
    enum { ROUNDS = 8000, GUARD = 8 };
    ranks_opt o = options(_i, 1);
    ranks *r = ranks_new(&o);
    const sp_packet *p = &r->packet[0];
    float *grad = malloc((r->n + 2 * GUARD) * sizeof *grad);
    void *work = calloc(1, r->c->work_bytes ? r->c->work_bytes(r->slot) : 1);
    size_t refused = 0;

    fill(r, 0);
    ranks_step(r);
    r->slot[0].work = work;
    for (uint64_t t = 0; t < ROUNDS; t++) {
        size_t size = sp_packet_size(p), how = dice(t, 0) % 8, room = size + 9;
        uint8_t *bytes = malloc(room);
        sp_err e;

        memcpy(bytes, p->bytes, size);
        memset(bytes + size, (int)dice(t, 1), 9);
        for (size_t i = 0; i < how && size > 0; i++)
            bytes[dice(t, 2 + i) % (i % 2 || size < 24 ? size : 24)] =
                (uint8_t)dice(t, 20 + i);
        size = how == 5 ? dice(t, 10) % room : how == 6 ? size + 2 : size;
        /* To its end, so that sanitizers see each byte beyond it. */
        uint8_t *block = malloc(size + 1);
        memcpy(block, bytes, size);
        for (size_t i = 0; i < r->n + 2 * GUARD; i++)
            grad[i] = i < GUARD || i >= r->n + GUARD ? 77 : 0;
        sp_fail(SP_OK, "%s", "");
        e = r->c->decode(&r->slot[0], r->c->rounds - 1, block, size,
                         grad + GUARD);
        if (e != SP_OK && (e != SP_EFORMAT || sp_last_error()[0] == 0))
            ck_abort_msg("error %d without a word", e);
        refused += e != SP_OK;
        for (size_t i = 0; i < GUARD; i++)
            if (grad[i] != 77 || grad[r->n + GUARD + i] != 77)
                ck_abort_msg("written beyond the gradient");
        free(block);
        free(bytes);
    }
    ck_assert_uint_gt(refused, ROUNDS / 10);
    free(work);
    free(grad);
    ranks_free(r);
}
END_TEST

/* ---- Sizes --------------------------------------------------------------- */

/* 6 bytes an entry and a header, as in the paper's table: ResNet-50's largest
 * matrix. */
START_TEST(packets_have_the_size_of_the_paper)
{
    ranks_opt o = options(0, 1);
    ranks *r;
    size_t k, escapes = 0;

    o.rows = 512;
    o.columns = 4608;
    o.ratio = 0.001;
    r = ranks_new(&o);
    for (size_t i = 0; i < r->n; i++)
        r->grad[0][i] = ranks_noise(1, i);
    /* 6 bytes of each thousandth of 512 x 4608. */
    ck_assert_double_eq_tol(r->c->nominal_bytes(&r->slot[0], 0), 14155.776,
                            1e-6);
    ranks_step(r);
    k = r->packet[0].values / 4;
    ck_assert_uint_le(k, 2360);
    ck_assert_uint_ge(k, 1888);
    escapes = r->packet[0].places / 2 - k;
    ck_assert_uint_le(escapes, r->n / 65535);
    ck_assert_uint_eq(sp_packet_size(&r->packet[0]), 4 + 6 * k + 2 * escapes);
    ranks_free(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compressors");
    TCase *tc = tcase_create("compressors");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, none_takes_nothing);
    tcase_add_loop_test(tc, descriptors_are_whole, 0, ALL);
    tcase_add_loop_test(tc, sent_and_kept_are_what_was_put_in, 0,
                        FORMS * RANKS_MAX);
    tcase_add_loop_test(tc, zeros_are_fine, 0, FORMS * RANKS_MAX);
    tcase_add_loop_test(tc, something_is_always_sent, 0, FORMS * 3);
    tcase_add_loop_test(tc, broken_gradients_break_no_packet, 0, FORMS - 1);
    tcase_add_loop_test(tc, steps_are_functions_of_their_slot, 0, FORMS);
    tcase_add_loop_test(tc, threads_change_nothing, 0, FORMS);
    tcase_add_loop_test(tc, what_overflows_is_told, 0, FORMS);
    tcase_add_loop_test(tc, merging_is_adding, 0, FORMS);
    tcase_add_loop_test(tc, any_bytes_are_refused_or_decoded, 0, FORMS);
    tcase_add_test(tc, packets_have_the_size_of_the_paper);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
