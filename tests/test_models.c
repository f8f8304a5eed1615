/* The models' parameters and products, as the papers count them, their names,
 * and what they refuse. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sprat/model.h"
#include "sprat/nn.h"

extern const sp_model sp_model_lstm_lm, sp_model_mlp, sp_model_resnet,
    sp_model_vgg;

enum { OWN_BYTES = 4096 };

/* Set a key of a model's own settings from text, as a file would. */
static void set(void *own, const sp_key *key, const char *text)
{
    char *field = (char *)own + key->offset;
    const char *end = key->choices;

    switch (key->kind) {
    case SP_INT:
        *(int *)field = atoi(text);
        return;
    case SP_FLOAT:
        *(double *)field = atof(text);
        return;
    case SP_BOOL:
        *(bool *)field = strcmp(text, "true") == 0;
        return;
    case SP_TEXT:
        *(const char **)field = text;
        return;
    case SP_CHOICE:
        for (*(int *)field = 0; strncmp(end, text, strlen(text)) != 0;
             end = strchr(end, '|') + 1)
            ++*(int *)field;
        return;
    case SP_LIST:
        *(sp_list *)field = (sp_list){ 0 };
        for (const char *at = text + 1; *at && *at != ']';) {
            sp_list *list = (sp_list *)field;
            list->value[list->count++] = strtod(at, (char **)&end);
            at = *end == ',' ? end + 1 : end;
        }
        return;
    }
}

/* A model's program; `settings` are "key=value" apart by spaces. */
typedef struct net {
    _Alignas(16) char own[OWN_BYTES];
    sp_params *p;
    sp_graph *g;
    sp_tensor *y;
} net;

static void configure(net *t, const sp_model *m, const char *settings)
{
    ck_assert_uint_le(m->entry.cfg_size, OWN_BYTES);
    for (size_t i = 0; i < m->entry.key_count; i++)
        set(t->own, &m->entry.keys[i], m->entry.keys[i].fallback);
    for (const char *at = settings; *at;) {
        char word[64], *value;
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        value = strchr(word, '=');
        *value++ = '\0';
        for (size_t i = 0; i < m->entry.key_count; i++)
            if (strcmp(m->entry.keys[i].name, word) == 0)
                set(t->own, &m->entry.keys[i], value);
        at += at[n] ? n + 1 : n;
    }
}

static void record(net *t, const sp_model *m, const char *settings,
                   sp_shape image, sp_graph_opt opt)
{
    sp_model_args args = { .classes = 10, .own = t->own };

    configure(t, m, settings);
    t->p = sp_params_new();
    t->g = sp_graph_new(t->p, opt);
    t->y = m->build(t->g, sp_input(t->g, "image", image, SP_F32), &args);
    sp_output(t->g, "logits", t->y);
}

/* The same on 2 columns of 3 tokens. */
static void record_text(net *t, const sp_model *m, const char *settings,
                        int vocabulary, sp_graph_opt opt)
{
    sp_model_args args = { .classes = vocabulary, .own = t->own };
    sp_shape tokens = { .t = 3, .n = 2 };

    configure(t, m, settings);
    t->p = sp_params_new();
    t->g = sp_graph_new(t->p, opt);
    t->y = m->build(t->g, sp_input(t->g, "token", tokens, SP_I32), &args);
    sp_output(t->g, "logits", t->y);
}

static void close_net(net *t)
{
    sp_graph_free(t->g);
    sp_params_free(t->p);
}

static const sp_shape cifar = { .n = 2, .h = 32, .w = 32, .c = 3 };
static const sp_graph_opt report = { .no_memory = true };

/* He et al. 2015 for CIFAR-10; Wang et al. 2021 (Pufferfish) for ResNet-18
 * without stem norm and VGG-19; Frankle, Carbin 2019 for one fully connected
 * layer; the others follow from the layers' sizes. */
static const struct {
    const sp_model *model;
    const char *settings;
    size_t params, params_1d;
    double macs;
} counts[] = {
    { &sp_model_resnet, "depth=20", 269722, 1386, 40551040 },
    { &sp_model_resnet, "depth=32", 464154, 2282, 68862592 },
    { &sp_model_resnet, "depth=44", 658586, 3178, 97174144 },
    { &sp_model_resnet, "depth=56", 853018, 4074, 125485696 },
    { &sp_model_resnet, "depth=110", 1727962, 8106, 252887680 },
    { &sp_model_resnet, "depth=20 shortcut=B", 272474, 1578, 40813184 },
    { &sp_model_resnet, "depth=32 shortcut=B", 466906, 2474, 69124736 },
    { &sp_model_resnet, "depth=44 shortcut=B", 661338, 3370, 97436288 },
    { &sp_model_resnet, "depth=56 shortcut=B", 855770, 4266, 125747840 },
    { &sp_model_resnet, "depth=110 shortcut=B", 1730714, 8298, 253149824 },
    { &sp_model_resnet, "depth=18", 11173962, 9610, 555422720 },
    { &sp_model_resnet, "depth=18 stem_norm=false", 11173834, 9482, 555422720 },
    { &sp_model_vgg, "depth=19", 20560330, 12042, 398660608 },
    { &sp_model_vgg, "depth=19 fc=1", 20035018, 11018, 398136320 },
    { &sp_model_vgg, "depth=16", 15249354, 9482, 313725952 },
    { &sp_model_vgg, "depth=16 fc=1", 14724042, 8458, 313201664 },
    { &sp_model_mlp, "hidden=[300,100]",
      3072 * 300 + 300 + 300 * 100 + 100 + 100 * 10 + 10, 410,
      3072 * 300 + 300 * 100 + 100 * 10 },
    { &sp_model_mlp, "hidden=[]", 30730, 10, 30720 },
};

START_TEST(counts_are_the_published_ones)
{
    net t;

    record(&t, counts[_i].model, counts[_i].settings, cifar, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(t.p), counts[_i].params);
    ck_assert_uint_eq(sp_params_count_1d(t.p), counts[_i].params_1d);
    ck_assert_double_eq(sp_graph_macs(t.g), counts[_i].macs);
    ck_assert_int_eq(t.y->shape.c, 10);
    ck_assert_int_eq(t.y->shape.h * t.y->shape.w, 1);
    close_net(&t);
}
END_TEST

/* Lin et al. 2018 (DGC) for the Penn Treebank's 51,034,000 = 194.68 MiB; Wang
 * et al. 2021 (Pufferfish) for WikiText-2's 85,962,278; the others follow: V E
 * + V + sum over layers of 4h (d + h) + biases 4h. */
static const struct {
    const char *settings;
    int vocabulary;
    size_t params, params_1d;
    double macs;
} texts[] = {
    { "hidden=1500 tied=true", 10000, 51034000, 34000, 51e6 },
    { "hidden=1500", 10000, 66034000, 34000, 51e6 },
    { "hidden=1500 tied=true biases=1", 33278, 85962278, 45278, 85917000 },
    { "hidden=1500 tied=true biases=2", 33278, 85974278, 57278, 85917000 },
    { "hidden=200", 10000, 4653200, 13200, 2640000 },
    { "hidden=8 embedding=5 layers=3 biases=1", 11,
      11 * 5 + 32 * (5 + 8) + 2 * 32 * (8 + 8) + 3 * 32 + 8 * 11 + 11,
      3 * 32 + 11, 32 * (5 + 8) + 2 * 32 * (8 + 8) + 8 * 11 },
};

START_TEST(counts_of_language_models_are_the_published_ones)
{
    net t;

    record_text(&t, &sp_model_lstm_lm, texts[_i].settings, texts[_i].vocabulary,
                report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(t.p), texts[_i].params);
    ck_assert_uint_eq(sp_params_count_1d(t.p), texts[_i].params_1d);
    ck_assert_double_eq(sp_graph_macs(t.g), texts[_i].macs);
    ck_assert_int_eq(t.y->shape.t, 3);
    ck_assert_int_eq(t.y->shape.n, 2);
    ck_assert_int_eq(t.y->shape.c, texts[_i].vocabulary);
    close_net(&t);
}
END_TEST

START_TEST(names_of_language_models_are_those_of_pytorch)
{
    static const char *const untied[] = {
        "encoder.weight",   "rnn.weight_ih_l0", "rnn.weight_hh_l0",
        "rnn.bias_ih_l0",   "rnn.bias_hh_l0",   "rnn.weight_ih_l1",
        "rnn.weight_hh_l1", "rnn.bias_ih_l1",   "rnn.bias_hh_l1",
        "decoder.weight",   "decoder.bias",     NULL
    };
    net t;

    record_text(&t, &sp_model_lstm_lm, "hidden=6", 9, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    for (int i = 0; untied[i] || sp_params_at(t.p, i); i++) {
        ck_assert_ptr_nonnull(sp_params_at(t.p, i));
        ck_assert_str_eq(sp_params_at(t.p, i)->name, untied[i]);
    }
    close_net(&t);
    record_text(&t, &sp_model_lstm_lm, "hidden=6 tied=true biases=1", 9,
                report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_ptr_null(sp_params_find(t.p, "decoder.weight"));
    ck_assert_ptr_null(sp_params_find(t.p, "rnn.bias_hh_l0"));
    ck_assert_ptr_nonnull(sp_params_find(t.p, "decoder.bias"));
    close_net(&t);
}
END_TEST

/* PyTorch's names, in the order of recording. */
static const struct {
    const sp_model *model;
    const char *settings, *first, *some[6], *last;
} names[] = {
    { &sp_model_resnet,
      "depth=18",
      "conv1.weight",
      { "bn1.running_var", "layer1.0.conv1.weight", "layer1.1.bn2.bias",
        "layer2.0.downsample.0.weight", "layer4.0.downsample.1.running_mean",
        "fc.weight" },
      "fc.bias" },
    { &sp_model_resnet,
      "depth=20",
      "conv1.weight",
      { "bn1.weight", "layer1.2.conv2.weight", "layer2.0.bn1.running_mean",
        "layer3.2.bn2.weight", "layer3.0.conv1.weight", "fc.weight" },
      "fc.bias" },
    { &sp_model_vgg,
      "depth=16",
      "features.0.weight",
      { "features.1.running_mean", "features.3.weight", "features.7.weight",
        "features.41.bias", "classifier.1.weight", "classifier.4.bias" },
      "classifier.6.bias" },
    { &sp_model_vgg,
      "depth=19 fc=1",
      "features.0.weight",
      { "features.4.bias", "features.7.weight", "features.14.weight",
        "features.49.weight", "features.50.bias", "classifier.weight" },
      "classifier.bias" },
    { &sp_model_mlp,
      "hidden=[5,4]",
      "fc1.weight",
      { "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias",
        "fc1.weight" },
      "fc3.bias" },
};

START_TEST(names_are_those_of_pytorch)
{
    net t;
    int count = 0;

    record(&t, names[_i].model, names[_i].settings, cifar, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    while (sp_params_at(t.p, count))
        count++;
    ck_assert_str_eq(sp_params_at(t.p, 0)->name, names[_i].first);
    ck_assert_str_eq(sp_params_at(t.p, count - 1)->name, names[_i].last);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(sp_params_find(t.p, names[_i].some[i]) != NULL, "no %s",
                      names[_i].some[i]);
    close_net(&t);
}
END_TEST

START_TEST(width_scales_channels)
{
    net t;

    record(&t, &sp_model_resnet, "depth=8 width=0.25", cifar, report);
    ck_assert_int_eq(sp_params_find(t.p, "conv1.weight")->dims[0], 4);
    ck_assert_int_eq(sp_params_find(t.p, "fc.weight")->dims[1], 16);
    close_net(&t);
    record(&t, &sp_model_vgg, "depth=11 width=0.001", cifar, report);
    ck_assert_int_eq(sp_params_find(t.p, "features.0.weight")->dims[0], 1);
    close_net(&t);
}
END_TEST

/* Larger images give more pixels after the last pooling, flattened as PyTorch
 * does, channel by channel. */
START_TEST(vgg_takes_larger_images)
{
    net t;

    record(&t, &sp_model_vgg, "depth=11 width=0.125",
           (sp_shape){ .n = 1, .h = 70, .w = 64, .c = 3 }, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_int_eq(sp_params_find(t.p, "classifier.1.weight")->dims[1],
                     64 * 2 * 2);
    close_net(&t);
}
END_TEST

static const struct {
    const sp_model *model;
    const char *settings;
    int size;
    const char *text;
} refused[] = {
    { &sp_model_resnet, "depth=21", 32, "6n+2" },
    { &sp_model_vgg, "depth=12", 32, "11, 13, 16 and 19" },
    { &sp_model_vgg, "fc=2", 32, "3 and 1" },
    { &sp_model_vgg, "depth=11", 31, "32x32" },
    { &sp_model_mlp, "hidden=[2.5]", 32, "whole number" },
};

START_TEST(what_cannot_be_built_is_refused)
{
    net t;
    int size = refused[_i].size;

    record(&t, refused[_i].model, refused[_i].settings,
           (sp_shape){ .n = 1, .h = size, .w = size, .c = 3 }, report);
    ck_assert_int_ne(sp_compile(t.g), SP_OK);
    ck_assert_msg(strstr(sp_last_error(), refused[_i].text) != NULL, "%s",
                  sp_last_error());
    close_net(&t);
}
END_TEST

/* Every model runs, forward and backward, from one pixel on; the gradient of
 * the last bias is the mean of softmax minus target, whose sum is 0. */
static const struct {
    const sp_model *model;
    const char *settings, *last;
    int size;
} small[] = {
    { &sp_model_resnet, "depth=8 width=0.25", "fc.bias", 1 },
    { &sp_model_resnet, "depth=8 width=0.25 shortcut=B", "fc.bias", 5 },
    { &sp_model_resnet, "depth=18 width=0.05 shortcut=A", "fc.bias", 7 },
    { &sp_model_resnet, "depth=34 width=0.05 stem_norm=false", "fc.bias", 4 },
    { &sp_model_vgg, "depth=13 width=0.05", "classifier.6.bias", 33 },
    { &sp_model_vgg, "depth=11 width=0.05 fc=1", "classifier.bias", 32 },
    { &sp_model_mlp, "hidden=[7]", "fc2.bias", 3 },
};

START_TEST(models_run)
{
    net t;
    int size = small[_i].size;
    sp_run run = { .n = 3, .t = 1, .train = true, .weight = 1.0 / 3 };
    double sum = 0, largest = 0;

    record(&t, small[_i].model, small[_i].settings,
           (sp_shape){ .n = 3, .h = size, .w = size, .c = 3 },
           (sp_graph_opt){ .train = true, .threads = 2 });
    sp_tensor *label = sp_input(t.g, "label", (sp_shape){ .n = 3 }, SP_I32);
    sp_output(t.g, "loss", sp_cross_entropy(t.g, t.y, label, 0));
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    sp_params_init(t.p, 1);
    float *x = sp_graph_input(t.g, "image")->data;
    for (int i = 0; i < 3 * size * size * 3; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    sp_forward(t.g, &run);
    sp_backward(t.g, &run, NULL, NULL);
    ck_assert_double_gt(sp_loss(t.g, &run), 0);
    ck_assert_double_lt(sp_loss(t.g, &run), 20);
    const float *grad = sp_params_find(t.p, small[_i].last)->grad;
    for (int i = 0; i < 10; i++) {
        sum += (double)grad[i];
        largest = grad[i] > (float)largest ? (double)grad[i] : largest;
    }
    ck_assert_double_eq_tol(sum, 0, 1e-5);
    ck_assert_double_gt(largest, 1e-3);
    close_net(&t);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("models");
    TCase *tc = tcase_create("models");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, counts_are_the_published_ones, 0, COUNT(counts));
    tcase_add_loop_test(tc, counts_of_language_models_are_the_published_ones, 0,
                        COUNT(texts));
    tcase_add_loop_test(tc, names_are_those_of_pytorch, 0, COUNT(names));
    tcase_add_test(tc, names_of_language_models_are_those_of_pytorch);
    tcase_add_test(tc, width_scales_channels);
    tcase_add_test(tc, vgg_takes_larger_images);
    tcase_add_loop_test(tc, what_cannot_be_built_is_refused, 0, COUNT(refused));
    tcase_add_loop_test(tc, models_run, 0, COUNT(small));
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
