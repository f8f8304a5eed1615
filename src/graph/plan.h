/* Memory planning: where every buffer stands in one shared block. */
#ifndef SP_PLAN_H
#define SP_PLAN_H

#include <stddef.h>

/* A buffer that is live from time `first` to time `last`, both included. */
typedef struct sp_block {
    size_t size; /* bytes */
    int first, last;
    size_t offset; /* bytes from the start; set by sp_plan() */
} sp_block;

/* Place every block so that none overlaps another that is live at the same
 * time; *need becomes the bytes that takes. Returns 0, or -1 when out of
 * memory. */
int sp_plan(sp_block *b, int count, size_t *need);

/* The bytes that are live at each time from 0 to times - 1; to be freed. NULL:
 * out of memory. */
size_t *sp_plan_profile(const sp_block *b, int count, int times);

/* The most bytes that are live at one time: no plan needs less. `times` is
 * one more than the largest `last`. 0 when out of memory. */
size_t sp_plan_lower_bound(const sp_block *b, int count, int times);

#endif
