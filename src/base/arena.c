#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, BLOCK = 1 << 16 };

typedef struct sp_arena_block {
    struct sp_arena_block *next;
    size_t used, size;
    max_align_t bytes[];
} sp_arena_block;

void *sp_arena_alloc(sp_arena *a, size_t size)
{
    sp_arena_block *b = a->blocks;

    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!b || b->size - b->used < size) {
        size_t room = size > BLOCK ? size : BLOCK;
        b = calloc(1, sizeof *b + room);
        if (!b)
            return NULL;
        b->size = room;
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = (char *)b->bytes + b->used;
    b->used += size;
    return p;
}

void *sp_arena_copy(sp_arena *a, const void *bytes, size_t size)
{
    void *p = sp_arena_alloc(a, size);

    if (p && size)
        memcpy(p, bytes, size);
    return p;
}

char *sp_arena_text(sp_arena *a, const char *text)
{
    return sp_arena_copy(a, text, strlen(text) + 1);
}

void sp_arena_free(sp_arena *a)
{
    for (sp_arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    a->blocks = NULL;
}
