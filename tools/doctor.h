/* What `sprat doctor` looks at: each part tells what it finds, line by line. */
#ifndef SPRAT_TOOLS_DOCTOR_H
#define SPRAT_TOOLS_DOCTOR_H

#include "sprat.h"

/* Fine as it is; good to know, or slower than it could be; will not work. */
typedef enum sp_mark { SP_FINE, SP_NOTE, SP_PROBLEM, SP_MARKS } sp_mark;

typedef struct sp_doctor {
    bool json; /* findings are kept for one object in place of being printed */
    sp_json found;
    int count[SP_MARKS];
} sp_doctor;

/* Tell one finding; `remedy` is what to do about it, or NULL. */
void sp_found(sp_doctor *d, sp_mark mark, const char *topic, const char *remedy,
              const char *fmt, ...) SP_PRINTF(5, 6);

/* ---- The parts ----------------------------------------------------------- */

/* Versions, variables that change speed, right numbers, peak. */
void sp_doctor_libraries(sp_doctor *d);
void sp_doctor_variables(sp_doctor *d);
void sp_doctor_numbers(sp_doctor *d);

/* CPU, cores, memory, and what limits them. */
void sp_doctor_machine(sp_doctor *d);

/* Where runs are written, and data sets. */
void sp_doctor_places(sp_doctor *d);

/* The folder that runs are written to, seen from here. */
const char *sp_doctor_runs(void);

/* The launcher of ranks, which is tried. */
void sp_doctor_mpi(sp_doctor *d);

/* As one of several ranks: who they are, and whether they share what they
 * must. Collective; rank 0 tells. Errors: SP_EPEER. */
SP_MUST sp_err sp_doctor_ranks(sp_doctor *d, sp_comm *c);

/* ---- Limits (limits.c) --------------------------------------------------- */

/* What the control groups of this process allow it; infinite: all there is. */
typedef struct sp_limits {
    double cpus;
    double bytes; /* of memory */
} sp_limits;

/* Of a process whose groups are listed in `list` (/proc/self/cgroup), below the
 * folder `root` (/sys/fs/cgroup): the least of its group and those above. What
 * cannot be read limits nothing. */
sp_limits sp_limits_read(const char *list, const char *root);

/* The first line of a file, without its end; false: there is none. */
bool sp_first_line(const char *path, char *line, int room);

#endif
