/* The largest block first, each at the lowest offset where it meets no block
 * that is live at the same time.
 *
 * Source: Pisarchyk, Lee 2020, "Efficient Memory Management for Deep Neural
 *         Net Inference", greedy by size for offsets.
 */
#include "graph/plan.h"

#include <stdbool.h>
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

static bool meet(const sp_block *a, const sp_block *b)
{
    return a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

int sp_plan(sp_block *b, int count, size_t *need)
{
    sp_block **order = malloc(((size_t)count + 1) * sizeof *order);

    *need = 0;
    if (!order)
        return -1;
    for (int i = 0; i < count; i++)
        order[i] = &b[i];
    qsort(order, (size_t)count, sizeof *order, by_size_down);
    for (int i = 0; i < count; i++) {
        order[i]->offset = 0;
        for (int j = 0; j < i; j++)
            if (meet(order[i], order[j])) {
                order[i]->offset = order[j]->offset + order[j]->size;
                j = -1; /* moved up: look at all of them again */
            }
        if (order[i]->offset + order[i]->size > *need)
            *need = order[i]->offset + order[i]->size;
    }
    free(order);
    return 0;
}

size_t sp_plan_lower_bound(const sp_block *b, int count, int times)
{
    size_t *live = calloc((size_t)times + 1, sizeof *live), most = 0;

    if (!live)
        return 0;
    for (int i = 0; i < count; i++)
        for (int t = b[i].first; t <= b[i].last; t++)
            live[t] += b[i].size;
    for (int t = 0; t < times; t++)
        most = live[t] > most ? live[t] : most;
    free(live);
    return most;
}
