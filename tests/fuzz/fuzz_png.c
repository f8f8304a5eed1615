/* PNG images, as data sets and `sprat predict` read them. */
#include <stdlib.h>

#include "fuzz.h"
#include "sprat/data.h"

enum { SIDE = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_file("input.png", bytes, size);
    uint8_t image[SIDE * SIDE * 3];
    int h, w, c;

    if (sp_png_size(path, &h, &w, &c) == SP_OK)
        fuzz_law(h > 0 && w > 0 && (c == 1 || c == 3), "sizes are in range");
    for (c = 1; c <= 3; c += 2)
        for (int resize = 0; resize < 2; resize++)
            if (sp_png_read(path, SIDE, SIDE, c, resize, image) != SP_OK)
                fuzz_law(sp_last_error()[0] != '\0', "an error has a text");
    return 0;
}
