/* sprat train, sprat resume. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "sprat.h"
#include "sprat/train.h"

/* "configs/cifar10/resnet20.yaml" -> "resnet20"; the caller frees. NULL: out
 * of memory. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash ? slash + 1 : path);
    char *dot = name ? strrchr(name, '.') : NULL;

    if (dot && dot != name)
        *dot = '\0';
    return name;
}

static int train(const sp_args *a)
{
    sp_opened o = { 0 };
    char *name = name_of(a->words[a->word_count - 1]);
    sp_job job = { .run = sp_args_flag(a, "run"),
                   .name = name,
                   .overwrite = sp_args_flag(a, "overwrite") != NULL,
                   .terminal = sp_job_terminal(a),
                   .stop = sp_caught_signal(),
                   .comm = a->comm };
    sp_err e =
        name ? sp_opened_config(&o, a) : sp_fail(SP_ENOMEM, "out of memory");

    e = sp_agree(a->comm, e);
    if (e == SP_OK)
        e = sp_train(o.config, &job);
    sp_opened_free(&o);
    free(name);
    return sp_job_status(a, e, job.started);
}

static int resume(const sp_args *a)
{
    sp_opened o = { 0 };
    sp_job job = { .run = a->words[0],
                   .terminal = sp_job_terminal(a),
                   .stop = sp_caught_signal(),
                   .comm = a->comm };
    sp_err e = sp_opened_registry(&o);

    if (e == SP_OK)
        e = sp_resume(o.registry, a->overrides, a->override_count, &job);
    sp_opened_free(&o);
    return sp_job_status(a, e, job.started);
}

const sp_verb sp_verb_train = {
    .name = "train",
    .words = "CONFIG...",
    .least = 1,
    .most = -1,
    .overrides = true,
    .ranks = true,
    .help = "train a network as configured, into a new run folder",
    .flags = {
        { "run", "DIR", "the run folder (runs/NAME-YYYYmmdd-HHMMSS)" },
        { "overwrite", NULL, "replace the run folder if it exists" },
    },
    .examples =
        "Several files are laid over each other, left to right. `sprat list` "
        "shows\nevery key. SIGINT, SIGTERM and SIGUSR1 save and stop "
        "(status 3); a second\nSIGINT ends at once.\n\n"
        "  sprat train configs/fashion/quickstart.yaml\n"
        "  sprat train configs/cifar10/resnet20.yaml optim.lr=0.05 "
        "'schedule.at=[15,22]'\n"
        "  sprat train base.yaml mine.yaml --run runs/mine --overwrite\n"
        "  mpirun -n 4 sprat train configs/cifar10/resnet20.yaml "
        "configs/dgc.yaml\n",
    .prepare = sp_catch_signals,
    .run = train,
};

const sp_verb sp_verb_resume = {
    .name = "resume",
    .words = "RUN",
    .least = 1,
    .most = 1,
    .overrides = true,
    .ranks = true,
    .help = "go on with a run from its last checkpoint",
    .examples =
        "The result has the same bits as if the run had never stopped.\n\n"
        "  sprat resume runs/mine\n"
        "  sprat resume runs/mine train.epochs=40\n",
    .prepare = sp_catch_signals,
    .run = resume,
};
