/* Matrices as products of two factors, against matrices whose singular values
 * are known: they are made of them. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/split.h"
#include "sprat/op.h"

/* Numbers in [-1, 1) from a seed. */
static double random_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) * 0x1p-23 - 1.0;
}

static void *array(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);

    ck_assert_ptr_nonnull(p);
    return p;
}

/* An orthogonal matrix {n, n}: reflections, one after the other. */
static double *orthogonal(int n, uint32_t seed)
{
    size_t m = (size_t)n;
    double *q = array(m * m, sizeof *q), *h = array(m, sizeof *h);

    for (size_t i = 0; i < m; i++)
        q[i * m + i] = 1;
    for (int k = 0; k < 6; k++) {
        double squares = 0;
        for (size_t i = 0; i < m; i++) {
            h[i] = random_number(&seed);
            squares += h[i] * h[i];
        }
        for (size_t r = 0; r < m; r++) {
            double dot = 0;
            for (size_t i = 0; i < m; i++)
                dot += q[r * m + i] * h[i];
            for (size_t i = 0; i < m; i++)
                q[r * m + i] -= 2 * dot / squares * h[i];
        }
    }
    free(h);
    return q;
}

/* w = sum over i, k of c[i][k] times column i of p times column k of q. */
static void compose(const double *p, const double *q, int rows, int columns,
                    double (*c)(int i, int k), float *w)
{
    int most = rows < columns ? columns : rows;
    double *half = array((size_t)(rows * columns), sizeof *half);
    double *full = array((size_t)(rows * columns), sizeof *full);

    for (int i = 0; i < rows; i++)
        for (int k = 0; k < columns && k < most; k++)
            for (int j = 0; c(i, k) != 0 && j < columns; j++)
                half[i * columns + j] += c(i, k) * q[j * columns + k];
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                full[r * columns + j] +=
                    p[r * rows + i] * half[i * columns + j];
    for (int i = 0; i < rows * columns; i++)
        w[i] = (float)full[i];
    free(half);
    free(full);
}

static double falling(int i, int k) { return i == k ? 3.0 / (1 + i) : 0; }

static double equal(int i, int k) { return i == k ? 2 : 0; }

static double three(int i, int k) { return i == k && i < 3 ? 3 - i : 0; }

static double steep(int i, int k) { return i == k ? pow(0.05, i) : 0; }

static double all_pairs(int i, int k) { return 1.0 / (2 + i + 3 * k); }

typedef struct matrix {
    int rows, columns;
    double *p, *q;
    float *w;
    sp_factored f;
} matrix;

static matrix open_matrix(int rows, int columns, double (*c)(int, int))
{
    matrix m = { .rows = rows,
                 .columns = columns,
                 .p = orthogonal(rows, 1),
                 .q = orthogonal(columns, 2) };
    size_t most = (size_t)(rows < columns ? rows : columns);

    m.w = array((size_t)(rows * columns), sizeof *m.w);
    compose(m.p, m.q, rows, columns, c, m.w);
    m.f = (sp_factored){ .rows = rows, .columns = columns };
    m.f.v = array((size_t)rows * most, sizeof(float));
    m.f.u = array((size_t)columns * most, sizeof(float));
    return m;
}

static void close_matrix(matrix *m)
{
    free(m->p);
    free(m->q);
    free(m->w);
    free(m->f.v);
    free(m->f.u);
}

static int side(const matrix *m)
{
    return m->rows < m->columns ? m->rows : m->columns;
}

static double split(matrix *m, int rank)
{
    double lost = NAN;

    m->f.rank = rank;
    ck_assert_msg(sp_matrix_split(m->w, &m->f, &lost) == SP_OK, "%s",
                  sp_last_error());
    return lost;
}

/* ||w - v u||^2, in double. */
static double error_of(const matrix *m)
{
    const sp_factored *f = &m->f;
    double sum = 0;

    for (int i = 0; i < f->rows; i++)
        for (int j = 0; j < f->columns; j++) {
            double x = m->w[i * f->columns + j];
            for (int k = 0; k < f->rank; k++)
                x -= (double)f->v[i * f->rank + k] *
                     (double)f->u[k * f->columns + j];
            sum += x * x;
        }
    return sum;
}

/* Squared singular values from i on. */
static double tail(const matrix *m, double (*c)(int, int), int i)
{
    double sum = 0;

    for (; i < side(m); i++)
        sum += c(i, i) * c(i, i);
    return sum;
}

static const struct {
    int rows, columns;
} sizes[] = { { 12, 40 }, { 40, 12 },  { 7, 7 },    { 1, 9 },   { 9, 1 },
              { 1, 1 },   { 40, 300 }, { 300, 30 }, { 64, 256 } };

static double (*const spreads[])(int, int) = { falling, equal, three, steep };

enum { SPREADS = sizeof spreads / sizeof *spreads };

START_TEST(the_error_is_the_tail_of_the_singular_values)
{
    matrix m;

    for (int s = 0; s < SPREADS; s++) {
        m = open_matrix(sizes[_i].rows, sizes[_i].columns, spreads[s]);
        double all = tail(&m, spreads[s], 0);
        int ranks[] = { 1, (side(&m) + 1) / 2, side(&m) };
        for (int r = 0; r < 3; r++) {
            double lost = split(&m, ranks[r]);
            double left = tail(&m, spreads[s], ranks[r]);
            ck_assert_double_eq_tol(error_of(&m), left, 1e-6 * all);
            ck_assert_double_eq_tol(lost, left / all, 1e-7);
            ck_assert(lost >= 0 && lost <= 1);
        }
        close_matrix(&m);
    }
}
END_TEST

START_TEST(full_rank_keeps_the_matrix)
{
    for (int s = 0; s < SPREADS; s++) {
        matrix m = open_matrix(sizes[_i].rows, sizes[_i].columns, spreads[s]);
        split(&m, side(&m));
        ck_assert_double_le(sqrt(error_of(&m)),
                            1e-6 * sqrt(tail(&m, spreads[s], 0)));
        close_matrix(&m);
    }
}
END_TEST

/* Column i of v and row i of u have the squared norm s_i. */
START_TEST(both_factors_have_the_root_of_each_singular_value)
{
    matrix m = open_matrix(sizes[_i].rows, sizes[_i].columns, falling);

    split(&m, side(&m));
    for (int i = 0; i < m.f.rank; i++) {
        double v = 0, u = 0;
        for (int r = 0; r < m.rows; r++)
            v += pow(m.f.v[r * m.f.rank + i], 2);
        for (int c = 0; c < m.columns; c++)
            u += pow(m.f.u[i * m.columns + c], 2);
        ck_assert_double_eq_tol(v, falling(i, i), 1e-5);
        ck_assert_double_eq_tol(u, falling(i, i), 1e-5);
    }
    close_matrix(&m);
}
END_TEST

static void all_finite(const float *x, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert(isfinite(x[i]));
}

/* Beyond the rank of the matrix. */
START_TEST(every_column_can_be_trained)
{
    for (int tall = 0; tall < 2; tall++) {
        matrix m = open_matrix(tall ? 30 : 12, tall ? 12 : 30, three);
        split(&m, 8);
        all_finite(m.f.v, m.rows * 8);
        all_finite(m.f.u, m.columns * 8);
        for (int i = 0; i < 8; i++) {
            double norm = 0;
            for (int k = 0; k < 12; k++)
                norm += pow(tall ? m.f.u[i * 12 + k] : m.f.v[k * 8 + i], 2);
            ck_assert_double_ge(norm, 1e-7);
        }
        ck_assert_double_le(error_of(&m), 1e-12);
        close_matrix(&m);
    }
}
END_TEST

static double nothing(int i, int k)
{
    (void)i;
    (void)k;
    return 0;
}

START_TEST(zeros_have_factors)
{
    matrix m = open_matrix(sizes[_i].rows, sizes[_i].columns, nothing);
    double v = 0, u = 0;
    int rank = (side(&m) + 1) / 2;

    ck_assert_double_eq(split(&m, rank), 0);
    all_finite(m.f.v, m.rows * rank);
    all_finite(m.f.u, m.columns * rank);
    ck_assert_double_eq(error_of(&m), 0);
    for (int i = 0; i < m.rows * rank; i++)
        v += fabsf(m.f.v[i]);
    for (int i = 0; i < m.columns * rank; i++)
        u += fabsf(m.f.u[i]);
    ck_assert((v > 0) != (u > 0));
    close_matrix(&m);
}
END_TEST

START_TEST(sizes_of_numbers_do_not_matter)
{
    static const float factors[] = { 1e-30f, 1e-12f, 1e12f, 1e30f };
    matrix m = open_matrix(12, 40, falling);
    double all = tail(&m, falling, 0), f = factors[_i];

    for (int i = 0; i < 12 * 40; i++)
        m.w[i] *= factors[_i];
    ck_assert_double_eq_tol(split(&m, 5), tail(&m, falling, 5) / all, 1e-7);
    ck_assert_double_eq_tol(error_of(&m) / (f * f), tail(&m, falling, 5),
                            1e-6 * all);
    close_matrix(&m);
}
END_TEST

/* Ten splits of the same matrix. */
typedef struct splits {
    const float *w;
    sp_factored f[10];
    sp_err e[10];
} splits;

static void split_some(void *arg, size_t begin, size_t end)
{
    splits *s = arg;

    for (size_t i = begin; i < end; i++)
        s->e[i] = sp_matrix_split(s->w, &s->f[i], NULL);
}

START_TEST(the_bits_do_not_depend_on_threads)
{
    matrix m = open_matrix(48, 90, falling);
    splits s = { .w = m.w };

    split(&m, 12);
    for (int i = 0; i < 10; i++) {
        s.f[i] = (sp_factored){ .rows = 48, .columns = 90, .rank = 12 };
        s.f[i].v = array(48 * 12, sizeof(float));
        s.f[i].u = array(12 * 90, sizeof(float));
    }
    sp_parallel_for(4, 10, 1, split_some, &s);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(s.e[i], SP_OK);
        ck_assert_mem_eq(s.f[i].v, m.f.v, 48 * 12 * sizeof(float));
        ck_assert_mem_eq(s.f[i].u, m.f.u, 12 * 90 * sizeof(float));
        free(s.f[i].v);
        free(s.f[i].u);
    }
    close_matrix(&m);
}
END_TEST

START_TEST(what_is_not_finite_is_refused)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    matrix m = open_matrix(sizes[_i].rows, sizes[_i].columns, falling);
    double lost, a, b;

    m.f.rank = 1;
    for (int i = 0; i < 3; i++) {
        m.w[(m.rows * m.columns - 1) * i / 2] = bad[i];
        ck_assert_int_eq(sp_matrix_split(m.w, &m.f, &lost), SP_ENUMERIC);
        ck_assert_int_eq(sp_matrix_norms(m.w, m.rows, m.columns, &a, &b),
                         SP_ENUMERIC);
        ck_assert_int_eq(sp_matrix_outside(&m.f, m.w, &a, &b), SP_ENUMERIC);
    }
    for (int i = 0; i < 3; i++) {
        memset(m.w, 0, (size_t)(m.rows * m.columns) * sizeof *m.w);
        m.f.u[0] = bad[i];
        ck_assert_int_eq(sp_matrix_outside(&m.f, m.w, &a, &b), SP_ENUMERIC);
    }
    close_matrix(&m);
}
END_TEST

START_TEST(ranks_are_from_one_to_the_smaller_side)
{
    static const int bad[] = { -1, 0, 13 };
    matrix m = open_matrix(12, 40, falling);
    double lost;

    m.f.rank = bad[_i];
    ck_assert_int_eq(sp_matrix_split(m.w, &m.f, &lost), SP_EARG);
    ck_assert_ptr_nonnull(strstr(sp_last_error(), "1 to 12"));
    close_matrix(&m);
}
END_TEST

START_TEST(norms_are_those_of_the_singular_values)
{
    for (int s = 0; s < SPREADS; s++) {
        matrix m = open_matrix(sizes[_i].rows, sizes[_i].columns, spreads[s]);
        double squares, largest, first = 0;
        for (int i = 0; i < side(&m); i++)
            first = fmax(first, pow(spreads[s](i, i), 2));
        ck_assert_int_eq(
            sp_matrix_norms(m.w, m.rows, m.columns, &squares, &largest), SP_OK);
        ck_assert_double_eq_tol(squares, tail(&m, spreads[s], 0), 1e-5);
        ck_assert_double_eq_tol(largest, first, 1e-5);
        close_matrix(&m);
    }
}
END_TEST

/* With w = P diag(s) Q^T, v and u have the first `rank` columns of P and Q; of
 * g = P c Q^T that leaves the c[i][k] with i and k from the rank on. */
START_TEST(outside_is_what_neither_factor_reaches)
{
    matrix m = open_matrix(sizes[_i].rows, sizes[_i].columns, falling);
    int rank = (side(&m) + 1) / 2, size = m.rows * m.columns;
    float *g = array((size_t)size, sizeof *g);
    double all = 0, left = 0, squares, outside;

    split(&m, rank);
    compose(m.p, m.q, m.rows, m.columns, all_pairs, g);
    for (int i = 0; i < m.rows; i++)
        for (int k = 0; k < m.columns; k++) {
            double x = pow(all_pairs(i, k), 2);
            all += x;
            left += i >= rank && k >= rank ? x : 0;
        }
    ck_assert_int_eq(sp_matrix_outside(&m.f, g, &outside, &squares), SP_OK);
    ck_assert_double_eq_tol(squares, all, 1e-5 * all);
    ck_assert_double_eq_tol(outside, left, 1e-5 * all);
    free(g);
    close_matrix(&m);
}
END_TEST

/* A zero factor reaches nothing; the other all that it did before. */
START_TEST(a_direction_that_is_missing_is_none)
{
    matrix m = open_matrix(12, 40, falling);
    float *g = array(12 * 40, sizeof *g);
    double all = 0, left = 0, squares, outside;

    split(&m, 4);
    compose(m.p, m.q, 12, 40, all_pairs, g);
    memset(m.f.v, 0, 12 * 4 * sizeof(float));
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 40; k++) {
            all += pow(all_pairs(i, k), 2);
            left += k >= 4 ? pow(all_pairs(i, k), 2) : 0;
        }
    ck_assert_int_eq(sp_matrix_outside(&m.f, g, &outside, &squares), SP_OK);
    ck_assert_double_eq_tol(outside, left, 1e-5 * all);
    memset(m.f.u, 0, 40 * 4 * sizeof(float));
    ck_assert_int_eq(sp_matrix_outside(&m.f, g, &outside, &squares), SP_OK);
    ck_assert_double_eq_tol(outside, all, 1e-5 * all);
    free(g);
    close_matrix(&m);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("split");
    TCase *tc = tcase_create("split");
    SRunner *run = srunner_create(s);
    int failed, all = COUNT(sizes);

    tcase_add_loop_test(tc, the_error_is_the_tail_of_the_singular_values, 0,
                        all);
    tcase_add_loop_test(tc, full_rank_keeps_the_matrix, 0, all);
    tcase_add_loop_test(tc, both_factors_have_the_root_of_each_singular_value,
                        0, all);
    tcase_add_test(tc, every_column_can_be_trained);
    tcase_add_loop_test(tc, zeros_have_factors, 0, all);
    tcase_add_loop_test(tc, sizes_of_numbers_do_not_matter, 0, 4);
    tcase_add_test(tc, the_bits_do_not_depend_on_threads);
    tcase_add_loop_test(tc, what_is_not_finite_is_refused, 0, all);
    tcase_add_loop_test(tc, ranks_are_from_one_to_the_smaller_side, 0, 3);
    tcase_add_loop_test(tc, norms_are_those_of_the_singular_values, 0, all);
    tcase_add_loop_test(tc, outside_is_what_neither_factor_reaches, 0, all);
    tcase_add_test(tc, a_direction_that_is_missing_is_none);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
