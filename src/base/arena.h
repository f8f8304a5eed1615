/* Memory for many small things that are freed together. */
#ifndef SP_ARENA_H
#define SP_ARENA_H

#include <stddef.h>

/* All zero: empty. */
typedef struct sp_arena {
    struct sp_arena_block *blocks;
} sp_arena;

/* `size` zeroed bytes, aligned for any type; NULL: out of memory. */
void *sp_arena_alloc(sp_arena *a, size_t size);

/* A copy of a string, or of `size` bytes; NULL: out of memory. */
char *sp_arena_text(sp_arena *a, const char *text);
void *sp_arena_copy(sp_arena *a, const void *bytes, size_t size);

void sp_arena_free(sp_arena *a);

#endif
