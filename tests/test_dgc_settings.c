/* What the settings of dgc come to: clipping, warm-up, and what is refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

extern const sp_compressor sp_compressor_dgc;

/* ---- Clipping ------------------------------------------------------------ */

START_TEST(local_clipping_by_hand)
{
    static const struct {
        double clip, weight, norm, scale;
    } cases[] = {
        /* Of four equal ranks: 1 / sqrt(4) of the threshold. */
        { 0.25, 0.25, 0.5, 0.25 },
        { 0.25, 0.25, 0.125, 1 },
        { 0.25, 0.25, 0.25, 0.5 },
        { 8, 1, 10, 0.8 }, /* one rank: the usual rule */
        { 1, 0.09, 0.6, 0.5 },
        { 1, 0.64, 1.6, 0.5 },
        { 2, 0.5625, 1.5, 1 },
        { 1, 0, 0, 1 },
    };
    sp_slot s = { .clip = cases[_i].clip, .weight = cases[_i].weight };

    ck_assert_double_eq_tol(sp_compressor_dgc.clip_scale(&s, cases[_i].norm),
                            cases[_i].scale, 1e-15);
}
END_TEST

START_TEST(clipping_is_local_where_asked_for)
{
    ranks on = { 0 }, off = { 0 };

    ranks_settings(&on, &sp_compressor_dgc, NULL);
    ranks_settings(&off, &sp_compressor_dgc,
                   (const char *[]){ "clipping=false", NULL });
    ck_assert(on.c->clips(on.own, 0.25));
    ck_assert(!on.c->clips(on.own, 0));
    ck_assert(!off.c->clips(off.own, 0.25));
    for (int i = 0; i < 2; i++) {
        sp_config_free(i ? on.config : off.config);
        sp_registry_free(i ? on.registry : off.registry);
    }
}
END_TEST

/* ---- Warm-up ------------------------------------------------------------- */

static const struct {
    const char *settings[3];
    double settled, progress, density;
} warmups[] = {
    { { NULL }, 4, 0, 0.25 },
    { { NULL }, 4, 0.999, 0.25 },
    { { NULL }, 4, 1, 0.0625 },
    { { NULL }, 4, 2.5, 0.015625 },
    { { NULL }, 4, 3, 0.004 },
    { { NULL }, 4, 3.999, 0.004 },
    { { NULL }, 4, 4, 0.001 },
    { { NULL }, 4, INFINITY, 0.001 },
    /* Four quarters of one epoch. */
    { { "warmup_epochs=1" }, 1, 0.24, 0.25 },
    { { "warmup_epochs=1" }, 1, 0.25, 0.0625 },
    { { "warmup_epochs=1" }, 1, 0.75, 0.004 },
    { { "warmup_epochs=1" }, 1, 1, 0.001 },
    { { "warmup_epochs=0.5", "warmup=[0.5]" }, 0.5, 0.49, 0.5 },
    { { "warmup_epochs=0.5", "warmup=[0.5]" }, 0.5, 0.5, 0.001 },
    { { "warmup=[]" }, 0, 0, 0.001 },
    { { "ratio=0.02" }, 4, 1.5, 0.0625 },
    { { "ratio=0.02" }, 4, 2.5, 0.02 },
    { { "warmup=[1]", "ratio=0.01" }, 4, 3.9, 1 },
    { { "warmup=[1]", "ratio=0.01" }, 4, 4, 0.01 },
};

START_TEST(the_density_falls_in_steps)
{
    ranks r = { 0 };

    ranks_settings(&r, &sp_compressor_dgc, warmups[_i].settings);
    ck_assert_double_eq(r.c->density(r.own, warmups[_i].progress),
                        warmups[_i].density);
    ck_assert_double_eq(r.c->settled(r.own), warmups[_i].settled);
    sp_config_free(r.config);
    sp_registry_free(r.registry);
}
END_TEST

/* ---- Settings ------------------------------------------------------------ */

static const struct {
    const char *settings[4];
    const char *optimizer;
    const char *text[2]; /* parts of the message; NULL: fine */
} checks[] = {
    { { NULL }, "sgd", { NULL } },
    { { NULL }, "adam", { "compress.name: ", "optim.name is adam" } },
    { { "momentum_correction=false" }, "adam", { NULL } },
    { { "ratio=1" }, "sgd", { "compress.ratio: 1 ", "0.001" } },
    { { "ratio=0.02" }, "sgd", { NULL } },
    { { "ratio=0.5", "warmup=[]" }, "sgd", { NULL } },
    { { "warmup=[0.1, 0.2]" }, "sgd", { "compress.warmup: ", "0.1 is" } },
    { { "warmup=[0.1, 0.1]" }, "sgd", { "compress.warmup: ", "by 0.1" } },
    { { "warmup=[1, 0.1]" }, "sgd", { NULL } },
    { { "warmup=[0.0001]" },
      "sgd",
      { "compress.warmup: ", "above compress.ratio, 0.001" } },
    { { "ratio=0.25" }, "sgd", { "compress.warmup: ", "0.25 at most" } },
    { { "ratio=0.2" }, "sgd", { NULL } },
    { { "warmup_epochs=0" }, "sgd", { "compress.warmup_epochs: ", "[]" } },
    { { "warmup_epochs=0", "warmup=[]" }, "sgd", { NULL } },
};

START_TEST(settings_are_checked)
{
    sp_compress_use use = { .optimizer = checks[_i].optimizer };
    const char *text = checks[_i].text[0];
    ranks r = { 0 };
    sp_err e;

    use.has_momentum = strcmp(use.optimizer, "sgd") == 0;
    ranks_settings(&r, &sp_compressor_dgc, checks[_i].settings);
    e = sp_compressor_check(r.c, r.own, &use);
    ck_assert_int_eq(e, text ? SP_ECONFIG : SP_OK);
    if (text) {
        ck_assert_msg(strncmp(sp_last_error(), text, strlen(text)) == 0 &&
                          strstr(sp_last_error(), checks[_i].text[1]),
                      "%s", sp_last_error());
    }
    sp_config_free(r.config);
    sp_registry_free(r.registry);
}
END_TEST

START_TEST(matrices_are_taken)
{
    sp_slot s = { .n = 64, .ndim = 1, .dims = { 64 } };

    ck_assert(!sp_compressor_dgc.accepts(&s));
    s.ndim = 2;
    ck_assert(sp_compressor_dgc.accepts(&s));
    s.n = (size_t)UINT32_MAX + 1;
    ck_assert(!sp_compressor_dgc.accepts(&s));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dgc_settings");
    TCase *tc = tcase_create("dgc_settings");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, local_clipping_by_hand, 0, 8);
    tcase_add_test(tc, clipping_is_local_where_asked_for);
    tcase_add_loop_test(tc, the_density_falls_in_steps, 0,
                        sizeof warmups / sizeof *warmups);
    tcase_add_loop_test(tc, settings_are_checked, 0,
                        sizeof checks / sizeof *checks);
    tcase_add_test(tc, matrices_are_taken);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
