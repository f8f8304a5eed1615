/* Packets of a step: encoding of slots, their way between ranks, decoding.
 * Slots leave in buckets as their gradients become final. Packets of SP_GATHER
 * reach all ranks by an all-gather, sums of the others are an all-reduce. */
#ifndef SP_TRAIN_PACKETS_H
#define SP_TRAIN_PACKETS_H

#include "dist/comm.h"
#include "sprat/compress.h"
#include "train/trace.h"

enum {
    SP_SIZE_BYTES = 4, /* of a gathered packet's size, which travels before
                          it */
    SP_WINDOW = 8      /* ranks whose packets are held at one time, at most */
};

typedef struct sp_packets sp_packets;

typedef struct sp_packets_args {
    sp_comm *comm;
    sp_group group;
    const sp_compressor *compressor;
    sp_slot *slots; /* the caller's; their ratio, scale, step may change */
    float **grads;  /* of each slot */
    size_t count;
    bool merge;         /* by recursive doubling, instead of gathering */
    bool always_gather; /* or merge: even where dense sums would cost less */
    int window;         /* ranks whose packets are held; 0: SP_WINDOW */
    int threads;
} sp_packets_args;

/* Bytes of packets encoded so far, by stream; `dense`: of gradients that were
 * summed dense instead. */
typedef struct sp_packet_bytes {
    double headers, values, places, dense;
} sp_packet_bytes;

/* On success *out is the caller's to free. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_packets_new(sp_packets **out, const sp_packets_args *args);
void sp_packets_free(sp_packets *p);

/* Make room for packets at the slots' present ratio; before the first step and
 * when the ratio has changed. Errors: SP_ENOMEM, SP_ECONFIG for packets beyond
 * 4 GiB of one slot. */
SP_MUST sp_err sp_packets_resize(sp_packets *p);

/* The most bytes of all packets of a rank, at that ratio, in the round that has
 * most. */
double sp_packets_most(const sp_packets *p);

/* Whether gathering would cost more than summing dense gradients: then they
 * travel dense, decoded by the sender. The same on all ranks. */
bool sp_packets_dense(const sp_packets *p);

/* The gradient of slot i is final; it leaves when its bucket is full. All ranks
 * add the slots in the same order. */
void sp_packets_add(sp_packets *p, size_t i);

/* Let all leave, and decode what comes: the gradients of all slots that were
 * added are the sums then. Collective over the group.
 * Errors: SP_EPEER, SP_EFORMAT naming rank and parameter, SP_ENOMEM. */
SP_MUST sp_err sp_packets_wait(sp_packets *p);

/* Let `trace` have the spans of encoding and decoding; NULL: nobody. */
void sp_packets_trace(sp_packets *p, sp_trace *trace);

sp_packet_bytes sp_packets_sums(const sp_packets *p);

/* Packet bytes of one slot so far. */
sp_packet_bytes sp_packets_slot_sums(const sp_packets *p, size_t i);

/* Seconds so far spent in encoding and decoding. */
double sp_packets_seconds(const sp_packets *p);

#endif
