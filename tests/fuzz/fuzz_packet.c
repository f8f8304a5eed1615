/* Packets of every compressor. The first byte chooses settings, the second the
 * round whose packet is hostile, the rest is that packet; one that is a sum
 * has its due size, as MPI would see to. Two halves of it are merged, too. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sprat/compress.h"

enum { ROWS = 24, COLUMNS = 40, N = ROWS * COLUMNS, ROOM = 1 << 16 };

static const char *const settings[][3] = {
    { "compress.name=dgc", "compress.index=run16", "compress.values=float" },
    { "compress.name=dgc", "compress.index=index32", "compress.values=float" },
    { "compress.name=dgc", "compress.index=run16", "compress.values=fp16" },
    { "compress.name=dgc", "compress.index=index32", "compress.values=fp16" },
    { "compress.name=gradient_dropping" },
    { "compress.name=terngrad" },
    { "compress.name=fp16" },
    { "compress.name=powersgd" },
    { "compress.name=signum" },
};

enum { SETTINGS = sizeof settings / sizeof *settings };

/* One rank of two. */
typedef struct slot {
    const sp_compressor *c;
    sp_slot s;
    float grad[N], got[N];
    uint8_t *work, *packet;
} slot;

static void *block(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes / 64 + 1) * 64);

    fuzz_law(p != NULL, "there is memory");
    return memset(p, 0, bytes);
}

static void open_slot(slot *t, const sp_config *c)
{
    sp_slot *s = &t->s;

    t->c = (const sp_compressor *)sp_config_entry(c, "compress");
    *s = (sp_slot){ .name = "fc.weight",
                    .n = N,
                    .ndim = 2,
                    .dims = { ROWS, COLUMNS },
                    .ranks = 2,
                    .seed = 5,
                    .weight = 0.5,
                    .scale = 1,
                    .ratio = 0.05,
                    .momentum = 0.9,
                    .cfg = sp_config_own(c, "compress") };
    for (int i = 0; i < t->c->state_count; i++)
        s->state[i] =
            block(sizeof(float) *
                  (t->c->state_floats ? t->c->state_floats(s, i) : s->n));
    t->work = block(t->c->work_bytes ? t->c->work_bytes(s) : 0);
    s->work = t->work;
    t->packet = block(ROOM);
    for (int i = 0; i < N; i++)
        t->grad[i] = (float)(i % 7) - 3;
}

static void close_slot(slot *t)
{
    for (int i = 0; i < t->c->state_count; i++)
        free(t->s.state[i]);
    free(t->work);
    free(t->packet);
}

/* The packets of the sum of two are two packets, and the other way round. */
static void merge(const slot *t, int round, const uint8_t *b, size_t size)
{
    size_t half = size / 2;
    uint8_t *left = block(half), *right = block(size - half);
    sp_packet out = { .bytes = block(size + 64) };
    float sink[N] = { 0 };
    bool sound, merged;

    memcpy(left, b, half);
    memcpy(right, b + half, size - half);
    sound = t->c->decode(&t->s, round, left, half, sink) == SP_OK &&
            t->c->decode(&t->s, round, right, size - half, sink) == SP_OK;
    merged = t->c->merge(&t->s, left, half, right, size - half, &out) == SP_OK;
    fuzz_law(sound == merged, "what can be decoded can be merged");
    if (merged)
        fuzz_law(t->c->decode(&t->s, round, out.bytes, sp_packet_size(&out),
                              sink) == SP_OK,
                 "what was merged can be decoded");
    free(left);
    free(right);
    free(out.bytes);
}

/* A packet that came from elsewhere, in a block of just its size. */
static void receive(slot *t, int round, const uint8_t *b, size_t size)
{
    bool gather = t->c->combine[round] == SP_GATHER;
    size_t due = gather ? size : t->c->packet_room(&t->s, round);
    uint8_t *packet = malloc(due > 0 ? due : 1);

    fuzz_law(packet != NULL, "there is memory");
    memset(packet, 0, due);
    memcpy(packet, b, size < due ? size : due);
    if (t->c->decode(&t->s, round, packet, due, t->got) != SP_OK)
        fuzz_law(gather, "only a gathered packet is refused");
    if (gather && t->c->merge && (!t->c->merges || t->c->merges(t->s.cfg)))
        merge(t, round, b, size);
    free(packet);
}

static void step(slot *t, int hostile, const uint8_t *b, size_t size)
{
    for (int round = 0; round < t->c->rounds; round++) {
        sp_packet p = { .bytes = t->packet };

        fuzz_law(t->c->packet_room(&t->s, round) <= ROOM, "packets fit");
        t->c->encode(&t->s, round, t->grad, &p);
        if (round == hostile)
            receive(t, round, b, size);
        else
            receive(t, round, p.bytes, sp_packet_size(&p));
    }
    if (t->c->finish)
        t->c->finish(&t->s, t->got);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static sp_config *configs[SETTINGS];
    int which = size > 0 ? bytes[0] % SETTINGS : 0;
    static slot t;

    if (size < 2)
        return 0;
    if (!configs[which])
        configs[which] = fuzz_config((const char *const[]){
            "model.name=mlp", "data.name=synthetic", settings[which][0],
            settings[which][1], settings[which][2], NULL });
    memset(&t, 0, sizeof t);
    open_slot(&t, configs[which]);
    step(&t, bytes[1] % t.c->rounds, bytes + 2, size - 2);
    close_slot(&t);
    return 0;
}
