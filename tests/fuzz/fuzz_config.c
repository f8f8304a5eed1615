/* YAML and arguments: up to the first 0 byte the input is a file, and each
 * string behind it a "section.key=value". */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { ARGUMENTS = 16 };

static char *print(const sp_config *c,
                   sp_err (*how)(const sp_config *c, FILE *out))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    fuzz_law(out && how(c, out) == SP_OK && fclose(out) == 0,
             "what was loaded can be printed");
    return text;
}

/* What is printed reads back as the same. */
static void read_back(const sp_config *c)
{
    char *values = print(c, sp_config_print_values), *again;
    char *text = print(c, sp_config_print);
    const char *path = fuzz_file("printed.yaml", text, strlen(text));
    sp_config *back;

    fuzz_law(sp_config_read_back(&back, fuzz_registry(), path, NULL, 0) ==
                 SP_OK,
             "what was printed can be read");
    again = print(back, sp_config_print_values);
    fuzz_law(strcmp(values, again) == 0, "and is the same");
    sp_config_free(back);
    free(again);
    free(text);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_string(bytes, size);
    size_t yaml = strlen(text), count = 0;
    const char *path = fuzz_file("input.yaml", bytes, yaml);
    const char *arguments[ARGUMENTS];
    sp_config *c;

    for (size_t at = yaml + 1; at < size && count < ARGUMENTS;
         at += strlen(text + at) + 1)
        arguments[count++] = text + at;
    if (sp_config_load(&c, fuzz_registry(), &path, 1, arguments, count) ==
        SP_OK) {
        read_back(c);
        sp_config_free(c);
    }
    if (sp_config_read_back(&c, fuzz_registry(),
                            fuzz_file("input.yaml", bytes, yaml), NULL,
                            0) == SP_OK)
        sp_config_free(c);
    free(text);
    return 0;
}
