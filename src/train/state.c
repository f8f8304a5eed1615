/* The state of a run as JSON. */
#include "train/state.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

/* Write, read and clear go over one table, so that no key is in one only. */
#define AT(field)                              \
    {                                          \
#field, offsetof(sp_epoch_line, field) \
    }

static const struct {
    const char *key;
    size_t offset;
} fields[] = {
    AT(epoch),        AT(step),         AT(lr),         AT(train_loss),
    AT(train_top1),   AT(valid_loss),   AT(valid_top1), AT(valid_top5),
    AT(test_loss),    AT(test_top1),    AT(test_top5),  AT(train_ppl),
    AT(valid_ppl),    AT(test_ppl),     AT(seconds),    AT(items_per_s),
    AT(dense_bytes),  AT(packet_bytes), AT(mpi_bytes),  AT(compression_ratio),
    AT(peak_rss_mib), AT(round),        AT(remaining),
};

enum { FIELDS = sizeof fields / sizeof *fields };

static double *field(sp_epoch_line *line, int i)
{
    return (double *)(void *)((char *)line + fields[i].offset);
}

const char *sp_epoch_line_key(int i)
{
    return i < FIELDS ? fields[i].key : NULL;
}

sp_epoch_line sp_epoch_line_none(void)
{
    sp_epoch_line line;

    for (int i = 0; i < FIELDS; i++)
        *field(&line, i) = NAN;
    return line;
}

void sp_epoch_line_write(sp_json *j, const sp_epoch_line *line)
{
    sp_epoch_line copy = *line;

    for (int i = 0; i < FIELDS; i++)
        if (!isnan(*field(&copy, i)))
            sp_json_number(j, fields[i].key, *field(&copy, i));
}

sp_err sp_epoch_line_read(const sp_json_value *object, sp_epoch_line *line)
{
    *line = sp_epoch_line_none();
    for (int i = 0; i < FIELDS; i++) {
        const sp_json_value *v = sp_json_find(object, fields[i].key);

        /* What was infinite was written as null; what was NAN, not at all. */
        if (v && v->kind == SP_JSON_NULL)
            *field(line, i) = INFINITY;
        else if (v)
            SP_TRY(sp_json_get_number(object, fields[i].key, field(line, i)));
    }
    return SP_OK;
}

const char *sp_time_key(sp_time time)
{
    static const char *const keys[] = {
        [SP_TIME_DATA] = "data_s",
        [SP_TIME_FORWARD] = "forward_s",
        [SP_TIME_BACKWARD] = "backward_s",
        [SP_TIME_COMPRESS] = "compress_s",
        [SP_TIME_EXCHANGE] = "exchange_s",
        [SP_TIME_OPTIM] = "optim_s",
        [SP_TIME_EVAL] = "eval_s",
        [SP_TIME_CHECKPOINT] = "checkpoint_s",
    };

    return keys[time];
}

sp_train_state sp_train_state_start(void)
{
    return (sp_train_state){
        .switched = -1,
        .schedule = sp_schedule_start(),
        .last = sp_epoch_line_none(),
        .best = sp_epoch_line_none(),
    };
}

static void write_line(sp_json *j, const char *key, const sp_epoch_line *line)
{
    if (isnan(line->epoch)) {
        sp_json_null(j, key);
        return;
    }
    sp_json_open(j, key);
    sp_epoch_line_write(j, line);
    sp_json_close(j);
}

static void write_times(sp_json *j, const sp_train_state *s)
{
    sp_json_open(j, "times");
    sp_json_number(j, "since", s->times_since);
    for (int i = 0; i < SP_TIMES; i++)
        sp_json_number(j, sp_time_key((sp_time)i), s->times[i]);
    sp_json_close(j);
}

void sp_train_state_write(sp_json *j, const sp_train_state *s)
{
    sp_json_int(j, "step", s->step);
    sp_json_int(j, "epoch", s->epoch);
    sp_json_int(j, "batch", s->batch);
    if (s->switched >= 0)
        sp_json_int(j, "switched", s->switched);
    if (s->round > 0)
        sp_json_int(j, "round", s->round);
    if (s->begun > 0)
        sp_json_int(j, "begun", s->begun);
    sp_json_number(j, "loss_sum", s->loss_sum);
    sp_json_int(j, "correct", s->correct);
    sp_json_int(j, "samples", s->samples);
    sp_json_number(j, "epoch_seconds", s->epoch_seconds);
    sp_json_number(j, "packet_bytes", s->packet_bytes);
    sp_json_number(j, "mpi_bytes", s->mpi_bytes);
    sp_json_number(j, "seconds", s->seconds);
    write_times(j, s);
    sp_json_number(j, "lr", s->lr);
    sp_json_open(j, "window");
    sp_json_number(j, "loss", s->window.loss);
    sp_json_number(j, "norm", s->window.norm);
    sp_json_number(j, "seconds", s->window.seconds);
    sp_json_number(j, "packet_bytes", s->window.packet_bytes);
    sp_json_number(j, "mpi_bytes", s->window.mpi_bytes);
    sp_json_number(j, "net_bytes", s->window.net_bytes);
    sp_json_int(j, "correct", s->window.correct);
    sp_json_int(j, "samples", s->window.samples);
    sp_json_int(j, "steps", s->window.steps);
    sp_json_close(j);
    sp_json_open(j, "schedule");
    sp_json_number(j, "factor", s->schedule.factor);
    sp_json_number(j, "best", s->schedule.best); /* infinity becomes null */
    sp_json_int(j, "bad", s->schedule.bad);
    sp_json_close(j);
    write_line(j, "last_epoch", &s->last);
    write_line(j, "best_epoch", &s->best);
}

/* An integer from 0 to `max`. */
static sp_err get_count(const sp_json_value *object, const char *key,
                        int64_t max, int64_t *out)
{
    SP_TRY(sp_json_get_int(object, key, out));
    if (*out < 0 || *out > max)
        return sp_fail(SP_EFORMAT, "%s: %s is %lld, outside 0 to %lld",
                       object->where, key, (long long)*out, (long long)max);
    return SP_OK;
}

/* Bytes, which checkpoints of older versions do not have. */
static sp_err get_bytes(const sp_json_value *object, const char *key,
                        double *out)
{
    *out = 0;
    return sp_json_find(object, key) ? sp_json_get_number(object, key, out)
                                     : SP_OK;
}

static sp_err read_schedule(const sp_json_value *object, sp_schedule_state *s)
{
    const sp_json_value *best = sp_json_find(object, "best");
    int64_t bad;

    SP_TRY(sp_json_get_number(object, "factor", &s->factor));
    SP_TRY(get_count(object, "bad", INT_MAX, &bad));
    s->bad = (int)bad;
    s->best = INFINITY;
    if (best && best->kind != SP_JSON_NULL)
        SP_TRY(sp_json_get_number(object, "best", &s->best));
    return SP_OK;
}

/* Checkpoints of older versions have none: then the count begins here. */
static sp_err read_times(const sp_json_value *object, sp_train_state *s)
{
    const sp_json_value *times;

    for (int i = 0; i < SP_TIMES; i++)
        s->times[i] = 0;
    s->times_since = s->seconds;
    if (!sp_json_find(object, "times"))
        return SP_OK;
    SP_TRY(sp_json_get(object, "times", SP_JSON_OBJECT, &times));
    for (int i = 0; i < SP_TIMES; i++)
        SP_TRY(
            sp_json_get_number(times, sp_time_key((sp_time)i), &s->times[i]));
    return sp_json_get_number(times, "since", &s->times_since);
}

static sp_err read_window(const sp_json_value *object, sp_window *w)
{
    SP_TRY(sp_json_get_number(object, "loss", &w->loss));
    SP_TRY(sp_json_get_number(object, "norm", &w->norm));
    SP_TRY(sp_json_get_number(object, "seconds", &w->seconds));
    SP_TRY(get_bytes(object, "packet_bytes", &w->packet_bytes));
    SP_TRY(get_bytes(object, "mpi_bytes", &w->mpi_bytes));
    SP_TRY(get_bytes(object, "net_bytes", &w->net_bytes));
    SP_TRY(get_count(object, "correct", INT64_MAX, &w->correct));
    SP_TRY(get_count(object, "samples", INT64_MAX, &w->samples));
    return get_count(object, "steps", INT64_MAX, &w->steps);
}

static sp_err read_line(const sp_json_value *object, const char *key,
                        sp_epoch_line *line)
{
    const sp_json_value *v = sp_json_find(object, key);

    *line = sp_epoch_line_none();
    if (!v || v->kind == SP_JSON_NULL)
        return SP_OK;
    SP_TRY(sp_json_get(object, key, SP_JSON_OBJECT, &v));
    return sp_epoch_line_read(v, line);
}

/* What few runs have come to; else *out stays. */
static sp_err get_rare(const sp_json_value *object, const char *key,
                       int64_t max, int64_t *out)
{
    return sp_json_find(object, key) ? get_count(object, key, max, out) : SP_OK;
}

static sp_err read_changes(const sp_json_value *object, sp_train_state *s)
{
    int64_t switched = -1, round = 0;

    s->begun = 0;
    SP_TRY(get_rare(object, "switched", s->epoch, &switched));
    SP_TRY(get_rare(object, "round", INT_MAX, &round));
    SP_TRY(get_rare(object, "begun", s->step, &s->begun));
    s->switched = (int)switched;
    s->round = (int)round;
    return SP_OK;
}

sp_err sp_train_state_read(const sp_json_value *object, sp_train_state *s)
{
    const sp_json_value *schedule, *window;
    int64_t epoch;

    SP_TRY(get_count(object, "step", INT64_MAX, &s->step));
    SP_TRY(get_count(object, "epoch", INT_MAX, &epoch));
    s->epoch = (int)epoch;
    SP_TRY(get_count(object, "batch", INT64_MAX, &s->batch));
    SP_TRY(read_changes(object, s));
    SP_TRY(sp_json_get_number(object, "loss_sum", &s->loss_sum));
    SP_TRY(get_count(object, "correct", INT64_MAX, &s->correct));
    SP_TRY(get_count(object, "samples", INT64_MAX, &s->samples));
    SP_TRY(sp_json_get_number(object, "epoch_seconds", &s->epoch_seconds));
    SP_TRY(get_bytes(object, "packet_bytes", &s->packet_bytes));
    SP_TRY(get_bytes(object, "mpi_bytes", &s->mpi_bytes));
    SP_TRY(sp_json_get_number(object, "seconds", &s->seconds));
    SP_TRY(read_times(object, s));
    SP_TRY(sp_json_get_number(object, "lr", &s->lr));
    SP_TRY(sp_json_get(object, "window", SP_JSON_OBJECT, &window));
    SP_TRY(read_window(window, &s->window));
    SP_TRY(sp_json_get(object, "schedule", SP_JSON_OBJECT, &schedule));
    SP_TRY(read_schedule(schedule, &s->schedule));
    SP_TRY(read_line(object, "last_epoch", &s->last));
    return read_line(object, "best_epoch", &s->best);
}

/* What may compare epochs, the first that there is. */
static const struct {
    const char *name;
    size_t offset;
    double sign; /* -1: less is better */
} scores[] = {
    { "valid_top1", offsetof(sp_epoch_line, valid_top1), 1 },
    { "valid_ppl", offsetof(sp_epoch_line, valid_ppl), -1 },
    { "test_top1", offsetof(sp_epoch_line, test_top1), 1 },
    { "test_ppl", offsetof(sp_epoch_line, test_ppl), -1 },
};

enum { SCORES = sizeof scores / sizeof *scores };

static double value_at(const sp_epoch_line *line, size_t offset)
{
    return *(const double *)(const void *)((const char *)line + offset);
}

/* The number of the score of a line; that of the last if there is none. */
static int score_of(const sp_epoch_line *line)
{
    int i = 0;

    while (i < SCORES - 1 && isnan(value_at(line, scores[i].offset)))
        i++;
    return i;
}

double sp_epoch_line_score(const sp_epoch_line *line)
{
    int i = score_of(line);

    return scores[i].sign * value_at(line, scores[i].offset);
}

const char *sp_epoch_line_score_name(const sp_epoch_line *line)
{
    return scores[score_of(line)].name;
}
