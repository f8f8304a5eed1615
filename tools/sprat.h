/* The sprat program: what its verbs share. */
#ifndef SPRAT_TOOLS_SPRAT_H
#define SPRAT_TOOLS_SPRAT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "sprat/config.h"
#include "sprat/dist.h"

/* Exit statuses. */
enum {
    SP_EXIT_DONE = 0,
    SP_EXIT_FAILED = 1,     /* the run failed */
    SP_EXIT_USAGE = 2,      /* usage, configuration or data, before step 0 */
    SP_EXIT_STOPPED = 3,    /* stopped on request, after saving */
    SP_EXIT_NUMERIC = 4,    /* the loss or a gradient is not finite */
    SP_EXIT_IMPATIENT = 130 /* interrupted twice */
};

/* ---- Verbs and their arguments (sprat_args.c) --------------------------- */

enum { SP_FLAGS_MAX = 5, SP_COUNT_MAX = 1000000000 };

/* An option of a verb. */
typedef struct sp_flag {
    const char *name;  /* without the dashes; of one letter: -o */
    const char *value; /* what it takes, "DIR"; NULL: it is a switch */
    const char *help;
} sp_flag;

typedef struct sp_args sp_args;

/* One verb of the program: a row of its table. */
typedef struct sp_verb {
    const char *name;
    const char *words;    /* operands as they stand in the usage line */
    int least, most;      /* how many operands; most -1: any number */
    bool overrides;       /* takes section.key=value */
    bool ranks;           /* may run on several ranks together */
    const char *help;     /* one line */
    const char *examples; /* whole lines, the details before them */
    sp_flag flags[SP_FLAGS_MAX];
    void (*prepare)(void); /* before the ranks meet, which takes seconds; NULL:
                              nothing */
    int (*run)(const sp_args *a); /* gives the exit status */
} sp_verb;

/* A verb's arguments, taken apart. Words point into argv. */
struct sp_args {
    const sp_verb *verb;
    const char **words;
    size_t word_count;
    const char **overrides;
    size_t override_count;
    const char *flags[SP_FLAGS_MAX]; /* value of verb->flags[i]; "" for a
                                        switch; NULL: not given */
    bool help;                       /* --help or -h was among them */
    sp_comm *comm; /* the ranks of a verb that may have several */
};

/* Take the arguments behind a verb apart: --option VALUE or --option=VALUE,
 * section.key=value (a '/' before the '=' makes it a file's name), operands;
 * behind `--` there are only operands. False: it was said on stderr what is
 * wrong. The caller frees with sp_args_free() in either case. */
bool sp_args_parse(sp_args *a, const sp_verb *v, int argc, char **argv);
void sp_args_free(sp_args *a);

/* The value given for an option of the verb, or NULL. */
const char *sp_args_flag(const sp_args *a, const char *name);

/* The same as a number of at least 0. */
bool sp_args_number(const sp_args *a, const char *name, double fallback,
                    double *out);

/* The same as a whole number from 1 to `most`, `fallback` if not given. False:
 * it was said on stderr what is wrong. */
bool sp_args_count(const sp_args *a, const char *name, long fallback, long most,
                   long *out);

/* ---- Talking (sprat_talk.c) --------------------------------------------- */

/* "sprat: ..." on stderr; each line of the text gets its own prefix. */
void sp_say(const char *fmt, ...) SP_PRINTF(1, 2);

/* Say sp_last_error() and give the exit status of a failure before step 0. */
int sp_refuse(sp_err e);

/* The same for a verb on several ranks. An error that they have agreed on
 * (sp_agreed()) is said by one for all. Of another one the others may not know:
 * says it here, with the rank's name, and ends all ranks with
 * SP_EXIT_FAILED. */
int sp_refuse_all(const sp_args *a, sp_err e);

/* What stands before an option's name: "-" before one letter, else "--". */
const char *sp_dashes(const char *option);

/* Say that a word is unknown, with the nearest one if there is any; `what` is
 * the kind of word, "verb". Gives SP_EXIT_USAGE. */
int sp_unknown(const char *what, const char *word,
               const char *(*next)(const void *arg, size_t i), const void *arg);

/* Print the finished object as the only line of stdout, and free it. Gives the
 * exit status. */
int sp_print_json(sp_json *j);

/* ---- Training (sprat_job.c) ---------------------------------------------- */

/* Let signals that ask to save and stop be noted from now on. */
void sp_catch_signals(void);

/* Not 0: one has come. */
const volatile sig_atomic_t *sp_caught_signal(void);

/* Say what a job ended with, and give the exit status; `started`: it had
 * reached step 0. */
int sp_job_status(const sp_args *a, sp_err e, bool started);

/* Where a job reports to; NULL: nowhere. */
FILE *sp_job_terminal(const sp_args *a);

/* ---- Configurations (sprat_talk.c) -------------------------------------- */

/* The registry and the configuration that a verb's words and overrides
 * describe. Zero means: not opened; sp_opened_free() may always be called. */
typedef struct sp_opened {
    sp_registry *registry;
    sp_config *config;
} sp_opened;

SP_MUST sp_err sp_opened_registry(sp_opened *o);
SP_MUST sp_err sp_opened_config(sp_opened *o, const sp_args *a);
void sp_opened_free(sp_opened *o);

/* ---- Keys (sprat_list.c) ------------------------------------------------- */

/* Type and bounds of a key as they are shown: "int >= 0", "none|norm". */
void sp_key_type(const sp_key *k, char *out, size_t size);

/* Its default as it stands in a file; "" is shown as two quotes. */
const char *sp_key_fallback(const sp_key *k);

/* ---- The verbs (their table: sprat_verbs.c) ------------------------------ */

/* The i-th verb, or NULL past the last. */
const sp_verb *sp_verb_at(size_t i);

extern const sp_verb sp_verb_train, sp_verb_resume, sp_verb_table;
extern const sp_verb sp_verb_eval, sp_verb_verify, sp_verb_predict,
    sp_verb_sample;
extern const sp_verb sp_verb_export, sp_verb_import;
extern const sp_verb sp_verb_info, sp_verb_check, sp_verb_bench;
extern const sp_verb sp_verb_list, sp_verb_gradcheck, sp_verb_version;
extern const sp_verb sp_verb_doctor;
extern const sp_verb sp_verb_report, sp_verb_compare;

#endif
