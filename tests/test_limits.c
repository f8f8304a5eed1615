/* Limits of control groups, as the kernel's documentation lays them out. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tools/doctor.h"
#include "fixture.h"

static char *dir;

static void set_up(void) { dir = sp_scratch_new(); }
static void tear_down(void) { sp_scratch_free(dir); }

static void put(const char *name, const char *text)
{
    sp_scratch_write(dir, name, text, strlen(text));
}

static sp_limits limits(void)
{
    return sp_limits_read(sp_scratch_path(dir, "list"),
                          sp_scratch_path(dir, "fs"));
}

START_TEST(of_version_2_the_tightest_of_all_above)
{
    put("list", "0::/jobs/mine\n");
    put("fs/jobs/mine/cpu.max", "max 100000\n");
    put("fs/jobs/mine/memory.max", "2147483648\n");
    put("fs/jobs/cpu.max", "150000 100000\n");
    put("fs/jobs/memory.max", "4294967296\n");
    put("fs/memory.max", "max\n");
    ck_assert_double_eq(limits().cpus, 1.5);
    ck_assert_double_eq(limits().bytes, 2147483648.0);
    put("fs/cpu.max", "50000 100000\n");
    ck_assert_double_eq(limits().cpus, 0.5);
}
END_TEST

/* A container's group has another name outside; its limits are in the root. */
START_TEST(of_a_group_that_cannot_be_seen_the_roots)
{
    put("list", "0::/system/outside-name\n");
    put("fs/cpu.max", "200000 100000\n");
    ck_assert_double_eq(limits().cpus, 2);
    ck_assert(isinf(limits().bytes));
}
END_TEST

START_TEST(of_version_1_each_controllers)
{
    put("list", "5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/\n");
    put("fs/memory/job/memory.limit_in_bytes", "1048576\n");
    put("fs/cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
    put("fs/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("fs/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("fs/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    ck_assert_double_eq(limits().cpus, 3);
    ck_assert_double_eq(limits().bytes, 1048576);
}
END_TEST

START_TEST(what_cannot_be_read_limits_nothing)
{
    ck_assert(isinf(limits().cpus) && isinf(limits().bytes));
    put("list", "nonsense\n0\n::\n0::relative\n\n");
    put("fs/cpu.max", "many 100000\n");
    put("fs/memory.max", "");
    ck_assert(isinf(limits().cpus) && isinf(limits().bytes));
    put("fs/cpu.max", "100000\n");
    ck_assert(isinf(limits().cpus));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("limits");
    TCase *tc = tcase_create("limits");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, of_version_2_the_tightest_of_all_above);
    tcase_add_test(tc, of_a_group_that_cannot_be_seen_the_roots);
    tcase_add_test(tc, of_version_1_each_controllers);
    tcase_add_test(tc, what_cannot_be_read_limits_nothing);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
