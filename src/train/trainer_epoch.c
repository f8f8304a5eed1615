/* The end of an epoch: evaluate, report, save. */
#include <math.h>
#include <string.h>

#include "dist/agree.h"
#include "train/evaluate.h"
#include "train/trainer.h"

static bool is_text(const sp_trainer *t) { return t->session.info.text; }

double sp_trainer_top1(const sp_trainer *t, int64_t correct, double samples)
{
    return is_text(t) ? NAN : 100.0 * (double)correct / samples;
}

double sp_trainer_perplexity(const sp_trainer *t, double loss)
{
    bool plain = is_text(t) && t->session.set.train->label_smoothing == 0;

    return plain ? sp_perplexity(loss) : NAN;
}

bool sp_trainer_scores(const sp_trainer *t, sp_part part)
{
    const size_t *count = t->session.data->count;

    if (part == SP_PART_TEST && sp_trainer_tests_last(t))
        return false;
    return count[part] > 0;
}

static sp_err score(sp_trainer *t, sp_part part, sp_scores *out)
{
    double start = sp_now();
    sp_err e;

    *out = (sp_scores){ 0, NAN, NAN, NAN, NAN };
    if (!sp_trainer_scores(t, part))
        return SP_OK;
    e = sp_evaluate(&t->session, part, sp_trainer_must_stop, t, out);
    sp_trace_span(t->trace, &(sp_span_of){ .kind = SP_SPAN_EVALUATE,
                                           .name = sp_part_name(part),
                                           .begin = start });
    return e;
}

sp_err sp_trainer_evaluate(sp_trainer *t, sp_epoch_line *line)
{
    sp_train_state *s = &t->state;
    double dense = 4.0 * (double)sp_params_count(t->session.params);
    double loss = s->loss_sum / (double)s->samples;
    double steps = (double)s->batch, packet = s->packet_bytes / steps;
    bool pruning = t->session.set.prune != NULL;
    sp_scores valid, test;

    SP_TRY(score(t, SP_PART_VALID, &valid));
    SP_TRY(score(t, SP_PART_TEST, &test));
    *line = (sp_epoch_line){
        .epoch = s->epoch + 1,
        .step = (double)s->step,
        .lr = s->lr,
        .train_loss = loss,
        .train_top1 = sp_trainer_top1(t, s->correct, (double)s->samples),
        .train_ppl = sp_trainer_perplexity(t, loss),
        .valid_ppl = valid.ppl,
        .test_ppl = test.ppl,
        .valid_loss = valid.loss,
        .valid_top1 = valid.top1,
        .valid_top5 = valid.top5,
        .test_loss = test.loss,
        .test_top1 = test.top1,
        .test_top5 = test.top5,
        .seconds = s->epoch_seconds + sp_trainer_lap(t),
        .items_per_s = (double)s->samples / s->epoch_seconds,
        .dense_bytes = dense,
        .packet_bytes = packet,
        .mpi_bytes = s->mpi_bytes / steps,
        .compression_ratio = dense / packet,
        .peak_rss_mib = sp_peak_rss(),
        .round = pruning ? s->round : NAN,
        .remaining = pruning ? sp_trainer_remaining(t) : NAN,
    };
    return SP_OK;
}

void sp_trainer_next_epoch(sp_trainer *t, const sp_epoch_line *line)
{
    const sp_settings *set = &t->session.set;
    sp_train_state *s = &t->state;
    /* By what is a number where there is a part: its loss may not be one. */
    bool valid = !isnan(line->valid_top1) || !isnan(line->valid_ppl);
    bool test = !isnan(line->test_top1) || !isnan(line->test_ppl);

    if (set->schedule->observe && (valid || test))
        set->schedule->observe(set->schedule_own,
                               valid ? line->valid_loss : line->test_loss,
                               &s->schedule);
    s->epoch++;
    s->batch = 0;
    s->loss_sum = 0;
    s->correct = 0;
    s->samples = 0;
    s->epoch_seconds = 0;
    s->packet_bytes = 0;
    s->mpi_bytes = 0;
    s->times_since = s->seconds;
    for (int i = 0; i < SP_TIMES; i++)
        s->times[i] = 0;
}

/* What the epoch is told by, in all files. */
static sp_err log_epoch(sp_trainer *t, const sp_epoch_line *line,
                        const sp_time_line *times)
{
    SP_TRY(sp_metrics_epoch(&t->metrics, line));
    SP_TRY(sp_metrics_times(&t->metrics, times));
    return sp_tensors_epoch(&t->tensors, &t->session, line);
}

/* The checkpoint at an epoch's end is saved behind its lines: it counts to the
 * next one. */
static sp_time_line times_of(const sp_trainer *t, const sp_epoch_line *line,
                             const double *times)
{
    const sp_train_state *s = &t->state;
    double other = s->seconds - s->times_since;

    for (int i = 0; i < SP_TIMES; i++)
        other -= times[i];
    return (sp_time_line){ .epoch = line->epoch,
                           .step = line->step,
                           .round = line->round,
                           .times = times,
                           .other = other > 0 ? other : 0 };
}

sp_err sp_trainer_end_epoch(sp_trainer *t)
{
    sp_train_state *s = &t->state;
    double start = sp_now(), times[SP_TIMES];
    sp_time_line spent;
    sp_epoch_line line;
    bool best;
    sp_err e = sp_trainer_evaluate(t, &line);

    s->times[SP_TIME_EVAL] += sp_now() - start;
    if (e == SP_ESTOPPED)
        return sp_trainer_stop(t);
    if (e != SP_OK)
        return e;
    best = !isnan(sp_epoch_line_score(&line)) &&
           !(sp_epoch_line_score(&line) <= sp_epoch_line_score(&s->best));
    s->last = line;
    if (best)
        s->best = line;
    memcpy(times, s->times, sizeof times);
    spent = times_of(t, &line, times);
    if (s->batch == t->batches)
        sp_trainer_next_epoch(t, &line);
    SP_TRY(sp_agree(t->job->comm, log_epoch(t, &line, &spent)));
    sp_trainer_epoch_line(t, &line, best);
    return sp_trainer_save(t, best);
}
