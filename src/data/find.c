/* Where data folders are looked for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/text.h"
#include "sprat/data.h"

/* Debian's place for packaged data sets. */
static const char system_folder[] = "/usr/share/datasets";

/* What to do with a file that was given as data.root. */
static sp_err not_a_folder(const char *path)
{
    static const struct {
        const char *end, *command;
    } archives[] = {
        { ".tar.gz", "tar xzf" }, { ".tgz", "tar xzf" },
        { ".tar.xz", "tar xJf" }, { ".tar", "tar xf" },
        { ".zip", "unzip" },
    };

    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++)
        if (sp_ends_with(path, archives[i].end))
            return sp_fail(SP_EDATA,
                           "data.root: %s is an archive; unpack it: "
                           "%s %s, then set data.root to the folder that "
                           "this makes",
                           path, archives[i].command, path);
    return sp_fail(SP_EDATA,
                   "data.root: %s is a file; set data.root to the folder "
                   "that holds the data set",
                   path);
}

/* Take `path` (NULL: no memory) if something is there; else free it.
 * *found tells whether the search is over. */
static sp_err try_place(char *path, char **out, bool *found)
{
    struct stat st;
    sp_err err = SP_OK;

    if (!path)
        return sp_fail(SP_ENOMEM, "data.root: out of memory");
    *found = stat(path, &st) == 0;
    if (*found && S_ISDIR(st.st_mode)) {
        *out = path;
        return SP_OK;
    }
    if (*found)
        err = not_a_folder(path);
    else if (errno == EACCES)
        err = sp_fail(SP_EIO, "data.root: %s may not be entered (%s)", path,
                      strerror(errno));
    free(path);
    return err;
}

sp_err sp_data_find(const char *root, char **path)
{
    const char *data = getenv("SPRAT_DATA");
    bool found;

    if (!*root)
        return sp_fail(SP_EARG, "data.root: must be given");
    SP_TRY(try_place(strdup(root), path, &found));
    if (found)
        return SP_OK;
    if (*root == '/')
        return sp_fail(SP_EIO, "data.root: there is no folder %s", root);
    if (data && *data) {
        SP_TRY(try_place(sp_path(data, "%s", root), path, &found));
        if (found)
            return SP_OK;
    }
    SP_TRY(try_place(sp_path(system_folder, "%s", root), path, &found));
    if (found)
        return SP_OK;
    return sp_fail(SP_EIO,
                   "data.root: there is no folder '%s' here, under SPRAT_DATA "
                   "(%s) or under %s; bring the data (tools/get-data lists "
                   "what it can fetch) or set data.root or SPRAT_DATA",
                   root, data && *data ? data : "which is not set",
                   system_folder);
}
