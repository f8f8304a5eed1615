/* sprat doctor: where runs are written, and which data sets are there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "data/dataset.h"
#include "doctor.h"

/* ---- Runs ---------------------------------------------------------------- */

static const double gib = 1024.0 * 1024 * 1024;

const char *sp_doctor_runs(void) { return sp_is_dir("runs") ? "runs" : "."; }

/* What a run does: a file that is whole or absent, a link that is switched, a
 * folder that is renamed, a lock. */
static sp_err try_writing(const char *folder)
{
    char *file = sp_path(folder, "file"), *link = sp_path(folder, "last");
    char *inner = sp_path(folder, "a"), *renamed = sp_path(folder, "b");
    sp_err e = SP_OK;
    int lock = -1;

    if (!file || !link || !inner || !renamed)
        e = sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK)
        e = sp_file_write_synced(file, "sprat", 5);
    if (e == SP_OK)
        e = sp_dir_add(inner);
    if (e == SP_OK)
        e = sp_rename_synced(inner, renamed);
    if (e == SP_OK)
        e = sp_link_switch(link, "b");
    if (e == SP_OK && ((lock = open(file, O_RDWR | O_CLOEXEC)) < 0 ||
                       flock(lock, LOCK_EX | LOCK_NB) != 0))
        e = sp_io_fail("lock", file);
    if (lock >= 0)
        close(lock);
    free(file);
    free(link);
    free(inner);
    free(renamed);
    return e;
}

/* The kind of file system, where it matters to runs. */
static const char *kind_of(const char *folder, const char **caution)
{
    *caution = NULL;
#ifdef __linux__
    static const struct {
        unsigned long magic;
        const char *name, *caution;
    } kinds[] = {
        { 0xef53, "ext", NULL },
        { 0x58465342, "xfs", NULL },
        { 0x9123683e, "btrfs", NULL },
        { 0x794c7630, "overlay", "a container's own: it goes with it" },
        { 0x01021994, "tmpfs", "it is memory: it goes with a restart" },
        { 0x6969, "nfs", NULL },
        { 0x0bd00bd0, "lustre",
          "locks need the mount option flock or localflock" },
    };
    struct statfs s;

    if (statfs(folder, &s) == 0)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if ((unsigned long)s.f_type == kinds[i].magic) {
                *caution = kinds[i].caution;
                return kinds[i].name;
            }
#else
    (void)folder;
#endif
    return "other";
}

static void tell_place(sp_doctor *d, const char *where)
{
    struct statvfs s;
    const char *caution, *kind = kind_of(where, &caution);
    double free_gib;

    if (statvfs(where, &s) != 0) {
        sp_found(d, SP_NOTE, "runs", NULL, "%s: the free space is unknown (%s)",
                 where, strerror(errno));
        return;
    }
    free_gib = (double)s.f_bavail * (double)s.f_frsize / gib;
    if (free_gib < 1)
        caution = "make room, or name another place with --run: each "
                  "checkpoint takes some 3 times the weights";
    sp_found(d, caution ? SP_NOTE : SP_FINE, "runs", caution,
             "%s can hold runs: renaming, syncing, links and locks work "
             "(%s, %.1f GiB free)",
             where, kind, free_gib);
}

/* In a folder that is removed again, also where something fails. */
static sp_err try_folder(const char *folder)
{
    sp_err e = try_writing(folder);

    return e == SP_OK ? sp_dir_remove(folder) : sp_dir_withdraw(folder, e);
}

static void runs(sp_doctor *d)
{
    const char *where = sp_doctor_runs();
    char *folder = sp_path(where, ".doctor-%ld", (long)getpid());
    sp_err e =
        folder ? sp_dir_add(folder) : sp_fail(SP_ENOMEM, "out of memory");

    if (e == SP_OK)
        e = try_folder(folder);
    if (e == SP_OK)
        tell_place(d, where);
    else
        sp_found(d, SP_PROBLEM, "runs",
                 "start in another folder, or name one for each run with --run",
                 "%s", sp_last_error());
    free(folder);
}

/* ---- Data ---------------------------------------------------------------- */

typedef struct place {
    const char *root;
    const char *settings[3];
    const char *remedy; /* how it comes here */
} place;

static const place places[] = {
    { "fashion-mnist",
      { "data.name=idx", "data.root=fashion-mnist", "data.classes=10" },
      "tools/setup fashion-mnist" },
    { "cifar10",
      { "data.name=cifar10", "data.root=cifar10", NULL },
      "tools/get-data cifar10" },
    { "cifar100",
      { "data.name=cifar100", "data.root=cifar100", NULL },
      "tools/get-data cifar100" },
    { "ptb",
      { "data.name=text", "data.root=ptb", NULL },
      "tools/get-data ptb" },
    { "wikitext-2",
      { "data.name=text", "data.root=wikitext-2", NULL },
      "tools/get-data wikitext-2" },
};

/* Read all of it, as training would. */
static sp_err open_set(const sp_config *c, sp_dataset **out)
{
    const sp_entry *entry = sp_config_entry(c, "data");

    return sp_dataset_open(out, (const sp_data_set *)(const void *)entry,
                           sp_config_own(c, "data"),
                           sp_config_section(c, "data"));
}

static sp_err read_set(const sp_registry *r, const place *p)
{
    const char *settings[4] = { "model.name=mlp" };
    size_t count = 1;
    sp_dataset *set = NULL;
    sp_config *c;
    sp_err e;

    for (int i = 0; i < 3 && p->settings[i]; i++)
        settings[count++] = p->settings[i];
    SP_TRY(sp_config_load(&c, r, NULL, 0, settings, count));
    e = open_set(c, &set);
    sp_dataset_close(set);
    sp_config_free(c);
    return e;
}

static void data(sp_doctor *d, const sp_registry *r, const place *p)
{
    char *path;

    if (sp_data_find(p->root, &path) != SP_OK) {
        sp_found(d, SP_NOTE, "data", p->remedy, "%s is not here", p->root);
        return;
    }
    if (read_set(r, p) == SP_OK)
        sp_found(d, SP_FINE, "data", NULL, "%s is whole: %s", p->root, path);
    else
        sp_found(d, SP_PROBLEM, "data", p->remedy, "%s", sp_last_error());
    free(path);
}

void sp_doctor_places(sp_doctor *d)
{
    sp_registry *r = sp_registry_new();

    runs(d);
    for (size_t i = 0; r && i < sizeof places / sizeof *places; i++)
        data(d, r, &places[i]);
    if (!r)
        sp_found(d, SP_PROBLEM, "data", NULL, "out of memory");
    sp_registry_free(r);
}
