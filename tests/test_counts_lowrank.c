/* Parameters and products of the models whose layers are of low rank, as Wang
 * et al. 2021, "Pufferfish", count them, with the layers of full rank that the
 * models say. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "nets.h"

/* Which layers, and of what part of their smaller side. */
typedef struct rule {
    const net *t;
    const sp_model *model;
    const char *full; /* NULL: as the model says */
    double ratio;
} rule;

static int rank_of(void *arg, const char *layer, int rows, int columns)
{
    const rule *r = arg;
    const char *full = r->full          ? r->full
                       : r->model->full ? r->model->full(r->t->own)
                                        : "";

    if (sp_layer_listed(full, layer))
        return 0;
    return (int)(r->ratio * (rows < columns ? rows : columns));
}

static const struct {
    const sp_model *model;
    const char *settings, *full;
    double ratio;
    size_t params, params_1d;
    double macs;
} counts[] = {
    { &sp_model_vgg, "depth=19", NULL, 0.25, 8370634, 12042, 289346560 },
    { &sp_model_vgg, "depth=19 fc=1", NULL, 0.25, 8107466, 11018, 289084416 },
    { &sp_model_vgg, "depth=19", "features.0 classifier.6", 0.25, 5884362,
      12042, 113710080 },
    { &sp_model_resnet, "depth=18 stem_norm=false", NULL, 0.25, 3336138, 9482,
      216208384 },
    { &sp_model_resnet, "depth=18 stem_norm=false", NULL, 0.5, 6410186, 9482,
      348853248 },
    { &sp_model_resnet, "depth=18 stem_norm=false", "conv1 .downsample fc",
      0.25, 3282890, 9482, 161682432 },
    { &sp_model_resnet, "depth=20", NULL, 0.25, 80666, 1386, 15057536 },
    { &sp_model_resnet, "depth=32", NULL, 0.25, 135322, 2282, 22921856 },
    { &sp_model_resnet, "depth=44", NULL, 0.25, 189978, 3178, 30786176 },
    { &sp_model_resnet, "depth=56", NULL, 0.25, 244634, 4074, 38650496 },
    { &sp_model_resnet, "depth=110", NULL, 0.25, 490586, 8106, 74039936 },
};

static const sp_shape cifar = { .n = 2, .h = 32, .w = 32, .c = 3 };

START_TEST(counts_are_the_published_ones)
{
    net t;
    rule r = { .t = &t,
               .model = counts[_i].model,
               .full = counts[_i].full,
               .ratio = counts[_i].ratio };
    sp_rank_rule ranks = { .rank = rank_of, .arg = &r };

    nets_record(&t, counts[_i].model, counts[_i].settings, cifar,
                (sp_graph_opt){ .no_memory = true, .ranks = &ranks });
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(t.p), counts[_i].params);
    ck_assert_uint_eq(sp_params_count_1d(t.p), counts[_i].params_1d);
    ck_assert_double_eq(sp_graph_macs(t.g), counts[_i].macs);
    nets_close(&t);
}
END_TEST

/* ResNet-50 and the wide one: of 3.5722 G, 1.4527 G and 9.9465 G products. */
static const struct {
    const char *settings, *full;
    size_t params, params_1d;
    double macs, within;
} large[] = {
    { "depth=50 stem=imagenet", NULL, 15202344, 54120, 3572170752, 0.5 },
    { "depth=50 stem=imagenet", "conv1 fc", 9261096, 54120, 1.4527e9, 5e4 },
    { "depth=50 stem=imagenet inner_width=2", NULL, 40047400, 69224, 9946529792,
      0.5 },
};

START_TEST(counts_for_large_images_are_the_published_ones)
{
    net t;
    rule r = { .t = &t,
               .model = &sp_model_resnet,
               .full = large[_i].full,
               .ratio = 0.25 };
    sp_rank_rule ranks = { .rank = rank_of, .arg = &r };

    nets_record_large(&t, &sp_model_resnet, large[_i].settings, 224, &ranks);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(t.p), large[_i].params);
    ck_assert_uint_eq(sp_params_count_1d(t.p), large[_i].params_1d);
    ck_assert_double_eq_tol(sp_graph_macs(t.g), large[_i].macs,
                            large[_i].within);
    nets_close(&t);
}
END_TEST

/* The layers that are of low rank when the model has its way. */
static const struct {
    const sp_model *model;
    const char *settings;
    int size;
    const char *first, *last; /* of those of low rank */
    int count;
} layers[] = {
    { &sp_model_vgg, "depth=19", 32, "features.30", "classifier.4", 9 },
    { &sp_model_vgg, "depth=16", 32, "features.30", "classifier.4", 6 },
    { &sp_model_vgg, "depth=13", 32, "features.17", "classifier.4", 7 },
    { &sp_model_vgg, "depth=11", 32, "features.15", "classifier.4", 6 },
    { &sp_model_vgg, "depth=11 fc=1", 32, "features.15", "features.25", 4 },
    { &sp_model_resnet, "depth=18", 32, "layer1.1.conv1", "layer4.1.conv2",
      14 },
    { &sp_model_resnet, "depth=50", 32, "layer4.0.conv1", "layer4.2.conv3",
      10 },
    { &sp_model_alexnet, "groups=1", 227, "features.3", "classifier.4", 6 },
    { &sp_model_alexnet, "groups=2", 227, "features.6", "classifier.4", 3 },
    { &sp_model_mlp, "hidden=[20,30,40]", 8, "fc1", "fc4", 4 },
};

/* "NAME_u.weight" is the first factor of NAME. */
static void is_factor(const sp_param *u, const char *layer)
{
    char name[64];

    snprintf(name, sizeof name, "%s_u.weight", layer);
    ck_assert_str_eq(u->name, name);
}

START_TEST(models_say_which_layers_stay)
{
    sp_shape image = {
        .n = 2, .h = layers[_i].size, .w = layers[_i].size, .c = 3
    };
    net t;
    rule r = { .t = &t, .model = layers[_i].model, .ratio = 0.25 };
    sp_rank_rule ranks = { .rank = rank_of, .arg = &r };
    const sp_param *first = NULL, *last = NULL, *p;
    int count = 0;

    nets_record(&t, layers[_i].model, layers[_i].settings, image,
                (sp_graph_opt){ .no_memory = true, .ranks = &ranks });
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    for (int i = 0; (p = sp_params_at(t.p, i)); i++) {
        if (!p->other || p->left)
            continue;
        first = first ? first : p;
        last = p;
        count++;
    }
    ck_assert_int_eq(count, layers[_i].count);
    is_factor(first, layers[_i].first);
    is_factor(last, layers[_i].last);
    nets_close(&t);
}
END_TEST

START_TEST(layers_of_language_models_stay_outside_of_the_recurrent_ones)
{
    const char *full = sp_model_lstm_lm.full(NULL);

    ck_assert(sp_layer_listed(full, "encoder"));
    ck_assert(sp_layer_listed(full, "decoder"));
    ck_assert(!sp_layer_listed(full, "rnn.weight_ih_l0"));
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("counts_lowrank");
    TCase *tc = tcase_create("counts_lowrank");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_add_loop_test(tc, counts_are_the_published_ones, 0, COUNT(counts));
    tcase_add_loop_test(tc, counts_for_large_images_are_the_published_ones, 0,
                        COUNT(large));
    tcase_add_loop_test(tc, models_say_which_layers_stay, 0, COUNT(layers));
    tcase_add_test(
        tc, layers_of_language_models_stay_outside_of_the_recurrent_ones);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
