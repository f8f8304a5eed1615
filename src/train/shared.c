/* Rank 0 tells, the others take over. */
#define _GNU_SOURCE
#include "train/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/files.h"

/* Together 10 s: longer than network file systems take to show a new name. */
enum { TRIES = 50, MILLISECONDS = 200, LIMIT = 4096 };

sp_err sp_shared_bytes(sp_comm *c, sp_use use, void *x, size_t bytes)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, use };

    return sp_op_wait(c, sp_broadcast(c, on, 0, x, bytes));
}

sp_err sp_shared_text(sp_comm *c, sp_use use, char **text)
{
    uint64_t size = *text ? strlen(*text) + 1 : 0;
    bool first = sp_comm_rank(c) == 0;
    sp_err e = SP_OK;

    if (sp_comm_ranks(c) == 1)
        return SP_OK;
    SP_TRY(sp_shared_bytes(c, use, &size, sizeof size));
    if (!first) {
        *text = malloc(size);
        if (!*text)
            e = sp_fail(SP_ENOMEM, "a text of rank 0: out of memory");
    }
    SP_TRY(sp_agree(c, e));
    return sp_shared_bytes(c, use, *text, size);
}

static bool is_seen(const char *path, const char *text)
{
    struct stat s;
    uint8_t *bytes;
    size_t size;
    bool same;

    if (!text)
        return stat(path, &s) == 0;
    if (sp_file_read(path, LIMIT, &bytes, &size) != SP_OK)
        return false;
    same = size == strlen(text) && memcmp(bytes, text, size) == 0;
    free(bytes);
    return same;
}

sp_err sp_shared_wait(const char *path, const char *text)
{
    const struct timespec pause = { 0, MILLISECONDS * 1000000L };

    for (int i = 0; i < TRIES; i++) {
        if (is_seen(path, text))
            return SP_OK;
        nanosleep(&pause, NULL);
    }
    return sp_fail(SP_EIO,
                   "%s: is not here as rank 0 has made it: the folder of a run "
                   "must be on a file system that all hosts share, and all "
                   "ranks must start in one folder; give --run with such a "
                   "path",
                   path);
}
