/* Files of records, as CIFAR's two sets have them, but of 2 x 2 pixels: the
 * first byte says which set, and which of its files the rest is. */
#include <string.h>

#include "fuzz.h"
#include "sprat/data.h"

enum { FILES = 3, TRAIN = 2, PIXELS = 12 };

static const char *const names[FILES] = { "train.bin", "test.bin",
                                          "fine_label_names.txt" };
static const char *const train[] = { "train.bin", NULL };
static const char *const test[] = { "test.bin", NULL };

static const sp_records formats[] = {
    { .set = "cifar10",
      .h = 2,
      .w = 2,
      .c = 3,
      .classes = 3,
      .label_bytes = 1,
      .per_file = { TRAIN, 1 },
      .files = { train, test } },
    { .set = "cifar100",
      .h = 2,
      .w = 2,
      .c = 3,
      .classes = 3,
      .label_bytes = 2,
      .label_at = 1,
      .per_file = { TRAIN, 1 },
      .files = { train, test },
      .names_file = "fine_label_names.txt" },
};

/* All sound but the one. */
static void write_files(const sp_records *f, int which, const uint8_t *bytes,
                        size_t size)
{
    uint8_t sound[TRAIN * (PIXELS + 2)] = { 0 };
    size_t record = PIXELS + (size_t)f->label_bytes;

    fuzz_file(names[0], sound, TRAIN * record);
    fuzz_file(names[1], sound, record);
    fuzz_file(names[2], "ant\nbee\nfly\n", 12);
    fuzz_file(names[which], bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const sp_records *f = &formats[size > 0 && bytes[0] & 1];
    sp_data_info info;
    uint8_t image[PIXELS];
    void *state;
    int label;

    if (size == 0)
        return 0;
    write_files(f, (bytes[0] >> 1) % FILES, bytes + 1, size - 1);
    if (sp_records_open(f, fuzz_folder(), &info, &state) != SP_OK)
        return 0;
    for (int s = 0; s <= SP_TEST; s++)
        for (size_t i = 0; i < info.count[s]; i++) {
            fuzz_law(sp_records_read(state, (sp_split)s, i, image, &label) ==
                         SP_OK,
                     "what was opened can be read");
            fuzz_law(label >= 0 && label < info.classes, "labels fit");
        }
    for (int i = 0; info.class_names && i < info.classes; i++)
        fuzz_law(strlen(info.class_names[i]) < size + 4, "classes have names");
    sp_records_close(state);
    return 0;
}
