/* Files of one JSON object a line, as runs write them. */
#ifndef SPRAT_REPORT_LINES_H
#define SPRAT_REPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "sprat/base.h"

enum { SP_RUN_LINES_LIMIT = 1 << 29 }; /* bytes of a file that is read */

/* A line under reading. */
typedef struct sp_line {
    const char *path;
    size_t number;             /* from 1 */
    const sp_json_value *root; /* an object; valid during the call */
} sp_line;

/* Call `each` with every line of a file. *torn: the last one had no line end
 * and was no JSON, as when a run is killed, and was left out. A file that does
 * not exist has no lines. Errors: SP_EFORMAT "path:line: ..." for any other
 * line that is no JSON object; what `each` gives; SP_EIO; SP_ENOMEM. */
SP_MUST sp_err sp_run_lines(const char *path,
                            sp_err (*each)(void *arg, const sp_line *line),
                            void *arg, bool *torn);

/* Members of a line. A number that is missing or null, as one that was not
 * finite was written, gives NAN; a text that is missing gives NULL.
 * Errors: SP_EFORMAT "path:line: ..." for another kind. */
SP_MUST sp_err sp_line_number(const sp_line *line, const char *key,
                              double *out);
SP_MUST sp_err sp_line_text(const sp_line *line, const char *key,
                            const char **out);

/* A member that is a list, or NULL when it is missing. Errors: SP_EFORMAT. */
SP_MUST sp_err sp_line_list(const sp_line *line, const char *key,
                            const sp_json_value **out);

/* Record that a line is not what it should be. Returns SP_EFORMAT. */
sp_err sp_line_fail(const sp_line *line, const char *what, const char *key);

#endif
