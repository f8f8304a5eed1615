/* Whether a checkpoint's files are those of its manifest. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "train/manifest.h"

static sp_err check_size(const char *path, uint64_t size, uint64_t written)
{
    if (size == written)
        return SP_OK;
    return sp_fail(SP_EFORMAT,
                   "%s: has %" PRIu64 " bytes, %" PRIu64 " were written", path,
                   size, written);
}

/* Check a file by its bytes, or only by its size. */
static sp_err check_file(const char *folder, const char *name,
                         const sp_st_stamp *stamp, bool by_bytes)
{
    char hex[SP_HASH_HEX];
    uint64_t size;
    int fd;
    char *path = sp_path(folder, "%s", name);
    sp_err e = path ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK && by_bytes)
        e = sp_file_hash(path, hex, &size);
    else if (e == SP_OK && (e = sp_file_open(path, &fd, &size)) == SP_OK)
        close(fd);
    if (e == SP_OK)
        e = check_size(path, size, stamp->size);
    if (e == SP_OK && by_bytes && strcmp(hex, stamp->sha256) != 0)
        e = sp_fail(SP_EFORMAT,
                    "%s: its bytes have changed since it was written (SHA-256)",
                    path);
    free(path);
    return e;
}

sp_err sp_manifest_check(const char *folder, const sp_manifest *m)
{
    char name[SP_RANK_FILE_ROOM];

    for (int i = 0; i < SP_COMMON_FILES; i++)
        SP_TRY(check_file(folder, sp_common_files[i], &m->stamps[i],
                          i == SP_FILE_MODEL));
    for (int r = 0; r < m->ranks; r++)
        SP_TRY(check_file(folder, sp_rank_file(name, r),
                          &m->rank_stamps[r].stamp, false));
    return SP_OK;
}

sp_err sp_manifest_check_all(const char *folder, const sp_manifest *m, int rank,
                             int ranks)
{
    char name[SP_RANK_FILE_ROOM];

    for (int i = rank; i < SP_COMMON_FILES; i += ranks)
        SP_TRY(check_file(folder, sp_common_files[i], &m->stamps[i], true));
    for (int r = rank; r < m->ranks; r += ranks)
        SP_TRY(check_file(folder, sp_rank_file(name, r),
                          &m->rank_stamps[r].stamp, true));
    return SP_OK;
}
