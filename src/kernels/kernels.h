/* Kernels: arrays in, arrays out. They know no tensors and no graph.
 *
 * Fast loops are compiled once per instruction set from one source and reached
 * through one table, chosen when a graph is opened. Drivers cut the work by
 * size, never by the number of threads, and combine partial sums in a fixed
 * order, so that results have the same bits with any number of threads.
 * Arrays may be read up to SP_ALIGN bytes behind their end only where said.
 */
#ifndef SP_KERNELS_H
#define SP_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sprat/op.h"

/* The table of an instruction set: "base", "avx2", "avx512", "neon", or the
 * best that this CPU has for NULL or "auto". NULL: unknown, or not on this
 * CPU. */
const sp_kernels *sp_kernels_find(const char *isa);

/* The i-th table that this CPU can run, the best first; NULL past the last. */
const sp_kernels *sp_kernels_at(int i);

const char *sp_kernels_isa(const sp_kernels *k);

/* GFLOP/s of a loop of independent multiply-adds on `threads` threads: the
 * peak that this instruction set can reach here and now, measured for about
 * `seconds`. */
double sp_kernels_peak(const sp_kernels *k, int threads, double seconds);

/* GB/s of the loop a = b + s * c on `threads` threads, counted as two reads and
 * a write: what memory gives here and now, measured for about `seconds`. The
 * three arrays are as large as the last cache each, or 32 MiB if that is more
 * (and 384 MiB at most). 0: there is no memory for them.
 *
 * Source: McCalpin 1995, "Memory Bandwidth and Machine Balance in Current High
 *         Performance Computers": STREAM's triad. */
double sp_kernels_bandwidth(const sp_kernels *k, int threads, double seconds);

/* Bytes of the last cache, as the system says; 32 MiB if that is more, or the
 * system does not say. */
size_t sp_last_cache(void);

/* Version and build of the BLAS in use, for reports. */
const char *sp_blas_version(void);

/* `size` bytes aligned to SP_ALIGN, with SP_ALIGN readable bytes behind, in
 * large pages where that pays; freed with free(). NULL: out of memory. */
void *sp_block_alloc(size_t size);

/* Threads that work on one loop at most; more are not used. */
enum { SP_MAX_THREADS = 256 };

/* Which of `threads` threads calls, within sp_parallel_for(): from 0. */
int sp_worker(int threads);

/* ---- Convolution and matrix products (conv.c) ---------------------------
 * One geometry serves all: a linear layer over rows of k inputs is the
 * convolution h = w = kh = kw = 1, cin = k; over images it is the one whose
 * kernel covers the image. Weights are in PyTorch's order: cout, cin/groups,
 * kh, kw. Images are NHWC, of at most 2^31 - 1 floats. */
typedef struct sp_conv_shape {
    int h, w, cin, oh, ow, cout;
    int kh, kw, stride, pad, groups;
} sp_conv_shape;

/* That of a linear layer over rows of `in` numbers. */
static inline sp_conv_shape sp_linear_shape(int in, int out)
{
    return (sp_conv_shape){ .h = 1,
                            .w = 1,
                            .cin = in,
                            .oh = 1,
                            .ow = 1,
                            .cout = out,
                            .kh = 1,
                            .kw = 1,
                            .stride = 1,
                            .groups = 1 };
}

/* How a convolution is computed: the table's loops, or (the reference they are
 * tested against) im2col and BLAS. */
typedef struct sp_conv_how {
    const sp_kernels *kernels;
    int threads;
    bool reference;
    int tile; /* 0: directly; 2 or 4: by Winograd's tiles of 2 x 2 or 4 x 4
                 outputs, only where sp_conv_has_tiles() */
} sp_conv_how;

/* Whether Winograd's tiles can compute it: 3 x 3, stride 1, one group. */
bool sp_conv_has_tiles(const sp_conv_shape *s);

/* The tile that should compute a pass soonest: 0, 2 or 4, a function of its
 * arguments alone. The rule is fitted to measurements; see conv_rule.c. */
int sp_conv_best_tile(const sp_kernels *k, const sp_conv_shape *s,
                      sp_pass pass);

/* Bytes of work space for a pass over up to n images; aligned to SP_ALIGN.
 * Does not depend on the number of threads' scheduling, may on `threads`. */
size_t sp_conv_scratch(const sp_conv_how *how, const sp_conv_shape *s, int n,
                       sp_pass pass);

/* y = x * w + b; b may be NULL. */
void sp_conv_forward(const sp_conv_how *how, const sp_conv_shape *s, int n,
                     const float *x, const float *w, const float *b, float *y,
                     void *scratch);

/* dx = beta * dx + dy * w^T; with beta 0, dx may hold anything before. */
void sp_conv_backward_input(const sp_conv_how *how, const sp_conv_shape *s,
                            int n, const float *dy, const float *w, float *dx,
                            float beta, void *scratch);

/* dw = beta * dw + x^T * dy. */
void sp_conv_backward_weight(const sp_conv_how *how, const sp_conv_shape *s,
                             int n, const float *x, const float *dy, float *dw,
                             float beta, void *scratch);

/* ---- Products with the same weights again and again (packed.c) ----------
 * Weights w {out, in} in the order in which the tiles read them, for a layer
 * that multiplies a few rows by them at every time step:
 *
 *   y[r][o] = beta * y[r][o] + sum over i of x[r][i] * w[o][i]
 *
 * or, `transposed`, by w's columns: out and in change places. In groups, as a
 * convolution may be: group k of a row of x and group k of w's rows give group
 * k of the row of y; x has rows of groups*in, y of groups*out, and w has
 * groups*out rows or, transposed, groups*in. */
typedef struct sp_packed {
    int in, out; /* of a group of the product */
    bool transposed;
    int groups;  /* default 1 */
    float *data; /* sp_packed_size() bytes of the caller's, for each group,
                    aligned to SP_ALIGN */
} sp_packed;

/* Bytes of data of a group. */
size_t sp_packed_size(const sp_conv_how *how, int in, int out);

/* Fill p->data from w, which is not read again and must not overlap it. */
void sp_pack(const sp_conv_how *how, const sp_packed *p, const float *w);

/* The product over n rows of x and y, which are dense and must overlap neither
 * each other nor p->data; `how` has the kernels and `reference` that it was
 * packed for. With beta 0, y may hold anything before. The bits do not depend
 * on n or on threads. */
void sp_packed_product(const sp_conv_how *how, const sp_packed *p, int n,
                       const float *x, float *y, float beta);

/* to[c][r] = from[r][c]. */
void sp_transpose(const sp_kernels *k, int threads, size_t rows, size_t columns,
                  const float *from, float *to);

/* db[c] = beta * db[c] + sum over rows of dy[row][c]; sums in fixed order. */
void sp_bias_backward(const sp_conv_how *how, size_t rows, int cout,
                      const float *dy, float *db, float beta);

#endif
