#define _GNU_SOURCE
#include "runs.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"

static const char text[] =
    "model: {name: mlp, hidden: [8]}\n"
    "data: {name: synthetic, shape: [4, 4, 1], classes: 4, train: 96,\n"
    "  test: 40, augment: flip, workers: 1}\n"
    "train: {epochs: 3, batch: 16, eval_batch: 16, threads: 1, keep: 100}\n"
    "optim: {name: sgd, lr: 0.05, momentum: 0.9}\n"
    "log: {every: 1}\n";

enum { LIMIT = 1 << 24 };

runs runs_new(void)
{
    runs r = { .registry = sp_registry_new() };

    /* Memory, where there is some: the syncing of files costs nothing there. */
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    r.folder = sp_scratch_new();
    ck_assert_ptr_nonnull(r.registry);
    sp_scratch_write(r.folder, "config.yaml", text, sizeof text - 1);
    return r;
}

void runs_free(runs *r)
{
    sp_registry_free(r->registry);
    sp_scratch_free(r->folder);
}

static size_t length(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

sp_config *runs_config(const runs *r, const char *const *overrides)
{
    const char *file = sp_scratch_path(r->folder, "config.yaml");
    sp_config *c = NULL;

    if (sp_config_load(&c, r->registry, &file, 1, overrides,
                       length(overrides)) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return c;
}

void runs_join(const char *out[RUNS_MOST], const char *const *a,
               const char *const *b)
{
    size_t n = 0;

    ck_assert_uint_lt(length(a) + length(b), RUNS_MOST);
    for (; a && *a; a++)
        out[n++] = *a;
    for (; b && *b; b++)
        out[n++] = *b;
    out[n] = NULL;
}

void runs_refused(const runs *r, const char *const *overrides, const char *word)
{
    const char *file = sp_scratch_path(r->folder, "config.yaml");
    sp_config *c = NULL;
    sp_err e =
        sp_config_load(&c, r->registry, &file, 1, overrides, length(overrides));

    if (e == SP_OK) {
        sp_job job = { .run = runs_path(r, "x", "") };
        e = sp_train(c, &job);
        ck_assert(!job.started);
    }
    ck_assert_int_eq(e, SP_ECONFIG);
    ck_assert_msg(runs_error(word), "%s", sp_last_error());
    sp_config_free(c);
}

const char *runs_path(const runs *r, const char *run, const char *file)
{
    char both[256];

    snprintf(both, sizeof both, "%s/%s", run, file);
    return sp_scratch_path(r->folder, both);
}

/* A terminal that acts at a certain line. */
typedef struct counter {
    runs_end end;
    int lines, left;
    volatile sig_atomic_t stop;
} counter;

static ssize_t take(void *arg, const char *bytes, size_t size)
{
    static const char word[] = "items/s";
    counter *c = arg;

    if (c->end != RUNS_GO_ON && memmem(bytes, size, word, sizeof word - 1) &&
        --c->left == 0) {
        if (c->end == RUNS_DIE)
            raise(SIGKILL);
        c->stop = 1;
    }
    return (ssize_t)size;
}

static FILE *terminal(counter *c)
{
    return fopencookie(c, "w", (cookie_io_functions_t){ .write = take });
}

static sp_err run(const runs *r, runs_job j, bool resume)
{
    counter c = { .end = j.end, .left = j.lines };
    char *path = sp_path(r->folder, "%s", j.run);
    sp_job job = { .run = path,
                   .overwrite = j.overwrite,
                   .terminal = terminal(&c),
                   .stop = &c.stop };
    sp_err e;

    ck_assert_ptr_nonnull(job.terminal);
    if (j.end == RUNS_STOP && j.lines == 0)
        c.stop = 1;
    if (resume) {
        e = sp_resume(r->registry, j.overrides, length(j.overrides), &job);
    } else {
        sp_config *config = runs_config(r, j.overrides);
        e = sp_train(config, &job);
        sp_config_free(config);
    }
    fclose(job.terminal);
    free(path);
    return e;
}

sp_err runs_train(const runs *r, runs_job j) { return run(r, j, false); }

sp_err runs_resume(const runs *r, runs_job j) { return run(r, j, true); }

bool runs_train_killed(const runs *r, runs_job j)
{
    pid_t child = fork();
    int status;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sp_err e = run(r, j, false);
        _exit(e == SP_OK ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

bool runs_same(const runs *r, const char *a, const char *b, const char *file)
{
    char hash[2][SP_HASH_HEX], inner[128];
    uint64_t size;

    snprintf(inner, sizeof inner, "checkpoints/last/%s", file);
    ck_assert_int_eq(sp_file_hash(runs_path(r, a, inner), hash[0], &size),
                     SP_OK);
    ck_assert_int_eq(sp_file_hash(runs_path(r, b, inner), hash[1], &size),
                     SP_OK);
    return strcmp(hash[0], hash[1]) == 0;
}

char *runs_read(const char *path)
{
    uint8_t *bytes;
    size_t size;

    if (sp_file_read(path, LIMIT, &bytes, &size) != SP_OK)
        ck_abort_msg("%s", sp_last_error());
    return (char *)bytes;
}

char *runs_result(const runs *r, const char *run_name, const char *key)
{
    const char *path = runs_path(r, run_name, "result.json");
    char *json = runs_read(path), *value;
    const sp_json_value *v;
    sp_json_doc *doc;

    ck_assert_int_eq(sp_json_parse(&doc, path, json, strlen(json)), SP_OK);
    v = sp_json_find(sp_json_root(doc), key);
    value = strdup(v && v->kind == SP_JSON_TEXT ? v->text : "");
    sp_json_doc_free(doc);
    free(json);
    return value;
}

void runs_forge(const runs *r, const char *run, const char *checkpoint,
                const char *from, const char *to)
{
    static const char key[] = "\"manifest_sha256\":\"";
    char inner[64], hex[SP_HASH_HEX], *all, *seal, *place;
    const char *path;
    sp_hash h;

    snprintf(inner, sizeof inner, "checkpoints/%s/manifest.json", checkpoint);
    path = runs_path(r, run, inner);
    all = runs_read(path);
    seal = strstr(all, key);
    place = strstr(all, from);
    ck_assert_ptr_nonnull(seal);
    ck_assert_ptr_nonnull(place);
    ck_assert_uint_eq(strlen(from), strlen(to));
    memcpy(place, to, strlen(to));
    sp_hash_start(&h);
    sp_hash_add(&h, all, (size_t)(seal - all));
    sp_hash_end(&h, hex);
    memcpy(seal + sizeof key - 1, hex, SP_HASH_HEX - 1);
    ck_assert_int_eq(sp_file_write_synced(path, all, strlen(all)), SP_OK);
    free(all);
}

bool runs_error(const char *word)
{
    return strstr(sp_last_error(), word) != NULL;
}
