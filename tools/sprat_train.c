/* sprat train, sprat resume. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dist/agree.h"
#include "sprat.h"
#include "sprat/train.h"

/* The one thing that a signal handler may write. */
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    if (stop == SIGINT && number == SIGINT)
        _exit(SP_EXIT_IMPATIENT);
    stop = number;
}

static void catch_signals(void)
{
    struct sigaction catch = { .sa_handler = on_signal,
                               .sa_flags = SA_RESTART };
    struct sigaction ignore = { .sa_handler = SIG_IGN };

    sigemptyset(&catch.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &catch, NULL);
    sigaction(SIGTERM, &catch, NULL);
    sigaction(SIGUSR1, &catch, NULL);
    /* A closed pager must not end a run: main() notices it at the end. */
    sigaction(SIGPIPE, &ignore, NULL);
    /* Then a limit on the size of files is an error with its reason. */
    sigaction(SIGXFSZ, &ignore, NULL);
}

static int status_of(const sp_args *a, sp_err e, const sp_job *job)
{
    if (e == SP_OK)
        return SP_EXIT_DONE;
    sp_refuse_all(a, e);
    if (e == SP_ESTOPPED)
        return SP_EXIT_STOPPED;
    if (!job->started)
        return SP_EXIT_USAGE;
    return e == SP_ENUMERIC ? SP_EXIT_NUMERIC : SP_EXIT_FAILED;
}

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

/* All that a run tells stands in its folder, too: who closed standard output
 * wants it there alone. */
static FILE *terminal(const sp_args *a)
{
    int how = fcntl(STDOUT_FILENO, F_GETFL);
    bool closed = how < 0 || (how & O_ACCMODE) == O_RDONLY;

    return closed || sp_comm_rank(a->comm) != 0 ? NULL : stdout;
}

static int train(const sp_args *a)
{
    sp_opened o = { 0 };
    char *name = name_of(a->words[a->word_count - 1]);
    sp_job job = { .run = sp_args_flag(a, "run"),
                   .name = name,
                   .overwrite = sp_args_flag(a, "overwrite") != NULL,
                   .terminal = terminal(a),
                   .stop = &stop,
                   .comm = a->comm };
    sp_err e =
        name ? sp_opened_config(&o, a) : sp_fail(SP_ENOMEM, "out of memory");

    e = sp_agree(a->comm, e);
    if (e == SP_OK)
        e = sp_train(o.config, &job);
    sp_opened_free(&o);
    free(name);
    return status_of(a, e, &job);
}

static int resume(const sp_args *a)
{
    sp_opened o = { 0 };
    sp_job job = { .run = a->words[0],
                   .terminal = terminal(a),
                   .stop = &stop,
                   .comm = a->comm };
    sp_err e = sp_opened_registry(&o);

    if (e == SP_OK)
        e = sp_resume(o.registry, a->overrides, a->override_count, &job);
    sp_opened_free(&o);
    return status_of(a, e, &job);
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
    .prepare = catch_signals,
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
    .prepare = catch_signals,
    .run = resume,
};
