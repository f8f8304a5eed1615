/* sprat doctor: libraries, variables that change speed, numbers. */
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include <zlib.h>

#include "doctor.h"
#include "kernels/kernels.h"
#include "kernels/split.h"
#include "sprat/random.h"
#include "sprat/train.h"

/* ---- Libraries ----------------------------------------------------------- */

/* Kernels of OpenBLAS that use no AVX2, which it also takes for a CPU that it
 * does not know. */
static bool is_old_core(const char *config)
{
    static const char *const old[] = {
        "Prescott", "Core2",  "Penryn",      "Dunnington",
        "Nehalem",  "Atom",   "Sandybridge", "Barcelona",
        "Bobcat",   "Katmai", "Coppermine",  "Northwood"
    };

    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strstr(config, old[i]))
            return true;
    return false;
}

static void blas(sp_doctor *d)
{
    const char *config = sp_blas_version();
    const char *isa = sp_kernels_isa(sp_kernels_find(NULL));
    bool slow = is_old_core(config) &&
                (strcmp(isa, "avx2") == 0 || strcmp(isa, "avx512") == 0);

    sp_found(d, slow ? SP_NOTE : SP_FINE, "OpenBLAS",
             slow ? "it does not know this CPU, and is slow where it is used: "
                    "train.reference, lowrank. Try OPENBLAS_CORETYPE=Haswell"
                  : NULL,
             "%s; threads %s, of which Sprat lets it use one", config,
             strstr(config, "USE_OPENMP") ? "by OpenMP" : "of its own");
}

/* A library of another main version than its header has other structures. */
static void compare(sp_doctor *d, const char *name, const char *built,
                    const char *found)
{
    bool same = strtol(built, NULL, 10) == strtol(found, NULL, 10);

    if (same)
        sp_found(d, SP_FINE, name, NULL, "%s", found);
    else
        sp_found(d, SP_PROBLEM, name, "build Sprat anew",
                 "%s, but Sprat was built for %s", found, built);
}

void sp_doctor_libraries(sp_doctor *d)
{
    char lapack[32], mpi[80];

    sp_found(d, SP_FINE, "sprat", NULL,
             "%s, commit %s, compiled by "
#ifdef __clang__
             "clang " __clang_version__,
#else
             "gcc " __VERSION__,
#endif
             SP_VERSION, sp_commit());
    blas(d);
    sp_found(d, SP_FINE, "LAPACK", NULL, "%s",
             sp_lapack_version(lapack, sizeof lapack));
    compare(d, "libpng", PNG_LIBPNG_VER_STRING, png_get_libpng_ver(NULL));
    compare(d, "zlib", ZLIB_VERSION, zlibVersion());
    sp_found(d, SP_FINE, "libyaml", NULL, "%s", yaml_get_version_string());
    sp_mpi_version(mpi, sizeof mpi);
    if (strcmp(mpi, "none") == 0)
        sp_found(d, SP_NOTE, "MPI", "for several ranks: -Dmpi=enabled",
                 "none: this build trains on one machine");
    else
        sp_found(d, SP_FINE, "MPI", NULL, "%s", mpi);
}

/* ---- Variables ----------------------------------------------------------- */

typedef struct variable {
    const char *name;
    sp_mark mark;
    const char *effect;
} variable;

static const variable variables[] = {
    { "OPENBLAS_CORETYPE", SP_NOTE,
      "forces OpenBLAS's kernels; Sprat's own are train.isa" },
    { "OPENBLAS_L2_SIZE", SP_FINE,
      "the cache that OpenBLAS cuts its work for" },
    { "OPENBLAS_NUM_THREADS", SP_FINE, "no effect: train.threads" },
    { "OPENBLAS_MAIN_FREE", SP_FINE, "no effect" },
    { "GOTO_NUM_THREADS", SP_FINE, "no effect: train.threads" },
    { "OMP_NUM_THREADS", SP_FINE, "no effect: train.threads" },
    { "OMP_DYNAMIC", SP_FINE, "no effect: Sprat's threads are its own" },
    { "OMP_WAIT_POLICY", SP_FINE, "no effect: Sprat's threads are its own" },
    { "OMP_PROC_BIND", SP_NOTE,
      "OpenMP may bind the first thread, and with it all, to one core" },
    { "OMP_PLACES", SP_NOTE,
      "OpenMP may bind the first thread, and with it all, to one core" },
    { "GOMP_CPU_AFFINITY", SP_NOTE,
      "OpenMP may bind the first thread, and with it all, to one core" },
    { "KMP_AFFINITY", SP_NOTE,
      "OpenMP may bind the first thread, and with it all, to one core" },
    { "SPRAT_DATA", SP_FINE, "where data sets are looked for" },
};

void sp_doctor_variables(sp_doctor *d)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const variable *v = &variables[i];
        const char *value = getenv(v->name);
        char remedy[80];

        if (!value)
            continue;
        snprintf(remedy, sizeof remedy, "unless it is meant: unset %s",
                 v->name);
        sp_found(d, v->mark, "variable", v->mark == SP_NOTE ? remedy : NULL,
                 "%s=%s (%s)", v->name, value, v->effect);
    }
}

/* ---- Numbers ------------------------------------------------------------- */

enum { IMAGES = 2, SIDE = 7, IN = 5, OUT = 19, KERNEL = 3 };
enum { PIXELS = SIDE * SIDE, TAPS = KERNEL * KERNEL };

static const sp_conv_shape shape = { .h = SIDE,
                                     .w = SIDE,
                                     .cin = IN,
                                     .oh = SIDE,
                                     .ow = SIDE,
                                     .cout = OUT,
                                     .kh = KERNEL,
                                     .kw = KERNEL,
                                     .stride = 1,
                                     .pad = 1,
                                     .groups = 1 };

typedef struct trial {
    float x[IMAGES * PIXELS * IN], w[OUT * IN * TAPS];
    float y[IMAGES * PIXELS * OUT];
} trial;

/* Numbers in [-1, 1). */
static void fill(float *x, size_t n, uint64_t which)
{
    uint32_t word[4];

    for (size_t i = 0; i < n; i++) {
        sp_random(1, SP_FOR_TEST, which, i, word);
        x[i] = 2 * sp_unit(word[0]) - 1;
    }
}

/* One output, from the definition, in double. */
static double output(const trial *t, int image, int row, int column, int out)
{
    double sum = 0;

    for (int i = 0; i < TAPS * IN; i++) {
        int c = i / TAPS, dy = i % TAPS / KERNEL, dx = i % KERNEL;
        int y = row + dy - 1, x = column + dx - 1;
        if (y < 0 || y >= SIDE || x < 0 || x >= SIDE)
            continue;
        sum += (double)t->x[((image * SIDE + y) * SIDE + x) * IN + c] *
               (double)t->w[(out * IN + c) * TAPS + dy * KERNEL + dx];
    }
    return sum;
}

/* The largest difference of a convolution from its definition; infinite when
 * there is no memory. */
static double conv_error(trial *t, sp_conv_how how)
{
    size_t room = sp_conv_scratch(&how, &shape, IMAGES, SP_FORWARD);
    void *scratch = sp_block_alloc(room);
    double worst = 0;

    if (!scratch)
        return INFINITY;
    memset(t->y, 0xff, sizeof t->y); /* not a number */
    sp_conv_forward(&how, &shape, IMAGES, t->x, t->w, NULL, t->y, scratch);
    free(scratch);
    for (int i = 0; i < IMAGES * PIXELS * OUT; i++) {
        int pixel = i / OUT;
        double want = output(t, pixel / PIXELS, pixel % PIXELS / SIDE,
                             pixel % SIDE, i % OUT);
        double error = fabs((double)t->y[i] - want);
        worst = error <= worst ? worst : isnan(error) ? INFINITY : error;
    }
    return worst;
}

static void tell_error(sp_doctor *d, const char *what, double error)
{
    bool right = error < 1e-4;

    sp_found(d, right ? SP_FINE : SP_PROBLEM, "numbers",
             right ? NULL
                   : "do not train with it: choose another train.isa, look at "
                     "OPENBLAS_CORETYPE, build anew, test the memory",
             "%s: %s (largest error %.1e)", what, right ? "right" : "WRONG",
             error);
}

/* A matrix times nothing lost is the matrix. */
static double split_error(void)
{
    enum { ROWS = 12, COLUMNS = 8 };
    float w[ROWS * COLUMNS], v[ROWS * COLUMNS], u[COLUMNS * COLUMNS];
    float again[ROWS * COLUMNS];
    sp_factored f = { ROWS, COLUMNS, COLUMNS, v, u };
    double worst = 0, lost;

    fill(w, ROWS * COLUMNS, 3);
    if (sp_matrix_split(w, &f, &lost) != SP_OK)
        return INFINITY;
    sp_matrix_product(&f, again);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        worst = fmax(worst, fabs((double)again[i] - (double)w[i]));
    return worst;
}

static void right_numbers(sp_doctor *d)
{
    const sp_kernels *k;
    trial t;
    char what[64];

    fill(t.x, sizeof t.x / sizeof *t.x, 1);
    fill(t.w, sizeof t.w / sizeof *t.w, 2);
    for (int i = 0; (k = sp_kernels_at(i)); i++) {
        snprintf(what, sizeof what, "convolution, %s", sp_kernels_isa(k));
        tell_error(d, what, conv_error(&t, (sp_conv_how){ k, 2, false, 0 }));
    }
    k = sp_kernels_find(NULL);
    tell_error(d, "convolution, OpenBLAS",
               conv_error(&t, (sp_conv_how){ k, 1, true, 0 }));
    tell_error(d, "factors, LAPACK", split_error());
}

void sp_doctor_numbers(sp_doctor *d)
{
    const double seconds = 0.3, fair = 0.6;
    const sp_kernels *k = sp_kernels_find(NULL);
    int threads = sp_threads_available();
    double one, all;
    bool slow;

    right_numbers(d);
    if (threads > SP_MAX_THREADS)
        threads = SP_MAX_THREADS;
    one = sp_kernels_peak(k, 1, seconds);
    all = threads > 1 ? sp_kernels_peak(k, threads, seconds) : one;
    slow = all < fair * threads * one;
    sp_found(d, slow ? SP_NOTE : SP_FINE, "peak",
             slow ? "other programs are at work, or the threads are no whole "
                    "cores: fewer train.threads may be faster"
                  : NULL,
             "%.0f GFLOP/s of multiply-adds by one thread, %.0f by %d (%s)",
             one, all, threads, sp_kernels_isa(k));
}
