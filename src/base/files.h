/* Files and folders that are whole or absent, whatever happens meanwhile.
 *
 * Every error text names the operation, the path, the system's reason and,
 * where one is known, the remedy. Functions that return an sp_err give SP_EIO
 * for what the system refuses and SP_ENOMEM. */
#ifndef SPRAT_BASE_FILES_H
#define SPRAT_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hash.h"
#include "sprat/base.h"

/* Record a failed system call, as "cannot OPERATION PATH: reason (remedy)";
 * reads errno. Returns SP_EIO. */
sp_err sp_io_fail(const char *operation, const char *path);

/* "folder/" and the rest as printf() would write it; "" as folder gives the
 * rest alone. The caller frees it. NULL: out of memory. */
char *sp_path(const char *folder, const char *fmt, ...) SP_PRINTF(2, 3);

/* True if there is a folder, or a regular file, of that name (or a symbolic
 * link to one). */
bool sp_is_dir(const char *path);
bool sp_is_file(const char *path);

/* Read a whole regular file of at most `limit` bytes. *bytes is the caller's
 * to free and is followed by a 0 byte, which *size does not count.
 * Errors: SP_EFORMAT for a larger file. */
SP_MUST sp_err sp_file_read(const char *path, size_t limit, uint8_t **bytes,
                            size_t *size);

/* Open a file to write on at its end, made if it is not there. Anything else
 * than a regular file is refused: a pipe would wait for its reader. *out is
 * the caller's to fclose(). */
SP_MUST sp_err sp_file_append(const char *path, FILE **out);

/* Open a regular file for reading at any place; on success *fd is the
 * caller's to close(). Anything else, such as a folder or pipe, is refused. */
SP_MUST sp_err sp_file_open(const char *path, int *fd, uint64_t *size);

/* Read exactly n bytes from `offset`; `path` is for messages.
 * Errors: SP_EFORMAT if the file ends before. */
SP_MUST sp_err sp_file_read_at(int fd, const char *path, uint64_t offset,
                               void *bytes, size_t n);

/* The SHA-256 of a file, as hexadecimal digits, and its size. */
SP_MUST sp_err sp_file_hash(const char *path, char hex[SP_HASH_HEX],
                            uint64_t *size);

/* Replace a file as a whole: after any crash the path holds the old file or
 * the new one. On success the data are on the disk. Folders, devices and pipes
 * are not replaced. */
SP_MUST sp_err sp_file_write_synced(const char *path, const void *bytes,
                                    size_t size);

/* The same piece by piece: begin, put any number of times, then either commit
 * or cancel; both free `f`. A put that fails leaves only cancel. */
typedef struct sp_file_out sp_file_out;
SP_MUST sp_err sp_file_begin(sp_file_out **f, const char *path);
SP_MUST sp_err sp_file_put(sp_file_out *f, const void *bytes, size_t n);
SP_MUST sp_err sp_file_commit(sp_file_out *f);
void sp_file_cancel(sp_file_out *f); /* NULL is allowed */

/* Make what was created, renamed or removed in a folder last. */
SP_MUST sp_err sp_dir_sync(const char *path);

/* Create a folder and those above it; one that exists is fine. */
SP_MUST sp_err sp_dir_make(const char *path);

/* Create a folder in one that must be there. */
SP_MUST sp_err sp_dir_add(const char *path);

/* Remove a folder with everything in it. Symbolic links in it are removed,
 * never followed; `path` itself must not be one. One that does not exist is
 * fine. */
SP_MUST sp_err sp_dir_remove(const char *path);

/* The same for a folder that is of no use after the error `e`, which is told
 * whatever becomes of the folder. Returns e. */
SP_MUST sp_err sp_dir_withdraw(const char *path, sp_err e);

/* Rename atomically within a file system and make that last. */
SP_MUST sp_err sp_rename_synced(const char *from, const char *to);

/* Let the symbolic link `link` point to `target`, atomically: at every moment
 * it points to the old target or the new one. `target` is relative to the
 * link's folder. */
SP_MUST sp_err sp_link_switch(const char *link, const char *target);

#endif
