#include "data/vocab.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 1024 };

struct sp_vocab_slot {
    uint32_t hash;
    int32_t token; /* and 1; 0: free */
};

static uint32_t hash_of(const unsigned char *word, size_t size)
{
    uint64_t h = 0xCBF29CE484222325u;

    for (size_t i = 0; i < size; i++)
        h = (h ^ word[i]) * 0x100000001B3u;
    return (uint32_t)(h ^ h >> 32);
}

static bool same(const char *known, const void *word, size_t size)
{
    return strncmp(known, word, size) == 0 && known[size] == '\0';
}

/* The slot of a word, or the free one where it belongs. */
static struct sp_vocab_slot *slot_of(const sp_vocab *v, const void *word,
                                     size_t size, uint32_t hash)
{
    size_t mask = v->slot_count - 1, i = hash & mask;

    while (v->slots[i].token != 0 &&
           !(v->slots[i].hash == hash &&
             same(v->words[v->slots[i].token - 1], word, size)))
        i = (i + 1) & mask;
    return &v->slots[i];
}

static sp_err more_slots(sp_vocab *v)
{
    size_t count = v->slot_count > 0 ? 2 * v->slot_count : FIRST_SLOTS;
    struct sp_vocab_slot *slots = calloc(count, sizeof *slots);

    if (!slots)
        return sp_fail(SP_ENOMEM, "vocabulary: out of memory");
    for (size_t i = 0; i < v->slot_count; i++) {
        size_t to = v->slots[i].hash & (count - 1);

        if (v->slots[i].token == 0)
            continue;
        while (slots[to].token != 0)
            to = (to + 1) & (count - 1);
        slots[to] = v->slots[i];
    }
    free(v->slots);
    v->slots = slots;
    v->slot_count = count;
    return SP_OK;
}

/* Keep a copy of a word as the last one. */
static sp_err append(sp_vocab *v, const void *word, size_t size)
{
    char *copy;

    if (v->count == INT32_MAX)
        return sp_fail(SP_EDATA, "vocabulary: more than %d different words",
                       INT32_MAX);
    if (v->count == v->room) {
        size_t room = v->room > 0 ? 2 * v->room : FIRST_SLOTS;
        const char **words = realloc(v->words, room * sizeof *words);

        if (!words)
            return sp_fail(SP_ENOMEM, "vocabulary: out of memory");
        v->words = words;
        v->room = room;
    }
    copy = sp_arena_alloc(&v->text, size + 1);
    if (!copy)
        return sp_fail(SP_ENOMEM, "vocabulary: out of memory");
    memcpy(copy, word, size);
    v->words[v->count++] = copy;
    return SP_OK;
}

sp_err sp_vocab_add(sp_vocab *v, const void *word, size_t size, int32_t *token)
{
    uint32_t hash = hash_of(word, size);
    struct sp_vocab_slot *slot;

    if (2 * (v->count + 1) > v->slot_count)
        SP_TRY(more_slots(v));
    slot = slot_of(v, word, size, hash);
    if (slot->token == 0) {
        SP_TRY(append(v, word, size));
        *slot =
            (struct sp_vocab_slot){ .hash = hash, .token = (int32_t)v->count };
    }
    *token = slot->token - 1;
    return SP_OK;
}

int32_t sp_vocab_find(const sp_vocab *v, const void *word, size_t size)
{
    if (v->slot_count == 0)
        return -1;
    return slot_of(v, word, size, hash_of(word, size))->token - 1;
}

void sp_vocab_free(sp_vocab *v)
{
    free(v->words);
    free(v->slots);
    sp_arena_free(&v->text);
    *v = (sp_vocab){ 0 };
}
