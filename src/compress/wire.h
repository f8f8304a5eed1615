/* Packets of sparse entries: what stands where in a tensor that is zero
 * elsewhere.
 *
 *   headers  32-bit count of entries; of halfs, a 16-bit exponent e behind it
 *   values   of each entry a 32-bit float, or a binary16 worth 2^-e each
 *   places   of each entry a 32-bit index; or a 16-bit run, the zeros between
 *            it and the entry before (or the start), where a run of 65,535
 *            stands for as many zeros and no entry
 *
 * Entries stand in rising order, numbers in little-endian order and without
 * gaps. How many runs there are follows from the packet's size. A count of
 * 4,294,967,295 and nothing behind the header: what was to be sent is not
 * finite.
 *
 * Source: Lin, Han, Mao, Wang, Dally 2018, "Deep gradient compression",
 *         section 5: 32-bit values and 16-bit run lengths, 6 bytes an entry.
 */
#ifndef SP_COMPRESS_WIRE_H
#define SP_COMPRESS_WIRE_H

#include "sprat/compress.h"

typedef enum sp_places { SP_RUN16, SP_INDEX32 } sp_places;
typedef enum sp_values { SP_FLOATS, SP_HALFS } sp_values;

/* What both sides know of a packet. */
typedef struct sp_wire {
    size_t n; /* elements of the tensor; below 2^32 - 1 */
    sp_places places;
    sp_values values;
    const char *name; /* of the tensor, for messages */
} sp_wire;

/* Whether indices and counts of n elements fit. */
bool sp_wire_fits(size_t n);

/* The most bytes of k entries. */
size_t sp_wire_room(const sp_wire *w, size_t k);

/* Bytes of one entry. */
size_t sp_wire_entry_bytes(const sp_wire *w);

/* Write k entries, index[i] rising, value[i] finite and not 0; *p is empty.
 * value[i] becomes what the receiver reads. An entry that a half rounds to 0 is
 * left out of the packet, and of both arrays. Returns the entries written. */
size_t sp_wire_write(const sp_wire *w, uint32_t *index, float *value, size_t k,
                     sp_packet *p);

/* The packet that tells that what was to be sent is not finite. */
void sp_wire_write_not_finite(const sp_wire *w, sp_packet *p);

/* A packet that is being read. */
typedef struct sp_wire_reader {
    sp_wire wire;
    const uint8_t *values, *places;
    size_t count, read; /* entries */
    size_t place_count; /* runs or indices */
    size_t place_at;    /* of them, read */
    uint64_t next;      /* the first position that is free */
    float unit;         /* of halfs: 2^-e */
    bool not_finite;    /* what was to be sent; there are no entries then */
} sp_wire_reader;

typedef struct sp_wire_entry {
    uint32_t index;
    float value;
} sp_wire_entry;

/* Begin to read any `bytes`. Errors: SP_EFORMAT when it cannot be a packet. */
SP_MUST sp_err sp_wire_open(sp_wire_reader *r, const sp_wire *w,
                            const void *packet, size_t bytes);

/* The next entry into *e; *more is false when there is none and the packet has
 * ended as it should. Entries rise, are within the tensor and finite.
 * Errors: SP_EFORMAT. */
SP_MUST sp_err sp_wire_next(sp_wire_reader *r, sp_wire_entry *e, bool *more);

/* Packet of the sum of two packets of floats; *out is empty and has room for
 * both. When one of them or a sum of two entries is not finite, it tells so.
 * Errors: SP_EFORMAT when one is no packet. */
SP_MUST sp_err sp_wire_merge(const sp_wire *w, const void *a, size_t a_bytes,
                             const void *b, size_t b_bytes, sp_packet *out);

#endif
