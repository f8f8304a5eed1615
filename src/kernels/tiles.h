/* The inner loops of convolutions and matrix products, one table for each
 * instruction set.
 *
 * Columns stand in blocks of one or two vectors, rows in blocks of
 * sp_tiles.rows: a tile's sums stay in registers from its first product to its
 * last. */
#ifndef SP_KERNELS_TILES_H
#define SP_KERNELS_TILES_H

#include <stdbool.h>
#include <stddef.h>

enum { SP_MAX_ROWS = 8, SP_MAX_VL = 16 };

/* Taps whose inputs stand equally far apart in all rows of a tile. */
typedef struct sp_tap_run {
    int tap, taps; /* the first; how many */
} sp_tap_run;

/* One tile of a forward or backward-input pass:
 *
 *   y[p][:] = beta * y[p][:] + start[:]
 *           + sum over runs r, j < run[r].taps, k < depth of
 *             x[r][p][j * shift + k] * w[run[r].tap + j * tap_step][k][:]
 *
 * With beta 0, y is only written. All rows p must be readable and writable. */
typedef struct sp_tile {
    const float *const *x; /* runs x rows pointers */
    const sp_tap_run *run;
    int runs, depth, tap_step;
    ptrdiff_t shift; /* floats from the inputs of a tap to those of the next */
    const float *w;  /* packed: columns of a block are adjacent */
    size_t w_step;   /* floats from tap to tap */
    const float *start;
    float *const *y; /* `rows` pointers */
    float beta;
} sp_tile;

/* Tiles of one tap of a backward-weight pass:
 *
 *   dw[k][:] (+)= sum over i < count of x[x_at[i] + k] * dy[y_at[i] + :]
 *
 * for k < channels. So many offsets x_at behind the last are read as well, and
 * what they point to is fetched into the cache. */
enum { SP_WEIGHT_AHEAD = 8 };

typedef struct sp_weight_tile {
    const float *x, *dy;
    const int *x_at, *y_at;
    int count, channels;
    float *dw; /* channels x columns of the block, adjacent */
    bool add;
} sp_weight_tile;

/* How the weights of a block of columns stand, and with them which tile is
 * made of them.
 *
 * In pairs, each column's weights of two channels that follow one another are
 * adjacent, channels are even in number, and every number read of an image
 * serves two registers as it does in a block of two vectors:
 *
 *   w[k / 2][column][k % 2]
 *
 * A forward tile of one vector sums even and odd channels apart, in pairs or
 * not, so that both give the same bits. */
typedef enum sp_layout {
    SP_ONE_VECTOR,
    SP_TWO_VECTORS,
    SP_PAIRS /* of one vector */
} sp_layout;

/* Rows of floats that become columns: to[c][r] = from[r][c] for r < rows, c <
 * columns, both at most a vector's length. */
typedef struct sp_square {
    const float *const *from;
    float *const *to;
    int rows, columns;
    bool whole; /* a vector may be read of every row, whatever `columns` is */
} sp_square;

typedef struct sp_tiles {
    int vl;   /* floats in a vector */
    int rows; /* of a tile */

    /* By layout. For pairs, dy holds every number twice. */
    void (*tile[3])(const sp_tile *a);
    void (*weight_tile[3])(const sp_weight_tile *a);

    /* x[i] = at[i] < 0 ? zeros : base + at[i], for i < count x rows. */
    void (*locate)(const int *at, int count, const float *base,
                   const float *zeros, const float **x);
    /* x[i][p] = base[p] + at[i], for i < count, p < rows. */
    void (*locate_across)(const int *at, int count, const float *const *base,
                          const float **x);
    /* Copy `count` rows of `valid` floats to rows of two vectors, filled with
     * zeros. */
    void (*copy_rows)(const float *from, size_t ld, size_t count, int valid,
                      float *to);
    /* The same for one vector, every number twice. */
    void (*copy_pairs)(const float *from, size_t ld, size_t count, int valid,
                       float *to);

    /* A square into whole vectors, with zeros behind the rows. */
    void (*transpose)(const sp_square *s);

    /* Multiply-adds, `turns` times `peak_flops` operations. */
    float (*peak)(size_t turns);
    int peak_flops;
} sp_tiles;

#endif
