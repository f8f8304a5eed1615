/* Writing and reading of checkpoints. */
#include "train/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "train/rotate.h"
#include "train/weights.h"

enum { NAME_ROOM = 64 };

static sp_err no_memory(void) { return sp_fail(SP_ENOMEM, "out of memory"); }

/* A name that is free: another with the same step may be there after a
 * resume, and what is in place is not touched. */
static void free_name(const char *folder, int64_t step, char name[NAME_ROOM])
{
    bool taken = true;

    for (int i = 1; taken; i++) {
        char *path;

        if (step == 0 && i == 1)
            snprintf(name, NAME_ROOM, "start");
        else if (i == 1)
            snprintf(name, NAME_ROOM, "step-%08" PRId64, step);
        else
            snprintf(name, NAME_ROOM, "step-%08" PRId64 "-%d", step, i);
        path = sp_path(folder, "%s", name);
        taken = path && access(path, F_OK) == 0;
        free(path);
    }
}

static sp_err save_file(const char *folder, int file,
                        const sp_checkpoint_args *a, sp_st_stamp *stamp)
{
    const sp_session *s = a->session;
    char *path = sp_path(folder, "%s", sp_checkpoint_files[file]);
    sp_err e;

    if (!path)
        return no_memory();
    if (file == SP_FILE_MODEL)
        e = sp_weights_save(path, s->params, stamp);
    else if (file == SP_FILE_OPTIM)
        e = sp_optim_save(path, s->params, s->optim, stamp);
    else
        e = sp_local_save(path, s->params,
                          a->state->batch > 0 ? &s->train.carry : NULL, stamp);
    free(path);
    return e;
}

static sp_err copy_names(sp_manifest *m, const char *const *names)
{
    if (!names)
        return SP_OK;
    m->class_names = calloc((size_t)m->classes, sizeof *m->class_names);
    if (!m->class_names)
        return no_memory();
    for (int i = 0; i < m->classes; i++) {
        m->class_names[i] = sp_copy(names[i], strlen(names[i]));
        if (!m->class_names[i])
            return no_memory();
    }
    return SP_OK;
}

/* Fill the folder of a new checkpoint; the manifest makes it complete. */
static sp_err save_files(const char *folder, const sp_checkpoint_args *a)
{
    const sp_session *s = a->session;
    sp_manifest m = {
        .batches = a->batches,
        .batch = s->set.train->batch,
        .bptt = s->info.text ? s->set.train->bptt : 0,
        .state = *a->state,
        .text = s->info.text,
        .chars = s->info.chars,
        .h = s->info.h,
        .w = s->info.w,
        .c = s->info.c,
        .classes = s->info.classes,
    };
    sp_err e = copy_names(&m, s->info.class_names);

    m.config = sp_copy(a->config, strlen(a->config));
    m.isa = sp_copy(s->isa, strlen(s->isa));
    m.optimizer = sp_copy(s->set.optimizer->entry.name,
                          strlen(s->set.optimizer->entry.name));
    if (!m.config || !m.isa || !m.optimizer)
        e = no_memory();
    if (e == SP_OK)
        e = sp_graph_tiles(s->train.graph, &m.winograd);
    for (int i = 0; e == SP_OK && i < SP_CHECKPOINT_FILES; i++)
        e = save_file(folder, i, a, &m.stamps[i]);
    if (e == SP_OK)
        e = sp_manifest_write(folder, &m);
    if (e == SP_OK)
        e = sp_dir_sync(folder);
    sp_manifest_free(&m);
    return e;
}

/* Remove a half-written folder without losing the text of what went wrong. */
static sp_err give_up(const char *folder, sp_err e)
{
    char *text = sp_copy(sp_last_error(), strlen(sp_last_error()));
    bool removed = sp_dir_remove(folder) == SP_OK;

    if (text)
        sp_fail(e, "%s; the older checkpoints are as they were%s%s", text,
                removed ? "" : ", beside the unfinished ",
                removed ? "" : folder);
    free(text);
    return e;
}

static sp_err save_as(const char *folder, const char *name,
                      const sp_checkpoint_args *a)
{
    char *temporary = sp_path(folder, ".tmp-%s", name);
    char *final = sp_path(folder, "%s", name);
    sp_err e = temporary && final ? SP_OK : no_memory();

    if (e == SP_OK)
        e = sp_dir_remove(temporary);
    if (e == SP_OK)
        e = sp_dir_make(temporary);
    if (e == SP_OK) {
        e = save_files(temporary, a);
        if (e == SP_OK)
            e = sp_rename_synced(temporary, final);
        if (e != SP_OK)
            e = give_up(temporary, e);
    }
    free(temporary);
    free(final);
    return e;
}

static sp_err point(const char *folder, const char *link, const char *target)
{
    char *path = sp_path(folder, "%s", link);
    sp_err e = path ? sp_link_switch(path, target) : no_memory();

    free(path);
    return e;
}

sp_err sp_checkpoint_save(const sp_checkpoint_args *a)
{
    char *folder = sp_path(a->run, "checkpoints");
    char name[NAME_ROOM];
    sp_err e = SP_OK;

    if (!folder)
        return no_memory();
    free_name(folder, a->state->step, name);
    e = save_as(folder, name, a);
    if (e == SP_OK)
        e = point(folder, "last", name);
    if (e == SP_OK && a->best)
        e = point(folder, "best", name);
    free(folder);
    return e;
}

/* Add to the error which other checkpoint would do instead. */
static sp_err offer(sp_err e, const char *run, const char *folder,
                    const char *offered)
{
    char *text = sp_copy(sp_last_error(), strlen(sp_last_error()));
    char *other = sp_rotate_other(run, folder);

    if (text && other)
        sp_fail(e,
                "%s; %s %s (to resume from it: ln -sfn %s "
                "%s/checkpoints/last)",
                text, offered, other, other, run);
    else if (text) /* the search may have put its own in place */
        sp_fail(e, "%s", text);
    free(other);
    free(text);
    return e;
}

sp_err sp_checkpoint_open(sp_checkpoint *c, const char *run, const char *name)
{
    sp_err e;

    *c = (sp_checkpoint){ 0 };
    if (!name[0] || name[0] == '.' || strchr(name, '/'))
        return sp_fail(SP_EARG,
                       "checkpoint \"%s\": give last, best or the name of a "
                       "folder in %s/checkpoints",
                       name, run);
    c->folder = sp_path(run, "checkpoints/%s", name);
    if (!c->folder)
        return no_memory();
    if (!sp_is_dir(c->folder)) {
        e = sp_fail(SP_EARG, "%s: there is no such checkpoint", c->folder);
        e = offer(e, run, c->folder, "there is");
    } else {
        e = sp_manifest_read(c->folder, &c->manifest);
        if (e == SP_EIO || e == SP_EFORMAT)
            e = offer(e, run, c->folder, "use an older checkpoint:");
    }
    if (e != SP_OK)
        sp_checkpoint_close(c);
    return e;
}

void sp_checkpoint_close(sp_checkpoint *c)
{
    free(c->folder);
    sp_manifest_free(&c->manifest);
    *c = (sp_checkpoint){ 0 };
}

sp_err sp_checkpoint_load(const sp_checkpoint *c, sp_params *p)
{
    char *path = sp_path(c->folder, "%s", sp_checkpoint_files[SP_FILE_MODEL]);
    sp_err e = path ? sp_weights_load(path, p) : no_memory();

    free(path);
    return e;
}

static const char *kind(bool text) { return text ? "text" : "images"; }

static const char *tokens_of(bool named, bool chars)
{
    return !named ? "made-up tokens" : chars ? "characters" : "words";
}

sp_err sp_checkpoint_fits(const sp_checkpoint *c, const sp_data_info *i)
{
    const sp_manifest *m = &c->manifest;

    if (m->text != i->text)
        return sp_fail(SP_ECONFIG, "%s: was trained on %s, the data are %s",
                       c->folder, kind(m->text), kind(i->text));
    if (m->classes != i->classes)
        return sp_fail(SP_ECONFIG,
                       "%s: was trained on %d classes or words, the data have "
                       "%d: use the data that the run began with",
                       c->folder, m->classes, i->classes);
    if (m->text && (!m->class_names != !i->class_names || m->chars != i->chars))
        return sp_fail(SP_ECONFIG,
                       "%s: was trained on %s, the data are %s: use the data "
                       "that the run began with",
                       c->folder, tokens_of(m->class_names != NULL, m->chars),
                       tokens_of(i->class_names != NULL, i->chars));
    for (int k = 0; m->class_names && i->class_names && k < m->classes; k++)
        if (strcmp(m->class_names[k], i->class_names[k]) != 0)
            return sp_fail(SP_ECONFIG,
                           "%s: number %d of its classes or words is \"%s\", "
                           "in the data it is \"%s\": use the data that the "
                           "run began with",
                           c->folder, k, m->class_names[k], i->class_names[k]);
    return SP_OK;
}

static sp_err load_optim(const sp_checkpoint *c, sp_session *s)
{
    const char *name = s->set.optimizer->entry.name;
    char *path;
    sp_err e;

    if (strcmp(name, c->manifest.optimizer) != 0)
        return sp_fail(SP_ECONFIG,
                       "%s: was trained with optim.name=%s, not %s: to start "
                       "anew from its weights, give model.init=%s/%s to a new "
                       "run",
                       c->folder, c->manifest.optimizer, name, c->folder,
                       sp_checkpoint_files[SP_FILE_MODEL]);
    path = sp_path(c->folder, "%s", sp_checkpoint_files[SP_FILE_OPTIM]);
    e = path ? sp_optim_load(path, s->params, s->optim) : no_memory();
    free(path);
    return e;
}

sp_err sp_checkpoint_load_all(const sp_checkpoint *c, sp_session *s)
{
    char *path = sp_path(c->folder, "%s", sp_checkpoint_files[SP_FILE_RANK]);
    sp_err e = path ? sp_checkpoint_load(c, s->params) : no_memory();

    if (e == SP_OK)
        e = sp_local_load(path, s->params,
                          c->manifest.state.batch > 0 ? &s->train.carry : NULL);
    if (e == SP_OK)
        e = load_optim(c, s);
    free(path);
    return e;
}
