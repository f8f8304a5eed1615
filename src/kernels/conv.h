/* What the passes of a convolution share: the simplest equal form, work space,
 * packed weights, and tables of which pixels meet at which tap. */
#ifndef SP_KERNELS_CONV_H
#define SP_KERNELS_CONV_H

#include "kernels/table.h"

/* What a pass is called with. */
typedef struct sp_conv_call {
    sp_conv_how how;
    sp_conv_shape s;
    int n;         /* images, 1 or more */
    void *scratch; /* NULL where its bytes are counted */
} sp_conv_call;

/* How many threads may need work space of their own. */
static inline size_t sp_conv_threads(const sp_conv_how *how)
{
    return how->threads > 1 ? (size_t)how->threads : 1;
}

/* The three passes by tiles (conv_gather.c, conv_weight.c) and by BLAS
 * (reference.c); arguments as in kernels.h. */
size_t sp_gather_scratch(const sp_conv_call *c, sp_pass pass);
void sp_gather_forward(const sp_conv_call *c, const float *x, const float *w,
                       const float *b, float *y);
void sp_gather_backward(const sp_conv_call *c, const float *dy, const float *w,
                        float *dx, float beta);
size_t sp_weight_scratch(const sp_conv_call *c);
void sp_weight_backward(const sp_conv_call *c, const float *x, const float *dy,
                        float *dw, float beta);

/* The same by Winograd's tiles of m x m outputs (conv_winograd.c,
 * conv_winograd_weight.c), for shapes that sp_conv_has_tiles() lets through. */
size_t sp_winograd_scratch(const sp_conv_call *c, sp_pass pass);
void sp_winograd_forward(const sp_conv_call *c, const float *x, const float *w,
                         const float *b, float *y);
void sp_winograd_backward(const sp_conv_call *c, const float *dy,
                          const float *w, float *dx, float beta);
size_t sp_winograd_weight_scratch(const sp_conv_call *c);
void sp_winograd_weight(const sp_conv_call *c, const float *x, const float *dy,
                        float *dw, float beta);

/* Called by each thread before it calls BLAS: threads are ours; BLAS's own
 * would make sums depend on their number. OpenBLAS with OpenMP asks the thread
 * that calls it, so each has to say so. */
void sp_blas_alone(void);

size_t sp_reference_scratch(const sp_conv_call *c);
void sp_reference_forward(const sp_conv_call *c, const float *x, const float *w,
                          const float *b, float *y);
void sp_reference_backward(const sp_conv_call *c, const float *dy,
                           const float *w, float *dx, float beta);
void sp_reference_weight(const sp_conv_call *c, const float *x, const float *dy,
                         float *dw, float beta);

/* A convolution in its simplest equal form. A kernel that covers the image
 * becomes one tap of h*w*cin channels; one of a single pixel, without stride
 * or padding, sees every pixel as an image. */
typedef struct sp_conv_form {
    sp_conv_shape s;
    size_t images;
    int taps;      /* kh * kw */
    int cin, cout; /* of a group */

    /* Of the weights as they are stored: row o of cin*taps floats holds
     * channel i of tap t at i * stored_taps + t. */
    int stored_taps, stored_cin;

    /* Blocks of one vector are packed in pairs. */
    bool pairs;
} sp_conv_form;

sp_conv_form sp_conv_simplify(const sp_conv_shape *s, int n);

/* A backward-weight pass sums so many pixels, then adds sums up. */
enum { SP_WEIGHT_CHUNK = 128 };

/* The backward-weight pass of a layer over rows (conv_rows.c), with the bits of
 * sp_weight_backward() where that does not cut the images into parts: whether
 * it pays, its work space for up to f->images rows (0 where it never pays), and
 * the pass. */
bool sp_rows_pay(const sp_conv_form *f);
size_t sp_rows_scratch(const sp_conv_call *c, const sp_conv_form *f);
void sp_rows_weight(const sp_conv_call *c, const sp_conv_form *f,
                    const float *x, const float *dy, float *dw, float beta);

/* Parts of one block of memory; with base NULL they are only counted. */
typedef struct sp_carver {
    char *base;
    size_t used;
} sp_carver;

void *sp_carve(sp_carver *c, size_t bytes);

/* The columns of a group in blocks of two vectors, the last perhaps of one. */
typedef struct sp_blocks {
    int vl, columns, count;
} sp_blocks;

typedef struct sp_block {
    int first, valid; /* columns of the group that it holds */
    int vectors;      /* in it, zeros behind the valid columns */
    int width;        /* in floats */
} sp_block;

sp_blocks sp_blocks_of(int columns, int vl);
sp_block sp_block_at(const sp_blocks *b, int i);
int sp_blocks_width(const sp_blocks *b); /* of all together */

static inline sp_layout sp_layout_of(const sp_conv_form *f, const sp_block *b)
{
    return b->vectors == 2 ? SP_TWO_VECTORS
           : f->pairs      ? SP_PAIRS
                           : SP_ONE_VECTOR;
}

/* ---- Packed weights (conv_pack.c) ---------------------------------------
 * All blocks of all groups one after the other, each: taps x depth x width, or
 * in pairs taps x depth / 2 x width x 2. */

/* Depth: input channels; columns: output channels. */
void sp_pack_forward(const sp_conv_how *how, const sp_conv_form *f,
                     const float *w, float *panels);
/* Depth: output channels; columns: input channels. */
void sp_pack_backward(const sp_conv_how *how, const sp_conv_form *f,
                      const float *w, float *panels);

/* dw = beta * dw + the sum of `parts` gradients, each laid out as
 * sp_pack_forward() does. The first is overwritten. */
typedef struct sp_unpacking {
    float *panels;
    int parts;
    float *dw;
    float beta;
} sp_unpacking;

void sp_unpack_gradient(const sp_conv_how *how, const sp_conv_form *f,
                        const sp_unpacking *u);

/* ---- Which pixels meet at which tap (conv_sites.c) -----------------------
 * Seen from the written side: output pixels in a forward pass, input pixels in
 * a backward-input pass. */
typedef struct sp_meeting {
    int height, width;      /* of the image that is written */
    int from_width, from_c; /* of the image that is read, in floats a pixel */
    int kh, kw;
    int tap_step; /* from a tap to the next of its row that meets a pixel */
    int shift;    /* floats from the pixel met there to the one met next */
    int *row;     /* [height][kh]: row that is read, or -1 */
    int *col;     /* [width][kw] */
} sp_meeting;

void sp_meeting_layout(sp_meeting *m, const sp_conv_form *f, sp_pass pass,
                       sp_carver *c);
void sp_meeting_fill(const sp_meeting *m, const sp_conv_form *f, sp_pass pass);

/* Float offset in the read image for pixel (y,x) and tap (ky,kx), or -1. */
static inline int sp_meet(const sp_meeting *m, int y, int x, int ky, int kx)
{
    int row = m->row[(size_t)y * (size_t)m->kh + (size_t)ky];
    int col = m->col[(size_t)x * (size_t)m->kw + (size_t)kx];

    return row < 0 || col < 0 ? -1 : (row * m->from_width + col) * m->from_c;
}

/* A site: `span` pixels that are computed together, and the taps at which any
 * of them meets a pixel, in runs in which the pixels that are met move by the
 * meeting's shift, or all miss. */
typedef struct sp_sites {
    int span, count, taps; /* taps: most runs of a site */
    int *pixel;            /* [count][span]; -1 behind the last pixel */
    int *runs;             /* [count]: how many */
    sp_tap_run *run;       /* [count][taps] */
    int *at;               /* [count][taps][span]: as sp_meet(), at the first
                              tap of the run */
} sp_sites;

void sp_sites_layout(sp_sites *s, const sp_meeting *m, int span, sp_carver *c);
/* Pixels whose y and x leave the same remainder by the taps' step stand
 * together: they meet the same taps. */
void sp_sites_fill(const sp_sites *s, const sp_meeting *m,
                   const sp_conv_how *how);

#endif
