/* The models' parameters and products, as the papers count them, and their
 * layers' shapes. */
#include <check.h>
#include <stdlib.h>

#include "nets.h"

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

    nets_record(&t, counts[_i].model, counts[_i].settings, cifar, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(t.p), counts[_i].params);
    ck_assert_uint_eq(sp_params_count_1d(t.p), counts[_i].params_1d);
    ck_assert_double_eq(sp_graph_macs(t.g), counts[_i].macs);
    ck_assert_int_eq(t.y->shape.c, 10);
    ck_assert_int_eq(t.y->shape.h * t.y->shape.w, 1);
    nets_close(&t);
}
END_TEST

/* Lin et al. 2018 (DGC) for AlexNet's 60,965,224 = 232.56 MiB and ResNet-50's
 * 25,557,032 = 97.49 MiB, whose 1-D parameters give their 597x and 277x; Wang
 * et al. 2021 (Pufferfish) for the wide ResNet-50-2; the others follow from the
 * layers' sizes. AlexNet's first convolution gives 55x55 pixels from 224 with
 * torchvision's padding, too, but here from 227 without. */
static const struct {
    const sp_model *model;
    const char *settings;
    int size;
    size_t params, params_1d;
    double macs;
} large[] = {
    { &sp_model_alexnet, "groups=2", 227, 60965224, 10568, 724406816 },
    { &sp_model_alexnet, "groups=1", 227, 62378344, 10568, 1135256096 },
    { &sp_model_resnet, "depth=50 stem=imagenet", 224, 25557032, 54120,
      4089184256 },
    { &sp_model_resnet, "depth=101 stem=imagenet", 224, 44549160, 106344,
      7801405440 },
    { &sp_model_resnet, "depth=50 stem=imagenet inner_width=2", 224, 68883240,
      69224, 11398021120 },
    { &sp_model_resnet, "depth=18 stem=imagenet", 224, 11689512, 10600,
      1814073344 },
};

START_TEST(counts_for_large_images_are_the_published_ones)
{
    net t;

    nets_record_large(&t, large[_i].model, large[_i].settings, large[_i].size,
                      NULL);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(t.p), large[_i].params);
    ck_assert_uint_eq(sp_params_count_1d(t.p), large[_i].params_1d);
    ck_assert_double_eq(sp_graph_macs(t.g), large[_i].macs);
    ck_assert_int_eq(t.y->shape.c, 1000);
    ck_assert_int_eq(t.y->shape.h * t.y->shape.w, 1);
    nets_close(&t);
}
END_TEST

/* Krizhevsky et al. 2012, figure 2; He et al. 2015, table 1. */
static const struct {
    const sp_model *model;
    const char *settings, *name;
    int dims[4];
} layers[] = {
    { &sp_model_alexnet, "", "features.0.weight", { 96, 3, 11, 11 } },
    { &sp_model_alexnet, "", "features.3.weight", { 256, 48, 5, 5 } },
    { &sp_model_alexnet, "", "features.6.weight", { 384, 256, 3, 3 } },
    { &sp_model_alexnet, "", "features.8.weight", { 384, 192, 3, 3 } },
    { &sp_model_alexnet, "", "features.10.weight", { 256, 192, 3, 3 } },
    { &sp_model_alexnet, "", "features.10.bias", { 256 } },
    { &sp_model_alexnet, "", "classifier.1.weight", { 4096, 9216 } },
    { &sp_model_alexnet, "", "classifier.4.weight", { 4096, 4096 } },
    { &sp_model_alexnet, "", "classifier.6.weight", { 1000, 4096 } },
    { &sp_model_alexnet, "groups=1", "features.3.weight", { 256, 96, 5, 5 } },
    { &sp_model_resnet,
      "depth=50 stem=imagenet",
      "conv1.weight",
      { 64, 3, 7, 7 } },
    { &sp_model_resnet,
      "depth=50",
      "layer1.0.downsample.0.weight",
      { 256, 64, 1, 1 } },
    { &sp_model_resnet,
      "depth=50",
      "layer1.2.conv1.weight",
      { 64, 256, 1, 1 } },
    { &sp_model_resnet,
      "depth=50",
      "layer3.0.conv1.weight",
      { 256, 512, 1, 1 } },
    { &sp_model_resnet,
      "depth=50",
      "layer3.5.conv2.weight",
      { 256, 256, 3, 3 } },
    { &sp_model_resnet,
      "depth=50",
      "layer4.2.conv3.weight",
      { 2048, 512, 1, 1 } },
    { &sp_model_resnet, "depth=50", "layer4.2.bn3.running_var", { 2048 } },
    { &sp_model_resnet,
      "depth=50 inner_width=2",
      "layer4.0.conv2.weight",
      { 1024, 1024, 3, 3 } },
    { &sp_model_resnet, "depth=50", "fc.weight", { 1000, 2048 } },
};

START_TEST(layers_have_the_published_shapes)
{
    net t;

    nets_record_large(&t, layers[_i].model, layers[_i].settings, 227, NULL);
    const sp_param *p = sp_params_find(t.p, layers[_i].name);
    ck_assert_msg(p != NULL, "no %s", layers[_i].name);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(i < p->ndim ? p->dims[i] : 0, layers[_i].dims[i]);
    nets_close(&t);
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

    nets_record_text(&t, &sp_model_lstm_lm, texts[_i].settings,
                     texts[_i].vocabulary, report);
    ck_assert_msg(sp_compile(t.g) == SP_OK, "%s", sp_last_error());
    ck_assert_uint_eq(sp_params_count(t.p), texts[_i].params);
    ck_assert_uint_eq(sp_params_count_1d(t.p), texts[_i].params_1d);
    ck_assert_double_eq(sp_graph_macs(t.g), texts[_i].macs);
    ck_assert_int_eq(t.y->shape.t, 3);
    ck_assert_int_eq(t.y->shape.n, 2);
    ck_assert_int_eq(t.y->shape.c, texts[_i].vocabulary);
    nets_close(&t);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    Suite *s = suite_create("counts");
    TCase *tc = tcase_create("counts");
    SRunner *run = srunner_create(s);

    tcase_add_loop_test(tc, counts_are_the_published_ones, 0, COUNT(counts));
    tcase_add_loop_test(tc, counts_for_large_images_are_the_published_ones, 0,
                        COUNT(large));
    tcase_add_loop_test(tc, layers_have_the_published_shapes, 0, COUNT(layers));
    tcase_add_loop_test(tc, counts_of_language_models_are_the_published_ones, 0,
                        COUNT(texts));
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
