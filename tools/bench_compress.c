/* bench-compress: what compression costs, against the pass over gradients,
 * momenta and residuals that no compressor with momentum can do without.
 *
 *   bench-compress [--rounds N] [KEY=VALUE ...]
 *
 * on one thread, for the matrices of ResNet-50, with the keys of section
 * `compress`; name=dgc unless it says otherwise. In every round the pass (read
 * g, read and write u and v) and then a step of one rank: all encoding and
 * decoding. Medians of the thread's own time count.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/registry.h"
#include "compressor_list.h"
#include "sprat/compress.h"
#include "sprat/random.h"

#define X(name) extern const sp_compressor sp_compressor_##name;
SP_COMPRESSOR_LIST
#undef X

static const sp_compressor *const all[] = {
#define X(name) &sp_compressor_##name,
    SP_COMPRESSOR_LIST
#undef X
};

enum { TENSORS_MAX = 64, ROUNDS_MAX = 1000, ARGS_MAX = 16, ARG_SIZE = 128 };

typedef struct bench {
    const sp_compressor *c;
    sp_slot slot[TENSORS_MAX];
    size_t size[TENSORS_MAX]; /* of the packets of a round */
    size_t count, n;          /* tensors, elements of all */
    float *grad, *got, *u, *v;
    uint8_t *packets;
    double bytes; /* of a step's packets */
} bench;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A convolution of ResNet-50, k x k, or its last layer. */
static void add(bench *b, int out, int in, int k)
{
    sp_slot *s = &b->slot[b->count++];

    s->name = "weight";
    s->ndim = 4;
    s->dims[0] = out;
    s->dims[1] = in;
    s->dims[2] = s->dims[3] = k;
    s->n = (size_t)out * (size_t)in * (size_t)(k * k);
    b->n += s->n;
}

static void add_resnet50(bench *b)
{
    static const int blocks[] = { 3, 4, 6, 3 };
    int in = 64;

    add(b, 64, 3, 7);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0, w = 64 << stage; i < blocks[stage]; i++) {
            add(b, w, in, 1);
            add(b, w, w, 3);
            add(b, 4 * w, w, 1);
            if (i == 0)
                add(b, 4 * w, in, 1);
            in = 4 * w;
        }
    add(b, 1000, 2048, 1);
}

/* Gradients whose sizes differ from element to element and from tensor to
 * tensor, as they do. */
static void fill(bench *b)
{
    size_t at = 0;

    for (size_t t = 0; t < b->count; t++)
        for (size_t i = 0; i < b->slot[t].n; i++, at++) {
            uint32_t r[4];
            sp_random(1, SP_FOR_USER, t, i, r);
            b->grad[at] =
                sp_normal(r[0], r[1]) * ldexpf(sp_unit(r[2]), -(int)(t % 9));
        }
}

static void *block(size_t bytes)
{
    void *p = NULL;

    if (posix_memalign(&p, 64, bytes ? bytes : 1) != 0)
        return NULL;
    memset(p, 0, bytes);
    return p;
}

static bool open_slot(const bench *b, sp_slot *s)
{
    bool opened;

    s->work = block(b->c->work_bytes ? b->c->work_bytes(s) : 0);
    opened = s->work != NULL;
    for (int i = 0; i < b->c->state_count; i++) {
        size_t n = b->c->state_floats ? b->c->state_floats(s, i) : s->n;

        s->state[i] = block(n * sizeof(float));
        opened &= s->state[i] != NULL;
    }
    return opened;
}

/* Leave out what travels dense. */
static void take(bench *b, const void *own)
{
    size_t count = b->count;

    b->count = b->n = 0;
    for (size_t t = 0; t < count; t++) {
        sp_slot s = b->slot[t];

        s.cfg = own;
        s.ranks = 1;
        s.weight = s.scale = 1;
        s.momentum = 0.9;
        s.ratio = b->c->density ? b->c->density(own, INFINITY) : 1;
        if (b->c->accepts && !b->c->accepts(&s))
            continue;
        b->slot[b->count++] = s;
        b->n += s.n;
    }
}

static bool open_arrays(bench *b)
{
    size_t most = 0, bytes = b->n * sizeof(float);
    bool opened = true;

    for (int round = 0; round < b->c->rounds; round++) {
        size_t room = 0;

        for (size_t t = 0; t < b->count; t++)
            room += b->c->packet_room(&b->slot[t], round);
        most = room > most ? room : most;
    }
    b->grad = block(bytes);
    b->got = block(bytes);
    b->u = block(bytes);
    b->v = block(bytes);
    b->packets = block(most);
    for (size_t t = 0; t < b->count; t++)
        opened &= open_slot(b, &b->slot[t]);
    return opened && b->grad && b->got && b->u && b->v && b->packets;
}

static void close_arrays(bench *b)
{
    for (size_t t = 0; t < b->count; t++) {
        free(b->slot[t].work);
        for (int i = 0; i < SP_MAX_SLOT_STATE; i++)
            free(b->slot[t].state[i]);
    }
    free(b->grad);
    free(b->got);
    free(b->u);
    free(b->v);
    free(b->packets);
}

static void pass(size_t n, const float *restrict g, float *restrict u,
                 float *restrict v)
{
    for (size_t i = 0; i < n; i++) {
        u[i] = 0.9f * u[i] + g[i];
        v[i] += u[i];
    }
}

static void encode(bench *b, int round)
{
    size_t at = 0, first = 0;

    for (size_t t = 0; t < b->count; t++) {
        sp_packet p = { .bytes = b->packets + at };

        b->c->encode(&b->slot[t], round, b->grad + first, &p);
        b->size[t] = sp_packet_size(&p);
        at += b->size[t];
        first += b->slot[t].n;
    }
    b->bytes += (double)at;
}

/* What is gathered is added to 0. */
static sp_err decode(bench *b, int round)
{
    size_t at = 0, first = 0;

    for (size_t t = 0; t < b->count; t++) {
        const sp_slot *s = &b->slot[t];
        float *got = b->got + first;

        if (b->c->combine[round] == SP_GATHER)
            memset(got, 0, s->n * sizeof(float));
        SP_TRY(b->c->decode(s, round, b->packets + at, b->size[t], got));
        if (round + 1 == b->c->rounds && b->c->finish)
            b->c->finish(s, got);
        at += b->size[t];
        first += s->n;
    }
    return SP_OK;
}

/* Adds to the times of encoding and decoding. */
static sp_err step(bench *b, double *encoding, double *decoding)
{
    b->bytes = *encoding = *decoding = 0;
    for (int round = 0; round < b->c->rounds; round++) {
        double start = now(), middle;

        encode(b, round);
        middle = now();
        SP_TRY(decode(b, round));
        *encoding += middle - start;
        *decoding += now() - middle;
    }
    for (size_t t = 0; t < b->count; t++)
        b->slot[t].step++;
    return SP_OK;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[n / 2];
}

static sp_err measure(bench *b, int rounds)
{
    static double times[4][ROUNDS_MAX];

    /* One round first, that does not count: memory is touched. */
    for (int i = -1; i < rounds; i++) {
        int k = i < 0 ? 0 : i;
        double start = now();

        pass(b->n, b->grad, b->u, b->v);
        times[0][k] = now() - start;
        SP_TRY(step(b, &times[1][k], &times[2][k]));
        times[3][k] = (times[1][k] + times[2][k]) / times[0][k];
    }
    printf("%zu tensors, %zu elements, %.0f bytes in packets (%.1fx)\n",
           b->count, b->n, b->bytes, 4.0 * (double)b->n / b->bytes);
    printf("pass over g, u, v  %7.2f ms\n", 1e3 * median(times[0], rounds));
    printf("encode             %7.2f ms\n", 1e3 * median(times[1], rounds));
    printf("decode             %7.2f ms\n", 1e3 * median(times[2], rounds));
    printf("encode and decode  %7.2f of the pass\n", median(times[3], rounds));
    return SP_OK;
}

static sp_err load(sp_config **config, sp_registry *r, int argc, char **argv)
{
    static char text[ARGS_MAX][ARG_SIZE];
    const char *overrides[ARGS_MAX];
    size_t count = 0;
    bool named = false;

    for (int i = 0; i < argc; i++) {
        if (count + 1 == ARGS_MAX || strlen(argv[i]) > ARG_SIZE - 16)
            return sp_fail(SP_ECONFIG, "%s: too many settings, or too long",
                           argv[i]);
        named |= strncmp(argv[i], "name=", 5) == 0;
        snprintf(text[count], ARG_SIZE, "compress.%s", argv[i]);
        overrides[count] = text[count];
        count++;
    }
    if (!named)
        overrides[count++] = "compress.name=dgc";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->encode)
            SP_TRY(sp_registry_add(r, "compress", &all[i]->entry));
    return sp_config_load(config, r, NULL, 0, overrides, count);
}

static sp_err run(const sp_config *config, int rounds)
{
    const void *entry = sp_config_entry(config, "compress");
    bench b = { .c = entry };
    const void *own = sp_config_own(config, "compress");
    /* Momentum is the compressor's, if it has any. */
    sp_compress_use use = { "sgd", true, 0, false, 0 };
    sp_err e;

    SP_TRY(sp_compressor_check(b.c, own, &use));
    add_resnet50(&b);
    take(&b, own);
    if (open_arrays(&b)) {
        fill(&b);
        e = measure(&b, rounds);
    } else {
        e = sp_fail(SP_ENOMEM, "there is no memory for %zu gradients", b.n);
    }
    close_arrays(&b);
    return e;
}

/* The rounds, and at *first the first argument behind them; 0: wrong use. */
static int parse(int argc, char **argv, int *first)
{
    char *end;
    long rounds;

    *first = 1;
    if (argc < 2 || argv[1][0] != '-')
        return 9;
    *first = 3;
    if (argc < 3 || strcmp(argv[1], "--rounds") != 0)
        return 0;
    rounds = strtol(argv[2], &end, 10);
    return *end == 0 && rounds <= ROUNDS_MAX ? (int)rounds : 0;
}

int main(int argc, char **argv)
{
    static const sp_section section = { .name = "compress", .fallback = "" };
    static const sp_section *const sections[] = { &section };
    sp_registry *r = sp_registry_create(sections, 1);
    sp_config *config = NULL;
    int first, rounds = parse(argc, argv, &first);
    sp_err e = SP_ENOMEM;

    if (rounds < 1) {
        fprintf(stderr,
                "usage: %s [--rounds N] [KEY=VALUE ...]\n"
                "N from 1 to %d; keys are those of section compress\n",
                argv[0], ROUNDS_MAX);
        sp_registry_free(r);
        return 2;
    }
    if (r)
        e = load(&config, r, argc - first, argv + first);
    if (e == SP_OK)
        e = run(config, rounds);
    if (e != SP_OK)
        fprintf(stderr, "%s: %s\n", argv[0], sp_last_error());
    sp_config_free(config);
    sp_registry_free(r);
    return e == SP_OK ? 0 : e == SP_ECONFIG ? 2 : 1;
}
