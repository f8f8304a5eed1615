/* Convolutions: all three passes, by every instruction set of this CPU and by
 * the reference, against loops that follow the definition in double. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "sprat/random.h"

typedef struct example {
    int n;
    sp_conv_shape s; /* oh, ow are worked out */
} example;

/* n, {h, w, cin, -, -, cout, kh, kw, stride, pad, groups} */
static const example examples[] = {
    /* Odd: one pixel, one channel, ragged blocks, empty borders. */
    { 1, { 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1 } },
    { 2, { 5, 7, 3, 0, 0, 5, 3, 3, 1, 1, 1 } },
    { 1, { 9, 4, 1, 0, 0, 17, 3, 3, 1, 1, 1 } },
    { 3, { 7, 7, 5, 0, 0, 33, 3, 3, 2, 1, 1 } },
    { 2, { 8, 8, 4, 0, 0, 16, 1, 1, 2, 0, 1 } },
    { 2, { 6, 5, 6, 0, 0, 9, 2, 3, 1, 0, 3 } },
    { 1, { 5, 5, 8, 0, 0, 8, 3, 3, 1, 1, 8 } },
    { 2, { 11, 9, 2, 0, 0, 4, 5, 5, 1, 2, 1 } },
    { 2, { 15, 13, 3, 0, 0, 7, 7, 7, 2, 3, 1 } },
    { 1, { 10, 10, 3, 0, 0, 6, 3, 3, 4, 0, 1 } },
    { 1, { 4, 4, 2, 0, 0, 3, 3, 3, 1, 3, 1 } },
    { 1, { 3, 3, 2, 0, 0, 2, 1, 1, 7, 0, 1 } },
    /* The kernel covers the image: a matrix product. */
    { 5, { 4, 3, 3, 0, 0, 10, 4, 3, 1, 0, 1 } },
    { 37, { 1, 1, 70, 0, 0, 40, 1, 1, 1, 0, 1 } },
    { 3, { 1, 1, 5200, 0, 0, 3, 1, 1, 1, 0, 1 } },
    /* Real networks' layers, with few images. */
    { 1, { 20, 24, 3, 0, 0, 16, 3, 3, 1, 1, 1 } },
    { 3, { 16, 16, 8, 0, 0, 20, 3, 3, 2, 1, 1 } },
    { 33, { 5, 6, 4, 0, 0, 16, 3, 3, 1, 1, 1 } },
    { 40, { 4, 4, 9, 0, 0, 20, 3, 3, 1, 1, 1 } },
    { 35, { 2, 2, 290, 0, 0, 3, 3, 3, 1, 1, 1 } },
    { 2, { 26, 25, 3, 0, 0, 16, 3, 3, 1, 1, 1 } },
    { 2, { 31, 27, 3, 0, 0, 24, 11, 11, 4, 0, 1 } },
    { 2, { 7, 8, 24, 0, 0, 36, 5, 5, 1, 2, 2 } },
    /* Columns of one register and even channels: pairs, with whole and broken
     * blocks of channels and runs of taps, in groups, ragged, without a second
     * tap. */
    { 3, { 7, 18, 16, 0, 0, 16, 3, 3, 1, 1, 1 } },
    { 2, { 9, 10, 16, 0, 0, 14, 5, 5, 1, 2, 1 } },
    { 2, { 9, 9, 32, 0, 0, 12, 3, 3, 2, 1, 2 } },
    { 3, { 6, 11, 18, 0, 0, 10, 3, 3, 1, 1, 1 } },
    { 3, { 9, 7, 16, 0, 0, 32, 3, 3, 3, 2, 1 } },
    { 21, { 1, 1, 64, 0, 0, 10, 1, 1, 1, 0, 1 } },
    /* For Winograd's tiles: on the borders, several blocks and parts of sums,
     * and weights that all threads stream together. */
    { 2, { 4, 3, 3, 0, 0, 5, 3, 3, 1, 0, 1 } },
    { 2, { 5, 6, 17, 0, 0, 35, 3, 3, 1, 2, 1 } },
    { 9, { 32, 33, 4, 0, 0, 3, 3, 3, 1, 1, 1 } },
    { 7, { 9, 5, 101, 0, 0, 99, 3, 3, 1, 1, 1 } },
    { 9, { 6, 5, 161, 0, 0, 150, 3, 3, 1, 1, 1 } },
    { 4, { 16, 16, 1, 0, 0, 1400, 3, 3, 1, 1, 1 } },
};

enum { EXAMPLES = sizeof examples / sizeof *examples };

typedef struct arrays {
    int n;
    sp_conv_shape s;
    size_t x_count, y_count, w_count;
    float *x, *y, *w, *b; /* y: the gradient of the output, too */
} arrays;

/* Numbers in [-1, 1), the same in every run. */
static float *random_floats(size_t count, uint64_t which)
{
    float *p = malloc(sizeof *p * (count ? count : 1));

    for (size_t i = 0; i < count; i += 4) {
        uint32_t r[4];
        sp_random(7, SP_FOR_TEST, which, i, r);
        for (size_t k = i; k < count && k < i + 4; k++)
            p[k] = 2 * sp_unit(r[k - i]) - 1;
    }
    return p;
}

static arrays arrays_of(int i)
{
    arrays a = { .n = examples[i].n, .s = examples[i].s };
    sp_conv_shape *s = &a.s;

    s->oh = (s->h + 2 * s->pad - s->kh) / s->stride + 1;
    s->ow = (s->w + 2 * s->pad - s->kw) / s->stride + 1;
    a.x_count = (size_t)(a.n * s->h * s->w * s->cin);
    a.y_count = (size_t)(a.n * s->oh * s->ow * s->cout);
    a.w_count = (size_t)(s->cout * s->cin / s->groups * s->kh * s->kw);
    a.x = random_floats(a.x_count, 1);
    a.y = random_floats(a.y_count, 2);
    a.w = random_floats(a.w_count, 3);
    a.b = random_floats((size_t)s->cout, 4);
    return a;
}

static void arrays_free(arrays *a)
{
    free(a->x);
    free(a->y);
    free(a->w);
    free(a->b);
}

typedef struct sums {
    const arrays *a;
    double *sum, *size; /* size: of the absolute values */
} sums;

static size_t result_count(const arrays *a, sp_pass pass)
{
    return pass == SP_FORWARD          ? a->y_count
           : pass == SP_BACKWARD_INPUT ? a->x_count
                                       : a->w_count;
}

/* x[ix] * w[iw] is a term of y[iy]. */
static void add_product(sums *s, sp_pass pass, size_t ix, size_t iw, size_t iy)
{
    const arrays *a = s->a;
    size_t to = pass == SP_FORWARD ? iy : pass == SP_BACKWARD_INPUT ? ix : iw;
    double v = pass == SP_FORWARD ? (double)a->x[ix] * (double)a->w[iw]
               : pass == SP_BACKWARD_INPUT
                   ? (double)a->y[iy] * (double)a->w[iw]
                   : (double)a->x[ix] * (double)a->y[iy];

    s->sum[to] += v;
    s->size[to] += fabs(v);
}

/* The products of output pixel q and tap t. */
static void add_products(sums *to, sp_pass pass, int q, int t)
{
    const sp_conv_shape *s = &to->a->s;
    int cin = s->cin / s->groups, cout = s->cout / s->groups;
    int h = q / s->ow % s->oh * s->stride + t / s->kw - s->pad;
    int w = q % s->ow * s->stride + t % s->kw - s->pad;
    int x = (q / (s->oh * s->ow) * s->h + h) * s->w + w;

    if (h < 0 || h >= s->h || w < 0 || w >= s->w)
        return;
    for (int o = 0; o < s->cout; o++)
        for (int i = 0; i < cin; i++)
            add_product(to, pass, (size_t)(x * s->cin + o / cout * cin + i),
                        (size_t)((o * cin + i) * s->kh * s->kw + t),
                        (size_t)(q * s->cout + o));
}

static sums definition(const arrays *a, sp_pass pass)
{
    size_t count = result_count(a, pass);
    sums s = { .a = a,
               .sum = calloc(count, sizeof(double)),
               .size = calloc(count, sizeof(double)) };

    for (int q = 0; q < a->n * a->s.oh * a->s.ow; q++)
        for (int t = 0; t < a->s.kh * a->s.kw; t++)
            add_products(&s, pass, q, t);
    return s;
}

/* Run a pass into `result`. Arrays and work space have exactly the size that
 * is asked for, so that a sanitizer sees what goes beyond. */
static void run(const arrays *a, const sp_conv_how *how, sp_pass pass,
                float *result, float beta)
{
    size_t bytes = sp_conv_scratch(how, &a->s, a->n, pass);
    void *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);

    memset(scratch, 0xff, bytes);
    if (pass == SP_FORWARD)
        sp_conv_forward(how, &a->s, a->n, a->x, a->w, a->b, result, scratch);
    else if (pass == SP_BACKWARD_INPUT)
        sp_conv_backward_input(how, &a->s, a->n, a->y, a->w, result, beta,
                               scratch);
    else
        sp_conv_backward_weight(how, &a->s, a->n, a->x, a->y, result, beta,
                                scratch);
    free(scratch);
}

/* What the error of an element may be, in units of 1 + the sum of its terms'
 * absolute values. The terms of a whole tile take part in each element of
 * Winograd's: the largest sum of all counts. */
static double tolerance(const sp_conv_how *how)
{
    return how->tile == 4 ? 2e-6 : 1e-6;
}

static double largest(const double *x, size_t count)
{
    double most = 0;

    for (size_t i = 0; i < count; i++)
        most = fmax(most, x[i]);
    return most;
}

static void compare(const arrays *a, const sp_conv_how *how, sp_pass pass,
                    const sums *s, float beta)
{
    size_t count = result_count(a, pass);
    double most = largest(s->size, count);
    float *before = random_floats(count, 5);
    float *result = malloc(sizeof *result * count);

    for (size_t i = 0; i < count; i++)
        result[i] = beta == 0.0f ? NAN : before[i];
    run(a, how, pass, result, beta);
    for (size_t i = 0; i < count; i++) {
        double more = pass == SP_FORWARD ? (double)a->b[i % (size_t)a->s.cout]
                      : beta == 0.0f     ? 0.0
                                         : (double)(beta * before[i]);
        double error = fabs((double)result[i] - more - s->sum[i]);
        /* An assertion costs more than a product: only when it fails. */
        double size = 1 + fabs(more) + (how->tile ? most : s->size[i]);
        if (!(error <= tolerance(how) * size))
            ck_abort_msg(
                "%s, tile %d, pass %d, element %zu: %g instead of %g",
                how->reference ? "reference" : sp_kernels_isa(how->kernels),
                how->tile, (int)pass, i, (double)result[i], s->sum[i] + more);
    }
    free(before);
    free(result);
}

static void compare_all(const arrays *a, const sp_conv_how *how, sp_pass pass,
                        const sums *s)
{
    compare(a, how, pass, s, 0.0f);
    if (pass != SP_FORWARD) {
        compare(a, how, pass, s, 1.0f);
        compare(a, how, pass, s, 0.5f);
    }
}

/* The next way to compute a convolution: directly, then by Winograd's tiles, on
 * the best instruction set, then on the next. False: that was the last. */
static bool next_how(const sp_conv_shape *s, int *i, sp_conv_how *how)
{
    how->kernels = sp_kernels_at(*i / 3);
    how->tile = *i % 3 * 2;
    if (how->tile && !sp_conv_has_tiles(s)) {
        *i += 3 - *i % 3;
        return next_how(s, i, how);
    }
    ++*i;
    return how->kernels;
}

START_TEST(every_pass_follows_the_definition)
{
    arrays a = arrays_of(_i);
    sp_conv_how reference = { sp_kernels_find(NULL), 2, true, 0 };
    sp_conv_how how = { .threads = 2 };

    for (sp_pass pass = SP_FORWARD; pass <= SP_BACKWARD_WEIGHT; pass++) {
        sums s = definition(&a, pass);
        compare_all(&a, &reference, pass, &s);
        for (int i = 0; next_how(&a.s, &i, &how);)
            compare_all(&a, &how, pass, &s);
        free(s.sum);
        free(s.size);
    }
    arrays_free(&a);
}
END_TEST

START_TEST(bits_do_not_depend_on_the_number_of_threads)
{
    arrays a = arrays_of(_i);
    sp_conv_how how = { 0 };

    for (sp_pass pass = SP_FORWARD; pass <= SP_BACKWARD_WEIGHT; pass++)
        for (int i = 0; next_how(&a.s, &i, &how);) {
            size_t count = result_count(&a, pass);
            float *one = malloc(sizeof *one * count);
            float *many = malloc(sizeof *many * count);
            how.threads = 1;
            run(&a, &how, pass, one, 0.0f);
            how.threads = 3;
            run(&a, &how, pass, many, 0.0f);
            ck_assert_mem_eq(one, many, sizeof *one * count);
            if (how.tile) { /* more threads than pieces: they share each */
                how.threads = 20;
                run(&a, &how, pass, many, 0.0f);
            }
            ck_assert_mem_eq(one, many, sizeof *one * count);
            free(one);
            free(many);
        }
    arrays_free(&a);
}
END_TEST

/* Whatever pixels a tile holds besides. */
START_TEST(an_image_has_the_same_bits_alone)
{
    arrays a = arrays_of(_i), alone = a;
    const sp_kernels *k;

    alone.n = 1;
    for (sp_pass pass = SP_FORWARD; pass <= SP_BACKWARD_INPUT; pass++)
        for (int i = 0; (k = sp_kernels_at(i)); i++) {
            sp_conv_how how = { .kernels = k, .threads = 1 };
            size_t count = result_count(&a, pass);
            float *all = malloc(sizeof *all * count);
            float *one = malloc(sizeof *one * count);
            run(&a, &how, pass, all, 0.0f);
            run(&alone, &how, pass, one, 0.0f);
            ck_assert_mem_eq(all, one, sizeof *one * count / (size_t)a.n);
            free(all);
            free(one);
        }
    arrays_free(&a);
}
END_TEST

/* Work space for n images serves any smaller number. */
START_TEST(scratch_grows_with_images)
{
    arrays a = arrays_of(_i);
    sp_conv_how how = { .threads = 2 };

    for (sp_pass pass = SP_FORWARD; pass <= SP_BACKWARD_WEIGHT; pass++)
        for (int i = 0; next_how(&a.s, &i, &how);)
            for (size_t n = 0, last = 0; n <= 70; n++) {
                size_t bytes = sp_conv_scratch(&how, &a.s, (int)n, pass);
                ck_assert_uint_ge(bytes, last);
                last = bytes;
            }
    arrays_free(&a);
}
END_TEST

START_TEST(no_images_are_allowed)
{
    sp_conv_shape s = { 4, 4, 3, 4, 4, 5, 3, 3, 1, 1, 1 };
    float dw[135], x[1] = { 9 }, w[135] = { 0 };

    for (int i = 0; i < 4; i++) {
        sp_conv_how how = { .kernels = sp_kernels_find(NULL),
                            .threads = 2,
                            .reference = i == 3,
                            .tile = i < 3 ? 2 * i : 0 };
        sp_conv_forward(&how, &s, 0, x, w, NULL, x, NULL);
        sp_conv_backward_input(&how, &s, 0, x, w, x, 0.0f, NULL);
        ck_assert(x[0] == 9);
        memset(dw, 0xff, sizeof dw);
        sp_conv_backward_weight(&how, &s, 0, x, x, dw, 0.0f, NULL);
        for (int k = 0; k < 135; k++)
            ck_assert(dw[k] == 0);
        dw[3] = 2;
        sp_conv_backward_weight(&how, &s, 0, x, x, dw, 1.0f, NULL);
        ck_assert(dw[3] == 2);
    }
}
END_TEST

START_TEST(bias_gradient_sums_rows)
{
    enum { ROWS = 1000, COUT = 70 };
    float *dy = random_floats(ROWS * COUT, 1), one[COUT], three[COUT];
    sp_conv_how how = { sp_kernels_find(NULL), 1, false, 0 };

    memset(one, 0xff, sizeof one);
    sp_bias_backward(&how, ROWS, COUT, dy, one, 0.0f);
    for (int j = 0; j < COUT; j++) {
        double sum = 0;
        for (int i = 0; i < ROWS; i++)
            sum += (double)dy[i * COUT + j];
        ck_assert_double_eq_tol((double)one[j], sum, 1e-5);
        three[j] = -1;
    }
    how.threads = 3;
    sp_bias_backward(&how, ROWS, COUT, dy, three, 0.0f);
    ck_assert_mem_eq(one, three, sizeof one);
    sp_bias_backward(&how, 0, COUT, dy, three, 1.0f);
    ck_assert_mem_eq(one, three, sizeof one);
    sp_bias_backward(&how, ROWS, COUT, dy, three, 1.0f);
    ck_assert_float_eq_tol(three[5], 2 * one[5], 1e-5f);
    free(dy);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conv");
    TCase *tc = tcase_create("conv");
    SRunner *r = srunner_create(s);

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_pass_follows_the_definition, 0, EXAMPLES);
    tcase_add_loop_test(tc, bits_do_not_depend_on_the_number_of_threads, 0,
                        EXAMPLES);
    tcase_add_loop_test(tc, an_image_has_the_same_bits_alone, 0, EXAMPLES);
    tcase_add_loop_test(tc, scratch_grows_with_images, 0, EXAMPLES);
    tcase_add_test(tc, no_images_are_allowed);
    tcase_add_test(tc, bias_gradient_sums_rows);
    suite_add_tcase(s, tc);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
