/* What of a matrix the factors of a product cannot follow.
 *
 *   ||(1 - P_v) g (1 - P_u)||^2
 *     = ||g||^2 - ||Q_v^T g||^2 - ||g Q_u||^2 + ||Q_v^T g Q_u||^2
 *
 * with orthonormal columns Q_v over those of v and Q_u over the rows of u, from
 * a QR decomposition with pivots. All sums are in double: of shares near 0, 15
 * digits of ||g||^2 are right. */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv.h"
#include "kernels/kernels.h"
#include "kernels/split.h"

enum { PANEL = 64 /* rows of g that are taken as doubles at a time */ };

/* Of the largest direction of a factor, what the others need to be ones. */
static const double LEAST = 1e-6;

/* `count` orthonormal rows of `length`. */
typedef struct basis {
    double *row;
    int count, length;
} basis;

static sp_err no_memory(void)
{
    return sp_fail(SP_ENOMEM, "no memory to project a matrix");
}

static sp_err refused(lapack_int info, const char *what)
{
    if (info == LAPACK_WORK_MEMORY_ERROR)
        return no_memory();
    return sp_fail(SP_ENUMERIC,
                   "a factor cannot be made orthogonal (LAPACK's %s gives %d)",
                   what, (int)info);
}

static double squares_of(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

/* Of the `rank` rows in b->row, which become the basis. `pivot` and `tau` have
 * that many elements. */
static sp_err orthogonal(basis *b, int rank, lapack_int *pivot, double *tau)
{
    size_t length = (size_t)b->length;
    lapack_int info;

    memset(pivot, 0, (size_t)rank * sizeof *pivot);
    info = LAPACKE_dgeqp3(LAPACK_COL_MAJOR, b->length, rank, b->row, b->length,
                          pivot, tau);
    if (info != 0)
        return refused(info, "dgeqp3");
    while (b->count < rank) {
        size_t i = (size_t)b->count;
        if (!(fabs(b->row[i * length + i]) > LEAST * fabs(b->row[0])))
            break;
        b->count++;
    }
    if (b->count == 0)
        return SP_OK;
    info = LAPACKE_dorgqr(LAPACK_COL_MAJOR, b->length, b->count, b->count,
                          b->row, b->length, tau);
    return info == 0 ? SP_OK : refused(info, "dorgqr");
}

/* Of the columns of a {length, rank}, or its rows {rank, length}. */
static sp_err basis_open(basis *b, const float *a, int length, int rank,
                         bool columns)
{
    size_t n = (size_t)length, r = (size_t)rank;
    lapack_int *pivot = malloc(r * sizeof *pivot);
    double *tau = malloc(r * sizeof *tau);
    sp_err e = SP_OK;

    *b = (basis){ .length = length, .row = malloc(n * r * sizeof(double)) };
    if (!pivot || !tau || !b->row)
        e = no_memory();
    for (size_t i = 0; e == SP_OK && i < r; i++)
        for (size_t k = 0; k < n; k++)
            b->row[i * n + k] = columns ? a[k * r + i] : a[i * n + k];
    if (e == SP_OK && !isfinite(squares_of(b->row, n * r)))
        e = sp_fail(SP_ENUMERIC, "a factor has values that are not finite");
    if (e == SP_OK)
        e = orthogonal(b, rank, pivot, tau);
    free(pivot);
    free(tau);
    return e;
}

/* Squared norms of g and its projections. */
typedef struct sums {
    double all, u, v, both;
} sums;

/* Work space: rows of g, these times Q_u, Q_v^T g, and that times Q_u. */
typedef struct space {
    double *panel, *right, *left, *both;
} space;

static void add_rows(const basis *v, const basis *u, const space *s,
                     const float *g, sums *sum)
{
    int columns = u->length;

    for (int begin = 0; begin < v->length; begin += PANEL) {
        int part = v->length - begin < PANEL ? v->length - begin : PANEL;
        size_t n = (size_t)part * (size_t)columns;

        for (size_t i = 0; i < n; i++)
            s->panel[i] = g[(size_t)begin * (size_t)columns + i];
        sum->all += squares_of(s->panel, n);
        if (u->count > 0)
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, part, u->count,
                        columns, 1.0, s->panel, columns, u->row, columns, 0.0,
                        s->right, u->count);
        sum->u += squares_of(s->right, (size_t)part * (size_t)u->count);
        if (v->count > 0)
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, v->count,
                        columns, part, 1.0, v->row + begin, v->length, s->panel,
                        columns, begin > 0 ? 1.0 : 0.0, s->left, columns);
    }
}

static sums project(const basis *v, const basis *u, const space *s,
                    const float *g)
{
    sums sum = { 0 };

    add_rows(v, u, s, g, &sum);
    sum.v = squares_of(s->left, (size_t)v->count * (size_t)u->length);
    if (u->count > 0 && v->count > 0)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, v->count, u->count,
                    u->length, 1.0, s->left, u->length, u->row, u->length, 0.0,
                    s->both, u->count);
    sum.both = squares_of(s->both, (size_t)v->count * (size_t)u->count);
    return sum;
}

static sp_err sum_up(const basis *v, const basis *u, const float *g, sums *sum)
{
    size_t columns = (size_t)u->length, nu = (size_t)u->count;
    size_t nv = (size_t)v->count;
    size_t doubles = PANEL * columns + PANEL * nu + nv * columns + nv * nu;
    space s = { .panel = sp_block_alloc(doubles * sizeof(double)) };

    if (!s.panel)
        return no_memory();
    s.right = s.panel + PANEL * columns;
    s.left = s.right + PANEL * nu;
    s.both = s.left + nv * columns;
    *sum = project(v, u, &s, g);
    free(s.panel);
    if (isfinite(sum->all))
        return SP_OK;
    return sp_fail(SP_ENUMERIC,
                   "a matrix of %d x %d has values that are not finite",
                   v->length, u->length);
}

sp_err sp_matrix_outside(const sp_factored *f, const float *g, double *outside,
                         double *squares)
{
    basis v = { 0 }, u = { 0 };
    sums sum = { 0 };
    sp_err e;

    sp_blas_alone();
    e = basis_open(&v, f->v, f->rows, f->rank, true);
    if (e == SP_OK)
        e = basis_open(&u, f->u, f->columns, f->rank, false);
    if (e == SP_OK)
        e = sum_up(&v, &u, g, &sum);
    *squares = sum.all;
    *outside = fmax(sum.all - sum.u - sum.v + sum.both, 0);
    free(v.row);
    free(u.row);
    return e;
}
