/* A matrix transposed, by squares of whole vectors. */
#include "kernels/table.h"

typedef struct turn {
    const sp_tiles *tiles;
    const float *from;
    float *to;
    size_t rows, columns;
} turn;

/* Rows from `row` on that do not fill a square. */
static void turn_last(const turn *t, size_t row, size_t begin, size_t end)
{
    for (size_t c = begin; c < end; c++)
        for (size_t r = row; r < t->rows; r++)
            t->to[c * t->rows + r] = t->from[r * t->columns + c];
}

/* Columns [begin, end), at most a vector of them. */
static void turn_columns(void *arg, size_t begin, size_t end)
{
    const turn *t = arg;
    size_t vl = (size_t)t->tiles->vl, row = 0;
    const float *from[SP_MAX_VL];
    float *to[SP_MAX_VL];
    sp_square s = { .from = from,
                    .to = to,
                    .rows = t->tiles->vl,
                    .columns = (int)(end - begin) };

    for (; row + vl <= t->rows; row += vl) {
        for (size_t i = 0; i < vl; i++)
            from[i] = t->from + (row + i) * t->columns + begin;
        for (size_t i = 0; i < end - begin; i++)
            to[i] = t->to + (begin + i) * t->rows + row;
        t->tiles->transpose(&s);
    }
    turn_last(t, row, begin, end);
}

void sp_transpose(const sp_kernels *k, int threads, size_t rows, size_t columns,
                  const float *from, float *to)
{
    turn t = { k->tiles, from, to, rows, columns };

    sp_parallel_for(threads, columns, (size_t)k->tiles->vl, turn_columns, &t);
}
