#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/safetensors.h"
#include "convert/foreign.h"
#include "convert/onnx.h"
#include "runs.h"
#include "sprat/convert.h"

static runs r;

static void setup(void) { r = runs_new(); }

static void teardown(void) { runs_free(&r); }

static const char *const short_run[] = { "train.max_steps=2", NULL };

static void train(const char *run, const char *const *overrides)
{
    const char *all[RUNS_MOST];

    runs_join(all, short_run, overrides);
    ck_assert_int_eq(runs_train(&r, (runs_job){ .run = run, .overrides = all }),
                     SP_OK);
}

static const char *path(const char *file)
{
    return sp_scratch_path(r.folder, file);
}

static sp_err export(const char *run, const char *file)
{
    return sp_export(r.registry, &(sp_export_opt){ .run = path(run),
                                                   .checkpoint = "last",
                                                   .file = path(file) });
}

/* ---- State dicts --------------------------------------------------------- */

static const char *const resnet[] = { "model.name=resnet",
                                      "model.depth=8",
                                      "model.width=0.25",
                                      "data.shape=[8,8,3]",
                                      "data.augment=none",
                                      "data.normalize=imagenet",
                                      NULL };

/* All of the checkpoint, bit by bit, and a counter at each of 7 norms. */
START_TEST(counters_are_added_and_nothing_is_changed)
{
    sp_st_file *ours, *theirs;
    const sp_st_tensor *t, *u;
    size_t counters = 0, others = 0;
    float a[4096], b[4096];
    int64_t steps;

    train("run", resnet);
    ck_assert_int_eq(export("run", "w.safetensors"), SP_OK);
    ck_assert_int_eq(
        sp_st_open(&ours,
                   runs_path(&r, "run", "checkpoints/last/model.safetensors")),
        SP_OK);
    ck_assert_int_eq(sp_st_open(&theirs, path("w.safetensors")), SP_OK);
    for (size_t i = 0; (t = sp_st_at(theirs, i)); i++) {
        if (t->type == SP_ST_I64) {
            ck_assert_ptr_nonnull(strstr(t->name, ".num_batches_tracked"));
            ck_assert_int_eq(t->ndim, 0);
            ck_assert_int_eq(sp_st_read(theirs, t, &steps), SP_OK);
            ck_assert_int_eq(steps, 2);
            counters++;
            continue;
        }
        u = sp_st_find(ours, t->name);
        ck_assert_ptr_nonnull(u);
        ck_assert_uint_eq(t->bytes, u->bytes);
        ck_assert_uint_le(t->bytes, sizeof a);
        ck_assert_int_eq(sp_st_read(theirs, t, a), SP_OK);
        ck_assert_int_eq(sp_st_read(ours, u, b), SP_OK);
        ck_assert_mem_eq(a, b, t->bytes);
        others++;
    }
    ck_assert_uint_eq(counters, 7);
    ck_assert_ptr_null(sp_st_at(ours, others));
    sp_st_close(theirs);
    sp_st_close(ours);
}
END_TEST

START_TEST(metadata_tell_what_it_is)
{
    static const char *const pairs[][2] = {
        { "format", "pt" },
        { "step", "2" },
        { "model.name", "resnet" },
        { "model.depth", "8" },
        { "outputs", "4" },
        { "input", "[3,8,8]" },
        { "mean", "[0.485,0.456,0.406]" },
        { "std", "[0.229,0.224,0.225]" },
    };
    sp_st_file *f;

    train("run", resnet);
    ck_assert_int_eq(export("run", "w.safetensors"), SP_OK);
    ck_assert_int_eq(sp_st_open(&f, path("w.safetensors")), SP_OK);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *value = sp_st_metadata(f, pairs[i][0]);
        ck_assert_ptr_nonnull(value);
        ck_assert_str_eq(value, pairs[i][1]);
    }
    ck_assert_ptr_null(sp_st_metadata(f, "model.init"));
    sp_st_close(f);
}
END_TEST

static const char *const text[] = { "model.name=lstm_lm", "model.hidden=6",
                                    "model.layers=1",     "model.tied=true",
                                    "model.biases=1",     "data.vocab=20",
                                    "data.train=400",     "data.augment=none",
                                    "train.bptt=4",       "data.test=100",
                                    "model.hidden=6",     NULL };

/* What PyTorch has of an LSTM and a tied layer, though here they are fewer. */
START_TEST(second_biases_and_tied_weights_are_added)
{
    static const char *const names[] = {
        "encoder.weight", "rnn.weight_ih_l0", "rnn.weight_hh_l0",
        "rnn.bias_ih_l0", "rnn.bias_hh_l0",   "decoder.weight",
        "decoder.bias",
    };
    float a[120], b[120];
    sp_foreign f;

    train("run", text);
    ck_assert_int_eq(export("run", "w.npz"), SP_OK);
    ck_assert_int_eq(sp_foreign_open(&f, path("w.npz")), SP_OK);
    ck_assert_uint_eq(f.count, 7);
    for (int i = 0; i < 7; i++)
        ck_assert_msg(sp_foreign_find(&f, names[i]) != NULL, "%s", names[i]);
    ck_assert_int_eq(sp_foreign_read(&f, sp_foreign_find(&f, names[4]), a),
                     SP_OK);
    for (int i = 0; i < 24; i++)
        ck_assert_double_eq((double)a[i], 0);
    ck_assert_int_eq(sp_foreign_read(&f, sp_foreign_find(&f, names[0]), a),
                     SP_OK);
    ck_assert_int_eq(sp_foreign_read(&f, sp_foreign_find(&f, names[5]), b),
                     SP_OK);
    ck_assert_mem_eq(a, b, sizeof a);
    sp_foreign_close(&f);
}
END_TEST

/* ---- ONNX ---------------------------------------------------------------- */

/* A field of a message: a number, or bytes. */
typedef struct field {
    int number;
    uint64_t value;
    const uint8_t *bytes;
    size_t size;
} field;

static uint64_t varint(const uint8_t **p)
{
    uint64_t x = 0;

    for (int shift = 0;; shift += 7) {
        x |= (uint64_t)(**p & 127) << shift;
        if (!(*(*p)++ & 128))
            return x;
    }
}

/* The next field before `end`; false: there is none. */
static bool next(const uint8_t **p, const uint8_t *end, field *f)
{
    uint64_t tag;

    if (*p == end)
        return false;
    tag = varint(p);
    *f = (field){ .number = (int)(tag >> 3) };
    if ((tag & 7) == 0) {
        f->value = varint(p);
    } else if ((tag & 7) == 5) {
        *p += 4;
    } else {
        ck_assert_uint_eq(tag & 7, 2);
        f->size = (size_t)varint(p);
        f->bytes = *p;
        *p += f->size;
    }
    ck_assert(*p <= end);
    return true;
}

/* The i-th field of that number; false: there are fewer. */
static bool find(field message, int number, int i, field *out)
{
    const uint8_t *p = message.bytes;

    while (next(&p, message.bytes + message.size, out))
        if (out->number == number && i-- == 0)
            return true;
    return false;
}

static bool is(field f, const char *word)
{
    return f.size == strlen(word) && memcmp(f.bytes, word, f.size) == 0;
}

static uint8_t *open_model(const char *file, field *model, field *graph)
{
    uint8_t *bytes;
    size_t size;

    ck_assert_int_eq(sp_file_read(path(file), 1 << 20, &bytes, &size), SP_OK);
    *model = (field){ .bytes = bytes, .size = size };
    ck_assert(find(*model, 7, 0, graph));
    return bytes;
}

/* The types of the graph's nodes, in order. */
static void check_types(field graph, const char *const *types)
{
    field node, type;
    int i;

    for (i = 0; find(graph, 1, i, &node); i++) {
        ck_assert_ptr_nonnull(types[i]);
        ck_assert(find(node, 4, 0, &type));
        ck_assert_msg(is(type, types[i]), "node %d: %.*s, not %s", i,
                      (int)type.size, (const char *)type.bytes, types[i]);
    }
    ck_assert_ptr_null(types[i]);
}

/* Every input of a node is the graph's, a weight, or an earlier node's. */
static void check_wires(field graph)
{
    field node, input, output, other, name;

    for (int i = 0; find(graph, 1, i, &node); i++)
        for (int k = 0; find(node, 1, k, &input); k++) {
            bool known = is(input, "image");
            for (int m = 0; find(graph, 5, m, &other); m++)
                known |= find(other, 8, 0, &name) && name.size == input.size &&
                         memcmp(name.bytes, input.bytes, name.size) == 0;
            for (int m = 0; m < i && find(graph, 1, m, &other); m++)
                known |= find(other, 2, 0, &output) &&
                         output.size == input.size &&
                         memcmp(output.bytes, input.bytes, input.size) == 0;
            ck_assert_msg(known, "node %d: %.*s", i, (int)input.size,
                          (const char *)input.bytes);
        }
}

static void check_dims(field value, const int *dims)
{
    field type, tensor, shape, dim, size;
    int i;

    ck_assert(find(value, 2, 0, &type) && find(type, 1, 0, &tensor) &&
              find(tensor, 2, 0, &shape));
    ck_assert(find(shape, 1, 0, &dim) && find(dim, 2, 0, &size));
    ck_assert(is(size, "N"));
    for (i = 1; find(shape, 1, i, &dim); i++) {
        ck_assert(find(dim, 1, 0, &size));
        ck_assert_int_eq((int)size.value, dims[i - 1]);
    }
    ck_assert_int_eq(dims[i - 1], 0);
}

static const char *const none[] = { NULL };

/* Numbers of fields are those of onnx.proto. */
START_TEST(a_model_is_as_its_format_says)
{
    static const char *const types[] = { "Flatten", "Gemm",     "Relu",
                                         "Gemm",    "Identity", NULL };
    field model, graph, f, id, weight;
    uint8_t *bytes;
    float w[128];
    sp_st_file *st;

    train("run", none);
    ck_assert_int_eq(export("run", "m.onnx"), SP_OK);
    bytes = open_model("m.onnx", &model, &graph);
    ck_assert(find(model, 1, 0, &f) && f.value == 8); /* ir_version */
    ck_assert(find(model, 8, 0, &f) && find(f, 2, 0, &id) && id.value == 13);
    check_types(graph, types);
    check_wires(graph);
    ck_assert(find(graph, 11, 0, &f));
    check_dims(f, (int[]){ 1, 4, 4, 0 });
    ck_assert(find(graph, 12, 0, &f));
    check_dims(f, (int[]){ 4, 0 });
    /* fc1.weight, 8 x 16 floats as they are in memory. */
    ck_assert(find(graph, 5, 0, &weight) && find(weight, 8, 0, &f));
    ck_assert(is(f, "fc1.weight"));
    ck_assert(find(weight, 1, 0, &f) && f.value == 8);
    ck_assert(find(weight, 1, 1, &f) && f.value == 16);
    ck_assert(find(weight, 2, 0, &f) && f.value == 1);
    ck_assert(find(weight, 9, 0, &f) && f.size == sizeof w);
    ck_assert_int_eq(
        sp_st_open(&st,
                   runs_path(&r, "run", "checkpoints/last/model.safetensors")),
        SP_OK);
    ck_assert_int_eq(sp_st_read(st, sp_st_find(st, "fc1.weight"), w), SP_OK);
    ck_assert_mem_eq(w, f.bytes, sizeof w);
    sp_st_close(st);
    free(bytes);
}
END_TEST

/* Depth 8: three blocks, two of them with a shortcut of option A. */
START_TEST(a_residual_network_has_its_operators)
{
#define BODY "Conv", "BatchNormalization", "Relu", "Conv", "BatchNormalization"
#define WIDER                                                     \
    "Conv", "BatchNormalization", "Relu", "Conv", "Slice", "Pad", \
        "BatchNormalization", "Add", "Relu"
    static const char *const types[] = { "Conv",
                                         "BatchNormalization",
                                         "Relu",
                                         BODY,
                                         "Add",
                                         "Relu",
                                         WIDER,
                                         WIDER,
                                         "GlobalAveragePool",
                                         "Flatten",
                                         "Gemm",
                                         "Identity",
                                         NULL };
    field model, graph;
    uint8_t *bytes;

    train("run", resnet);
    ck_assert_int_eq(export("run", "m.onnx"), SP_OK);
    bytes = open_model("m.onnx", &model, &graph);
    check_types(graph, types);
    check_wires(graph);
    free(bytes);
}
END_TEST

START_TEST(an_operator_without_translation_is_named)
{
    train("run", text);
    ck_assert_int_eq(export("run", "m.onnx"), SP_EARG);
    ck_assert(runs_error("encoder") && runs_error("lookup") &&
              runs_error(".safetensors"));
    ck_assert(!sp_is_file(path("m.onnx")));
}
END_TEST

/* All that image models are made of. */
START_TEST(operators_on_images_have_a_row)
{
    static const char *const ops[] = { "add",         "avg_pool", "concat",
                                       "convolve",    "dropout",  "matmul",
                                       "global_pool", "relu",     "max_pool",
                                       "normalize",   "subsample" };

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        ck_assert_ptr_nonnull(sp_onnx_find(ops[i]));
    ck_assert_ptr_null(sp_onnx_find("lstm"));
}
END_TEST

/* ---- Names of files ------------------------------------------------------ */

START_TEST(the_name_tells_the_form)
{
    sp_export_opt o = { .run = path("run"), .file = path("w.bin") };

    train("run", none);
    ck_assert_int_eq(sp_export(r.registry, &o), SP_EARG);
    ck_assert(runs_error("w.bin") && runs_error(".npz"));
    o.form = SP_EXPORT_NPZ;
    ck_assert_int_eq(sp_export(r.registry, &o), SP_OK);
    ck_assert_str_eq(sp_export_form_name(1), "npz");
    ck_assert_ptr_null(sp_export_form_name(3));
}
END_TEST

/* Equal weights are equal files. */
START_TEST(writing_again_gives_the_same_bytes)
{
    static const char *const forms[] = { "a.safetensors", "b.safetensors",
                                         "a.npz",         "b.npz",
                                         "a.onnx",        "b.onnx" };
    char hash[2][SP_HASH_HEX];
    uint64_t size;

    train("run", none);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(export("run", forms[i]), SP_OK);
        ck_assert_int_eq(sp_file_hash(path(forms[i]), hash[i % 2], &size),
                         SP_OK);
        ck_assert(i % 2 == 0 || strcmp(hash[0], hash[1]) == 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("export");
    TCase *tc = tcase_create("export");
    SRunner *run = srunner_create(s);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, counters_are_added_and_nothing_is_changed);
    tcase_add_test(tc, metadata_tell_what_it_is);
    tcase_add_test(tc, second_biases_and_tied_weights_are_added);
    tcase_add_test(tc, a_model_is_as_its_format_says);
    tcase_add_test(tc, a_residual_network_has_its_operators);
    tcase_add_test(tc, an_operator_without_translation_is_named);
    tcase_add_test(tc, operators_on_images_have_a_row);
    tcase_add_test(tc, the_name_tells_the_form);
    tcase_add_test(tc, writing_again_gives_the_same_bytes);
    suite_add_tcase(s, tc);
    srunner_run_all(run, CK_NORMAL);
    failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
