#include <stddef.h>

#include "plain_blas/cblas.h"

/* Element (row, column) of op(matrix). */
static float element(const float *matrix, int ld, enum CBLAS_TRANSPOSE t,
                     int row, int column)
{
    return t == CblasNoTrans ? matrix[(ptrdiff_t)row * ld + column]
                             : matrix[(ptrdiff_t)column * ld + row];
}

void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transpose_a,
                 enum CBLAS_TRANSPOSE transpose_b, int m, int n, int k,
                 float alpha, const float *a, int lda, const float *b, int ldb,
                 float beta, float *c, int ldc)
{
    (void)order; /* there is one */
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float *to = c + (ptrdiff_t)i * ldc + j;
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (double)element(a, lda, transpose_a, i, l) *
                       (double)element(b, ldb, transpose_b, l, j);
            *to = (float)((double)alpha * sum +
                          (beta == 0.0f ? 0.0 : (double)(beta * *to)));
        }
}

void openblas_set_num_threads(int threads) { (void)threads; }

char *openblas_get_config(void) { return "plain C"; }
