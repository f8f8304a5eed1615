/* What the files of the packets share. */
#ifndef SP_TRAIN_PACKETS_PARTS_H
#define SP_TRAIN_PACKETS_PARTS_H

#include "train/packets.h"

enum {
    SP_LARGE_SLOT = 1 << 20, /* elements of a slot that all threads share */
    SP_MERGED = 3            /* a sum, what is added to it, and their sum */
};

/* Memory that grows as it is needed, between two changes of the density. */
typedef struct sp_room {
    uint8_t *bytes;
    size_t size;
} sp_room;

/* Slots that travel together. Its bytes: for SP_GATHER the size of each slot's
 * packet, 32 bits each, then the packets; for sums the packets alone. */
typedef struct sp_bucket {
    size_t first, count; /* in sp_packets.order */
    size_t elements;
    uint8_t *bytes; /* this rank's; in sp_packets.area */
    size_t size;
    sp_pending *op;  /* of the sum, or of the sizes */
    uint64_t sent;   /* size, as it travels */
    uint64_t *sizes; /* of all ranks of the group */
    size_t most;     /* bytes that it can have on any rank */
} sp_bucket;

/* Packets of a bucket that are there: of ranks first, first + 1, ... */
typedef struct sp_arrived {
    bool fresh; /* the gradients become 0 first */
    int first, count;
    const uint8_t *bytes[SP_WINDOW];
    size_t size[SP_WINDOW];
} sp_arrived;

struct sp_packets {
    sp_packets_args args;
    int rank, ranks; /* in the group */
    size_t *order;   /* slots in the order in which they were added */
    size_t added;
    sp_bucket *buckets; /* the last one is open */
    size_t bucket_count;
    uint64_t *sizes;
    size_t *room; /* of each slot, bytes of the longest packet */
    sp_packet *encoded;
    sp_packet_bytes *sums; /* of each slot */
    struct sp_dense *dense;
    bool travels_dense;
    int round;
    double seconds;
    sp_trace *trace; /* NULL: none */
    sp_err begun;    /* the first error of encoding */

    sp_room area; /* packets of this rank */
    size_t area_used;
    sp_room *work;             /* of each slot */
    sp_room in[2];             /* packets of a window of ranks */
    sp_room merged[SP_MERGED]; /* packets on their way */

    size_t *lists;  /* sizes and offsets of two windows, of each rank */
    size_t *at;     /* of each rank of a window, where slots' packets begin */
    sp_err *failed; /* of each slot, to decode it */
};

/* A span of work on a bucket that began at `begin` has ended: count and trace
 * it. */
void sp_bucket_spent(sp_packets *p, const sp_bucket *b, const char *what,
                     double begin);

/* Room for `size` bytes; what was in it is lost when it has to grow. Errors:
 * SP_ENOMEM. */
SP_MUST sp_err sp_room_grow(sp_room *r, size_t size);

/* What messages call a rank of the packets' group. */
static inline const char *sp_packets_rank(const sp_packets *p, int rank,
                                          char out[SP_RANK_NAME])
{
    return sp_rank_name(p->args.comm, p->args.group, rank, out);
}

static inline bool sp_large_slot(const sp_slot *s)
{
    return s->n >= SP_LARGE_SLOT;
}

/* The packets of slots of one bucket, as they stand in `bytes`: at[i] to
 * at[i + 1] is slot i's. `rank` is for messages. Errors: SP_EFORMAT. */
SP_MUST sp_err sp_bucket_open(const sp_packets *p, const sp_bucket *b,
                              const uint8_t *bytes, size_t size, int rank,
                              size_t *at);

/* Add the packets to the gradients (packets_decode.c). Errors: SP_EFORMAT
 * naming rank and parameter. */
SP_MUST sp_err sp_bucket_decode(sp_packets *p, const sp_bucket *b,
                                const sp_arrived *a);

/* Begin and end the way of an encoded bucket between the ranks; ending decodes
 * it (gather.c, merge.c). Errors: those of sp_packets_wait(). */
void sp_gather_begin(sp_packets *p, sp_bucket *b);
SP_MUST sp_err sp_gather_end(sp_packets *p, sp_bucket *b);
SP_MUST sp_err sp_merge_end(sp_packets *p, sp_bucket *b);

#endif
