/* bench-kernels: how near the convolution kernels come to the machine's limit.
 *
 * One line a shape, pass and algorithm: the best time, GFLOP/s by the direct
 * count of operations, and their share of the multiply-add peak. The peak is
 * measured in turn with the pass, since clocks change from second to second;
 * of both the best of many short rounds counts.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/table.h"

enum { FIELDS = 8, EXIT_USAGE = 2, ROUNDS = 5, PASSES = 3, ALGORITHMS = 3 };

/* h, w, cin, cout, k, stride, pad, groups; images unless --batch says. */
typedef struct example {
    int v[FIELDS];
    int batch;
} example;

static const example examples[] = {
    { { 32, 32, 16, 16, 3, 1, 1, 1 }, 128 },
    { { 16, 16, 32, 32, 3, 1, 1, 1 }, 128 },
    { { 8, 8, 64, 64, 3, 1, 1, 1 }, 128 },
    { { 32, 32, 64, 64, 3, 1, 1, 1 }, 128 },
    { { 16, 16, 128, 128, 3, 1, 1, 1 }, 128 },
    { { 8, 8, 256, 256, 3, 1, 1, 1 }, 128 },
    { { 4, 4, 512, 512, 3, 1, 1, 1 }, 128 },
    { { 2, 2, 512, 512, 3, 1, 1, 1 }, 128 },
    { { 32, 32, 64, 128, 3, 2, 1, 1 }, 128 },
    { { 32, 32, 64, 128, 1, 2, 0, 1 }, 128 },
    { { 32, 32, 3, 16, 3, 1, 1, 1 }, 128 },
    { { 32, 32, 3, 64, 3, 1, 1, 1 }, 128 },
    { { 224, 224, 3, 64, 7, 2, 3, 1 }, 16 },
    { { 224, 224, 3, 64, 11, 4, 2, 1 }, 16 },
    { { 27, 27, 64, 192, 5, 1, 2, 1 }, 16 },
    { { 14, 14, 256, 256, 3, 1, 1, 32 }, 16 },
    { { 1, 1, 512, 512, 1, 1, 0, 1 }, 20 },
};

static const char *const passes[PASSES] = { "forward", "input", "weights" };

/* How a convolution may be computed. */
static const struct {
    const char *name;
    int tile;
} algorithms[ALGORITHMS] = { { "direct", 0 },
                             { "F(2x2)", 2 },
                             { "F(4x4)", 4 } };

typedef struct options {
    const char *program; /* as it was called, for messages */
    const char *isa, *pass, *algorithm;
    int threads, batch; /* batch 0: the shape's own */
    double seconds;     /* for a pass */
} options;

/* The same order as in `known`. */
enum { ISA, PASS, ALGORITHM, THREADS, BATCH, SECONDS, OPTIONS };

static const struct {
    const char *name, *wants;
} known[OPTIONS] = {
    { "isa", "one that `sprat version` lists" },
    { "pass", "forward, input or weights" },
    { "algorithm", "direct, F(2x2) or F(4x4)" },
    { "threads", "a whole number from 1 to 256" },
    { "batch", "a whole number from 1 to 1000000" },
    { "seconds", "a number from 0 to 3600" },
};

static_assert(SP_MAX_THREADS == 256, "--threads says so");

typedef struct arrays {
    float *x, *w, *y, *result;
    void *scratch;
} arrays;

static void usage(const options *o, FILE *to)
{
    fprintf(to,
            "usage: %s [OPTION]... [\"H W CIN COUT K [STRIDE [PAD "
            "[GROUPS]]]\"]...\n"
            "Without shapes, those of usual networks. PAD is K/2 unless "
            "given.\n"
            "  --isa NAME      one of `sprat version` (the best)\n"
            "  --threads N     (1)\n"
            "  --batch N       images (128; 16 of the large examples)\n"
            "  --pass NAME     forward, input or weights alone\n"
            "  --algorithm NAME  direct, F(2x2) or F(4x4) alone\n"
            "  --seconds S     for each line (0.2)\n",
            o->program);
}

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Floats in the arrays of an image, and of the weights. */
static size_t x_count(const sp_conv_shape *s)
{
    return (size_t)s->h * (size_t)s->w * (size_t)s->cin;
}

static size_t y_count(const sp_conv_shape *s)
{
    return (size_t)s->oh * (size_t)s->ow * (size_t)s->cout;
}

static size_t w_count(const sp_conv_shape *s)
{
    return (size_t)(s->cin / s->groups) * (size_t)s->cout * (size_t)s->kh *
           (size_t)s->kw;
}

static double operations(const sp_conv_shape *s, int n)
{
    return 2.0 * n * s->oh * s->ow * (double)w_count(s);
}

static bool fits_int(const sp_conv_shape *s)
{
    const double most = 2147483647.0;

    return (double)s->h * s->w * s->cin <= most &&
           (double)s->oh * s->ow * s->cout <= most &&
           (double)s->cin * s->cout * s->kh * s->kw <= most;
}

/* NULL, or why the numbers make no convolution. */
static const char *shape_of(const int *v, sp_conv_shape *s)
{
    int k = v[4], stride = v[5], pad = v[6];

    *s = (sp_conv_shape){ .h = v[0],
                          .w = v[1],
                          .cin = v[2],
                          .cout = v[3],
                          .kh = k,
                          .kw = k,
                          .stride = stride,
                          .pad = pad,
                          .groups = v[7] };
    if (pad >= k)
        return "PAD must be less than K";
    if (s->h + 2 * pad < k || s->w + 2 * pad < k)
        return "K must not be larger than the image with its borders";
    if (v[2] % v[7] || v[3] % v[7])
        return "GROUPS must divide CIN and COUT";
    s->oh = (s->h + 2 * pad - k) / stride + 1;
    s->ow = (s->w + 2 * pad - k) / stride + 1;
    return fits_int(s) ? NULL
                       : "an image or the weights have more than 2^31 - 1 "
                         "floats";
}

/* A whole number, the digits' end in `end`. */
static bool read_number(const char *text, int least, int most, char **end,
                        int *to)
{
    long v = strtol(text, end, 10);

    *to = (int)v;
    return *end != text && v >= least && v <= most;
}

/* NULL, or what is wrong with it. */
static const char *read_shape(const char *text, example *e)
{
    static const char wants[] =
        "want \"H W CIN COUT K [STRIDE [PAD [GROUPS]]]\" in one argument, "
        "whole numbers up to 1000000, all but PAD at least 1";
    sp_conv_shape s;
    char *end;
    int i = 0;

    *e = (example){ { 0, 0, 0, 0, 0, 1, 0, 1 }, 128 };
    for (; i < FIELDS && *text; i++, text = end) {
        if (!read_number(text, i == 6 ? 0 : 1, 1000000, &end, &e->v[i]))
            return wants;
        if (i == 4)
            e->v[6] = e->v[4] / 2;
    }
    return i < 5 || *text ? wants : shape_of(e->v, &s);
}

static float *random_floats(size_t count)
{
    float *p = sp_block_alloc(sizeof *p * count);
    uint32_t r = 1;

    for (size_t i = 0; p && i < count; i++) {
        r = r * 1664525u + 1013904223u;
        p[i] = (float)(r >> 8) * 0x1p-23f - 1.0f;
    }
    return p;
}

static bool arrays_open(arrays *a, const sp_conv_how *how,
                        const sp_conv_shape *s, int n, sp_pass pass)
{
    size_t x = x_count(s) * (size_t)n, y = y_count(s) * (size_t)n;
    size_t bytes = sp_conv_scratch(how, s, n, pass);
    size_t result = pass == SP_FORWARD          ? y
                    : pass == SP_BACKWARD_INPUT ? x
                                                : w_count(s);

    a->x = random_floats(pass == SP_BACKWARD_INPUT ? 0 : x);
    a->y = random_floats(pass == SP_FORWARD ? 0 : y);
    a->w = random_floats(w_count(s));
    a->result = random_floats(result);
    a->scratch = sp_block_alloc(bytes);
    return a->x && a->y && a->w && a->result && a->scratch;
}

static void arrays_close(arrays *a)
{
    free(a->x);
    free(a->y);
    free(a->w);
    free(a->result);
    free(a->scratch);
}

static void run_pass(const arrays *a, const sp_conv_how *how,
                     const sp_conv_shape *s, int n, sp_pass pass)
{
    if (pass == SP_FORWARD)
        sp_conv_forward(how, s, n, a->x, a->w, NULL, a->result, a->scratch);
    else if (pass == SP_BACKWARD_INPUT)
        sp_conv_backward_input(how, s, n, a->y, a->w, a->result, 0.0f,
                               a->scratch);
    else
        sp_conv_backward_weight(how, s, n, a->x, a->y, a->result, 0.0f,
                                a->scratch);
}

/* GFLOP/s of multiply-adds in one short round, by the same clock as a pass. */
static double peak_now(const sp_conv_how *how, clockid_t clock)
{
    enum { TURNS = 1000000 };
    const sp_tiles *t = how->kernels->tiles;
    volatile float keep; /* or the compiler drops the loop */
    double start;

    if (how->threads > 1)
        return sp_kernels_peak(how->kernels, how->threads, 0);
    start = now(clock);
    keep = t->peak(TURNS);
    (void)keep;
    return (double)TURNS * t->peak_flops / (now(clock) - start) * 1e-9;
}

/* Prints one line. False: out of memory. */
static bool measure(const options *o, const sp_conv_how *how,
                    const sp_conv_shape *s, int n, sp_pass pass)
{
    arrays a = { 0 };
    /* One thread's own time leaves out that of others on its core. */
    clockid_t clock =
        how->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double end, best = 1e30, peak = 0, flops = operations(s, n);
    bool ok = arrays_open(&a, how, s, n, pass);

    if (ok)
        run_pass(&a, how, s, n, pass);
    end = now(CLOCK_MONOTONIC) + o->seconds;
    for (int i = 0; ok && (i < ROUNDS || now(CLOCK_MONOTONIC) < end); i++) {
        double p = peak_now(how, clock);
        double start = now(clock), took;
        run_pass(&a, how, s, n, pass);
        took = now(clock) - start;
        peak = p > peak ? p : peak;
        best = took < best ? took : best;
    }
    if (ok)
        printf("%9.3f %8.1f %7.1f %6.1f %%\n", best * 1e3, flops / best * 1e-9,
               peak, flops / best * 1e-9 / peak * 100);
    fflush(stdout);
    arrays_close(&a);
    return ok;
}

static bool is_wanted(const char *only, const char *name)
{
    return !only || !strcmp(only, name);
}

/* All passes and algorithms of one shape. False: out of memory. */
static bool measure_shape(const options *o, const sp_conv_shape *s, int n)
{
    char name[96];

    snprintf(name, sizeof name, "%d %d %d %d %d %d %d %d", s->h, s->w, s->cin,
             s->cout, s->kh, s->stride, s->pad, s->groups);
    for (sp_pass p = SP_FORWARD; p <= SP_BACKWARD_WEIGHT; p++)
        for (size_t i = 0; i < ALGORITHMS; i++) {
            sp_conv_how how = { .kernels = sp_kernels_find(o->isa),
                                .threads = o->threads,
                                .tile = algorithms[i].tile };
            if (!is_wanted(o->pass, passes[p]) ||
                !is_wanted(o->algorithm, algorithms[i].name) ||
                (how.tile && !sp_conv_has_tiles(s)))
                continue;
            printf("%-28s %5d %-8s %-9s", name, n, passes[p],
                   algorithms[i].name);
            if (!measure(o, &how, s, n, p)) {
                printf("\n");
                fprintf(stderr, "%s: %s: no memory for %d images\n", o->program,
                        name, n);
                return false;
            }
        }
    return true;
}

/* Set an option. False: the value is not valid. */
static bool set_option(options *o, int option, const char *value)
{
    char *end = "";
    bool ok = false;

    if (option == ISA)
        ok = sp_kernels_find(o->isa = value) != NULL;
    else if (option == PASS)
        for (size_t i = 0; i < PASSES; i++)
            ok |= is_wanted(o->pass = value, passes[i]);
    else if (option == ALGORITHM)
        for (size_t i = 0; i < ALGORITHMS; i++)
            ok |= is_wanted(o->algorithm = value, algorithms[i].name);
    else if (option == THREADS)
        ok = read_number(value, 1, SP_MAX_THREADS, &end, &o->threads);
    else if (option == BATCH)
        ok = read_number(value, 1, 1000000, &end, &o->batch);
    else
        ok = (o->seconds = strtod(value, &end)) >= 0 && o->seconds <= 3600 &&
             end != value;
    return ok && !*end;
}

static void say_unknown(const options *o, const char *word)
{
    fprintf(stderr, "%s: %s: no such option; there are:", o->program, word);
    for (size_t i = 0; i < OPTIONS; i++)
        fprintf(stderr, " --%s", known[i].name);
    fputs(" --help\n", stderr);
}

/* Takes `--name value` or `--name=value`. Gives how many words it took; 0: it
 * was said what is wrong. */
static int take_option(options *o, const char *word, const char *next)
{
    size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : next;
    int i = 0;

    while (i < OPTIONS && (strncmp(word, "--", 2) != 0 ||
                           strlen(known[i].name) != length - 2 ||
                           strncmp(known[i].name, word + 2, length - 2) != 0))
        i++;
    if (i == OPTIONS)
        say_unknown(o, word);
    else if (!value)
        fprintf(stderr, "%s: %s: want %s behind it\n", o->program, word,
                known[i].wants);
    else if (!set_option(o, i, value))
        fprintf(stderr, "%s: --%s %s: want %s\n", o->program, known[i].name,
                value, known[i].wants);
    else
        return word[length] ? 1 : 2;
    return 0;
}

/* Options into `o`, shapes into `list`. Gives the shapes' number, or -1 after
 * saying what is wrong. */
static int take_words(options *o, int argc, char **argv, example *list)
{
    int shapes = 0;

    for (int i = 1, took; i < argc; i += took) {
        const char *wrong = NULL;
        took = 1;
        if (argv[i][0] == '-')
            took = take_option(o, argv[i], argv[i + 1]);
        else
            wrong = read_shape(argv[i], &list[shapes++]);
        if (wrong)
            fprintf(stderr, "%s: \"%s\": %s\n", o->program, argv[i], wrong);
        if (wrong || !took)
            return -1;
    }
    return shapes;
}

/* Whether a shape can be computed by the one algorithm that is wanted. */
static bool has_lines(const options *o, const example *list, int count)
{
    sp_conv_shape s;

    if (is_wanted(o->algorithm, algorithms[0].name))
        return true;
    for (int i = 0; i < count; i++)
        if (!shape_of(list[i].v, &s) && sp_conv_has_tiles(&s))
            return true;
    fprintf(stderr,
            "%s: --algorithm %s: is for K 3, STRIDE 1, GROUPS 1; no shape here "
            "has them\n",
            o->program, o->algorithm);
    return false;
}

static int measure_all(const options *o, const example *list, int count)
{
    bool ok = true;

    printf("%s, %d thread%s\n", sp_kernels_isa(sp_kernels_find(o->isa)),
           o->threads, o->threads == 1 ? "" : "s");
    printf("%-28s %5s %-8s %-9s%9s %8s %7s %8s\n",
           "h w cin cout k s pad groups", "batch", "pass", "algorithm", "ms",
           "GFLOP/s", "peak", "share");
    for (int i = 0; ok && i < count && !ferror(stdout); i++) {
        sp_conv_shape s;
        ok = !shape_of(list[i].v, &s) &&
             measure_shape(o, &s, o->batch ? o->batch : list[i].batch);
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    options o = { .program = argv[0], .threads = 1, .seconds = 0.2 };
    example *given = calloc((size_t)argc, sizeof *given);
    const example *list = given;
    int count = -1, status = EXIT_USAGE;

    if (asks_for_help(argc, argv)) {
        usage(&o, stdout);
        status = EXIT_SUCCESS;
    } else if (!given) {
        fprintf(stderr, "%s: out of memory\n", o.program);
    } else {
        count = take_words(&o, argc, argv, given);
    }
    if (count == 0) {
        list = examples;
        count = sizeof examples / sizeof *examples;
    }
    if (count > 0 && has_lines(&o, list, count))
        status = measure_all(&o, list, count);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: standard output cannot be written\n", o.program);
        status = EXIT_FAILURE;
    }
    free(given);
    return status;
}
