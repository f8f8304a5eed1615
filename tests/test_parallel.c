#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/kernels.h"

enum { COUNT = 1000 };

typedef struct sp_seen {
    int times[COUNT];      /* how often an element came */
    size_t end[COUNT + 1]; /* of the part that began there */
    int workers[COUNT];
    int threads;
} sp_seen;

static void see(void *arg, size_t begin, size_t end)
{
    sp_seen *s = arg;

    s->end[begin] = end;
    for (size_t i = begin; i < end; i++) {
        s->times[i]++;
        s->workers[i] = sp_worker(s->threads);
    }
}

static void expect_once(const sp_seen *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(s->times[i], 1);
        ck_assert_int_ge(s->workers[i], 0);
        ck_assert_int_lt(s->workers[i], s->threads > 1 ? s->threads : 1);
    }
}

/* Any count, grain and number of threads: each element once, parts as long as
 * the grain, beginning at its multiples. */
START_TEST(every_element_once)
{
    static const size_t counts[] = { 0, 1, 7, 64, COUNT };
    static const size_t grains[] = { 1, 3, 64, 5000 };
    size_t count = counts[_i % 5], grain = grains[_i / 5 % 4];
    sp_seen s = { .threads = _i / 20 + 1 };

    sp_parallel_for(s.threads, count, grain, see, &s);
    expect_once(&s, count);
    for (size_t i = 0; i < count; i += grain)
        ck_assert_uint_eq(s.end[i], i + grain < count ? i + grain : count);
}
END_TEST

START_TEST(many_short_loops)
{
    for (int turn = 0; turn < 3000; turn++) {
        sp_seen s = { .threads = 4 };
        sp_parallel_for(4, 16, 1, see, &s);
        expect_once(&s, 16);
    }
}
END_TEST

static void nested(void *arg, size_t begin, size_t end)
{
    int *sums = arg;

    for (size_t i = begin; i < end; i++) {
        sp_seen s = { .threads = 2 };
        sp_parallel_for(2, 50, 5, see, &s);
        expect_once(&s, 50); /* no number beyond the inner loop's */
        for (int k = 0; k < 50; k++)
            sums[i] += s.times[k];
    }
}

START_TEST(a_loop_inside_a_loop)
{
    int sums[20] = { 0 };

    sp_parallel_for(4, 20, 1, nested, sums);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(sums[i], 50);
}
END_TEST

static void *caller(void *arg)
{
    sp_seen *s = arg;

    for (int turn = 0; turn < 200; turn++) {
        memset(s->times, 0, sizeof s->times);
        sp_parallel_for(s->threads, COUNT, 10, see, s);
    }
    return NULL;
}

START_TEST(two_callers_at_once)
{
    static sp_seen s[2] = { { .threads = 3 }, { .threads = 2 } };
    pthread_t id[2];

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&id[i], NULL, caller, &s[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(id[i], NULL);
        expect_once(&s[i], COUNT);
    }
}
END_TEST

static int run_in_child(void)
{
    sp_seen s = { .threads = 3 };

    sp_parallel_for(3, COUNT, 10, see, &s);
    for (int i = 0; i < COUNT; i++)
        if (s.times[i] != 1)
            return 1;
    return 0;
}

/* A forked child has none of the team, whatever its members were at: it must
 * not wait for them. */
START_TEST(after_a_fork)
{
    for (int turn = 0; turn < 200; turn++) {
        sp_seen s = { .threads = 3 };
        int status;

        sp_parallel_for(3, COUNT, 10, see, &s);
        pid_t child = fork();
        if (child == 0)
            _exit(run_in_child());
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

static void *loop_until_told(void *arg)
{
    atomic_bool *stop = arg;

    while (!atomic_load(stop)) {
        sp_seen s = { .threads = 3 };
        sp_parallel_for(3, COUNT, 10, see, &s);
    }
    return NULL;
}

/* The same while another thread's loop runs, of which the child knows only that
 * it has begun. */
START_TEST(a_fork_beside_a_loop)
{
    atomic_bool stop = false;
    pthread_t other;

    ck_assert_int_eq(pthread_create(&other, NULL, loop_until_told, &stop), 0);
    for (int turn = 0; turn < 100; turn++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(run_in_child());
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
    atomic_store(&stop, true);
    pthread_join(other, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parallel");
    TCase *tc = tcase_create("parallel"), *forks = tcase_create("forks");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, every_element_once, 0, 60);
    tcase_add_test(tc, many_short_loops);
    tcase_add_test(tc, a_loop_inside_a_loop);
    tcase_add_test(tc, two_callers_at_once);
    tcase_add_test(forks, after_a_fork);
    tcase_add_test(forks, a_fork_beside_a_loop);
    tcase_set_tags(forks, "fork");
    suite_add_tcase(s, tc);
    suite_add_tcase(s, forks);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
