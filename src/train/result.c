/* What is said about a run as a whole: its header and result.json. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/files.h"
#include "kernels/kernels.h"
#include "train/trainer.h"

static const double mib = 1024 * 1024;

static void header_exchange(sp_trainer *t)
{
    char *text = sp_exchange_describe(t->session.exchange);

    sp_console_line(&t->console, "exchange %s", text ? text : "");
    free(text);
}

void sp_trainer_model(sp_trainer *t)
{
    char text[SP_DESCRIBE_ROOM];

    sp_describe_model(&t->session, text);
    sp_console_line(&t->console, "model    %s", text);
}

void sp_trainer_header(sp_trainer *t)
{
    const sp_session *s = &t->session;
    const sp_settings *set = &s->set;
    sp_console *r = &t->console;
    int ranks = sp_comm_ranks(s->comm);
    int share = (set->train->batch + ranks - 1) / ranks;
    bool limited;
    int64_t steps = sp_trainer_steps(t, &limited);
    char text[SP_DESCRIBE_ROOM], spread[64] = "all on this rank";

    if (ranks > 1)
        snprintf(spread, sizeof spread, "%s%d on each of %d ranks",
                 set->train->batch % ranks ? "up to " : "", share, ranks);
    sp_console_line(r, "run      %s", t->dir.path);
    sp_trainer_model(t);
    sp_describe_data(s, text);
    sp_console_line(r, "data     %s", text);
    sp_describe_batch(s, text);
    sp_console_line(
        r,
        "batch    %s, %s%s; %" PRId64 " steps an epoch, %" PRId64 " in all%s",
        text, spread, s->train.rows < share ? ", in micro-batches" : "",
        t->batches, steps, limited ? " (train.max_steps)" : "");
    sp_console_line(r, "rate     %g at step %" PRId64 ": optim.lr %g, %s, %s%s",
                    sp_trainer_rate(t), t->state.step, set->optim->lr,
                    set->optimizer->entry.name, set->schedule->entry.name,
                    set->schedule_cfg->warmup_epochs > 0 ? " after a warm-up"
                                                         : "");
    sp_console_line(r,
                    "machine  %d thread%s, %s, %.1f MiB planned for a step%s",
                    s->threads, s->threads == 1 ? "" : "s", s->isa,
                    (double)sp_graph_memory(s->train.graph).planned / mib,
                    ranks > 1 ? ", on each rank" : "");
    if (s->exchange)
        header_exchange(t);
}

static void write_line(sp_json *j, const char *key, const sp_epoch_line *line)
{
    if (isnan(line->epoch))
        return;
    sp_json_open(j, key);
    sp_epoch_line_write(j, line);
    sp_json_close(j);
}

static void write_versions(sp_json *j)
{
    sp_json_open(j, "versions");
    sp_json_text(j, "sprat", SP_VERSION);
    sp_json_text(j, "blas", sp_blas_version());
    sp_json_text(j, "compiler", __VERSION__);
    sp_json_close(j);
    sp_json_text(j, "commit", sp_commit());
}

static void write_result(sp_json *j, const sp_trainer *t, const char *status,
                         const char *reason)
{
    const sp_session *s = &t->session;
    const sp_train_state *at = &t->state;
    double dense = 4.0 * (double)sp_params_count(s->params);
    double steps = (double)at->batch;
    bool told = !isnan(at->last.packet_bytes), under_way = steps > 0;
    double packet = under_way ? at->packet_bytes / steps
                    : told    ? at->last.packet_bytes
                              : dense;

    sp_json_open(j, NULL);
    sp_json_text(j, "status", status);
    if (reason)
        sp_json_text(j, "reason", reason);
    write_line(j, "final", &at->last);
    write_line(j, "best", &at->best);
    if (!isnan(at->best.epoch))
        sp_json_text(j, "best_by", sp_epoch_line_score_name(&at->best));
    sp_json_int(j, "step", at->step);
    sp_json_int(j, "epochs", at->epoch);
    sp_json_int(j, "params", (int64_t)sp_params_count(s->params));
    sp_json_number(j, "macs", sp_graph_macs(s->train.graph));
    sp_json_number(j, "seconds", at->seconds);
    sp_json_number(j, "dense_bytes", dense);
    if (under_way || told || !s->exchange) {
        sp_json_number(j, "packet_bytes", packet);
        sp_json_number(j, "mpi_bytes",
                       under_way ? at->mpi_bytes / steps
                       : told    ? at->last.mpi_bytes
                                 : 0);
        sp_json_number(j, "compression_ratio", dense / packet);
    }
    sp_trainer_write_bytes(t, j);
    sp_json_int(j, "seed", s->set.train->seed);
    sp_json_int(j, "threads", s->threads);
    sp_json_int(j, "ranks", sp_comm_ranks(s->comm));
    sp_json_text(j, "isa", s->isa);
    write_versions(j);
    sp_json_close(j);
}

sp_err sp_trainer_result(const sp_trainer *t, const char *status,
                         const char *reason)
{
    sp_json j = { .pretty = true };
    sp_text line = { 0 };
    const char *text;
    char *path = sp_path(t->dir.path, "result.json");
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    write_result(&j, t, status, reason);
    if (e == SP_OK)
        e = sp_json_finish(&j, &text);
    if (e == SP_OK) {
        sp_text_add(&line, "%s\n", text);
        e = sp_text_check(&line);
    }
    if (e == SP_OK)
        e = sp_file_write_synced(path, line.bytes, line.size);
    sp_text_free(&line);
    sp_json_free(&j);
    free(path);
    return e;
}
