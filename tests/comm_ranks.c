/* One rank of a job that checks every operation between ranks, or that goes
 * wrong in some way; started by test_mpi.sh.
 *   comm_ranks SCENARIO */
#include "comm_ranks.h"

#include <mpi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Bytes that MPI was given, counted where it takes them. */
static long long handed_bytes, handed_calls;

int MPI_Isend(const void *x, int n, MPI_Datatype type, int to, int tag,
              MPI_Comm comm, MPI_Request *request)
{
    int size;

    MPI_Type_size(type, &size);
    handed_bytes += (long long)n * size;
    handed_calls++;
    return PMPI_Isend(x, n, type, to, tag, comm, request);
}

/* MPI begins so many seconds late. */
static unsigned late;

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *provided)
{
    sleep(late);
    return PMPI_Init_thread(argc, argv, wanted, provided);
}

/* The linker puts these before the ones they are named after, in all but shared
 * libraries. */
static atomic_int allocated;
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    allocated++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    allocated++;
    return __real_calloc(n, bytes);
}

int allocations(void) { return allocated; }

sp_on on_main(sp_use use) { return (sp_on){ SP_ALL, SP_CHANNEL_MAIN, use }; }

void expect(sp_comm *c, bool true_, const char *what, int line)
{
    if (true_)
        return;
    fprintf(stderr, "rank %d of %d: line %d: %s\n", sp_comm_rank(c),
            sp_comm_ranks(c), line, what);
    sp_comm_abort(c, 1);
}

void done(sp_comm *c, sp_pending *p, int line)
{
    if (sp_op_wait(c, p) != SP_OK)
        expect(c, false, sp_last_error(), line);
}

static void ledger(sp_comm *c)
{
    const sp_ledger *l = sp_comm_ledger(c);
    long long calls = 0, bytes = 0;
    double net = 0, own, total;
    float x[1000] = { 0 };

    for (int i = 0; i < SP_USES; i++) {
        calls += l->use[i].calls;
        bytes += l->use[i].bytes;
        net += l->use[i].net;
    }
    EXPECT(calls == handed_calls);
    EXPECT(bytes == handed_bytes);
    EXPECT(net <= (double)bytes);

    own = (double)l->use[SP_USE_SAVE].bytes;
    DONE(sp_sum_floats(c, on_main(SP_USE_SAVE), x, 1000));
    total = (double)l->use[SP_USE_SAVE].bytes - own;
    DONE(sp_sum_doubles(c, on_main(SP_USE_CHECK), &total, 1));
    EXPECT(total == sp_comm_ranks(c) * sp_cost_sum(sp_comm_ranks(c), 4000));

    own = (double)l->use[SP_USE_SIZES].bytes;
    DONE(sp_gather_all(c, on_main(SP_USE_SIZES), "12345", 5, x));
    EXPECT((double)l->use[SP_USE_SIZES].bytes - own ==
           sp_cost_gather(sp_comm_ranks(c), 5));
}

/* What ranks have said to each other up to here has left no host. */
static void one_host(sp_comm *c)
{
    const sp_ledger_entry *said = &sp_comm_ledger(c)->use[SP_USE_CHECK];

    EXPECT((said->bytes > 0) == (sp_comm_ranks(c) > 1));
    EXPECT(said->net == 0);
}

static void everything(sp_comm *c)
{
    one_host(c);
    check_operations(c);
    check_orders(c);
    check_steps(c);
    sp_comm_piece(c, 8); /* everything in pieces, also the agreements */
    check_operations(c);
    check_orders(c);
    check_agreement(c);
    sp_comm_piece(c, 64);
    check_operations(c);
    check_agreement(c);
    check_nodes(c);
    ledger(c);
}

/* The others wait for rank 1, and say so. */
static void wait_for_rank_1(sp_comm *c)
{
    float x = 1;

    sp_comm_timeout(c, 1);
    if (sp_op_wait(c, sp_sum_floats(c, on_main(SP_USE_DENSE), &x, 1)) == SP_OK)
        fprintf(stderr, "rank %d: did not fail\n", sp_comm_rank(c));
    else
        fprintf(stderr, "rank %d: %s\n", sp_comm_rank(c), sp_last_error());
    sp_comm_abort(c, 7);
}

/* Rank 1 sends when rank 0 waits no more, and has other things in its array. */
static void send_late(sp_comm *c)
{
    char x[2] = "..";

    if (sp_comm_rank(c) == 1) {
        sleep(2);
        if (sp_op_wait(c, sp_broadcast(c, on_main(SP_USE_SAVE), 1, "a", 2)))
            fprintf(stderr, "rank 1: %s\n", sp_last_error());
        sleep(10);
    } else {
        sp_comm_timeout(c, 1);
        EXPECT(sp_op_wait(c, sp_broadcast(c, on_main(SP_USE_SAVE), 1, x, 2)) ==
               SP_EPEER);
        sleep(2);
        EXPECT(sp_op_wait(c, sp_barrier(c, on_main(SP_USE_SAVE))) == SP_EPEER);
        fprintf(stderr, "rank 0: \"%.2s\"; %s\n", x, sp_last_error());
    }
    sp_comm_abort(c, 7);
}

/* MPI begins when nobody waits for it any more. */
static void begin_late(void)
{
    static sp_comm c = { .ranks = 1, .timeout = 0.2, .piece = SP_PIECE };
    int lowest = -5;

    late = 1;
    if (sp_team_open(&c, 2, "a test", &lowest) != SP_EPEER || !c.team)
        abort();
    fprintf(stderr, "%s\n", sp_last_error());
    for (int i = 0; i < 20 && *(volatile int *)&c.ranks == 1; i++)
        sleep(1);
    sleep(1); /* for what comes after the number of ranks */
    fprintf(stderr, "of %d ranks, lowest %d\n", c.ranks, lowest);
    sp_comm_abort(&c, 7);
}

/* Stop this process in a moment, for longer than the time-out. */
static void be_stopped(sp_comm *c)
{
    pid_t self = getpid(), other;

    fflush(NULL);
    other = fork();
    EXPECT(other >= 0);
    if (other > 0)
        return;
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
    kill(self, SIGSTOP);
    sleep(4);
    kill(self, SIGCONT);
    _exit(0);
}

/* All are stopped while they wait for rank 1, and then go on. */
static void be_suspended(sp_comm *c)
{
    float x = 1;

    DONE(sp_barrier(c, on_main(SP_USE_CHECK)));
    sp_comm_timeout(c, 2);
    be_stopped(c);
    if (sp_comm_rank(c) == 1)
        sleep(1);
    DONE(sp_sum_floats(c, on_main(SP_USE_DENSE), &x, 1));
    EXPECT(x == (float)sp_comm_ranks(c));
    wait(NULL);
}

static void go_wrong(sp_comm *c, const char *how)
{
    bool wrong = sp_comm_rank(c) == 1;
    volatile bool busy = true;
    float x[8] = { 0 };

    DONE(sp_barrier(c, on_main(SP_USE_CHECK)));
    DONE(sp_sum_floats(c, on_main(SP_USE_CHECK), x, 1));
    if (wrong && strcmp(how, "stops") == 0)
        raise(SIGSTOP);
    if (!wrong && strcmp(how, "continued") == 0)
        be_stopped(c);
    if (wrong && strcmp(how, "dies") == 0)
        raise(SIGKILL);
    if (wrong && strcmp(how, "computes") == 0)
        while (busy)
            ;
    if (wrong && strcmp(how, "differs") == 0) {
        sp_comm_timeout(c, 10);
        if (sp_op_wait(c, sp_sum_floats(c, on_main(SP_USE_DENSE), x, 8)) !=
            SP_OK)
            fprintf(stderr, "rank 1: %s\n", sp_last_error());
        sp_comm_abort(c, 7);
    }
    if (strcmp(how, "unclosed") == 0) {
        sp_comm_timeout(c, 1);
        if (wrong)
            sleep(60);
        sp_comm_close(c);
        return;
    }
    if (wrong && strcmp(how, "continued") == 0)
        sleep(60);
    if (strcmp(how, "late") == 0)
        send_late(c);
    wait_for_rank_1(c);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "everything";
    sp_comm *c;

    if (strcmp(scenario, "unopened") == 0)
        begin_late();
    if (sp_comm_open(&c) != SP_OK) {
        fprintf(stderr, "%s\n", sp_last_error());
        return 2;
    }
    sp_comm_timeout(c, 60);
    if (strcmp(scenario, "everything") == 0)
        everything(c);
    else if (strcmp(scenario, "suspended") == 0)
        be_suspended(c);
    else
        go_wrong(c, scenario);
    if (sp_comm_rank(c) == 0)
        printf("%d ranks: done\n", sp_comm_ranks(c));
    sp_comm_close(c);
    return 0;
}
