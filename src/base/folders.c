/* The part of files.h that changes folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

enum { DEEPEST = 64 }; /* folders within folders that are removed */

static sp_err no_memory(const char *path)
{
    return sp_fail(SP_ENOMEM, "out of memory for the path %s", path);
}

/* A path without slashes at its end; the caller's to free. */
static char *trimmed(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    return sp_copy(path, n);
}

/* The folder that holds `path`; the caller's to free. */
static char *parent_of(const char *path)
{
    char *p = trimmed(path), *slash = p ? strrchr(p, '/') : NULL;

    if (!p)
        return NULL;
    if (slash == p)
        p[1] = '\0';
    else if (slash)
        *slash = '\0';
    else
        memcpy(p, ".", *p ? 2 : 1);
    return p;
}

sp_err sp_dir_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sp_err e = SP_OK;

    if (fd < 0)
        return sp_io_fail("open folder", path);
    /* EINVAL: this file system keeps folders safe by itself. */
    if (fsync(fd) != 0 && errno != EINVAL)
        e = sp_io_fail("write folder", path);
    close(fd);
    return e;
}

static sp_err sync_parent(const char *path)
{
    char *parent = parent_of(path);
    sp_err e = parent ? sp_dir_sync(parent) : no_memory(path);

    free(parent);
    return e;
}

static sp_err make_one(const char *path)
{
    if (sp_is_dir(path))
        return SP_OK;
    if (mkdir(path, 0777) == 0)
        return sync_parent(path);
    /* Another process may have made it meanwhile. */
    if (errno == EEXIST && sp_is_dir(path))
        return SP_OK;
    if (errno == EEXIST)
        return sp_fail(SP_EIO,
                       "cannot make folder %s: a file of that name is in the "
                       "way",
                       path);
    return sp_io_fail("make folder", path);
}

sp_err sp_dir_add(const char *path) { return make_one(path); }

sp_err sp_dir_make(const char *path)
{
    char *p = trimmed(path);
    sp_err e = SP_OK;

    if (!p)
        return no_memory(path);
    for (char *slash = p; e == SP_OK && *slash;) {
        slash = strchr(slash + 1, '/');
        if (!slash)
            break;
        *slash = '\0';
        e = make_one(p);
        *slash = '/';
    }
    if (e == SP_OK)
        e = make_one(p);
    free(p);
    return e;
}

static sp_err remove_folder(int parent, const char *name, const char *path,
                            int depth);

/* Remove `name` in the open folder `fd`, whatever it is. */
static sp_err remove_entry(int fd, const char *name, const char *folder,
                           int depth)
{
    char *path = sp_path(folder, "%s", name);
    struct stat s;
    sp_err e = SP_OK;

    if (!path)
        return no_memory(name);
    if (fstatat(fd, name, &s, AT_SYMLINK_NOFOLLOW) != 0)
        e = sp_io_fail("examine", path);
    else if (S_ISDIR(s.st_mode))
        e = remove_folder(fd, name, path, depth + 1);
    else if (unlinkat(fd, name, 0) != 0)
        e = sp_io_fail("remove", path);
    free(path);
    return e;
}

/* Remove the folder `name` within the open folder `parent`; `path` is what
 * messages call it. */
static sp_err remove_folder(int parent, const char *name, const char *path,
                            int depth)
{
    int fd;
    DIR *dir;
    struct dirent *d;
    sp_err e = SP_OK;

    if (depth > DEEPEST)
        return sp_fail(SP_EIO,
                       "cannot remove %s: folders are nested more than "
                       "%d deep",
                       path, DEEPEST);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return sp_io_fail("open folder", path);
    dir = fdopendir(fd);
    if (!dir) {
        e = sp_io_fail("open folder", path);
        close(fd);
        return e;
    }
    while (e == SP_OK) {
        errno = 0;
        d = readdir(dir);
        if (!d) {
            if (errno != 0)
                e = sp_io_fail("read folder", path);
            break;
        }
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            e = remove_entry(fd, d->d_name, path, depth);
    }
    closedir(dir);
    if (e == SP_OK && unlinkat(parent, name, AT_REMOVEDIR) != 0)
        e = sp_io_fail("remove folder", path);
    return e;
}

sp_err sp_dir_remove(const char *path)
{
    char *p = trimmed(path), *last;
    struct stat s;
    sp_err e = SP_OK;

    if (!p)
        return no_memory(path);
    last = strrchr(p, '/');
    last = last ? last + 1 : p;
    if (!*last || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        e = sp_fail(SP_EIO, "cannot remove folder \"%s\": name it plainly",
                    path);
    else if (lstat(p, &s) != 0)
        e = errno == ENOENT ? SP_OK : sp_io_fail("examine", p);
    else if (S_ISLNK(s.st_mode))
        e = sp_fail(SP_EIO,
                    "cannot remove %s: it is a symbolic link; remove the "
                    "folder it points to, or the link itself",
                    p);
    else
        e = remove_folder(AT_FDCWD, p, p, 0);
    free(p);
    return e;
}

sp_err sp_dir_withdraw(const char *path, sp_err e)
{
    char *text = sp_error_keep();
    sp_err removed = sp_dir_remove(path);

    (void)removed;
    return sp_error_restore(e, text);
}

sp_err sp_rename_synced(const char *from, const char *to)
{
    char *old = parent_of(from), *new = parent_of(to);
    sp_err e = SP_OK;

    if (!old || !new)
        e = no_memory(to);
    else if (rename(from, to) != 0)
        e = sp_io_fail("create", to);
    else
        e = sp_dir_sync(new);
    if (e == SP_OK && strcmp(old, new) != 0)
        e = sp_dir_sync(old);
    free(old);
    free(new);
    return e;
}

sp_err sp_link_switch(const char *link, const char *target)
{
    char *temporary = sp_path("", "%s.tmp", link);
    sp_err e;

    if (!temporary)
        return no_memory(link);
    if (unlink(temporary) != 0 && errno != ENOENT)
        e = sp_io_fail("remove", temporary);
    else if (symlink(target, temporary) != 0)
        e = sp_io_fail("create symbolic link", temporary);
    else
        e = sp_rename_synced(temporary, link);
    if (e != SP_OK)
        unlink(temporary);
    free(temporary);
    return e;
}
