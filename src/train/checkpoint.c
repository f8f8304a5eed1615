/* Writing of checkpoints. */
#include "train/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "train/local.h"
#include "train/shared.h"
#include "train/statistics.h"
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

/* A checkpoint being saved. */
typedef struct saving {
    const sp_checkpoint_args *a;
    const sp_session *s;
    int rank, ranks;
    char *folder; /* RUN/checkpoints */
    char name[NAME_ROOM];
    char *temporary; /* what the checkpoint is until it is whole */
    sp_manifest m;
} saving;

/* The folder: rank 0 makes it, all wait until they see it. */
static sp_err make(saving *w)
{
    sp_err e = SP_OK;

    w->folder = sp_path(w->a->run, "checkpoints");
    if (!w->folder)
        return no_memory();
    if (w->rank == 0) {
        free_name(w->folder, w->a->state->step, w->name);
        w->temporary = sp_path(w->folder, ".tmp-%s", w->name);
        e = w->temporary ? sp_dir_remove(w->temporary) : no_memory();
        if (e == SP_OK)
            e = sp_dir_add(w->temporary);
    }
    return e;
}

/* Of all other ranks, once there is a folder. */
static sp_err follow(saving *w)
{
    if (w->rank == 0)
        return SP_OK;
    w->temporary = sp_path(w->folder, ".tmp-%s", w->name);
    return w->temporary ? sp_shared_wait(w->temporary, NULL) : no_memory();
}

/* This rank's own file. */
static sp_err save_own(const saving *w, sp_rank_stamp *own)
{
    char name[SP_RANK_FILE_ROOM];
    char *path = sp_path(w->temporary, "%s", sp_rank_file(name, w->rank));
    sp_local l = { 0 };
    sp_err e =
        path ? sp_local_open(&l, w->s, w->a->state->batch > 0) : no_memory();

    if (e == SP_OK)
        e = sp_local_save(path, &l, &own->stamp);
    own->keeps = l.kept_count > 0;
    sp_local_close(&l);
    free(path);
    return e;
}

static sp_err describe(saving *w)
{
    const sp_session *s = w->s;
    const char *compressor = s->set.compressor->entry.name;
    sp_manifest *m = &w->m;

    m->config = sp_copy(w->a->config, strlen(w->a->config));
    m->isa = sp_copy(s->isa, strlen(s->isa));
    m->optimizer = sp_copy(s->set.optimizer->entry.name,
                           strlen(s->set.optimizer->entry.name));
    m->compressor = sp_copy(compressor, strlen(compressor));
    if (!m->config || !m->isa || !m->optimizer || !m->compressor)
        return no_memory();
    m->dense = !s->exchange || sp_exchange_dense(s->exchange);
    m->batches = w->a->batches;
    m->batch = s->set.train->batch;
    m->bptt = s->info.text ? s->set.train->bptt : 0;
    m->low = s->low;
    m->state = *w->a->state;
    if (w->a->autorank)
        SP_TRY(sp_autorank_copy(&m->autorank, w->a->autorank));
    m->text = s->info.text;
    m->chars = s->info.chars;
    m->h = s->info.h;
    m->w = s->info.w;
    m->c = s->info.c;
    m->classes = s->info.classes;
    SP_TRY(copy_names(m, s->info.class_names));
    return sp_graph_tiles(s->train.graph, &m->winograd);
}

/* What all ranks have in common, by rank 0. */
static sp_err save_common(const saving *w, int file, sp_st_stamp *stamp)
{
    char *path = sp_path(w->temporary, "%s", sp_common_files[file]);
    sp_err e = path ? SP_OK : no_memory();

    if (e == SP_OK && file == SP_FILE_MODEL)
        e = sp_weights_save(path, w->s->params, stamp);
    else if (e == SP_OK)
        e = sp_optim_save(path, w->s->params, w->s->optim, stamp);
    free(path);
    return e;
}

/* Complete the folder, which the manifest does, and give it its name. */
static sp_err complete(saving *w)
{
    char *final = sp_path(w->folder, "%s", w->name);
    sp_err e = final ? describe(w) : no_memory();

    for (int i = 0; e == SP_OK && i < SP_COMMON_FILES; i++)
        e = save_common(w, i, &w->m.stamps[i]);
    if (e == SP_OK)
        e = sp_manifest_write(w->temporary, &w->m);
    if (e == SP_OK)
        e = sp_dir_sync(w->temporary);
    if (e == SP_OK)
        e = sp_rename_synced(w->temporary, final);
    free(final);
    return e;
}

/* Remove a half-written folder without losing the text of what went wrong. */
static sp_err give_up(const saving *w, sp_err e)
{
    char *text = sp_error_keep();
    bool removed =
        w->rank > 0 || !w->temporary || sp_dir_remove(w->temporary) == SP_OK;

    if (text)
        sp_fail(e, "%s; the older checkpoints are as they were%s%s", text,
                removed ? "" : ", beside the unfinished ",
                removed ? "" : w->temporary);
    free(text);
    return e;
}

/* Every rank writes its file. An error of one rank is that of all. */
static sp_err save_ranks(saving *w)
{
    sp_comm *c = w->s->comm;
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_SAVE };
    sp_rank_stamp own = { 0 };
    sp_err e = make(w);

    w->m.ranks = w->ranks;
    w->m.rank_stamps = calloc((size_t)w->ranks, sizeof *w->m.rank_stamps);
    if (e == SP_OK && !w->m.rank_stamps)
        e = no_memory();
    SP_TRY(sp_agree(c, e));
    SP_TRY(sp_shared_bytes(c, SP_USE_SAVE, w->name, sizeof w->name));
    e = follow(w);
    if (e == SP_OK)
        e = save_own(w, &own);
    SP_TRY(sp_agree(c, e));
    return sp_op_wait(c,
                      sp_gather_all(c, on, &own, sizeof own, w->m.rank_stamps));
}

static sp_err save_all(saving *w)
{
    sp_statistics local = { 0 };
    sp_err e;

    SP_TRY(save_ranks(w));
    SP_TRY(sp_statistics_average(&local, w->s, SP_USE_SAVE));
    e = w->rank == 0 ? complete(w) : SP_OK;
    sp_statistics_restore(&local);
    return sp_agree(w->s->comm, e);
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
    sp_comm *c = a->session->comm;
    saving w = { .a = a,
                 .s = a->session,
                 .rank = sp_comm_rank(c),
                 .ranks = sp_comm_ranks(c) };
    sp_err e = save_all(&w);

    if (e != SP_OK) {
        e = give_up(&w, e);
    } else {
        if (w.rank == 0 && a->rewind)
            e = point(w.folder, "rewind", w.name);
        if (e == SP_OK && w.rank == 0)
            e = point(w.folder, "last", w.name);
        if (e == SP_OK && w.rank == 0 && a->best)
            e = point(w.folder, "best", w.name);
        e = sp_agree(c, e);
    }
    sp_manifest_free(&w.m);
    free(w.temporary);
    free(w.folder);
    return e;
}
