#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

enum { PATH_SIZE = 512 };

static char folder[PATH_SIZE];

void fuzz_law(bool holds, const char *law)
{
    if (holds)
        return;
    fprintf(stderr, "broken: %s\nlast error: %s\n", law, sp_last_error());
    abort();
}

static void remove_folder(void)
{
    fuzz_law(sp_dir_remove(folder) == SP_OK, "a folder can be removed");
}

const char *fuzz_folder(void)
{
    const char *base = getenv("TMPDIR");

    if (!folder[0]) {
        /* In memory, if there is such a place: much is synced. */
        if (!base)
            base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(folder, sizeof folder, "%s/sprat-fuzz-XXXXXX", base);
        fuzz_law(mkdtemp(folder) != NULL, "a folder can be made");
        atexit(remove_folder);
    }
    return folder;
}

const char *fuzz_file(const char *name, const void *bytes, size_t size)
{
    static char path[2 * PATH_SIZE];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    f = fopen(path, "wb");
    fuzz_law(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0,
             "a file can be written");
    return path;
}

char *fuzz_string(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);

    fuzz_law(text != NULL, "there is memory");
    memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

const sp_registry *fuzz_registry(void)
{
    static sp_registry *registry;

    if (!registry)
        registry = sp_registry_new();
    fuzz_law(registry != NULL, "there is a registry");
    return registry;
}

sp_config *fuzz_config(const char *const *overrides)
{
    sp_config *c;
    size_t count = 0;

    while (overrides[count])
        count++;
    fuzz_law(sp_config_load(&c, fuzz_registry(), NULL, 0, overrides, count) ==
                 SP_OK,
             "the target's own configuration is valid");
    return c;
}
