/* A job of one rank; and, without MPI, that the messages of every operation
 * fit together on any number of ranks. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "dist/agree.h"
#include "dist/team.h"

enum { MOST = 9, NUMBERS = 7, BYTES = 5 };

static const sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };

static void no_launcher(void)
{
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    unsetenv("SLURM_STEP_NUM_TASKS");
    unsetenv("SLURM_STEP_ID");
    unsetenv("PMIX_RANK");
}

START_TEST(one_rank)
{
    static const size_t sizes[] = { 4 }, offsets[] = { 2 };
    sp_comm *c;
    float x[2] = { 1, 2 };
    char all[7] = "......", name[SP_RANK_NAME];

    ck_assert_int_eq(sp_comm_open(&c), SP_OK);
    ck_assert_int_eq(sp_comm_rank(c), 0);
    ck_assert_int_eq(sp_comm_ranks(c), 1);
    for (int g = 0; g < SP_GROUPS; g++) {
        ck_assert_int_eq(sp_group_rank(c, (sp_group)g), 0);
        ck_assert_int_eq(sp_group_ranks(c, (sp_group)g), 1);
    }
    ck_assert(*sp_comm_host(c));
    ck_assert_int_eq(sp_op_wait(c, sp_sum_floats(c, on, x, 2)), SP_OK);
    ck_assert(x[0] == 1 && x[1] == 2);
    ck_assert_int_eq(sp_op_wait(c, sp_barrier(c, on)), SP_OK);
    ck_assert(sp_agreed(c)); /* always with itself */
    ck_assert(strncmp(sp_rank_name(c, SP_ALL, 0, name), "rank 0 (", 8) == 0);
    ck_assert_ptr_nonnull(strstr(name, sp_comm_host(c)));
    ck_assert_int_eq(
        sp_op_wait(c, sp_gather_packets(c, on, "abcd", sizes, offsets, all)),
        SP_OK);
    ck_assert_str_eq(all, "..abcd");
    ck_assert_int_eq(sp_comm_ledger(c)->use[SP_USE_CHECK].calls, 0);
    sp_comm_close(c);
}
END_TEST

START_TEST(version)
{
    char text[6];

    ck_assert_str_ne(sp_mpi_version(text, sizeof text), "");
    ck_assert_uint_lt(strlen(text), sizeof text);
}
END_TEST

START_TEST(no_comm)
{
    double x = 3;
    char all[3] = "..", name[SP_RANK_NAME];

    ck_assert_int_eq(sp_comm_ranks(NULL), 1);
    ck_assert_str_eq(sp_rank_name(NULL, SP_NODE, 0, name),
                     "rank 0 (this host)");
    ck_assert_int_eq(sp_op_wait(NULL, sp_sum_doubles(NULL, on, &x, 1)), SP_OK);
    ck_assert(x == 3);
    ck_assert_int_eq(sp_op_wait(NULL, sp_gather_all(NULL, on, "ab", 2, all)),
                     SP_OK);
    ck_assert_str_eq(all, "ab");
    ck_assert_int_eq((int)sp_ledger_step_bytes(sp_comm_ledger(NULL)), 0);
    ck_assert_int_eq(sp_agree_text(NULL, "it", "x"), SP_OK);
    sp_comm_close(NULL);
}
END_TEST

START_TEST(one_agrees_with_itself)
{
    ck_assert_int_eq(sp_agree(NULL, SP_OK), SP_OK);
    ck_assert_int_eq(sp_agree(NULL, sp_fail(SP_EDATA, "no data")), SP_EDATA);
    ck_assert_str_eq(sp_last_error(), "no data");
    ck_assert(sp_agreed(NULL));
}
END_TEST

START_TEST(an_operation_without_memory)
{
    ck_assert_int_eq(sp_op_wait(NULL, NULL), SP_ENOMEM);
}
END_TEST

START_TEST(launchers)
{
    const char *variable;

    no_launcher();
    ck_assert_int_eq(sp_launched(&variable), 1);
    ck_assert_ptr_null(variable);
    setenv("SLURM_STEP_NUM_TASKS", "3", 1);
    ck_assert_int_eq(sp_launched(&variable), 1); /* salloc, without srun */
    setenv("SLURM_STEP_ID", "0", 1);
    ck_assert_int_eq(sp_launched(&variable), 3);
    ck_assert_str_eq(variable, "SLURM_STEP_NUM_TASKS");
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1); /* mpirun within a step */
    ck_assert_int_eq(sp_launched(&variable), 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    ck_assert_int_eq(sp_launched(&variable), 4);
    no_launcher();
    setenv("PMIX_RANK", "0", 1);
    ck_assert_int_eq(sp_launched(&variable), 0);
    ck_assert_str_eq(variable, "PMIX_RANK");
}
END_TEST

/* ---- Messages ---------------------------------------------------------- */

typedef struct kind {
    const sp_script *script;
    bool roots;
} kind;

static const kind kinds[] = {
    { &sp_script_sum, false },      { &sp_script_reduce, false },
    { &sp_script_broadcast, true }, { &sp_script_gather, false },
    { &sp_script_barrier, false },
};

static char array[MOST * NUMBERS * 4], own[BYTES];

static sp_pending operation(const kind *k, int rank, int ranks, int root)
{
    return (sp_pending){ .script = k->script,
                         .rank = rank,
                         .ranks = ranks,
                         .peer = root,
                         .x = array,
                         .own = own,
                         .n = NUMBERS,
                         .unit = 4,
                         .bytes = BYTES };
}

/* The bytes of message `at` (from 0) between `p`'s rank and a peer; 0: none. */
static size_t message(const sp_pending *p, sp_way way, int peer, int at)
{
    for (int round = 0; round < p->script->rounds(p->ranks); round++) {
        sp_move m;

        for (int i = 0; p->script->move(p, round, way, i, &m); i++) {
            ck_assert_int_ne(m.peer, p->rank);
            ck_assert(m.peer >= 0 && m.peer < p->ranks);
            if (m.peer == peer && m.bytes && at-- == 0)
                return m.bytes;
        }
    }
    return 0;
}

/* What a rank sends to another is what that one expects of it, in the same
 * order and sizes. */
static void fit(const kind *k, int ranks, int root)
{
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++) {
            sp_pending from = operation(k, a, ranks, root);
            sp_pending to = operation(k, b, ranks, root);
            size_t sent;
            int at = 0;

            if (a == b)
                continue;
            do {
                sent = message(&from, SP_SEND, b, at);
                ck_assert_uint_eq(sent, message(&to, SP_RECEIVE, a, at));
            } while (at++, sent);
        }
}

START_TEST(messages_fit)
{
    for (int ranks = 2; ranks <= MOST; ranks++)
        for (int root = 0; root < (kinds[_i].roots ? ranks : 1); root++)
            fit(&kinds[_i], ranks, root);
}
END_TEST

/* Bytes that a rank sends in an operation. */
static size_t sent(const kind *k, int rank, int ranks, int root)
{
    sp_pending p = operation(k, rank, ranks, root);
    size_t bytes = 0;

    for (int peer = 0; peer < ranks; peer++)
        for (int at = 0; peer != rank && message(&p, SP_SEND, peer, at); at++)
            bytes += message(&p, SP_SEND, peer, at);
    return bytes;
}

START_TEST(costs)
{
    for (int ranks = 2; ranks <= MOST; ranks++) {
        double sum = 0, broadcast = 0;

        for (int r = 0; r < ranks; r++) {
            sum += (double)sent(&kinds[0], r, ranks, 0);
            broadcast += (double)sent(&kinds[2], r, ranks, 1);
            ck_assert(sent(&kinds[3], r, ranks, 0) ==
                      sp_cost_gather(ranks, BYTES));
        }
        ck_assert_double_eq_tol(sum, ranks * sp_cost_sum(ranks, NUMBERS * 4.0),
                                1e-9);
        /* Each of the others gets all of it once. */
        ck_assert(broadcast == (ranks - 1) * NUMBERS * 4);
        ck_assert_uint_eq(sent(&kinds[2], 1, ranks, 1), NUMBERS * 4);
    }
}
END_TEST

/* Whom a rank has heard of, directly or not, when a barrier is over. */
START_TEST(a_barrier_hears_of_all)
{
    for (int ranks = 2; ranks <= MOST; ranks++) {
        unsigned heard[MOST], before[MOST];
        int rounds = sp_script_barrier.rounds(ranks);

        for (int r = 0; r < ranks; r++)
            heard[r] = 1u << r;
        for (int round = 0; round < rounds; round++) {
            memcpy(before, heard, sizeof before);
            for (int r = 0; r < ranks; r++) {
                sp_pending p = operation(&kinds[4], r, ranks, 0);
                sp_move m;

                ck_assert(p.script->move(&p, round, SP_RECEIVE, 0, &m));
                heard[r] |= before[m.peer];
            }
        }
        for (int r = 0; r < ranks; r++)
            ck_assert_uint_eq(heard[r], (1u << ranks) - 1);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("comm");
    TCase *t = tcase_create("comm");
    SRunner *runner = srunner_create(s);
    int failed, n = (int)(sizeof kinds / sizeof *kinds);

    no_launcher();
    suite_add_tcase(s, t);
    tcase_add_test(t, one_rank);
    tcase_add_test(t, version);
    tcase_add_test(t, no_comm);
    tcase_add_test(t, one_agrees_with_itself);
    tcase_add_test(t, an_operation_without_memory);
    tcase_add_test(t, launchers);
    tcase_add_loop_test(t, messages_fit, 0, n);
    tcase_add_test(t, costs);
    tcase_add_test(t, a_barrier_hears_of_all);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
