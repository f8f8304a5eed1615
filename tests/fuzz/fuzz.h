/* What the fuzz targets share. A target is one file, fuzz_NAME.c: it feeds the
 * bytes to a parser as the program itself calls it, and tests laws of what the
 * parser accepts. tests/fuzz/replay.c runs it over kept inputs, libFuzzer over
 * new ones (tools/fuzz). */
#ifndef SP_FUZZ_H
#define SP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sprat/config.h"

/* Try one input; returns 0. What it finds it aborts at. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* End the process unless a law holds. */
void fuzz_law(bool holds, const char *law);

/* A folder of this process alone, removed when it exits. */
const char *fuzz_folder(void);

/* Write a file of that folder anew; returns its path, valid until the next
 * call. */
const char *fuzz_file(const char *name, const void *bytes, size_t size);

/* The bytes as a string that ends at their first 0, to be freed. */
char *fuzz_string(const uint8_t *bytes, size_t size);

/* A registry with all that the library brings, made once. */
const sp_registry *fuzz_registry(void);

/* The configuration that overrides alone describe, to be freed; it must be
 * valid. The list ends with NULL. */
sp_config *fuzz_config(const char *const *overrides);

#endif
