/* metrics.jsonl and hashes.jsonl, which a resumed run cuts back: what is left
 * belongs to the run up to there, and a second time nothing changes. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "fuzz.h"
#include "train/metrics.h"

/* Open the files as if after step 50, and read what then stands in one. */
static uint8_t *cut_back(const char *name, size_t *size)
{
    sp_log_cfg log = { .every = 1, .tensorboard = true, .csv = true };
    sp_train_state at = sp_train_state_start();
    sp_metrics m;
    uint8_t *left;
    char *path = sp_path(fuzz_folder(), "%s", name);

    at.step = 50;
    at.epoch = 2;
    fuzz_law(sp_metrics_open(&m, fuzz_folder(), &at, &log) == SP_OK,
             "whatever stands in them can be cut back");
    sp_metrics_close(&m);
    fuzz_law(sp_file_read(path, SIZE_MAX / 2, &left, size) == SP_OK,
             "and read");
    free(path);
    return left;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *once, *twice;
    size_t left, again, count;
    sp_hash_line *lines;

    fuzz_file("hashes.jsonl", bytes, size);
    fuzz_file("metrics.jsonl", bytes, size);
    if (sp_hashes_read(fuzz_folder(), &lines, &count) == SP_OK) {
        for (size_t i = 0; i < count; i++)
            fuzz_law(strlen(lines[i].hex) < SP_HASH_HEX, "hashes end");
        free(lines);
    }
    once = cut_back("metrics.jsonl", &left);
    fuzz_law(left <= size && (left == 0 || once[left - 1] == '\n'),
             "only whole lines are left");
    twice = cut_back("metrics.jsonl", &again);
    fuzz_law(again == left && memcmp(once, twice, left) == 0,
             "a second time nothing changes");
    free(once);
    free(twice);
    return 0;
}
