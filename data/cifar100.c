/* CIFAR-100: 60,000 colour images of 32 x 32 pixels in 100 classes.
 *
 * Source: Krizhevsky 2009, "Learning Multiple Layers of Features from Tiny
 *         Images"; the binary version, as train.bin and test.bin. Of the two
 *         labels of a record the second, fine one counts.
 */
#include "sprat/data.h"

static const char *const train[] = { "train.bin", NULL };
static const char *const test[] = { "test.bin", NULL };

static const sp_records_hint hints[] = {
    { "cifar-100-binary",
      "is where the files are; set data.root to this folder" },
    { "cifar100", "is where the files are; set data.root to this folder" },
    { "data_batch_1.bin",
      "belongs to CIFAR-10; set data.name to cifar10, or data.root to "
      "CIFAR-100's folder" },
    { "cifar-100-python", "is the python version; the binary one is read: "
                          "cifar-100-binary.tar.gz (tools/get-data cifar100)" },
    { "meta", "belongs to the python version; the binary one is read: "
              "cifar-100-binary.tar.gz (tools/get-data cifar100)" },
    { "train.mat", "belongs to the Matlab version; the binary one is read: "
                   "cifar-100-binary.tar.gz (tools/get-data cifar100)" },
    { "cifar-100-binary.tar.gz",
      "is still packed; unpack it (tar xzf) and set data.root to the folder "
      "that this makes" },
};

static const sp_records format = {
    .set = "cifar100",
    .h = 32,
    .w = 32,
    .c = 3,
    .classes = 100,
    .label_bytes = 2,
    .label_at = 1,
    .per_file = { 50000, 10000 },
    .files = { train, test },
    .names_file = "fine_label_names.txt",
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

const sp_data_set sp_data_set_cifar100 = {
    .entry = { .name = "cifar100",
               .help = "CIFAR-100, binary version: 32x32x3, 100 fine classes" },
    .folder = "cifar100",
    .describe = describe,
    .open = open_set,
    .read = sp_records_read,
    .close = sp_records_close,
};
