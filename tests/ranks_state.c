/* What ranks keep, compare and score together, checked on as many as a launcher
 * has started.
 *   ranks_state CONFIG      status 0: all holds; each check is named
 * Checkpoints are written beside CONFIG. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "dist/agree.h"
#include "train/alike.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/rundir.h"
#include "train/statistics.h"
#include "train/step.h"

enum { STEPS = 3, BATCH = 13 };

/* Batch norms, and batches that no number of ranks divides. */
static const char *const overrides[] = { "model.name=resnet",  "model.depth=8",
                                         "data.shape=[8,8,3]", "data.train=52",
                                         "data.test=19",       "train.batch=13",
                                         "train.eval_batch=5" };

enum { OVERRIDES = sizeof overrides / sizeof *overrides };

typedef struct world {
    sp_comm *comm;
    int rank, ranks;
    sp_registry *registry;
    sp_config *config;
    sp_session s; /* of all ranks */
    int failed;
} world;

/* A check holds if it does on all ranks. */
static void tell(world *w, const char *name, bool holds)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    double wrong = !holds;

    if (!holds)
        fprintf(stderr, "rank %d: %s: last error: %s\n", w->rank, name,
                sp_last_error());
    if (sp_op_wait(w->comm, sp_max_doubles(w->comm, on, &wrong, 1)) != SP_OK)
        sp_comm_abort(w->comm, 1);
    w->failed += wrong > 0;
    if (w->rank == 0)
        printf("%s: %s\n", wrong > 0 ? "FAILED" : "holds", name);
}

static sp_err open_session(const world *w, sp_session *s, sp_comm *comm)
{
    return sp_session_open(
        s, w->config,
        (sp_session_opt){
            .train = true, .eval = true, .data = true, .comm = comm });
}

static sp_err train(sp_session *s)
{
    sp_step_result r;
    sp_loader *l;
    sp_batch b;
    sp_err e = sp_session_batches(s, &l);

    for (int i = 0; e == SP_OK && i < STEPS; i++) {
        sp_step_at at = { .step = i, .lr = 0.1 };

        e = sp_loader_next(l, &b);
        if (e == SP_OK)
            e = sp_train_step(s, &b, &at, &r);
    }
    sp_loader_free(l);
    return e;
}

/* ---- Weights ----------------------------------------------------------- */

static void check_weights(world *w)
{
    const sp_params *p = w->s.params;
    float *x = sp_params_find(p, "layer1.0.conv1.weight")->value + 5;
    float *later = sp_params_find(p, "fc.weight")->value;
    float before = *x, later_before = *later;
    char word[32];
    sp_err e;

    tell(w, "equal weights agree", sp_params_agree(p, w->comm) == SP_OK);
    if (w->rank == w->ranks - 1)
        *x = nextafterf(*x, 1);
    /* Another differs in what comes later: the first is named. */
    if (w->rank > 0 && w->rank == w->ranks / 2)
        *later += 1;
    e = sp_params_agree(p, w->comm);
    *x = before;
    *later = later_before;
    snprintf(word, sizeof word, "on rank %d (", w->ranks - 1);
    tell(w, "the last bit of a weight on one rank is found",
         w->ranks == 1
             ? e == SP_OK
             : e == SP_EPEER && strstr(sp_last_error(), word) &&
                   strstr(sp_last_error(), "layer1.0.conv1.weight differs"));
}

/* ---- Statistics -------------------------------------------------------- */

/* Rank k has k + 1 everywhere; the average by hand. */
static void check_statistics(world *w)
{
    sp_param *mean = sp_params_find(w->s.params, "bn1.running_mean");
    double want = 0;
    sp_statistics kept;
    float before = mean->value[0];
    bool holds;

    for (int r = 0; r < w->ranks; r++)
        want += (r + 1.0) * (BATCH * (r + 1) / w->ranks -
                             BATCH * r / w->ranks); /* samples */
    mean->value[0] = (float)w->rank + 1;
    holds = sp_statistics_average(&kept, &w->s, SP_USE_CHECK) == SP_OK;
    holds = holds && mean->value[0] == (float)(want / BATCH);
    sp_statistics_restore(&kept);
    holds = holds && mean->value[0] == (float)w->rank + 1;
    mean->value[0] = before;
    tell(w, "statistics are averaged by samples, and put back", holds);
}

/* ---- Scores ------------------------------------------------------------ */

/* On the last rank, at the second question. */
typedef struct stopper {
    bool here;
    int *asked;
} stopper;

static bool stop_late(const void *arg)
{
    const stopper *s = arg;

    return ++*s->asked > 1 && s->here;
}

/* The same weights scored by all ranks and by each alone. */
static void check_scores(world *w)
{
    sp_session alone = { 0 };
    sp_statistics kept = { 0 };
    sp_scores a, b;
    int asked = 0;
    stopper stop = { w->rank == w->ranks - 1, &asked };
    sp_err e = open_session(w, &alone, NULL);

    if (e == SP_OK)
        e = sp_statistics_average(&kept, &w->s, SP_USE_CHECK);
    for (int i = 0; e == SP_OK && sp_params_at(alone.params, i); i++) {
        const sp_param *p = sp_params_at(w->s.params, i);
        memcpy(sp_params_at(alone.params, i)->value, p->value,
               p->count * sizeof(float));
    }
    sp_statistics_restore(&kept);
    if (e == SP_OK)
        e = sp_evaluate(&w->s, SP_PART_TEST, NULL, NULL, &a);
    if (e == SP_OK)
        e = sp_evaluate(&alone, SP_PART_TEST, NULL, NULL, &b);
    tell(w, "every sample counts once",
         e == SP_OK && a.count == 19 && b.count == 19 && a.top1 == b.top1 &&
             fabs(a.loss - b.loss) <= 1e-6 * b.loss);
    e = sp_evaluate(&w->s, SP_PART_TEST, stop_late, &stop, &a);
    tell(w, "all stop when one is to", e == SP_ESTOPPED && asked == 2);
    sp_session_close(&alone);
}

/* ---- Checkpoints ------------------------------------------------------- */

static sp_err save(world *w, const sp_rundir *d, int64_t step)
{
    sp_train_state state = sp_train_state_start();

    state.step = step;
    return sp_checkpoint_save(&(sp_checkpoint_args){ .run = d->path,
                                                     .session = &w->s,
                                                     .state = &state,
                                                     .config = "",
                                                     .batches = 4 });
}

static bool same_values(const sp_session *a, const sp_session *b)
{
    for (int i = 0; sp_params_at(a->params, i); i++) {
        const sp_param *p = sp_params_at(a->params, i);
        const sp_param *q = sp_params_at(b->params, i);

        if (memcmp(p->value, q->value, p->count * sizeof(float)) != 0)
            return false;
        if (!p->buffer && memcmp(sp_optim_state(a->optim, p, 0),
                                 sp_optim_state(b->optim, q, 0),
                                 p->count * sizeof(float)) != 0)
            return false;
    }
    return true;
}

/* What all ranks have saved, each of them reads back. */
static void check_load(world *w, const sp_rundir *d)
{
    sp_session again = { 0 };
    sp_checkpoint c = { 0 };
    sp_text told = { 0 };
    sp_err e = open_session(w, &again, w->comm);

    if (e == SP_OK)
        e = sp_checkpoint_open_whole(&c, d->path, "last", w->comm);
    if (e == SP_OK)
        e = sp_checkpoint_load_all(&c, &again, &told);
    tell(w, "each rank reads back what it was",
         e == SP_OK && c.manifest.ranks == w->ranks &&
             same_values(&w->s, &again));
    sp_text_free(&told);
    sp_checkpoint_close(&c);
    sp_session_close(&again);
}

/* A damaged file of one rank is an error of all, which names it. */
static void check_damage(world *w, const sp_rundir *d)
{
    char name[SP_RANK_FILE_ROOM];
    sp_checkpoint c;
    char *path = sp_path(d->path, "checkpoints/last/%s",
                         sp_rank_file(name, w->ranks - 1));
    bool holds = path;
    FILE *f = path && w->rank == 0 ? fopen(path, "r+b") : NULL;

    if (w->rank == 0)
        holds = f && fseek(f, -1, SEEK_END) == 0 && fputc(1, f) == 1;
    if (f)
        fclose(f);
    tell(w, "a file can be changed", holds);
    holds =
        sp_checkpoint_open_whole(&c, d->path, "last", w->comm) == SP_EFORMAT &&
        strstr(sp_last_error(), name);
    tell(w, "all refuse what one finds damaged", holds);
    free(path);
}

static void check_checkpoints(world *w, const char *beside)
{
    const char *slash = strrchr(beside, '/');
    char *folder = sp_copy(beside, slash ? (size_t)(slash - beside) : 0);
    char *run = sp_path(folder ? folder : ".", "run-%d", w->ranks);
    sp_job job = { .run = run, .comm = w->comm };
    sp_rundir d = { .lock = -1 };
    sp_err e = run ? sp_rundir_create(&d, &job) : SP_ENOMEM;

    tell(w, "a folder is made and locked by the first rank",
         e == SP_OK && strcmp(d.path, run) == 0 &&
             (d.lock >= 0) == (w->rank == 0));
    if (e == SP_OK) {
        tell(w, "ranks save", save(w, &d, 7) == SP_OK);
        check_load(w, &d);
        check_damage(w, &d);
    }
    sp_rundir_close(&d);
    free(run);
    free(folder);
}

int main(int argc, char **argv)
{
    world w = { .registry = sp_registry_new() };
    const char *const *files = (const char *const *)argv + 1;
    sp_err e = argc == 2 && w.registry ? sp_comm_open(&w.comm) : SP_EARG;

    if (e == SP_OK)
        e = sp_config_load(&w.config, w.registry, files, 1, overrides,
                           OVERRIDES);
    w.rank = sp_comm_rank(w.comm);
    w.ranks = sp_comm_ranks(w.comm);
    if (e == SP_OK)
        e = open_session(&w, &w.s, w.comm);
    if (e == SP_OK)
        e = train(&w.s);
    tell(&w, "a few steps", e == SP_OK);
    if (e == SP_OK) {
        sp_comm_timeout(w.comm, 60);
        check_weights(&w);
        check_statistics(&w);
        check_scores(&w);
        check_checkpoints(&w, argv[1]);
    }
    sp_session_close(&w.s);
    sp_config_free(w.config);
    sp_registry_free(w.registry);
    sp_comm_close(w.comm);
    return e != SP_OK || w.failed ? 1 : 0;
}
