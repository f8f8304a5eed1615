/* Files of JSON lines that a run appends to, and cuts back when it goes on from
 * a checkpoint: one object a line, whole lines only. */
#ifndef SP_TRAIN_LINES_H
#define SP_TRAIN_LINES_H

#include <stdio.h>

#include "base/json.h"
#include "train/state.h"

enum { SP_LINES_LIMIT = 1 << 30 /* bytes of a file that is read back */ };

/* Whether a line with "step" and, of some kinds, "epoch" and "round" was
 * written before the state `at` was reached. Kinds that sum up an epoch are
 * whole only once its evaluation was in the state; epochs are counted in each
 * round of pruning. */
bool sp_line_belongs(const sp_json_value *line, const sp_train_state *at);

/* Called with a line, its bytes with the line end, and what it says. */
typedef void (*sp_line_each)(void *arg, const char *line, size_t n,
                             const sp_json_value *value);

/* Call `each` for every whole line of a text; one that is torn or no JSON is
 * passed over, as it says nothing. `name` is for messages.
 * Errors: SP_ENOMEM. */
SP_MUST sp_err sp_lines_walk(const char *name, const char *text, size_t size,
                             sp_line_each each, void *arg);

/* The same for a file; without one, nothing. Errors: SP_EIO, SP_EFORMAT for one
 * beyond SP_LINES_LIMIT, SP_ENOMEM. */
SP_MUST sp_err sp_lines_read(const char *path, sp_line_each each, void *arg);

/* Let a file hold this text and no more, if it does not yet; one that is not
 * there is not made for an empty text. Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_lines_keep(const char *path, const sp_text *kept);

/* Drop the lines of a file that do not belong to `at`. Errors: as above. */
SP_MUST sp_err sp_lines_cut(const char *path, const sp_train_state *at);

/* Append bytes, which are in the file when the call returns. Errors: SP_EIO. */
SP_MUST sp_err sp_lines_put(FILE *file, const char *path, const void *bytes,
                            size_t n);

/* Append a finished object as a line. Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_lines_append(FILE *file, const char *path, const sp_json *j);

#endif
