/* Matrices as products of two factors, by the eigenvectors of w w^T or w^T w,
 * whichever is smaller. In double, so squaring the singular values costs no
 * digits that floats have: a Gram matrix and a symmetric eigensolver take a
 * tenth of the time of a singular value decomposition. */
#include "kernels/split.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv.h"
#include "kernels/kernels.h"

/* Columns of a wide matrix, or rows of a tall one, that are taken as doubles at
 * a time. */
enum { PANEL = 256 };

/* Of the largest singular value, what the others count at least. */
static const double LEAST = 1e-6;

/* A matrix under work. `side` is the smaller of its sides, `length` the other;
 * it is wide when the side is that of its rows. */
typedef struct work {
    const float *w;
    int rows, columns, side, length, count;
    bool wide;
    double *panel;                   /* wide: {side, part}; else {part, side} */
    double *gram;                    /* {side, side} */
    double *diagonal, *beside, *tau; /* {side}: of the tridiagonal matrix */
    double *value;       /* {side}: `count` eigenvalues, the largest first */
    double *vector;      /* {count, side}: their eigenvectors */
    double *product;     /* wide: {count, part}; else {part, count} */
    lapack_int *support; /* {2 side} */
    void *memory;
} work;

static sp_err no_memory(const work *k)
{
    return sp_fail(SP_ENOMEM, "no memory to factorize a matrix of %d x %d",
                   k->rows, k->columns);
}

/* For `count` eigenvalues. */
static sp_err work_open(work *k, const float *w, int rows, int columns,
                        int count)
{
    bool wide = rows <= columns;
    size_t side = (size_t)(wide ? rows : columns), n = (size_t)count;
    size_t doubles =
        PANEL * side + side * side + 4 * side + n * side + n * PANEL;

    *k = (work){ .w = w, .rows = rows, .columns = columns, .wide = wide };
    k->side = (int)side;
    k->length = wide ? columns : rows;
    k->count = count;
    k->memory = sp_block_alloc(doubles * sizeof(double) +
                               2 * side * sizeof(lapack_int));
    if (!k->memory)
        return no_memory(k);
    k->panel = k->memory;
    k->gram = k->panel + PANEL * side;
    k->value = k->gram + side * side;
    k->diagonal = k->value + side;
    k->beside = k->diagonal + side;
    k->tau = k->beside + side;
    k->vector = k->tau + side;
    k->product = k->vector + n * side;
    k->support = (lapack_int *)(k->product + n * PANEL);
    /* Some releases of LAPACKE refuse values that are not numbers in all of the
     * arrays, also where LAPACK reads nothing. */
    memset(k->gram, 0, (side * side + 4 * side) * sizeof *k->gram);
    return SP_OK;
}

/* The lines [begin, begin + part) of the longer side. */
static void fill_panel(const work *k, int begin, int part)
{
    size_t columns = (size_t)k->columns;
    int rows = k->wide ? k->rows : part, width = k->wide ? part : k->columns;
    const float *from =
        k->w + (k->wide ? (size_t)begin : (size_t)begin * columns);

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < width; j++)
            k->panel[(size_t)i * (size_t)width + (size_t)j] =
                from[(size_t)i * columns + (size_t)j];
}

static int part_at(const work *k, int begin)
{
    return k->length - begin < PANEL ? k->length - begin : PANEL;
}

/* Set the upper half of the Gram matrix; gives its trace, the squared norm of
 * the matrix. */
static double gram(const work *k)
{
    double trace = 0;

    for (int begin = 0; begin < k->length; begin += PANEL) {
        int part = part_at(k, begin);

        fill_panel(k, begin, part);
        cblas_dsyrk(CblasRowMajor, CblasUpper,
                    k->wide ? CblasNoTrans : CblasTrans, k->side, part, 1.0,
                    k->panel, k->wide ? part : k->side, begin > 0 ? 1.0 : 0.0,
                    k->gram, k->side);
    }
    for (int i = 0; i < k->side; i++)
        trace += k->gram[(size_t)i * (size_t)k->side + (size_t)i];
    return trace;
}

static sp_err solved(const work *k, lapack_int info, const char *what)
{
    if (info == 0)
        return SP_OK;
    if (info == LAPACK_WORK_MEMORY_ERROR)
        return no_memory(k);
    return sp_fail(SP_ENUMERIC,
                   "the eigenvalues of a matrix of %d x %d cannot be found "
                   "(LAPACK's %s gives %d)",
                   k->rows, k->columns, what, (int)info);
}

static void swap_lines(double *a, double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/* LAPACK has the smallest first. */
static void turn_round(const work *k, bool vectors)
{
    size_t n = (size_t)k->side;

    for (int i = 0, j = k->count - 1; i < j; i++, j--) {
        swap_lines(k->value + i, k->value + j, 1);
        if (vectors)
            swap_lines(k->vector + (size_t)i * n, k->vector + (size_t)j * n, n);
    }
}

/* The `count` largest eigenvalues of the Gram matrix, which is overwritten, and
 * their vectors, if wanted: by a tridiagonal matrix and "relatively robust
 * representations". dsyevr, which finds some of the vectors by inverse
 * iteration, takes twice the time. */
static sp_err solve(const work *k, bool vectors)
{
    lapack_int side = k->side, found;
    lapack_logical exact = 1;

    SP_TRY(solved(k,
                  LAPACKE_dsytrd(LAPACK_COL_MAJOR, 'L', side, k->gram, side,
                                 k->diagonal, k->beside, k->tau),
                  "dsytrd"));
    SP_TRY(solved(k,
                  LAPACKE_dstemr(LAPACK_COL_MAJOR, vectors ? 'V' : 'N', 'I',
                                 side, k->diagonal, k->beside, 0, 0,
                                 side - k->count + 1, side, &found, k->value,
                                 k->vector, side, k->count, k->support, &exact),
                  "dstemr"));
    if (vectors)
        SP_TRY(solved(k,
                      LAPACKE_dormtr(LAPACK_COL_MAJOR, 'L', 'L', 'N', side,
                                     k->count, k->gram, side, k->tau, k->vector,
                                     side),
                      "dormtr"));
    turn_round(k, vectors);
    return SP_OK;
}

/* The Gram matrix, and *squares; the matrix must be finite. */
static sp_err begin_work(work *k, double *squares)
{
    sp_blas_alone();
    *squares = gram(k);
    if (isfinite(*squares))
        return SP_OK;
    return sp_fail(SP_ENUMERIC,
                   "a matrix of %d x %d has values that are not finite",
                   k->rows, k->columns);
}

/* The root of singular value i, the square of which is eigenvalue i. */
static double root(const work *k, int i)
{
    double least = LEAST * LEAST * k->value[0];

    if (!(k->value[0] > 0))
        return 1;
    return sqrt(sqrt(fmax(k->value[i], least)));
}

/* Lines [begin, begin + part) of the factor on the longer side: those of the
 * matrix times the eigenvectors. */
static void fill_long(const work *k, float *to, int begin, int part)
{
    int n = k->count;

    fill_panel(k, begin, part);
    if (k->wide)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, part, k->side,
                    1.0, k->vector, k->side, k->panel, part, 0.0, k->product,
                    part);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, part, n, k->side,
                    1.0, k->panel, k->side, k->vector, k->side, 0.0, k->product,
                    n);
    for (int i = 0; i < n; i++) {
        double scale = 1 / root(k, i);
        for (int j = 0; j < part; j++) {
            size_t at = (size_t)(begin + j);
            if (k->wide)
                to[(size_t)i * (size_t)k->length + at] =
                    (float)(scale *
                            k->product[(size_t)i * (size_t)part + (size_t)j]);
            else
                to[at * (size_t)n + (size_t)i] =
                    (float)(scale *
                            k->product[(size_t)j * (size_t)n + (size_t)i]);
        }
    }
}

/* The other one: the eigenvectors. */
static void fill_short(const work *k, float *to)
{
    size_t n = (size_t)k->count, side = (size_t)k->side;

    for (size_t i = 0; i < n; i++) {
        double scale = root(k, (int)i);
        for (size_t j = 0; j < side; j++)
            to[k->wide ? j * n + i : i * side + j] =
                (float)(scale * k->vector[i * side + j]);
    }
}

sp_err sp_matrix_split(const float *w, const sp_factored *f, double *lost)
{
    int most = f->rows < f->columns ? f->rows : f->columns;
    double squares, kept = 0;
    work k;
    sp_err e;

    if (f->rank < 1 || f->rank > most)
        return sp_fail(SP_EARG,
                       "a matrix of %d x %d has no factors of rank %d: from 1 "
                       "to %d",
                       f->rows, f->columns, f->rank, most);
    SP_TRY(work_open(&k, w, f->rows, f->columns, f->rank));
    e = begin_work(&k, &squares);
    if (e == SP_OK)
        e = solve(&k, true);
    if (e != SP_OK)
        goto done;
    fill_short(&k, k.wide ? f->v : f->u);
    for (int begin = 0; begin < k.length; begin += PANEL)
        fill_long(&k, k.wide ? f->u : f->v, begin, part_at(&k, begin));
    for (int i = 0; i < k.count; i++)
        kept += k.value[i];
    if (lost)
        *lost = squares > 0 ? fmin(fmax(1 - kept / squares, 0), 1) : 0;
done:
    free(k.memory);
    return e;
}

sp_err sp_matrix_norms(const float *w, int rows, int columns, double *squares,
                       double *largest)
{
    work k;
    sp_err e;

    SP_TRY(work_open(&k, w, rows, columns, 1));
    e = begin_work(&k, squares);
    if (e == SP_OK)
        e = solve(&k, false);
    if (e == SP_OK)
        *largest = fmax(k.value[0], 0);
    free(k.memory);
    return e;
}

void sp_matrix_product(const sp_factored *f, float *w)
{
    sp_blas_alone();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, f->rows, f->columns,
                f->rank, 1.0f, f->v, f->rank, f->u, f->columns, 0.0f, w,
                f->columns);
}

void sp_matrix_project(const sp_factored *f, const float *g, float *gu,
                       float *gv)
{
    sp_blas_alone();
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, f->rank, f->columns,
                f->rows, 1.0f, f->v, f->rank, g, f->columns, 0.0f, gu,
                f->columns);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, f->rows, f->rank,
                f->columns, 1.0f, g, f->columns, f->u, f->columns, 0.0f, gv,
                f->rank);
}

char *sp_lapack_version(char *out, size_t room)
{
    lapack_int major, minor, patch;

    LAPACKE_ilaver(&major, &minor, &patch);
    snprintf(out, room, "%d.%d.%d", (int)major, (int)minor, (int)patch);
    return out;
}
