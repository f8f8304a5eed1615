/* The models' parameter names, what they refuse, and that they run. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "nets.h"
#include "sprat/nn.h"

static const sp_shape cifar = { .n = 2, .h = 32, .w = 32, .c = 3 };
static const sp_graph_opt report = { .no_memory = true };

START_TEST(names_of_language_models_are_those_of_pytorch)
{
    static const char *const untied[] = {
        "encoder.weight",   "rnn.weight_ih_l0", "rnn.weight_hh_l0",
        "rnn.bias_ih_l0",   "rnn.bias_hh_l0",   "rnn.weight_ih_l1",
        "rnn.weight_hh_l1", "rnn.bias_ih_l1",   "rnn.bias_hh_l1",
        "decoder.weight",   "decoder.bias",     NULL
    };
    net t;

    nets_record_text(&t, &sp_model_lstm_lm, "hidden=6", 9, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    for (int i = 0; untied[i] || sp_params_at(t.p, i); i++) {
        ck_assert_ptr_nonnull(sp_params_at(t.p, i));
        ck_assert_str_eq(sp_params_at(t.p, i)->name, untied[i]);
    }
    nets_close(&t);
    nets_record_text(&t, &sp_model_lstm_lm, "hidden=6 tied=true biases=1", 9,
                     report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_ptr_null(sp_params_find(t.p, "decoder.weight"));
    ck_assert_ptr_null(sp_params_find(t.p, "rnn.bias_hh_l0"));
    ck_assert_ptr_nonnull(sp_params_find(t.p, "decoder.bias"));
    nets_close(&t);
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
    { &sp_model_resnet,
      "depth=50",
      "conv1.weight",
      { "layer1.0.conv1.weight", "layer1.0.bn3.weight",
        "layer1.0.downsample.1.bias", "layer3.5.conv3.weight",
        "layer4.0.downsample.0.weight", "layer4.2.bn2.running_mean" },
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

    nets_record(&t, names[_i].model, names[_i].settings, cifar, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    while (sp_params_at(t.p, count))
        count++;
    ck_assert_str_eq(sp_params_at(t.p, 0)->name, names[_i].first);
    ck_assert_str_eq(sp_params_at(t.p, count - 1)->name, names[_i].last);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(sp_params_find(t.p, names[_i].some[i]) != NULL, "no %s",
                      names[_i].some[i]);
    nets_close(&t);
}
END_TEST

START_TEST(width_scales_channels)
{
    net t;

    nets_record(&t, &sp_model_resnet, "depth=8 width=0.25", cifar, report);
    ck_assert_int_eq(sp_params_find(t.p, "conv1.weight")->dims[0], 4);
    ck_assert_int_eq(sp_params_find(t.p, "fc.weight")->dims[1], 16);
    nets_close(&t);
    nets_record(&t, &sp_model_vgg, "depth=11 width=0.001", cifar, report);
    ck_assert_int_eq(sp_params_find(t.p, "features.0.weight")->dims[0], 1);
    nets_close(&t);
}
END_TEST

/* Larger images give more pixels after the last pooling, flattened as PyTorch
 * does, channel by channel. */
START_TEST(vgg_takes_larger_images)
{
    net t;

    nets_record(&t, &sp_model_vgg, "depth=11 width=0.125",
                (sp_shape){ .n = 1, .h = 70, .w = 64, .c = 3 }, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_int_eq(sp_params_find(t.p, "classifier.1.weight")->dims[1],
                     64 * 2 * 2);
    nets_close(&t);
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
    { &sp_model_alexnet, "", 66, "67x67" },
};

START_TEST(what_cannot_be_built_is_refused)
{
    net t;
    int size = refused[_i].size;

    nets_record(&t, refused[_i].model, refused[_i].settings,
                (sp_shape){ .n = 1, .h = size, .w = size, .c = 3 }, report);
    ck_assert_int_ne(sp_compile(t.g), SP_OK);
    ck_assert_msg(strstr(sp_last_error(), refused[_i].text) != NULL, "%s",
                  sp_last_error());
    nets_close(&t);
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
    { &sp_model_resnet, "depth=50 width=0.05", "fc.bias", 3 },
    { &sp_model_resnet, "depth=50 width=0.05 stem=imagenet", "fc.bias", 33 },
    { &sp_model_resnet, "depth=50 width=0.05 shortcut=A", "fc.bias", 6 },
    { &sp_model_resnet, "depth=101 width=0.02 inner_width=2", "fc.bias", 2 },
    { &sp_model_alexnet, "width=0.05", "classifier.6.bias", 67 },
    { &sp_model_alexnet, "width=0.05 groups=1", "classifier.6.bias", 70 },
};

START_TEST(models_run)
{
    net t;
    int size = small[_i].size;
    sp_run run = { .n = 3, .t = 1, .train = true, .weight = 1.0 / 3 };
    double sum = 0, largest = 0;

    nets_record(&t, small[_i].model, small[_i].settings,
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
    nets_close(&t);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("models");
    TCase *tc = tcase_create("models");
    SRunner *run = srunner_create(s);

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
