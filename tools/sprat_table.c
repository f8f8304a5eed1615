/* sprat table. */
#include <stdio.h>

#include "dist/agree.h"
#include "sprat.h"
#include "sprat/table.h"

/* Said behind the table: what is missing, failed, or worse. */
static void say_state(const sp_table_state *s)
{
    int missing = s->runs - s->done - s->failed;

    printf("\n%d of %d runs done", s->done, s->runs);
    if (s->failed)
        printf(", %d failed (--retry goes on with what can be)", s->failed);
    if (missing)
        printf(", %d missing", missing);
    if (s->equal + s->worse + s->open)
        printf("; verdicts: %d equal or no worse, %d worse, %d open", s->equal,
               s->worse, s->open);
    printf("\n");
}

static int status_of(const sp_table_state *s)
{
    if (s->failed || s->worse)
        return SP_EXIT_FAILED;
    return s->done < s->runs ? SP_EXIT_STOPPED : SP_EXIT_DONE;
}

static int table(const sp_args *a)
{
    sp_opened o = { 0 };
    sp_table_state state;
    sp_table_opt opt = { .file = a->words[0],
                         .run = sp_args_flag(a, "run"),
                         .report = sp_args_flag(a, "report") != NULL,
                         .retry = sp_args_flag(a, "retry") != NULL,
                         .terminal = sp_job_terminal(a),
                         .stop = sp_caught_signal(),
                         .comm = a->comm };
    sp_err e = sp_agree(a->comm, sp_opened_registry(&o));

    if (e == SP_OK)
        e = sp_table_run(o.registry, &opt, &state);
    sp_opened_free(&o);
    if (e != SP_OK)
        return sp_job_status(a, e, state.started);
    if (opt.terminal)
        say_state(&state);
    return status_of(&state);
}

const sp_verb sp_verb_table = {
    .name = "table",
    .words = "TABLE.yaml",
    .least = 1,
    .most = 1,
    .ranks = true,
    .help = "train settings x seeds, and compare them in a table",
    .flags = {
        { "run", "DIR", "the table's folder (runs/tables/NAME)" },
        { "report", NULL, "train nothing: only write what is there" },
        { "retry", NULL, "go on with runs that have failed, too" },
    },
    .examples =
        "Runs that are done are kept, those under way are resumed: after a "
        "kill the\nsame command goes on. SIGINT, SIGTERM and SIGUSR1 save and "
        "stop. Written are\nDIR/table.md, table.tex and table.csv. Status 0: "
        "all is done, and no row is\nworse than the baseline by more than the "
        "margin (one may be open); 1: a run\nfailed, or a row is worse; 3: "
        "stopped, or runs are missing in a report.\n\n"
        "  mpirun -n 4 sprat table configs/tables/dgc-cifar10-short.yaml\n"
        "  sprat table configs/tables/pufferfish-cifar10-short.yaml --report\n",
    .prepare = sp_catch_signals,
    .run = table,
};
