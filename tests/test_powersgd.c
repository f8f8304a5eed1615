/* PowerSGD against projections in double, and what must hold of any step. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

extern const sp_compressor sp_compressor_powersgd;

enum { ERROR, Q, RANK_MAX = 4 };

static ranks *make(int count, int rows, int columns, const char *rank)
{
    ranks_opt o = { .compressor = &sp_compressor_powersgd,
                    .settings = { rank },
                    .count = count,
                    .rows = rows,
                    .columns = columns };

    return ranks_new(&o);
}

static void *zeros(size_t n)
{
    double *x = calloc(n + 1, sizeof *x);

    ck_assert_ptr_nonnull(x);
    return x;
}

static void fill(ranks *r, int step)
{
    for (int k = 0; k < r->count; k++)
        for (size_t i = 0; i < r->n; i++)
            r->grad[k][i] = ranks_noise((uint64_t)(8 * step + k), i);
}

/* ---- Against matrices in double ------------------------------------------ */

/* x = A^-1 x for some x of n numbers each, column by column; A is destroyed. */
static void solve(int n, double a[RANK_MAX][RANK_MAX], double *x, size_t count)
{
    for (int p = 0; p < n; p++)
        for (int i = 0; i < n; i++) {
            double share = a[i][p] / a[p][p];

            for (int j = p; i != p && j < n; j++)
                a[i][j] -= share * a[p][j];
            for (size_t c = 0; i != p && c < count; c++)
                x[(size_t)i * count + c] -= share * x[(size_t)p * count + c];
        }
    for (int i = 0; i < n; i++)
        for (size_t c = 0; c < count; c++)
            x[(size_t)i * count + c] /= a[i][i];
}

/* out[i][j] = sum over k of a[k][i] * b[k][j], with k below n. */
static void product(size_t n, size_t rows, size_t columns, const double *a,
                    const double *b, double *out)
{
    memset(out, 0, rows * columns * sizeof *out);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++)
                out[i * columns + j] += a[k * rows + i] * b[k * columns + j];
}

/* M of rows x columns becomes A (A' A)^-1 A' M, A = M Q, and Q, rank x columns,
 * what the next step begins with: the same as PowerSGD's up to a change of the
 * columns among each other, which changes no projection. */
static void project(size_t rows, size_t columns, int rank, double *m, double *q)
{
    size_t r = (size_t)rank;
    double *turned = zeros(rows * columns), *a = zeros(r * rows);
    double *b = zeros(r * columns), square[RANK_MAX * RANK_MAX], most = 0;
    double gram[RANK_MAX][RANK_MAX];

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            turned[j * rows + i] = m[i * columns + j];
    for (size_t k = 0; k < r; k++)
        product(columns, 1, rows, q + k * columns, turned, a + k * rows);
    for (size_t k = 0; k < r; k++)
        product(rows, 1, columns, a + k * rows, m, b + k * columns);
    for (size_t i = 0; i < r; i++)
        for (size_t j = 0; j < r; j++) {
            product(rows, 1, 1, a + i * rows, a + j * rows, square);
            gram[i][j] = square[0];
        }
    for (size_t i = 0; i < r * columns; i++)
        most = fmax(most, fabs(b[i]));
    for (size_t i = 0; i < r * columns; i++)
        q[i] = b[i] / most;
    solve(rank, gram, b, columns);
    product(r, rows, columns, a, b, m);
    free(turned);
    free(a);
    free(b);
}

static const struct {
    int rows, columns;
    const char *rank;
} shapes[] = {
    { 9, 6, "rank=1" },  { 9, 6, "rank=2" },    { 6, 9, "rank=3" },
    { 1, 40, "rank=1" }, { 40, 1, "rank=1" },   { 23, 41, "rank=4" },
    { 5, 17, "rank=2" }, { 300, 700, "rank=2" } /* in three bands */
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Four steps, from a start that both are given: what arrives, with what had not
 * been sent before. */
START_TEST(steps_as_in_double)
{
    int rows = shapes[_i / RANKS_MAX].rows;
    int columns = shapes[_i / RANKS_MAX].columns;
    const char *setting = shapes[_i / RANKS_MAX].rank;
    int rank = setting[5] - '0';
    ranks *r = make(_i % RANKS_MAX + 1, rows, columns, setting);
    double *rest = zeros(r->n), *m = zeros(r->n);
    double *q = zeros((size_t)(rank * columns));

    for (int i = 0; i < rank * columns; i++) {
        q[i] = (double)ranks_noise(99, (uint64_t)i);
        for (int k = 0; k < r->count; k++)
            r->slot[k].state[Q][i] = (float)q[i];
    }
    for (int t = 0; t < 4; t++) {
        fill(r, t);
        ranks_step(r);
        for (size_t i = 0; i < r->n; i++) {
            for (int k = 0; k < r->count; k++)
                rest[i] += (double)r->grad[k][i];
            m[i] = rest[i];
        }
        project((size_t)rows, (size_t)columns, rank, m, q);
        for (size_t i = 0; i < r->n; i++) {
            if (!(fabs((double)r->got[0][i] - m[i]) < 2e-4))
                ck_abort_msg("step %d, element %zu: %g, in double %g", t, i,
                             (double)r->got[0][i], m[i]);
            rest[i] -= m[i];
        }
    }
    free(rest);
    free(m);
    free(q);
    ranks_free(r);
}
END_TEST

enum { MANY = 200000 };

/* Of a matrix of one column everything arrives, though it is a sum over all of
 * its rows that is sent. */
START_TEST(sums_over_many_rows_are_close)
{
    ranks *r = make(1, MANY, 1, "rank=1");

    for (size_t i = 0; i < MANY; i++)
        r->grad[0][i] = 0.1f;
    ranks_step(r);
    for (size_t i = 0; i < MANY; i++)
        ck_assert_double_eq_tol(r->got[0][i], 0.1, 1e-7);
    ranks_free(r);
}
END_TEST

/* The two rows that arrive are in the relation that sums over their columns
 * have. */
START_TEST(sums_over_many_columns_are_close)
{
    ranks *r = make(1, 2, MANY, "rank=1");
    double sum[2] = { 0 };

    for (size_t i = 0; i < r->n; i++) {
        r->grad[0][i] = i < MANY ? 0.1f : 0.3f + 0.1f * ranks_noise(1, i);
        sum[i / MANY] += (double)r->grad[0][i];
    }
    for (size_t i = 0; i < MANY; i++)
        r->slot[0].state[Q][i] = 1;
    ranks_step(r);
    ck_assert_double_eq_tol((double)r->got[0][0] / (double)r->got[0][MANY],
                            sum[0] / sum[1], 2e-6);
    ranks_free(r);
}
END_TEST

/* ---- What is sent and kept ----------------------------------------------- */

/* All that any rank has put in has arrived or waits. */
START_TEST(nothing_is_lost)
{
    ranks *r = make(_i + 1, 9, 6, _i % 2 ? "warm_start=false" : NULL);
    double *rest = zeros(r->n);

    for (int t = 0; t < 40; t++) {
        fill(r, t);
        ranks_step(r);
        for (size_t i = 0; i < r->n; i++) {
            for (int k = 0; k < r->count; k++)
                rest[i] += (double)r->grad[k][i];
            rest[i] -= (double)r->got[0][i];
        }
    }
    for (size_t i = 0; i < r->n; i++) {
        double kept = 0;

        for (int k = 0; k < r->count; k++)
            kept += (double)r->slot[k].state[ERROR][i];
        ck_assert_double_eq_tol(rest[i], kept, 1e-4);
    }
    free(rest);
    ranks_free(r);
}
END_TEST

static double norm(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* Two ranks whose gradients differ in the same way in each step. Were the mean
 * taken from each rank's error, half of the difference would stay for ever:
 * 400 times its norm, which is about 4. */
START_TEST(differences_do_not_add_up)
{
    ranks *r = make(2, 8, 6, NULL);

    for (int t = 0; t < 400; t++) {
        for (size_t i = 0; i < r->n; i++) {
            float common = ranks_noise((uint64_t)t, i);
            float own = ranks_noise(1000, i);
            r->grad[0][i] = common + own;
            r->grad[1][i] = common - own;
        }
        ranks_step(r);
    }
    ck_assert_double_lt(norm(r->slot[0].state[ERROR], r->n), 100);
    ck_assert_double_lt(norm(r->slot[1].state[ERROR], r->n), 100);
    ranks_free(r);
}
END_TEST

/* A matrix of rank `rank` in the sum, though not of any rank alone. */
static void fill_low(ranks *r, int columns, int rank, int step, float size)
{
    for (int k = 0; k < r->count; k++)
        for (size_t i = 0; i < r->n; i++) {
            size_t row = i / (size_t)columns, column = i % (size_t)columns;
            float x = 0, away = ranks_noise(50, i);

            for (int a = 0; a < rank; a++)
                x += ranks_noise((uint64_t)(100 * step + 2 * a), row) *
                     ranks_noise((uint64_t)(100 * step + 2 * a + 1), column);
            if (r->count > 1)
                x += k == 0 ? away : k == 1 ? -away : 0;
            r->grad[k][i] = size * x;
        }
}

static void arrives(const ranks *r, float size, double tolerance)
{
    for (size_t i = 0; i < r->n; i++) {
        double sum = 0;

        for (int k = 0; k < r->count; k++)
            sum += (double)r->grad[k][i];
        if (!(fabs((double)r->got[0][i] - sum) <= (double)size * tolerance))
            ck_abort_msg("element %zu: %g instead of %g", i,
                         (double)r->got[0][i], sum);
    }
}

/* A sum that has the factors' rank arrives whole, of any size; the next one,
 * which starts from its factors, too. */
START_TEST(what_has_its_rank_arrives)
{
    static const float sizes[] = { 1, 1e-30f, 1e30f };
    ranks *r = make(_i % RANKS_MAX + 1, 7, 11, "rank=3");
    float size = sizes[_i / RANKS_MAX];

    for (int t = 0; t < 2; t++) {
        fill_low(r, 11, 3, t, size);
        ranks_step(r);
        arrives(r, size, 1e-4);
    }
    ranks_free(r);
}
END_TEST

/* After a step without gradients, and some of too low a rank, all columns are
 * of use again. */
START_TEST(columns_come_back)
{
    ranks *r = make(1, 7, 11, NULL);

    ranks_step(r);
    for (int t = 0; t < 5; t++) {
        fill_low(r, 11, 1, t, 1);
        ranks_step(r);
        arrives(r, 1, 1e-5);
    }
    fill_low(r, 11, 2, 5, 1);
    ranks_step(r);
    arrives(r, 1, 1e-3);
    memset(r->grad[0], 0, r->n * sizeof(float));
    for (int t = 0; t < 3; t++)
        ranks_step(r);
    fill_low(r, 11, 2, 6, 1);
    ranks_step(r);
    arrives(r, 1, 1e-3);
    ranks_free(r);
}
END_TEST

/* ---- Starts -------------------------------------------------------------- */

/* The random numbers differ from seed to seed, and without a warm start from
 * step to step; of the state, only the error is kept then. */
START_TEST(starts_are_drawn)
{
    ranks *a = make(1, 9, 6, NULL), *b = make(1, 9, 6, NULL);
    ranks *c = make(1, 9, 6, "warm_start=false");

    b->slot[0].seed++;
    fill(a, 0);
    fill(b, 0);
    fill(c, 0);
    ranks_step(a);
    ranks_step(b);
    ranks_step(c);
    ck_assert_mem_ne(a->got[0], b->got[0], a->n * sizeof(float));
    ck_assert_mem_eq(a->got[0], c->got[0], a->n * sizeof(float));
    ck_assert_ptr_null(c->slot[0].state[Q]);
    memset(c->slot[0].state[ERROR], 0, c->n * sizeof(float));
    ranks_step(c);
    ck_assert_mem_ne(a->got[0], c->got[0], a->n * sizeof(float));
    ranks_free(a);
    ranks_free(b);
    ranks_free(c);
}
END_TEST

/* The same gradients again and again: with a warm start what arrives comes
 * closer to the best that the rank allows. Singular values 1, 0.9, ... */
START_TEST(warm_starts_come_closer)
{
    ranks *r = make(1, 8, 8, "rank=1");
    double first = 0, last = 0;

    for (int t = 0; t < 40; t++) {
        for (size_t i = 0; i < 8; i++)
            r->grad[0][9 * i] = 1 - 0.1f * (float)i;
        ranks_step(r);
        last = norm(r->got[0], r->n);
        first = t == 0 ? last : first;
        memset(r->slot[0].state[ERROR], 0, r->n * sizeof(float));
    }
    ck_assert_double_lt(first, 0.95);
    ck_assert_double_eq_tol(last, 1, 1e-3);
    ranks_free(r);
}
END_TEST

/* ---- Edges --------------------------------------------------------------- */

START_TEST(not_finite_is_told)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    ranks *r = make(2, 9, 6, NULL);
    bool finite = true;

    fill(r, 0);
    r->grad[1][17] = bad[_i];
    ranks_step(r);
    for (size_t i = 0; i < r->n; i++)
        finite &= isfinite(r->got[0][i]);
    ck_assert(!finite);
    ranks_free(r);
}
END_TEST

static const struct {
    int ndim, dims[4], rank;
    bool want;
} taken[] = {
    { 1, { 64 }, 2, false },
    { 2, { 64, 64 }, 2, true },
    { 2, { 64, 64 }, 31, true },
    { 2, { 64, 64 }, 32, false }, /* 32 x 128 = 64 x 64 */
    { 4, { 8, 3, 3, 3 }, 2, true },
    { 4, { 8, 3, 3, 3 }, 7, false }, /* 7 x 35 > 216 */
    { 2, { 1, 100 }, 1, false },
    { 2, { 100, 2 }, 1, true },
    { 2, { 100, 2 }, 2, false },
};

START_TEST(what_would_not_shrink_travels_dense)
{
    sp_slot s = { .n = 1, .ndim = taken[_i].ndim };
    const sp_compressor *c = &sp_compressor_powersgd;
    char setting[16];
    ranks r = { 0 };

    snprintf(setting, sizeof setting, "rank=%d", taken[_i].rank);
    ranks_settings(&r, c, (const char *const[]){ setting, NULL });
    s.cfg = r.own;
    for (int i = 0; i < s.ndim; i++) {
        s.dims[i] = taken[_i].dims[i];
        s.n *= (size_t)s.dims[i];
    }
    ck_assert_int_eq(c->accepts(&s), taken[_i].want);
    /* Both factors together. */
    if (s.ndim > 1)
        ck_assert_int_eq(c->packet_room(&s, 0) + c->packet_room(&s, 1) <
                             s.n * sizeof(float),
                         taken[_i].want);
    sp_config_free(r.config);
    sp_registry_free(r.registry);
}
END_TEST

START_TEST(other_sizes_are_refused)
{
    ranks *r = make(1, 9, 6, NULL);
    float packet[20] = { 0 }, work[64], grad[54];

    r->slot[0].work = work;
    /* Two columns of 9, then two of 6. */
    for (int round = 0; round < 2; round++)
        for (size_t size = 0; size <= sizeof packet; size++) {
            sp_err e = r->c->decode(&r->slot[0], round, packet, size, grad);

            ck_assert_int_eq(e == SP_OK, size == (round == 0 ? 72 : 48));
            ck_assert(e == SP_OK || e == SP_EFORMAT);
        }
    ranks_free(r);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *s = suite_create("powersgd");
    TCase *tc = tcase_create("powersgd");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, steps_as_in_double, 0, SHAPES * RANKS_MAX);
    tcase_add_test(tc, sums_over_many_rows_are_close);
    tcase_add_test(tc, sums_over_many_columns_are_close);
    tcase_add_loop_test(tc, nothing_is_lost, 0, RANKS_MAX);
    tcase_add_test(tc, differences_do_not_add_up);
    tcase_add_loop_test(tc, what_has_its_rank_arrives, 0, 3 * RANKS_MAX);
    tcase_add_test(tc, columns_come_back);
    tcase_add_test(tc, starts_are_drawn);
    tcase_add_test(tc, warm_starts_come_closer);
    tcase_add_loop_test(tc, not_finite_is_told, 0, 3);
    tcase_add_loop_test(tc, what_would_not_shrink_travels_dense, 0,
                        COUNT(taken));
    tcase_add_test(tc, other_sizes_are_refused);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
