/* Listing and removing checkpoints. */
#include "train/rotate.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "train/checkpoint.h"

static const char prefix[] = "step-";

/* Steps have 8 digits, or more once they need them: the longer number is the
 * larger. Of one step the later has the higher number behind it. */
static int by_age(const struct dirent **a, const struct dirent **b)
{
    const char *x = (*a)->d_name + sizeof prefix - 1;
    const char *y = (*b)->d_name + sizeof prefix - 1;
    size_t i = strspn(x, "0123456789"), k = strspn(y, "0123456789");
    int order = strncmp(x, y, i);

    if (i != k)
        return i < k ? -1 : 1;
    if (order != 0)
        return order;
    i = strlen(x);
    k = strlen(y);
    return i != k ? (i < k ? -1 : 1) : strcmp(x, y);
}

static int is_step(const struct dirent *d)
{
    return strncmp(d->d_name, prefix, sizeof prefix - 1) == 0;
}

/* Folders being written or removed start with a dot and a word; files and
 * links being replaced end with ".tmp". */
static int is_leftover(const struct dirent *d)
{
    return strncmp(d->d_name, ".tmp-", 5) == 0 ||
           strncmp(d->d_name, ".old-", 5) == 0 ||
           sp_ends_with(d->d_name, ".tmp");
}

typedef struct names {
    struct dirent **entry;
    int count;
} names;

static void names_free(names *n)
{
    for (int i = 0; i < n->count; i++)
        free(n->entry[i]);
    free(n->entry);
    *n = (names){ 0 };
}

/* Checkpoints of steps, by age; or leftovers. */
static sp_err names_list(names *n, const char *folder, bool leftovers)
{
    *n = (names){ 0 };
    n->count = scandir(folder, &n->entry, leftovers ? is_leftover : is_step,
                       leftovers ? NULL : by_age);
    if (n->count >= 0)
        return SP_OK;
    *n = (names){ 0 };
    return sp_io_fail("list", folder);
}

/* Where the symbolic link folder/link points to; "" for nowhere. */
static void target(const char *folder, const char *link, char out[NAME_MAX + 1])
{
    char *path = sp_path(folder, "%s", link);
    ssize_t n = path ? readlink(path, out, NAME_MAX) : -1;

    out[n > 0 ? n : 0] = '\0';
    free(path);
}

/* Under another name first, so that a crash leaves a leftover and not half a
 * checkpoint. */
static sp_err discard(const char *folder, const char *name)
{
    char *from = sp_path(folder, "%s", name);
    char *to = sp_path(folder, ".old-%s", name);
    sp_err e = from && to ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK)
        e = sp_dir_remove(to);
    if (e == SP_OK)
        e = sp_rename_synced(from, to);
    if (e == SP_OK)
        e = sp_dir_remove(to);
    free(from);
    free(to);
    return e;
}

static sp_err rotate(const char *folder, int keep)
{
    char last[NAME_MAX + 1], best[NAME_MAX + 1], rewind[NAME_MAX + 1];
    names n;
    sp_err e = names_list(&n, folder, false);

    target(folder, "last", last);
    target(folder, "best", best);
    target(folder, "rewind", rewind);
    for (int i = n.count - 1; e == SP_OK && i >= 0; i--) {
        const char *name = n.entry[i]->d_name;

        if (strcmp(name, last) == 0 || strcmp(name, best) == 0 ||
            strcmp(name, rewind) == 0)
            continue;
        if (keep > 0)
            keep--;
        else
            e = discard(folder, name);
    }
    names_free(&n);
    return e;
}

sp_err sp_rotate(const char *run, int keep)
{
    char *folder = sp_path(run, "checkpoints");
    sp_err e =
        folder ? rotate(folder, keep) : sp_fail(SP_ENOMEM, "out of memory");

    free(folder);
    return e;
}

static bool is_complete(const char *folder, const char *name)
{
    char *path = sp_path(folder, "%s", name);
    sp_manifest m = { 0 };
    bool complete = path && sp_manifest_read(path, &m) == SP_OK &&
                    sp_manifest_check(path, &m) == SP_OK;

    sp_manifest_free(&m);
    free(path);
    return complete;
}

char *sp_rotate_other(const char *run, const char *folder)
{
    const char *slash = strrchr(folder, '/');
    char self[NAME_MAX + 1];
    char *all = sp_path(run, "checkpoints"), *found = NULL;
    names n = { 0 };

    if (all && slash && names_list(&n, all, false) == SP_OK) {
        target(all, slash + 1, self);
        if (!self[0])
            snprintf(self, sizeof self, "%s", slash + 1);
        for (int i = n.count - 1; !found && i >= 0; i--) {
            const char *name = n.entry[i]->d_name;
            if (strcmp(name, self) != 0 && is_complete(all, name))
                found = sp_copy(name, strlen(name));
        }
        if (!found && strcmp(self, "start") != 0 && is_complete(all, "start"))
            found = sp_copy("start", 5);
    }
    names_free(&n);
    free(all);
    return found;
}

static sp_err clean(const char *folder)
{
    names n = { 0 };
    sp_err e = names_list(&n, folder, true);

    for (int i = 0; e == SP_OK && i < n.count; i++) {
        char *path = sp_path(folder, "%s", n.entry[i]->d_name);
        struct stat s;

        if (!path)
            e = sp_fail(SP_ENOMEM, "out of memory");
        else if (lstat(path, &s) == 0 && S_ISDIR(s.st_mode))
            e = sp_dir_remove(path);
        else if (unlink(path) != 0 && errno != ENOENT)
            e = sp_io_fail("remove", path);
        free(path);
    }
    names_free(&n);
    return e;
}

sp_err sp_checkpoint_clean(const char *run)
{
    char *folder = sp_path(run, "checkpoints");
    sp_err e = folder ? clean(folder) : sp_fail(SP_ENOMEM, "out of memory");

    free(folder);
    return e == SP_OK ? clean(run) : e;
}
