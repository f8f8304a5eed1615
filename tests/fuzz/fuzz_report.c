/* Files of a run, as `sprat report` and `compare` read them: the first byte
 * says which the rest is. The others are sound. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sprat/report.h"

enum { FILES = 6, PAGE_MOST = 1 << 24 };

static const struct {
    const char *name, *sound;
} files[FILES] = {
    { "metrics.jsonl",
      "{\"kind\":\"step\",\"epoch\":1,\"step\":1,\"lr\":0.1,"
      "\"train_loss\":2}\n"
      "{\"kind\":\"epoch\",\"epoch\":1,\"step\":2,\"lr\":0.1,"
      "\"train_loss\":1.5,\"test_loss\":1.4,\"test_top1\":50}\n" },
    { "result.json",
      "{\"status\":\"done\",\"final\":{\"epoch\":1,\"test_top1\":50},"
      "\"params\":10}\n" },
    { "config.yaml", "model:\n  name: mlp   # default\n" },
    { "log.txt", "run   run\nwarning: something\n" },
    { "tensors.jsonl", "" },
    { "hashes.jsonl", "{\"step\":100,\"hash\":\"00\"}\n" },
};

static void try_run(const char *folder)
{
    char *told = NULL;
    size_t size;
    FILE *out = open_memstream(&told, &size);
    sp_report_opt report = { .paths = &folder, .path_count = 1, .notes = out };
    sp_compare_opt compare = { .a = folder, .b = folder, .out = out };
    sp_report_told page;
    char file[1024];
    bool differ;

    snprintf(file, sizeof file, "%s/page.html", folder);
    report.file = file;
    if (sp_report_write(&report, &page) == SP_OK)
        fuzz_law(page.bytes < PAGE_MOST, "a page has a sane size");
    if (sp_compare(&compare, &differ) == SP_OK)
        fuzz_law(!differ, "a run is like itself");
    fclose(out);
    free(told);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    for (int i = 0; i < FILES; i++)
        fuzz_file(files[i].name, files[i].sound, strlen(files[i].sound));
    fuzz_file(files[bytes[0] % FILES].name, bytes + 1, size - 1);
    try_run(fuzz_folder());
    return 0;
}
