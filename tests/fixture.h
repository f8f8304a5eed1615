/* What the tests of data sets share: a scratch folder, PNG files made in
 * code, settings filled from key tables. Failures end the test. */
#ifndef SPRAT_TESTS_FIXTURE_H
#define SPRAT_TESTS_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "sprat/data.h"

/* A new, empty folder; freed together with all that is in it. */
char *sp_scratch_new(void);
void sp_scratch_free(char *folder);

/* "FOLDER/NAME"; valid until the fourth next call. */
const char *sp_scratch_path(const char *folder, const char *name);

/* Write a file, making the folders that its name needs. */
void sp_scratch_write(const char *folder, const char *name, const void *bytes,
                      size_t size);
/* The same, as gzip. */
void sp_scratch_gzip(const char *folder, const char *name, const void *bytes,
                     size_t size);
/* A file of zeros that takes no space; an existing one is cut or extended. */
void sp_scratch_resize(const char *folder, const char *name, size_t size);

/* A PNG to write; every row of `rows` is packed as PNG has it (big-endian). */
typedef struct sp_png_spec {
    int w, h, bits;
    int colour; /* libpng's PNG_COLOR_TYPE_... */
    bool interlaced;
    const uint8_t *rows;
    const uint8_t *palette; /* 3 bytes a colour, or NULL */
    int colours;
    const uint8_t *palette_alpha; /* or NULL */
    const uint16_t *transparent;  /* grey, or red, green, blue; or NULL */
} sp_png_spec;

void sp_scratch_png(const char *folder, const char *name,
                    const sp_png_spec *spec);

/* An 8-bit image, all of one value: c is 1 (grey) or 3 (RGB). */
void sp_scratch_flat_png(const char *folder, const char *name, int h, int w,
                         int c, uint8_t value);

/* The settings of a thing, all at their defaults; free() frees. */
void *sp_own_new(const sp_entry *entry);
/* Set one value that is a number: an SP_CHOICE by its position, no list. */
void sp_own_set(void *own, const sp_entry *entry, const char *key,
                double value);

/* Whether the last error's text contains all of these, which end with NULL. */
bool sp_error_has(const char *const *words);

#endif
