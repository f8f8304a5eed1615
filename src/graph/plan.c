/* The largest block first, each at the lowest offset where it meets no block
 * that is live at the same time.
 *
 * Source: Pisarchyk, Lee 2020, "Efficient Memory Management for Deep Neural
 *         Net Inference", greedy by size for offsets.
 */
#include "graph/plan.h"

#include <stdlib.h>

static int by_size_down(const void *a, const void *b)
{
    const sp_block *x = *(sp_block *const *)a, *y = *(sp_block *const *)b;

    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The lowest offset at which a block meets none of those placed, which are in
 * order of their offsets. */
static size_t lowest(const sp_block *b, sp_block *const *placed, int count)
{
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        const sp_block *p = placed[i];
        if (p->last < b->first || b->last < p->first)
            continue;
        if (at + b->size <= p->offset)
            break;
        if (at < p->offset + p->size)
            at = p->offset + p->size;
    }
    return at;
}

static void insert(sp_block **placed, int count, sp_block *b)
{
    int i = count;

    for (; i > 0 && placed[i - 1]->offset > b->offset; i--)
        placed[i] = placed[i - 1];
    placed[i] = b;
}

int sp_plan(sp_block *b, int count, size_t *need)
{
    sp_block **order = malloc((2 * (size_t)count + 1) * sizeof *order);
    sp_block **placed;

    *need = 0;
    if (!order)
        return -1;
    placed = order + count;
    for (int i = 0; i < count; i++)
        order[i] = &b[i];
    qsort(order, (size_t)count, sizeof *order, by_size_down);
    for (int i = 0; i < count; i++) {
        order[i]->offset = lowest(order[i], placed, i);
        insert(placed, i, order[i]);
        if (order[i]->offset + order[i]->size > *need)
            *need = order[i]->offset + order[i]->size;
    }
    free(order);
    return 0;
}

size_t *sp_plan_profile(const sp_block *b, int count, int times)
{
    size_t *live = calloc((size_t)times + 1, sizeof *live);

    for (int i = 0; live && i < count; i++)
        for (int t = b[i].first; t <= b[i].last; t++)
            live[t] += b[i].size;
    return live;
}

size_t sp_plan_lower_bound(const sp_block *b, int count, int times)
{
    size_t *live = sp_plan_profile(b, count, times), most = 0;

    for (int t = 0; live && t < times; t++)
        most = live[t] > most ? live[t] : most;
    free(live);
    return most;
}
