/* Runs a fuzz target over kept inputs: TARGET FOLDER, every file in it. They
 * are tried whole, and cut short at some lengths. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "fuzz.h"

enum { MOST = 1 << 20, CUTS = 8 };

/* Each in a block of just its size, so that reading beyond it is seen. */
static void try(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    fuzz_law(copy != NULL, "there is memory");
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void replay(const char *path)
{
    uint8_t *bytes;
    size_t size;

    fuzz_law(sp_file_read(path, MOST, &bytes, &size) == SP_OK,
             "a kept input can be read");
    try(bytes, size);
    for (size_t i = 0; i < CUTS; i++)
        try(bytes, size * i / CUTS);
    free(bytes);
}

int main(int argc, char **argv)
{
    struct dirent **names;
    int count = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
    int inputs = 0;

    if (count < 0) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        char *path = sp_path(argv[1], "%s", names[i]->d_name);

        if (path && sp_is_file(path)) {
            replay(path);
            inputs++;
        }
        free(path);
        free(names[i]);
    }
    free(names);
    printf("%d inputs\n", inputs);
    return inputs > 0 ? 0 : 1;
}
