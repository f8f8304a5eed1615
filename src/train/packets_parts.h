/* What the files of the packets share. */
#ifndef SP_TRAIN_PACKETS_PARTS_H
#define SP_TRAIN_PACKETS_PARTS_H

#include "train/packets.h"

enum { SP_WINDOW = 8 }; /* ranks whose packets are held at one time */

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
    uint8_t *area;
    size_t area_size, area_used;
    uint8_t *in[2]; /* packets of a window of ranks */
    size_t in_size[2];
    uint8_t **work; /* of each slot */
    size_t *room;   /* of each slot, bytes of the longest packet */
    sp_packet *encoded;
    sp_packet_sums *sums; /* of each slot */
    struct sp_dense *dense;
    bool travels_dense;
    int round;
    double seconds;
    sp_err begun; /* the first error of encoding */
};

/* The packets of slots of one bucket, as they stand in `bytes`: at[i] to
 * at[i + 1] is slot i's. `rank` is for messages. Errors: SP_EFORMAT. */
SP_MUST sp_err sp_bucket_open(const sp_bucket *b, const uint8_t *bytes,
                              size_t size, int rank, size_t *at);

/* Add the packets to the gradients. Errors: SP_EFORMAT naming rank and
 * parameter, SP_ENOMEM. */
SP_MUST sp_err sp_bucket_decode(sp_packets *p, const sp_bucket *b,
                                const sp_arrived *a);

/* Write a packet's size into the table before a bucket's packets, and read
 * it. */
void sp_size_write(uint8_t *table, size_t i, size_t size);
size_t sp_size_read(const uint8_t *table, size_t i);

/* Begin and end the way of an encoded bucket between the ranks; ending decodes
 * it (gather.c, merge.c). Errors: those of sp_packets_wait(). */
void sp_gather_begin(sp_packets *p, sp_bucket *b);
SP_MUST sp_err sp_gather_end(sp_packets *p, sp_bucket *b);
SP_MUST sp_err sp_merge_end(sp_packets *p, sp_bucket *b);

/* Room for `size` bytes at *bytes, which has *room. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_packets_grow(uint8_t **bytes, size_t *room, size_t size);

#endif
