/* ZIP archives: a reader of archives in memory, and a writer.
 *
 * Source: PKWARE 2022, "APPNOTE.TXT - .ZIP File Format Specification", 6.3.10.
 * Differs: only what is stored or deflated; not encrypted, in one part.
 */
#ifndef SP_CONVERT_ZIP_H
#define SP_CONVERT_ZIP_H

#include "base/arena.h"
#include "base/files.h"

/* ---- Reading ----------------------------------------------------------- */

/* One file of an archive. */
typedef struct sp_zip_entry {
    const char *name; /* without a 0 byte within */
    uint64_t size;    /* bytes, unpacked */
    uint64_t packed;
    const uint8_t *data; /* `packed` bytes within the archive */
    uint32_t crc;
    bool deflated;
} sp_zip_entry;

typedef struct sp_zip {
    const char *path;      /* for messages */
    sp_zip_entry *entries; /* by name, each once */
    size_t count;
    sp_arena arena;
} sp_zip;

/* Whether bytes begin as an archive does. */
bool sp_zip_is(const uint8_t *bytes, size_t size);

/* Read the directory of an archive whose bytes stay where they are until
 * sp_zip_close(); every entry lies within them, and says no larger size than
 * its bytes can unpack to. Errors: SP_EFORMAT naming file and entry; SP_ENOMEM.
 */
SP_MUST sp_err sp_zip_open(sp_zip *z, const char *path, const uint8_t *bytes,
                           size_t size);
void sp_zip_close(sp_zip *z);

/* The entry of that name, or NULL. */
const sp_zip_entry *sp_zip_find(const sp_zip *z, const char *name);

/* The first n bytes of an entry, n at most its size; all of them are checked
 * by their checksum. Errors: SP_EFORMAT when they are damaged; SP_ENOMEM. */
SP_MUST sp_err sp_zip_read(const sp_zip *z, const sp_zip_entry *entry,
                           void *out, size_t n);

/* ---- Writing ----------------------------------------------------------- */

/* An archive under way, of stored files. It has the same bytes whenever it is
 * written. Several parts of a file follow one another. */
typedef struct sp_zip_out sp_zip_out;

typedef struct sp_zip_part {
    const void *bytes;
    size_t size;
} sp_zip_part;

/* Write an archive, whole or not at all: begin, add any number of files, then
 * end or cancel, both of which free `z`. An add that fails leaves only cancel.
 * Errors: SP_EIO, SP_ENOMEM; SP_EARG for a name that is too long. */
SP_MUST sp_err sp_zip_begin(sp_zip_out **z, const char *path);
SP_MUST sp_err sp_zip_add(sp_zip_out *z, const char *name,
                          const sp_zip_part *parts, int count);
SP_MUST sp_err sp_zip_end(sp_zip_out *z);
void sp_zip_cancel(sp_zip_out *z); /* NULL is allowed */

#endif
