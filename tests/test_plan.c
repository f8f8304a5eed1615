#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#include "graph/plan.h"
#include "sprat/random.h"

static bool overlap(const sp_block *a, const sp_block *b)
{
    return a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

START_TEST(buffers_that_never_meet_share)
{
    sp_block b[] = { { 64, 0, 1, 0 }, { 128, 2, 3, 0 }, { 64, 4, 5, 0 } };
    size_t need;

    ck_assert_int_eq(sp_plan(b, 3, &need), 0);
    ck_assert_uint_eq(need, 128);
    ck_assert_uint_eq(sp_plan_lower_bound(b, 3, 6), 128);
}
END_TEST

START_TEST(buffers_live_together_do_not_share)
{
    sp_block b[] = { { 64, 0, 2, 0 }, { 128, 2, 3, 0 } };
    size_t need;

    ck_assert_int_eq(sp_plan(b, 2, &need), 0);
    ck_assert_uint_eq(need, 192);
    ck_assert_uint_eq(sp_plan_lower_bound(b, 2, 4), 192);
}
END_TEST

/* Any set of lives: no two live blocks overlap, and the plan needs no more
 * than everything apart and no less than the bound. */
START_TEST(random_plans_are_sound)
{
    enum { COUNT = 60, TIMES = 40 };
    sp_block b[COUNT];
    size_t need, sum = 0;

    for (int i = 0; i < COUNT; i++) {
        uint32_t r[4];
        sp_random((uint64_t)_i, SP_FOR_TEST, 0, (uint64_t)i, r);
        int first = (int)(r[0] % TIMES);
        b[i] = (sp_block){ (r[1] % 9 + 1) * 64, first,
                           first + (int)(r[2] % (unsigned)(TIMES - first)), 0 };
        sum += b[i].size;
    }
    size_t bound = sp_plan_lower_bound(b, COUNT, TIMES);
    ck_assert_int_eq(sp_plan(b, COUNT, &need), 0);
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < i; j++)
            ck_assert(!overlap(&b[i], &b[j]));
    ck_assert_uint_ge(need, bound);
    ck_assert_uint_le(need, sum);
}
END_TEST

/* The buffers of a network of thousands of layers: each lives from its step
 * forward to its step backward. That must not take the cube of their number. */
START_TEST(deep_networks_are_planned_quickly)
{
    enum { COUNT = 8000 };
    sp_block *b = malloc(COUNT * sizeof *b);
    size_t need, sum = 0;

    ck_assert_ptr_nonnull(b);
    for (int i = 0; i < COUNT; i++) {
        b[i] = (sp_block){ (size_t)(i % 5 + 1) * 64, i, 2 * COUNT - 1 - i, 0 };
        sum += b[i].size;
    }
    ck_assert_int_eq(sp_plan(b, COUNT, &need), 0);
    ck_assert_uint_eq(need, sum); /* all live in the middle */
    free(b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *tc = tcase_create("plan");
    SRunner *run = srunner_create(s);

    tcase_add_test(tc, buffers_that_never_meet_share);
    tcase_add_test(tc, buffers_live_together_do_not_share);
    tcase_add_loop_test(tc, random_plans_are_sound, 0, 50);
    tcase_add_test(tc, deep_networks_are_planned_quickly);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
