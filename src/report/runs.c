/* Which folders are runs, and what these are called. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "report/run.h"
#include "sprat/report.h"

enum {
    DEEPEST = 3,        /* folders below a given one in which runs are */
    MOST_ENTRIES = 4096 /* of a folder that is looked through */
};

/* Where runs are, and what they are called: "ROW/seed-1" of DIR/ROW/seed-1. */
typedef struct found {
    char *path[SP_REPORT_RUNS], *name[SP_REPORT_RUNS];
    size_t count;
} found;

sp_err sp_run_is(const char *path, bool *is)
{
    static const char *const files[] = { "metrics.jsonl", "result.json",
                                         "config.yaml" };

    *is = false;
    for (size_t i = 0; i < sizeof files / sizeof *files && !*is; i++) {
        char *file = sp_path(path, "%s", files[i]);
        if (!file)
            return sp_fail(SP_ENOMEM, "out of memory");
        *is = sp_is_file(file);
        free(file);
    }
    return SP_OK;
}

static sp_err add(found *f, const char *path, const char *name)
{
    if (f->count == SP_REPORT_RUNS)
        return sp_fail(SP_EARG, "%s: more than %d runs; report fewer", path,
                       SP_REPORT_RUNS);
    f->path[f->count] = sp_copy(path, strlen(path));
    f->name[f->count] = sp_copy(name, strlen(name));
    f->count++;
    if (!f->path[f->count - 1] || !f->name[f->count - 1])
        return sp_fail(SP_ENOMEM, "out of memory");
    return SP_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder in their order, but those that begin with a dot. */
static sp_err list(const char *path, char **names, size_t *count)
{
    DIR *dir = opendir(path);
    struct dirent *d;
    sp_err e = SP_OK;

    *count = 0;
    if (!dir)
        return sp_io_fail("open folder", path);
    while (e == SP_OK && (d = readdir(dir))) {
        if (d->d_name[0] == '.')
            continue;
        if (*count == MOST_ENTRIES) {
            e = sp_fail(SP_EARG, "%s: more than %d entries: name the runs",
                        path, MOST_ENTRIES);
            break;
        }
        names[*count] = sp_copy(d->d_name, strlen(d->d_name));
        if (!names[(*count)++])
            e = sp_fail(SP_ENOMEM, "out of memory");
    }
    closedir(dir);
    if (e == SP_OK)
        qsort(names, *count, sizeof *names, by_name);
    return e;
}

static sp_err look(found *f, const char *path, const char *name, int depth);

static sp_err look_below(found *f, const char *path, const char *name,
                         int depth)
{
    char **names = calloc(MOST_ENTRIES, sizeof *names);
    size_t count = 0;
    sp_err e =
        names ? list(path, names, &count) : sp_fail(SP_ENOMEM, "out of memory");

    for (size_t i = 0; i < count; i++) {
        char *below = sp_path(path, "%s", names[i]);
        char *called = sp_path(name, "%s", names[i]);
        if (e == SP_OK && (!below || !called))
            e = sp_fail(SP_ENOMEM, "out of memory");
        if (e == SP_OK && sp_is_dir(below))
            e = look(f, below, called, depth + 1);
        free(below);
        free(called);
        free(names[i]);
    }
    free(names);
    return e;
}

static sp_err look(found *f, const char *path, const char *name, int depth)
{
    bool is_run;

    SP_TRY(sp_run_is(path, &is_run));
    if (is_run)
        return add(f, path, name);
    return depth < DEEPEST ? look_below(f, path, name, depth) : SP_OK;
}

/* The last part of a path that ends with no '/'. */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static sp_err look_at(found *f, const char *given)
{
    size_t before = f->count, n = strlen(given);
    bool is_run;
    char *path;
    sp_err e;

    while (n > 1 && given[n - 1] == '/')
        n--;
    path = sp_copy(given, n);
    if (!path)
        return sp_fail(SP_ENOMEM, "out of memory");
    e = sp_run_is(path, &is_run);
    if (e == SP_OK && !sp_is_dir(path))
        e = sp_fail(SP_EARG, "%s: is no folder; want the folder of a run",
                    path);
    else if (e == SP_OK && is_run)
        e = add(f, path, last_part(path));
    else if (e == SP_OK)
        e = look_below(f, path, "", 0);
    if (e == SP_OK && f->count == before)
        e = sp_fail(SP_EARG,
                    "%s: no run in it: no folder with config.yaml, "
                    "metrics.jsonl or result.json up to %d levels down",
                    path, DEEPEST);
    free(path);
    return e;
}

static bool is_taken(const found *f, size_t i)
{
    for (size_t k = 0; k < f->count; k++)
        if (k != i && strcmp(f->name[k], f->name[i]) == 0)
            return true;
    return false;
}

/* Of equal names, the whole paths. */
static sp_err tell_apart(found *f)
{
    bool taken[SP_REPORT_RUNS];

    for (size_t i = 0; i < f->count; i++)
        taken[i] = is_taken(f, i);
    for (size_t i = 0; i < f->count; i++) {
        if (!taken[i])
            continue;
        free(f->name[i]);
        f->name[i] = sp_copy(f->path[i], strlen(f->path[i]));
        if (!f->name[i])
            return sp_fail(SP_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < f->count; i++)
        if (is_taken(f, i))
            return sp_fail(SP_EARG, "%s: is given twice", f->path[i]);
    return SP_OK;
}

/* Whether two runs differ in their seeds alone. */
static bool same_row(const sp_run_record *a, const sp_run_record *b)
{
    return a == b ||
           (strcmp(a->row, b->row) == 0 && strcmp(a->row, a->name) != 0 &&
            strcmp(b->row, b->name) != 0);
}

static void number_rows(sp_runs *r)
{
    size_t rows = 0;

    for (size_t i = 0; i < r->count; i++) {
        size_t first = 0;
        while (!same_row(&r->run[first], &r->run[i]))
            first++;
        r->run[i].look = first < i ? r->run[first].look : rows++;
        for (size_t k = 0; k < r->count; k++)
            r->run[i].seeds += same_row(&r->run[k], &r->run[i]);
    }
}

sp_err sp_runs_open(sp_runs *r, const char *const *paths, size_t count)
{
    found *f = calloc(1, sizeof *f);
    sp_err e = f ? SP_OK : sp_fail(SP_ENOMEM, "out of memory");

    *r = (sp_runs){ 0 };
    for (size_t i = 0; e == SP_OK && i < count; i++)
        e = look_at(f, paths[i]);
    if (e == SP_OK)
        e = tell_apart(f);
    if (e == SP_OK) {
        r->run = calloc(f->count, sizeof *r->run);
        if (!r->run)
            e = sp_fail(SP_ENOMEM, "out of memory");
    }
    for (size_t i = 0; e == SP_OK && i < f->count; i++)
        e = sp_run_open(&r->run[r->count++], f->path[i], f->name[i]);
    for (size_t i = 0; f && i < f->count; i++) {
        free(f->path[i]);
        free(f->name[i]);
    }
    free(f);
    if (e == SP_OK)
        number_rows(r);
    else
        sp_runs_free(r);
    return e;
}

void sp_runs_free(sp_runs *r)
{
    for (size_t i = 0; i < r->count; i++)
        sp_run_free(&r->run[i]);
    free(r->run);
    *r = (sp_runs){ 0 };
}
