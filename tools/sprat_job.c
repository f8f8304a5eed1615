/* What verbs that train share: signals, where they report to, statuses. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "sprat.h"

/* The one thing that a signal handler may write. */
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    if (stop == SIGINT && number == SIGINT)
        _exit(SP_EXIT_IMPATIENT);
    stop = number;
}

void sp_catch_signals(void)
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

const volatile sig_atomic_t *sp_caught_signal(void) { return &stop; }

int sp_job_status(const sp_args *a, sp_err e, bool started)
{
    if (e == SP_OK)
        return SP_EXIT_DONE;
    sp_refuse_all(a, e);
    if (e == SP_ESTOPPED)
        return SP_EXIT_STOPPED;
    if (!started)
        return SP_EXIT_USAGE;
    return e == SP_ENUMERIC ? SP_EXIT_NUMERIC : SP_EXIT_FAILED;
}

/* All that a run tells stands in its folder, too: who closed standard output
 * wants it there alone. */
FILE *sp_job_terminal(const sp_args *a)
{
    int how = fcntl(STDOUT_FILENO, F_GETFL);
    bool closed = how < 0 || (how & O_ACCMODE) == O_RDONLY;

    return closed || sp_comm_rank(a->comm) != 0 ? NULL : stdout;
}
