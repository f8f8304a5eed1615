/* manifest.json of a checkpoint. Its last line is a checksum that no mutation
 * would meet: the input is tried as it is, and as what stands before a checksum
 * that fits. */
#include <string.h>

#include "base/text.h"
#include "fuzz.h"
#include "train/manifest.h"

static void read_it(void)
{
    sp_manifest m;

    if (sp_manifest_read(fuzz_folder(), &m) != SP_OK)
        return;
    fuzz_law(sp_manifest_write(fuzz_folder(), &m) == SP_OK,
             "what was read can be written");
    sp_manifest_free(&m);
    fuzz_law(sp_manifest_read(fuzz_folder(), &m) == SP_OK, "and read again");
    sp_manifest_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sp_text sealed = { 0 };
    char hex[SP_HASH_HEX];
    sp_hash h;

    fuzz_file("manifest.json", bytes, size);
    read_it();
    sp_text_put(&sealed, bytes, size);
    sp_text_add(&sealed, ",\n");
    sp_hash_start(&h);
    sp_hash_add(&h, sealed.bytes, sealed.size);
    sp_hash_end(&h, hex);
    sp_text_add(&sealed, "\"manifest_sha256\":\"%s\"}\n", hex);
    fuzz_file("manifest.json", sealed.bytes, sealed.size);
    sp_text_free(&sealed);
    read_it();
    return 0;
}
