/* CIFAR-10: 60,000 colour images of 32 x 32 pixels in 10 classes.
 *
 * Source: Krizhevsky 2009, "Learning Multiple Layers of Features from Tiny
 *         Images"; the binary version, as data_batch_1.bin ... data_batch_5.bin
 *         and test_batch.bin.
 */
#include "sprat/data.h"

static const char *const train[] = { "data_batch_1.bin", "data_batch_2.bin",
                                     "data_batch_3.bin", "data_batch_4.bin",
                                     "data_batch_5.bin", NULL };
static const char *const test[] = { "test_batch.bin", NULL };

static const char *const names[] = { "airplane", "automobile", "bird", "cat",
                                     "deer",     "dog",        "frog", "horse",
                                     "ship",     "truck" };

static const sp_records_hint hints[] = {
    { "cifar-10-batches-bin",
      "is where the files are; set data.root to this folder" },
    { "cifar10", "is where the files are; set data.root to this folder" },
    { "data_batch_1", "belongs to the python version; the binary one is read: "
                      "cifar-10-binary.tar.gz (tools/get-data cifar10)" },
    { "cifar-10-batches-py",
      "is the python version; the binary one is read: "
      "cifar-10-binary.tar.gz (tools/get-data cifar10)" },
    { "data_batch_1.mat",
      "belongs to the Matlab version; the binary one is read: "
      "cifar-10-binary.tar.gz (tools/get-data cifar10)" },
    { "train.bin",
      "belongs to CIFAR-100; set data.name to cifar100, or data.root to "
      "CIFAR-10's folder" },
    { "cifar-10-binary.tar.gz",
      "is still packed; unpack it (tar xzf) and set data.root to the folder "
      "that this makes" },
};

static const sp_records format = {
    .set = "cifar10",
    .h = 32,
    .w = 32,
    .c = 3,
    .classes = 10,
    .label_bytes = 1,
    .label_at = 0,
    .per_file = { 10000, 10000 },
    .files = { train, test },
    .class_names = names,
    .hints = hints,
    .hint_count = sizeof hints / sizeof *hints,
};

static sp_err describe(const void *own, sp_data_info *info)
{
    (void)own;
    sp_records_describe(&format, info);
    return SP_OK;
}

static sp_err open_set(const char *root, const void *own, sp_data_info *info,
                       void **state)
{
    (void)own;
    return sp_records_open(&format, root, info, state);
}

const sp_data_set sp_data_set_cifar10 = {
    .entry = { .name = "cifar10",
               .help = "CIFAR-10, binary version: 32x32x3, 10 classes" },
    .folder = "cifar10",
    .describe = describe,
    .open = open_set,
    .read = sp_records_read,
    .close = sp_records_close,
};
