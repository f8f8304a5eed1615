/* A checker of timelines, written from the description of their format: a JSON
 * list of objects with name, ph, pid, tid, of "X" also ts and dur. */
#ifndef SPRAT_TESTS_TRACE_FILE_H
#define SPRAT_TESTS_TRACE_FILE_H

#include <stdint.h>

/* Count, and print, what is wrong with a timeline of ranks 0 to `ranks` - 1:
 * spans of a track that neither follow nor contain each other, events that are
 * not in order, a step from `first` to `last` that a rank has not exactly once,
 * parts of a step outside of it, operations that end on a rank before all have
 * begun them. */
int trace_faults(const char *path, int ranks, int64_t first, int64_t last);

#endif
