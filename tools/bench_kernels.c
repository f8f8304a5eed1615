/* bench-kernels: how near the convolution kernels come to the machine's limit.
 *
 * One line a shape, pass and algorithm: the best time, GFLOP/s by the direct
 * count of operations, and their share of the multiply-add peak. The peak is
 * measured in turn with the pass, since clocks change from second to second;
 * of both the best of many short rounds counts.
 */
#include "bench_kernels.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 8, EXIT_USAGE = 2, PASSES = 3, ALGORITHMS = 4 };

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
    { { 1, 1, 1500, 6000, 1, 1, 0, 1 }, 20 },
};

static const char *const passes[PASSES] = { "forward", "input", "weights" };

/* How a convolution may be computed. */
static const struct {
    const char *name;
    int tile;
    bool packed; /* rows by weights that were packed before */
} algorithms[ALGORITHMS] = { { .name = "direct" },
                             { .name = "F(2x2)", .tile = 2 },
                             { .name = "F(4x4)", .tile = 4 },
                             { .name = "packed", .packed = true } };

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
    { "algorithm", "direct, F(2x2), F(4x4) or packed" },
    { "threads", "a whole number from 1 to 256" },
    { "batch", "a whole number from 1 to 1000000" },
    { "seconds", "a number from 0 to 3600" },
};

static_assert(SP_MAX_THREADS == 256, "--threads says so");

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
            "  --algorithm NAME  direct, F(2x2), F(4x4) or packed alone\n"
            "  --seconds S     for each line (0.2)\n",
            o->program);
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
            sp_trial t = { .how = { .kernels = sp_kernels_find(o->isa),
                                    .threads = o->threads,
                                    .tile = algorithms[i].tile },
                           .s = *s,
                           .n = n,
                           .pass = p,
                           .packed = algorithms[i].packed };
            if (!is_wanted(o->pass, passes[p]) ||
                !is_wanted(o->algorithm, algorithms[i].name) ||
                !sp_can_measure(&t))
                continue;
            printf("%-28s %5d %-8s %-9s", name, n, passes[p],
                   algorithms[i].name);
            if (!sp_measure(&t, o->seconds)) {
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
    for (int i = 0; i < count * PASSES; i++)
        for (size_t k = 0; k < ALGORITHMS; k++) {
            sp_trial t = { .how = { .tile = algorithms[k].tile },
                           .pass = (sp_pass)(i % PASSES),
                           .packed = algorithms[k].packed };
            if (is_wanted(o->algorithm, algorithms[k].name) &&
                is_wanted(o->pass, passes[t.pass]) &&
                !shape_of(list[i / PASSES].v, &t.s) && sp_can_measure(&t))
                return true;
        }
    fprintf(stderr, "%s: --algorithm %s: is for %s; no shape here has them\n",
            o->program, o->algorithm,
            !strcmp(o->algorithm, "packed")
                ? "H, W, K 1, PAD 0, GROUPS 1, forward and input"
                : "K 3, STRIDE 1, GROUPS 1");
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
