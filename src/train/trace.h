/* A timeline of steps: what each rank does when, and what travels meanwhile.
 *
 * Each rank keeps its spans of time in memory that is there before step 0, and
 * writes them between steps to its part, RUN/trace/rank-NNNN.json. At the end,
 * or when the run is stopped, rank 0 puts the parts together on one clock, its
 * own, as RUN/trace.json. Both are lists of trace events, which Perfetto and
 * chrome://tracing open; a part has no closing bracket, which they do not miss.
 *
 * Recorded are the first `steps` steps of a call of the program, with operators
 * and messages, and every evaluation and checkpoint. The times are microseconds
 * since the run's first trace began. A run that goes on from a checkpoint drops
 * what was recorded behind it.
 *
 * Source: Google 2016, "Trace Event Format", the JSON array form; Cristian
 *         1989, "Probabilistic clock synchronization": clocks are compared by
 *         the fastest of several questions and answers, at the start and at the
 *         end, and are taken to drift evenly in between.
 */
#ifndef SP_TRAIN_TRACE_H
#define SP_TRAIN_TRACE_H

#include "base/text.h"
#include "dist/comm.h"
#include "sprat/op.h"
#include "train/state.h"

typedef struct sp_trace sp_trace;

/* What a span is: its category, "cat", in the file. */
typedef enum sp_span_kind {
    SP_SPAN_STEP,
    SP_SPAN_DATA,     /* waiting for a batch */
    SP_SPAN_WORKER,   /* a thread that prepares one, at any time before */
    SP_SPAN_PASS,     /* forward, backward */
    SP_SPAN_OPERATOR, /* a part of one */
    SP_SPAN_COMPRESS, /* encoding and decoding packets */
    SP_SPAN_EXCHANGE, /* what is left to wait for behind backward */
    SP_SPAN_OPTIM,
    SP_SPAN_EVALUATE,
    SP_SPAN_SAVE,
    SP_SPANS
} sp_span_kind;

typedef struct sp_trace_args {
    const char *run;
    sp_comm *comm;
    int steps;                /* to record */
    const sp_train_state *at; /* where the run stands */
} sp_trace_args;

/* Begin to record. On success *out is the caller's to free; spans may be asked
 * for at once. Collective. Errors: SP_EIO, SP_ENOMEM, those of waiting; on all
 * ranks together. */
SP_MUST sp_err sp_trace_open(sp_trace **out, const sp_trace_args *args);

/* Frees; NULL is allowed. While no operation between ranks is under way. */
void sp_trace_free(sp_trace *t);

/* Step `step` (from 1) begins; false: it is not recorded. And: it has ended;
 * true: it was the last one to be recorded, and is to be written. `times`: as
 * in sp_train_state, whose growth in between is the step's. */
bool sp_trace_step(sp_trace *t, int64_t step, const double times[SP_TIMES]);
bool sp_trace_stepped(sp_trace *t, const double times[SP_TIMES]);

/* A span of time that has passed, by sp_now(). */
typedef struct sp_span_of {
    sp_span_kind kind;
    const char *name;  /* this and `of` last until the next write */
    const char *of;    /* parameter, operator, ...; NULL: nothing */
    double begin, end; /* end 0: now */
    double bytes;      /* of a packet; 0: none */
    int worker;        /* of SP_SPAN_WORKER */
} sp_span_of;

/* Keep a span; of all but evaluations and checkpoints only within a step that
 * is recorded. NULL is allowed as `t`: no effect. Allocates nothing; to be
 * called by one thread. */
void sp_trace_span(sp_trace *t, const sp_span_of *span);

/* What follows the operators of a recorded step; NULL of NULL. */
const sp_watch *sp_trace_watch(sp_trace *t);

/* Write what was kept to this rank's part, by the state that the run is in.
 * Errors: SP_EIO, SP_ENOMEM. */
SP_MUST sp_err sp_trace_write(sp_trace *t);

/* Write what is left, put all parts together, and say on rank 0 who waited for
 * whom, in lines for people that are appended to `told`. Nothing more can be
 * recorded. Collective. Errors: SP_EIO, SP_ENOMEM, those of waiting; on all
 * ranks together. */
SP_MUST sp_err sp_trace_end(sp_trace *t, sp_text *told);

#endif
