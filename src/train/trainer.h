/* The training loop over an open session. */
#ifndef SP_TRAIN_TRAINER_H
#define SP_TRAIN_TRAINER_H

#include "data/loader.h"
#include "train/console.h"
#include "train/metrics.h"
#include "train/rundir.h"
#include "train/session.h"
#include "train/tensors.h"

/* What rounds of pruning go back to, kept by a replay. */
typedef struct sp_origin {
    float *values; /* of all parameters and buffers; NULL: in a checkpoint */
    sp_schedule_state schedule;
} sp_origin;

typedef struct sp_trainer {
    sp_job *job;
    sp_session session;
    sp_rundir dir;
    sp_metrics metrics;
    sp_tensors tensors;
    sp_trace *trace; /* NULL: none */
    sp_console console;
    sp_loader *loader;
    sp_train_state state;
    sp_autorank layers;   /* whose ranks are chosen; empty: of none */
    sp_autorank autorank; /* what was seen of them; empty: nothing */
    char *config_text;    /* as it stands in config.yaml and checkpoints */
    int64_t batches;      /* of an epoch */
    double opened;        /* clock at the start of this call */
    double begun;         /* clock at its first step */
    double lap;           /* clock when time was last added to the sums */
    double saved;         /* clock at the last checkpoint */
    int64_t first;        /* step at which this call began */
    int64_t counted;      /* step from which on bytes are told, ... */
    sp_ledger before;     /* ... and what went over MPI up to there */
    bool unsaved;         /* the state is newer than the last checkpoint */
    bool stop, save;      /* what the ranks have agreed upon in the last step */
    sp_sent sent;         /* counted up to the last step */
    sp_sent *ranks_sent;  /* of each rank, at the end; NULL: not known */
    double density;       /* that was told last; 0: none */
    sp_origin origin;
} sp_trainer;

/* A trainer with nothing open, at the start of a run; the clock runs. */
sp_trainer sp_trainer_start(sp_job *job);

/* Begin to prepare the batches of the open session's training part. */
SP_MUST sp_err sp_trainer_load(sp_trainer *t);
void sp_trainer_close(sp_trainer *t);

/* Whether this rank runs alone, or is the one that speaks for all: that writes
 * what the run folder says. */
bool sp_trainer_speaks(const sp_trainer *t);

/* Whether this rank was told that the job is to stop; of an sp_trainer. */
bool sp_trainer_must_stop(const void *trainer);

/* Whether the configured epochs are done, of the last round of pruning if there
 * are such; and whether these or the configured steps are. */
bool sp_trainer_finished(const sp_trainer *t);
bool sp_trainer_ended(const sp_trainer *t);

/* Whether they are evaluated, too: a run may be stopped in between. */
bool sp_trainer_complete(const sp_trainer *t);

/* Train from t->state to the end. Errors: SP_ESTOPPED after saving,
 * SP_ENUMERIC, those of reading data and writing files. */
SP_MUST sp_err sp_trainer_run(sp_trainer *t);

/* The timeline, where one is asked for (trainer_trace.c): begin it; say that a
 * step begins, has waited for its batch since `start`, or has ended; write what
 * is kept; and end it, handing on the error `e` with which training has ended.
 * All but the steps are collective. Errors: those of sp_trace_open(),
 * sp_trace_write() and sp_trace_end(). */
SP_MUST sp_err sp_trainer_trace_open(sp_trainer *t);
void sp_trainer_trace_step(sp_trainer *t);
void sp_trainer_trace_batch(sp_trainer *t, const sp_batch *b, double start);
SP_MUST sp_err sp_trainer_trace_stepped(sp_trainer *t);
SP_MUST sp_err sp_trainer_trace_write(sp_trainer *t);
SP_MUST sp_err sp_trainer_trace_end(sp_trainer *t, sp_err e);

/* Save the present state as a checkpoint, and remove those that train.keep
 * does not spare. */
SP_MUST sp_err sp_trainer_save(sp_trainer *t, bool best);

/* Save what is not saved, and say that the run was stopped: SP_ESTOPPED. */
SP_MUST sp_err sp_trainer_stop(sp_trainer *t);

/* Add the time since the last call to the run's; returns it. */
double sp_trainer_lap(sp_trainer *t);

/* Whether a part is scored after every epoch. */
bool sp_trainer_scores(const sp_trainer *t, sp_part part);

/* Whether the test part is scored once, at the run's end, with the weights that
 * were best on the validation part: so it is with text. */
bool sp_trainer_tests_last(const sp_trainer *t);

/* Do that: the best epoch's line in t->state learns its score. No effect
 * otherwise. The session's parameters are those of the best checkpoint then.
 * Errors: SP_ESTOPPED, those of reading the checkpoint. */
SP_MUST sp_err sp_trainer_test(sp_trainer *t);

/* Score the parts beside the training part and sum up the epoch under way.
 * Errors: SP_ESTOPPED when the job is to stop, those of reading. */
SP_MUST sp_err sp_trainer_evaluate(sp_trainer *t, sp_epoch_line *line);

/* Tell the schedule the epoch's loss and begin the next one. */
void sp_trainer_next_epoch(sp_trainer *t, const sp_epoch_line *line);

/* Evaluate, report and save what the epoch, or the run's last part of one, has
 * brought. Errors: SP_ESTOPPED after saving, those of reading and writing. */
SP_MUST sp_err sp_trainer_end_epoch(sp_trainer *t);

/* Go on with layers of low rank, if that is configured and due. Collective.
 * Errors: those of sp_switch(). */
SP_MUST sp_err sp_trainer_switch(sp_trainer *t);

/* Tell it if the run has ended at full rank though the ranks were to be
 * chosen. */
void sp_trainer_unswitched(sp_trainer *t);

/* Prune, go back and begin the next round, if that is configured and due.
 * Collective; the same bits on all ranks, but for running statistics.
 * Errors: SP_ENOMEM, those of reading the checkpoint; on all ranks together. */
SP_MUST sp_err sp_trainer_round(sp_trainer *t);

/* Whether rounds can go on from t->state with these settings. Collective.
 * Errors: SP_ECONFIG, those of opening the checkpoint. */
SP_MUST sp_err sp_trainer_check_rounds(const sp_trainer *t);

/* Whether rounds will go back to the weights as they are, and those are not the
 * first. And of a replay: keep them in memory, if they are, first ones too;
 * collective. Errors: SP_ENOMEM. */
bool sp_trainer_at_rewind(const sp_trainer *t);
SP_MUST sp_err sp_trainer_keep_origin(sp_trainer *t);

/* Percent of the weights that can be pruned that are not. */
double sp_trainer_remaining(const sp_trainer *t);

/* Epochs done, with the fraction of the present one. */
double sp_trainer_progressed(const sp_trainer *t);

/* The learning rate of the next step. */
double sp_trainer_rate(const sp_trainer *t);

/* Steps of the whole run; `limited`: if not NULL, whether train.max_steps cuts
 * them short. */
int64_t sp_trainer_steps(const sp_trainer *t, bool *limited);

/* Of what training has seen: the percent of images that were right, NAN for
 * text; and the perplexity, NAN for images and for a loss with label
 * smoothing, which is another. */
double sp_trainer_top1(const sp_trainer *t, int64_t correct, double samples);
double sp_trainer_perplexity(const sp_trainer *t, double loss);

/* Where training stands: on a terminal in a line that changes (`live`), else in
 * a line of its own. And what an epoch has brought (talk.c). */
void sp_trainer_progress(sp_trainer *t, bool live);
void sp_trainer_epoch_line(sp_trainer *t, const sp_epoch_line *line, bool best);

/* The network, in a line; and all that is trained on what, for people. */
void sp_trainer_model(sp_trainer *t);
void sp_trainer_header(sp_trainer *t);

/* Tell at which density gradients were sent in the last step, if that is
 * another than before. */
void sp_trainer_density(sp_trainer *t);

/* Learn what each rank has sent, for result.json. Collective. Errors: those of
 * waiting, SP_ENOMEM. */
SP_MUST sp_err sp_trainer_gather_sent(sp_trainer *t);

/* What was sent since this call began, or since the switch to low rank, with
 * what the switch itself has sent: into an open object, as "bytes", and at the
 * end of a run for people (bytes.c). Nothing where nothing is exchanged. */
void sp_trainer_write_bytes(const sp_trainer *t, sp_json *j);
void sp_trainer_bytes(sp_trainer *t);

/* Write result.json: how the run stands or ended ("running", "done",
 * "stopped", "not_finite", "failed") and why (may be NULL). Errors: SP_EIO,
 * SP_ENOMEM. */
SP_MUST sp_err sp_trainer_result(const sp_trainer *t, const char *status,
                                 const char *reason);

#endif
