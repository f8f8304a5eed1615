/* IDX files: the first byte says which of the four of a set the rest is;
 * the others are sound, of 2 images of 2 x 3 pixels. What starts as gzip is
 * unpacked. */
#include "fuzz.h"
#include "sprat/data.h"

enum { FILES = 4, PIXELS = 6 };

static const char *const names[FILES] = {
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
};

static const uint8_t images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                  0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static const uint8_t labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 1, 0 };

static void write_files(int which, const uint8_t *bytes, size_t size)
{
    for (int i = 0; i < FILES; i++) {
        if (i % 2 == 0)
            fuzz_file(names[i], images, sizeof images);
        else
            fuzz_file(names[i], labels, sizeof labels);
    }
    fuzz_file(names[which], bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static sp_config *c;
    const sp_data_set *set;
    sp_data_info info;
    uint8_t image[PIXELS];
    void *state;
    int label;

    if (!c)
        c = fuzz_config((const char *const[]){ "model.name=mlp",
                                               "data.name=idx", "data.height=2",
                                               "data.width=3", NULL });
    if (size == 0)
        return 0;
    set = (const sp_data_set *)sp_config_entry(c, "data");
    write_files(bytes[0] % FILES, bytes + 1, size - 1);
    if (set->open(fuzz_folder(), sp_config_own(c, "data"), &info, &state) !=
        SP_OK)
        return 0;
    for (int s = 0; s <= SP_TEST; s++)
        for (size_t i = 0; i < info.count[s]; i++) {
            fuzz_law(set->read(state, (sp_split)s, i, image, &label) == SP_OK,
                     "what was opened can be read");
            fuzz_law(label >= 0 && label < info.classes, "labels fit");
        }
    set->close(state);
    return 0;
}
