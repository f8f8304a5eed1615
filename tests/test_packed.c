/* Products with packed weights, against plain loops. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { MOST_ROWS = 50 };

/* A product, and what it reads and writes. */
typedef struct product {
    sp_conv_how how;
    sp_packed p;
    int n;
    float beta;
    float *w, *x, *before, *y; /* x, before, y: of n rows when opened */
} product;

static float *random_floats(size_t count, uint32_t seed)
{
    float *p = malloc(sizeof *p * (count ? count : 1));

    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
    return p;
}

/* Exactly what the functions ask for, so that a sanitizer sees what goes
 * beyond. */
static void *block(size_t bytes)
{
    void *p = aligned_alloc(SP_ALIGN, (bytes / SP_ALIGN + 1) * SP_ALIGN);

    ck_assert_ptr_nonnull(p);
    return memset(p, 0xff, bytes);
}

static product product_open(const sp_conv_how *how, int in, int out,
                            bool transposed, int n)
{
    product a = { .how = *how,
                  .p = { .in = in, .out = out, .transposed = transposed },
                  .n = n };

    a.w = random_floats((size_t)in * (size_t)out, 1);
    a.x = random_floats((size_t)in * (size_t)n, 2);
    a.before = random_floats((size_t)out * (size_t)n, 3);
    a.y = random_floats((size_t)out * (size_t)n, 4);
    a.p.data = block(sp_packed_size(how, in, out));
    sp_pack(how, &a.p, a.w);
    return a;
}

static void product_close(product *a)
{
    free(a->w);
    free(a->x);
    free(a->before);
    free(a->y);
    free(a->p.data);
}

/* With beta 0, what was there before is not a number. */
static void run(product *a)
{
    size_t floats = (size_t)a->n * (size_t)a->p.out;

    for (size_t i = 0; i < floats; i++)
        a->y[i] = a->beta == 0.0f ? NAN : a->before[i];
    sp_packed_product(&a->how, &a->p, a->n, a->x, a->y, a->beta);
}

static double weight(const product *a, int o, int i)
{
    size_t row = (size_t)(a->p.transposed ? i : o);
    size_t column = (size_t)(a->p.transposed ? o : i);
    size_t length = (size_t)(a->p.transposed ? a->p.out : a->p.in);

    return (double)a->w[row * length + column];
}

/* Errors are of the size of the terms' sum, and of few roundings. */
static void check(const product *a)
{
    for (int r = 0; r < a->n; r++)
        for (int o = 0; o < a->p.out; o++) {
            size_t at = (size_t)r * (size_t)a->p.out + (size_t)o;
            double sum =
                a->beta == 0.0f ? 0.0 : (double)a->beta * (double)a->before[at];
            double size = fabs(sum);
            for (int i = 0; i < a->p.in; i++) {
                double term =
                    (double)a->x[(size_t)r * (size_t)a->p.in + (size_t)i] *
                    weight(a, o, i);
                sum += term;
                size += fabs(term);
            }
            ck_assert_msg(fabs((double)a->y[at] - sum) <= 3e-7 * (size + 0.1),
                          "%s%s in %d out %d n %d beta %g: y[%d][%d] is %.9g "
                          "instead of %.9g",
                          a->how.reference ? "reference of " : "",
                          sp_kernels_isa(a->how.kernels), a->p.in, a->p.out,
                          a->n, (double)a->beta, r, o, (double)a->y[at], sum);
        }
}

/* The i-th way to compute: every table, and the reference. */
static bool way(int i, sp_conv_how *how)
{
    const sp_kernels *k = i == 0 ? sp_kernels_at(0) : sp_kernels_at(i - 1);

    *how = (sp_conv_how){ .kernels = k, .threads = 1, .reference = i == 0 };
    return k != NULL;
}

static const int sizes[][2] = { { 1, 1 },     { 5, 1 },    { 1, 33 },
                                { 16, 16 },   { 33, 5 },   { 5, 200 },
                                { 200, 33 },  { 257, 16 }, { 16, 257 },
                                { 200, 200 }, { 33, 257 }, { 1100, 17 } };

enum { SIZES = sizeof sizes / sizeof *sizes };

START_TEST(products_are_those_of_plain_loops)
{
    static const int rows[] = { 1, 3, 8, 20, 21 };
    static const float betas[] = { 0.0f, 1.0f, -0.5f };
    sp_conv_how how;

    for (int i = 0; way(i, &how); i++)
        for (size_t s = 0; s < SIZES; s++)
            for (int t = 0; t < 2; t++) {
                product a =
                    product_open(&how, sizes[s][0], sizes[s][1], t, MOST_ROWS);
                for (size_t k = 0; k < 5; k++) {
                    a.n = rows[k];
                    a.beta = betas[(k + s + (size_t)t) % 3];
                    run(&a);
                    check(&a);
                }
                product_close(&a);
            }
}
END_TEST

/* Work that is cut for many threads, and rows in every place of a tile. */
START_TEST(bits_depend_on_neither_rows_nor_threads)
{
    static const int shapes[][2] = { { 257, 900 }, { 33, 5 }, { 200, 800 } };
    sp_conv_how how;

    for (int i = 0; way(i, &how); i++)
        for (int s = 0; s < 6; s++) {
            int in = shapes[s / 2][0], out = shapes[s / 2][1];
            size_t length = (size_t)out;
            product a = product_open(&how, in, out, s % 2 != 0, MOST_ROWS);
            float *all = block(sizeof *all * length * MOST_ROWS);
            a.beta = 1.0f;
            run(&a);
            memcpy(all, a.y, sizeof *all * length * MOST_ROWS);
            a.how.threads = 4;
            for (a.n = 1; a.n <= MOST_ROWS; a.n += a.n < 26 ? 1 : 8) {
                run(&a);
                ck_assert_mem_eq(a.y, all, sizeof *all * length * (size_t)a.n);
            }
            free(all);
            product_close(&a);
        }
}
END_TEST

/* More rows than a group has, and rows too long for all columns to see at
 * once. */
START_TEST(large_products_are_those_of_single_rows)
{
    static const int shapes[][3] = { { 1300, 20, 300 }, { 2600, 17, 520 } };
    sp_conv_how how;

    for (int i = 0; way(i, &how); i++)
        for (int s = 0; s < 2; s++) {
            int in = shapes[s][0], out = shapes[s][1], n = shapes[s][2];
            product a = product_open(&how, in, out, s != 0, n);
            float *row = block(sizeof *row * (size_t)out);
            a.beta = s ? 0.5f : 0.0f;
            a.how.threads = 3;
            run(&a);
            check(&a);
            for (size_t r = 0; r < (size_t)n; r++) {
                memcpy(row, a.before + r * (size_t)out,
                       sizeof *row * (size_t)out);
                sp_packed_product(&how, &a.p, 1, a.x + r * (size_t)in, row,
                                  a.beta);
                ck_assert_mem_eq(row, a.y + r * (size_t)out,
                                 sizeof *row * (size_t)out);
            }
            free(row);
            product_close(&a);
        }
}
END_TEST

/* A row of x with what is not a number spoils its own row of y alone. */
START_TEST(rows_are_apart)
{
    enum { IN = 40, OUT = 37, BAD = 6 };
    sp_conv_how how;

    for (int i = 0; way(i, &how); i++) {
        product a = product_open(&how, IN, OUT, false, 13);
        a.x[BAD * IN + 3] = NAN;
        run(&a);
        for (int j = 0; j < a.n * OUT; j++)
            ck_assert_int_eq(isnan(a.y[j]) != 0, j / OUT == BAD);
        product_close(&a);
    }
}
END_TEST

/* Columns [first, first + count) of n rows of `width` floats. */
static float *columns_of(const float *all, int n, int width, int first,
                         int count)
{
    float *part = malloc(sizeof *part * (size_t)n * (size_t)count);

    ck_assert_ptr_nonnull(part);
    for (int r = 0; r < n; r++)
        memcpy(part + (size_t)r * (size_t)count,
               all + (size_t)r * (size_t)width + first,
               sizeof *part * (size_t)count);
    return part;
}

/* The bits of one group's columns are those of its product. */
static void check_group(const product *all, int group)
{
    int in = all->p.in, out = all->p.out, groups = all->p.groups;
    product one = product_open(&all->how, in, out, all->p.transposed, all->n);
    float *x = columns_of(all->x, all->n, groups * in, group * in, in);
    float *before =
        columns_of(all->before, all->n, groups * out, group * out, out);
    float *y = columns_of(all->y, all->n, groups * out, group * out, out);

    one.beta = all->beta;
    memcpy(one.x, x, sizeof *x * (size_t)(all->n * in));
    memcpy(one.before, before, sizeof *y * (size_t)(all->n * out));
    sp_pack(&one.how, &one.p, all->w + (size_t)(group * in * out));
    run(&one);
    ck_assert_mem_eq(one.y, y, sizeof *y * (size_t)(all->n * out));
    free(x);
    free(before);
    free(y);
    product_close(&one);
}

/* Groups are products by themselves, side by side. */
START_TEST(groups_are_products_by_themselves)
{
    enum { GROUPS = 3 };
    static const int shapes[][3] = {
        { 37, 50, 7 }, { 300, 9, 3 }, { 10, 9, 300 }, { 40, 130, 21 }
    };
    sp_conv_how how;

    for (int i = 0; way(i, &how); i++)
        for (int s = 0; s < 8; s++) {
            int in = shapes[s / 2][0], out = shapes[s / 2][1];
            int n = shapes[s / 2][2];
            size_t bytes = sp_packed_size(&how, in, out);
            product all = product_open(&how, in, GROUPS * out, s % 2 != 0, n);
            free(all.x);
            free(all.p.data);
            all.x = random_floats((size_t)(GROUPS * in * n), 5);
            all.p.out = out;
            all.p.groups = GROUPS;
            all.p.data = block(GROUPS * bytes);
            sp_pack(&how, &all.p, all.w);
            all.how.threads = 3;
            all.beta = s % 2 ? 0.5f : 0.0f;
            for (int k = 0; k < GROUPS * out * n; k++)
                all.y[k] = all.beta == 0.0f ? NAN : all.before[k];
            sp_packed_product(&all.how, &all.p, n, all.x, all.y, all.beta);
            for (int g = 0; g < GROUPS; g++)
                check_group(&all, g);
            product_close(&all);
        }
}
END_TEST

START_TEST(without_rows_nothing_is_written)
{
    sp_conv_how how;

    for (int i = 0; way(i, &how); i++) {
        product a = product_open(&how, 20, 30, false, 1);
        a.y[0] = 7;
        sp_packed_product(&how, &a.p, 0, a.x, a.y, 0.0f);
        ck_assert(a.y[0] == 7);
        product_close(&a);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("packed");
    TCase *tc = tcase_create("packed");
    SRunner *run_all = srunner_create(s);

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, products_are_those_of_plain_loops);
    tcase_add_test(tc, bits_depend_on_neither_rows_nor_threads);
    tcase_add_test(tc, large_products_are_those_of_single_rows);
    tcase_add_test(tc, rows_are_apart);
    tcase_add_test(tc, groups_are_products_by_themselves);
    tcase_add_test(tc, without_rows_nothing_is_written);
    suite_add_tcase(s, tc);
    srunner_run_all(run_all, CK_NORMAL);
    int failed = srunner_ntests_failed(run_all);
    srunner_free(run_all);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
