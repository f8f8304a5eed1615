/* What the kernels use of OpenBLAS, in plain C (blas.c): for builds with
 * -Dkernels_only=true, where there is no OpenBLAS to link with. */
#ifndef PLAIN_CBLAS_H
#define PLAIN_CBLAS_H

enum CBLAS_ORDER { CblasRowMajor = 101 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 };

/* c = alpha * op(a) * op(b) + beta * c, with op(a) m x k and op(b) k x n. */
void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transpose_a,
                 enum CBLAS_TRANSPOSE transpose_b, int m, int n, int k,
                 float alpha, const float *a, int lda, const float *b, int ldb,
                 float beta, float *c, int ldc);

void openblas_set_num_threads(int threads);
char *openblas_get_config(void);

#endif
