#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_sample.h"

START_TEST(defaults_fill_what_is_not_given)
{
    sp_config *c;
    const sample_optim *o;
    const sample_train *t;
    const sample_sgd *s;

    sample_accepted(&c, MLP);
    o = sp_config_section(c, "optim");
    t = sp_config_section(c, "train");
    s = sp_config_own(c, "optim");
    ck_assert_ptr_eq(sp_config_entry(c, "optim"), &sample_sgd_entry);
    ck_assert_ptr_null(sp_config_own(c, "model"));
    ck_assert_double_eq(o->lr, 0.1);
    ck_assert_double_eq(o->decay, 1e-4);
    ck_assert_int_eq(o->scope, 0);
    ck_assert_double_eq(s->momentum, 0.9);
    ck_assert(!s->nesterov);
    ck_assert_int_eq(t->epochs, 30);
    ck_assert_int_eq(t->offset, -7);
    ck_assert_str_eq(t->note, "");
    ck_assert_int_eq(t->at.count, 0);
    ck_assert_str_eq(sp_config_source(c, "optim", "lr"), "default");
    ck_assert_str_eq(sp_config_source(c, "optim", "name"), "default");
    ck_assert_str_eq(sp_config_source(c, "model", "name"), "a.yaml:1:9");
    ck_assert_ptr_null(sp_config_source(c, "optim", "beta"));
    ck_assert_ptr_null(sp_config_source(c, "train", "name"));
    ck_assert_ptr_null(sp_config_source(c, "nowhere", "lr"));
    sp_config_free(c);
}
END_TEST

START_TEST(every_kind_is_read)
{
    sp_config *c;
    const sample_train *t;
    const sample_adam *a;

    sample_accepted(&c, MLP "train:\n"
                            "  epochs: 1e3      # integral\n"
                            "  note: \"a: b\\n\\u00e4\"\n"
                            "  at: [15, 2.25e1, -.5]\n"
                            "optim:\n"
                            "  name: adam\n"
                            "  decay: matrices\n"
                            "  weight_decay: 5.e-4\n"
                            "  steps:\n"
                            "  - 3\n"
                            "  beta: 1\n");
    t = sp_config_section(c, "train");
    a = sp_config_own(c, "optim");
    ck_assert_int_eq(t->epochs, 1000);
    ck_assert_str_eq(t->note, "a: b\n\xc3\xa4");
    ck_assert_int_eq(t->at.count, 3);
    ck_assert_double_eq(t->at.value[0], 15);
    ck_assert_double_eq(t->at.value[1], 22.5);
    ck_assert_double_eq(t->at.value[2], -0.5);
    ck_assert_ptr_eq(sp_config_entry(c, "optim"), &sample_adam_entry);
    ck_assert_double_eq(a->beta, 1);
    ck_assert_int_eq(a->steps.count, 1);
    ck_assert_double_eq(a->steps.value[0], 3);
    ck_assert_int_eq(
        ((const sample_optim *)sp_config_section(c, "optim"))->scope, 1);
    ck_assert_str_eq(sp_config_source(c, "optim", "beta"), "a.yaml:12:3");
    sp_config_free(c);
}
END_TEST

static const struct {
    const char *word;
    int value; /* -1: not a switch */
} switches[] = {
    { "true", 1 }, { "false", 0 }, { "yes", 1 }, { "No", 0 },    { "on", 1 },
    { "OFF", 0 },  { "1", -1 },    { "y", -1 },  { "\"\"", -1 }, { "[]", -1 },
};

START_TEST(words_for_switches)
{
    char text[200];
    sp_config *c;

    snprintf(text, sizeof text, MLP "optim: {nesterov: %s}\n",
             switches[_i].word);
    if (switches[_i].value < 0) {
        ck_assert_int_eq(sample_load(&c, (const char *[]){ text, NULL }, NULL),
                         SP_ECONFIG);
        ck_assert_ptr_nonnull(
            strstr(sp_last_error(), switches[_i].word[0] == '['
                                        ? "must be a single value"
                                        : "must be true or false"));
        return;
    }
    sample_accepted(&c, text);
    ck_assert_int_eq(((const sample_sgd *)sp_config_own(c, "optim"))->nesterov,
                     switches[_i].value);
    sp_config_free(c);
}
END_TEST

/* Files, then arguments: the last one to speak is heard. */
START_TEST(later_layers_win)
{
    sp_config *c;
    const sample_optim *o;
    const sample_train *t;
    sp_err e =
        sample_load(&c,
                    (const char *[]){ MLP "optim: {lr: 1, weight_decay: 0.5}\n"
                                          "train: {epochs: 5}\n",
                                      "optim:\n  lr: 2\n", NULL },
                    (const char *[]){ "train.epochs=7", "train.at=[15,22]",
                                      "train.note=", "train.epochs=8", NULL });

    ck_assert_msg(e == SP_OK, "%s", sp_last_error());
    o = sp_config_section(c, "optim");
    t = sp_config_section(c, "train");
    ck_assert_double_eq(o->lr, 2);
    ck_assert_double_eq(o->decay, 0.5);
    ck_assert_int_eq(t->epochs, 8);
    ck_assert_int_eq(t->at.count, 2);
    ck_assert_double_eq(t->at.value[1], 22);
    ck_assert_str_eq(sp_config_source(c, "optim", "lr"), "b.yaml:2:3");
    ck_assert_str_eq(sp_config_source(c, "optim", "weight_decay"),
                     "a.yaml:2:16");
    ck_assert_str_eq(sp_config_source(c, "train", "epochs"), "argument");
    sp_config_free(c);
}
END_TEST

START_TEST(another_choice_drops_the_keys_of_the_earlier_one)
{
    sp_config *c;
    sp_err e =
        sample_load(&c,
                    (const char *[]){ MLP "optim: {momentum: 0.5, lr: 3}\n",
                                      "optim: {name: adam}\n", NULL },
                    (const char *[]){ "optim.beta=0.25", NULL });

    ck_assert_msg(e == SP_OK, "%s", sp_last_error());
    ck_assert_double_eq(((const sample_adam *)sp_config_own(c, "optim"))->beta,
                        0.25);
    ck_assert_double_eq(
        ((const sample_optim *)sp_config_section(c, "optim"))->lr, 3);
    sp_config_free(c);
}
END_TEST

START_TEST(set_changes_one_value_in_place)
{
    sp_config *c;
    const sample_optim *o;
    const sample_sgd *s;

    sample_accepted(&c, MLP "optim: {momentum: 0.25}\n");
    o = sp_config_section(c, "optim");
    s = sp_config_own(c, "optim");
    ck_assert_int_eq(sp_config_set(c, "optim.lr=5", "probe"), SP_OK);
    ck_assert_double_eq(o->lr, 5);
    ck_assert_double_eq(s->momentum, 0.25);
    ck_assert_str_eq(sp_config_source(c, "optim", "lr"), "probe");
    ck_assert_str_eq(sp_config_source(c, "optim", "momentum"), "a.yaml:2:9");

    ck_assert_int_eq(sp_config_set(c, "optim.lr=-5", "probe"), SP_ECONFIG);
    ck_assert_str_eq(sp_last_error(), "argument \"optim.lr=-5\": optim.lr must "
                                      "be from 0 to 1000, not -5");
    ck_assert_int_eq(sp_config_set(c, "optim.lr", "probe"), SP_ECONFIG);
    ck_assert_int_eq(sp_config_set(c, "optim.beta=0", "probe"), SP_ECONFIG);
    ck_assert_double_eq(o->lr, 5);

    ck_assert_int_eq(sp_config_set(c, "optim.name=adam", NULL), SP_OK);
    ck_assert_ptr_eq(sp_config_entry(c, "optim"), &sample_adam_entry);
    ck_assert_double_eq(((const sample_adam *)sp_config_own(c, "optim"))->beta,
                        0.999);
    ck_assert_double_eq(o->lr, 5);
    ck_assert_int_eq(sp_config_set(c, "optim.beta=0", NULL), SP_OK);
    ck_assert_double_eq(((const sample_adam *)sp_config_own(c, "optim"))->beta,
                        0);
    ck_assert_int_eq(sp_config_set(c, "optim.momentum=0", NULL), SP_ECONFIG);
    sp_config_free(c);
}
END_TEST

START_TEST(registry_refuses_clashes)
{
    static const sp_key clash[] = { { "lr", SP_INT, 0, "0", 0, 0, "", NULL } };
    static const sp_entry twin = { "sgd", "", 0, NULL, 0 };
    static const sp_entry own_lr = { "other", "", sizeof(int), clash, 1 };

    ck_assert_int_eq(sp_registry_add(sample_registry, "optim", &twin), SP_EARG);
    ck_assert_int_eq(sp_registry_add(sample_registry, "optim", &own_lr),
                     SP_EARG);
    ck_assert_int_eq(sp_registry_add(sample_registry, "train", &twin), SP_EARG);
    ck_assert_int_eq(sp_registry_add(sample_registry, "zoo", &twin), SP_EARG);
    ck_assert_ptr_eq(sp_registry_find(sample_registry, "optim", "adam"),
                     &sample_adam_entry);
    ck_assert_ptr_null(sp_registry_find(sample_registry, "model", "adam"));
    ck_assert_ptr_eq(sp_registry_at(sample_registry, "optim", 1),
                     &sample_adam_entry);
    ck_assert_ptr_null(sp_registry_at(sample_registry, "optim", 2));
    ck_assert_ptr_eq(sp_registry_section(sample_registry, 2),
                     &sample_optim_section);
    ck_assert_ptr_null(sp_registry_section(sample_registry, 3));
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("config");
    TCase *tc = tcase_create("config");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(tc, sample_setup, sample_teardown);
    tcase_add_test(tc, defaults_fill_what_is_not_given);
    tcase_add_test(tc, every_kind_is_read);
    tcase_add_loop_test(tc, words_for_switches, 0, COUNT(switches));
    tcase_add_test(tc, later_layers_win);
    tcase_add_test(tc, another_choice_drops_the_keys_of_the_earlier_one);
    tcase_add_test(tc, set_changes_one_value_in_place);
    tcase_add_test(tc, registry_refuses_clashes);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
