#define _DEFAULT_SOURCE /* realpath() */

#include "base/outputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/text.h"

enum { DEEPEST = 3 }; /* RUN/checkpoints/NAME/FILE */

bool sp_run_makes(const char *name)
{
    static const char *const names[] = {
        ".lock",         "config.yaml", "metrics.jsonl", "hashes.jsonl",
        "tensors.jsonl", "metrics.csv", "steps.csv",     "times.csv",
        "tensorboard",   "trace",       "trace.json",    "result.json",
        "log.txt",       "checkpoints"
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) == 0 &&
            (!name[n] || strcmp(name + n, ".tmp") == 0))
            return true;
    }
    return false;
}

/* Whether a folder is a run's, as far as those that look for one tell. */
static sp_err is_run(const char *folder, bool *is)
{
    static const char *const marks[] = { "metrics.jsonl", "hashes.jsonl",
                                         "result.json", "checkpoints/last" };

    *is = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks && !*is; i++) {
        char *path = sp_path(folder, "%s", marks[i]);
        if (!path)
            return sp_fail(SP_ENOMEM, "out of memory");
        *is = sp_is_file(path) || sp_is_dir(path);
        free(path);
    }
    return SP_OK;
}

/* Go up from the folder of the file, whose name is `name`. Both are cut. */
static sp_err check_folders(const char *path, char *folder, const char *name)
{
    bool run;

    for (int i = 0; i < DEEPEST; i++) {
        char *slash = strrchr(folder, '/');
        SP_TRY(is_run(folder, &run));
        if (run && sp_run_makes(name))
            return sp_fail(SP_EARG,
                           "%s: is not written, for %s is of the run %s: give "
                           "the output another name",
                           path, name, folder);
        if (!slash || slash == folder)
            return SP_OK;
        *slash = '\0';
        name = slash + 1;
    }
    return SP_OK;
}

static sp_err check_runs(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *given =
        slash ? sp_copy(path, (size_t)(name - path)) : sp_copy(".", 1);
    char *folder = given ? realpath(given, NULL) : NULL;
    sp_err e = given ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    if (folder) /* else there is none: what writes there tells so */
        e = check_folders(path, folder, name);
    free(folder);
    free(given);
    return e;
}

sp_err sp_output_check(const char *path, const char *const *inputs,
                       size_t count)
{
    struct stat out, in;
    bool there = stat(path, &out) == 0;

    for (size_t i = 0; i < count && there; i++)
        if (stat(inputs[i], &in) == 0 && in.st_dev == out.st_dev &&
            in.st_ino == out.st_ino)
            return sp_fail(SP_EARG,
                           "%s: is not written, for it is what is read (%s): "
                           "give the output another name",
                           path, inputs[i]);
    return check_runs(path);
}
