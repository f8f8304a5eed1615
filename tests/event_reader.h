/* A reader of TensorBoard's event files, written from the formats'
 * specifications alone: "Protocol Buffers: Encoding", TensorFlow's event.proto
 * and summary.proto, and its notes on TFRecord. Failures end the test. */
#ifndef SPRAT_TESTS_EVENT_READER_H
#define SPRAT_TESTS_EVENT_READER_H

#include <stdint.h>

typedef struct scalar {
    int64_t step;
    double time;
    char tag[64];
    float value;
} scalar;

enum { EVENTS_MOST = 4000 };

typedef struct events {
    scalar all[EVENTS_MOST];
    int count, records, starts;
    char version[32];
} events;

/* All of a file, with its checksums checked; free() frees. */
events *events_read(const char *path);

/* The value of a tag at a step, which must be there once at most; or NULL. */
const scalar *events_find(const events *e, int64_t step, const char *tag);

/* No tag has two values at one step. */
void events_check_single(const events *e);

#endif
