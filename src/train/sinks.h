/* Other forms of metrics.jsonl, in files beside it: tables for spreadsheets,
 * event files for TensorBoard. They say what its lines say. When a run begins
 * or goes on they are written anew from the lines that are kept, so they never
 * hold a step twice, and one that is asked for late has all of the run. */
#ifndef SP_TRAIN_SINKS_H
#define SP_TRAIN_SINKS_H

#include <stdio.h>

#include "base/json.h"
#include "sprat/train.h"

/* A form. */
typedef struct sp_sink sp_sink;
struct sp_sink {
    const char *name; /* of the file, or its folder, in the run's */
    const char *kind; /* of the lines that are in it; NULL: all */
    bool (*wanted)(const sp_log_cfg *log);

    /* The file's path, in a folder that is there; the caller frees it.
     * Errors: SP_EIO, SP_ENOMEM. */
    sp_err (*place)(const sp_sink *s, const char *run, char **path);

    /* Append to `out` what the file begins with, and what it says for a line
     * of its kind; nothing for one that does not belong in it. */
    void (*begin)(const sp_sink *s, sp_text *out);
    void (*line)(const sp_sink *s, sp_text *out, const sp_json_value *line);

    /* The file is there: remove those that it replaces. NULL: none. */
    sp_err (*settle)(const char *path);
};

enum { SP_SINKS = 4 };

extern const sp_sink sp_sink_tensorboard; /* event_file.c; the others are
                                             tables */

/* The files of a run; starts as { 0 }, which are none. */
typedef struct sp_sinks {
    FILE *file[SP_SINKS];
    char *path[SP_SINKS];
} sp_sinks;

/* Write what `log` asks for from RUN/metrics.jsonl, which is at `metrics`, and
 * open it to append to. Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_sinks_open(sp_sinks *s, const char *run, const char *metrics,
                             const sp_log_cfg *log);
void sp_sinks_close(sp_sinks *s);

/* Append a line of metrics.jsonl to all. Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_sinks_line(sp_sinks *s, const char *line);

#endif
