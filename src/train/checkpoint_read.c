/* Reading of checkpoints, by one process or by the ranks that go on. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "train/checkpoint.h"
#include "train/reshard.h"
#include "train/rotate.h"
#include "train/shared.h"
#include "train/weights.h"

enum { NAME_ROOM = 256 };

static sp_err no_memory(void) { return sp_fail(SP_ENOMEM, "out of memory"); }

/* Add to the error which other checkpoint would do instead. */
static sp_err offer(sp_err e, const char *run, const char *folder,
                    const char *offered)
{
    char *text = sp_error_keep();
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

/* Where `last` is whole nothing has to be mended: the name was wrong, or is of
 * what the run has not come to yet, as `best` before its first epoch. */
static sp_err absent(const char *folder, const char *run)
{
    char *last = sp_path(run, "checkpoints/last");
    bool usable = last && sp_is_dir(last);
    sp_err e = sp_fail(SP_EARG, "%s: there is no such checkpoint", folder);

    free(last);
    if (!usable)
        return offer(e, run, folder, "there is");
    return sp_fail(SP_EARG,
                   "%s: there is no such checkpoint; there is last, and %s/"
                   "checkpoints has all others",
                   folder, run);
}

/* Find the folder and read its manifest. */
static sp_err find(sp_checkpoint *c, const char *run, const char *name)
{
    if (!name[0] || name[0] == '.' || strchr(name, '/'))
        return sp_fail(SP_EARG,
                       "checkpoint \"%s\": give last, best or the name of a "
                       "folder in %s/checkpoints",
                       name, run);
    c->folder = sp_path(run, "checkpoints/%s", name);
    if (!c->folder)
        return no_memory();
    if (!sp_is_dir(c->folder))
        return absent(c->folder, run);
    return sp_manifest_read(c->folder, &c->manifest);
}

/* Close what cannot be used, and say what can. */
static sp_err refuse(sp_checkpoint *c, sp_err e, const char *run)
{
    if (c->folder && (e == SP_EIO || e == SP_EFORMAT))
        e = offer(e, run, c->folder, "use an older checkpoint:");
    sp_checkpoint_close(c);
    return e;
}

sp_err sp_checkpoint_open(sp_checkpoint *c, const char *run, const char *name)
{
    sp_err e;

    *c = (sp_checkpoint){ 0 };
    e = find(c, run, name);
    if (e == SP_OK)
        e = sp_manifest_check(c->folder, &c->manifest);
    return e == SP_OK ? e : refuse(c, e, run);
}

/* What the link points to, so that all ranks open the same folder: the link
 * of another host may be that of a while ago. */
static void follow(const char *run, const char *name, char out[NAME_ROOM])
{
    char *path = sp_path(run, "checkpoints/%s", name);
    ssize_t n = path ? readlink(path, out, NAME_ROOM - 1) : -1;

    if (n > 0)
        out[n] = '\0';
    else
        snprintf(out, NAME_ROOM, "%s", name);
    free(path);
}

sp_err sp_checkpoint_open_whole(sp_checkpoint *c, const char *run,
                                const char *name, sp_comm *comm)
{
    int rank = sp_comm_rank(comm), ranks = sp_comm_ranks(comm);
    char target[NAME_ROOM] = "";
    sp_err e = SP_OK;

    *c = (sp_checkpoint){ 0 };
    if (rank == 0) {
        if (ranks > 1)
            follow(run, name, target);
        e = find(c, run, ranks > 1 ? target : name);
        if (e != SP_OK)
            e = refuse(c, e, run);
    }
    SP_TRY(sp_agree(comm, e));
    e = sp_shared_bytes(comm, SP_USE_CHECK, target, sizeof target);
    if (e != SP_OK)
        sp_checkpoint_close(c);
    SP_TRY(e);
    if (rank > 0)
        e = find(c, run, target);
    if (e == SP_OK)
        e = sp_manifest_check_all(c->folder, &c->manifest, rank, ranks);
    if (e != SP_OK)
        e = refuse(c, e, run);
    e = sp_agree(comm, e);
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
    char *path = sp_path(c->folder, "%s", sp_common_files[SP_FILE_MODEL]);
    sp_err e = path ? sp_weights_load(path, p) : no_memory();

    free(path);
    return e;
}

sp_err sp_checkpoint_compare(const sp_checkpoint *c, const sp_params *p)
{
    char *path = sp_path(c->folder, "%s", sp_common_files[SP_FILE_MODEL]);
    sp_err e = path ? sp_weights_check(path, p) : no_memory();

    free(path);
    return e;
}

/* What to do with the weights of a run that cannot go on, in `out`. */
enum { ADVICE_ROOM = 4096 + 256 };

static const char *start_anew(const sp_checkpoint *c, char out[ADVICE_ROOM])
{
    const sp_manifest *m = &c->manifest;

    if (sp_manifest_ranks(m))
        snprintf(out, ADVICE_ROOM,
                 "no new run can start from its weights, whose ranks training "
                 "has chosen");
    else
        snprintf(out, ADVICE_ROOM,
                 "to start anew from its weights, give model.init=%s/%s%s to a "
                 "new run",
                 c->folder, sp_common_files[SP_FILE_MODEL],
                 m->low ? " and lowrank.warmup_epochs=0" : "");
    return out;
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
    char advice[ADVICE_ROOM], *path;
    sp_err e;

    if (strcmp(name, c->manifest.optimizer) != 0)
        return sp_fail(
            SP_ECONFIG, "%s: was trained with optim.name=%s, not %s: %s",
            c->folder, c->manifest.optimizer, name, start_anew(c, advice));
    path = sp_path(c->folder, "%s", sp_common_files[SP_FILE_OPTIM]);
    e = path ? sp_optim_load(path, s->params, s->optim) : no_memory();
    free(path);
    return e;
}

/* Another one would leave what this one keeps, or begin from nothing. */
static sp_err check_compressor(const sp_checkpoint *c, const sp_session *s)
{
    const char *name = s->set.compressor->entry.name;
    char advice[ADVICE_ROOM];

    if (strcmp(name, c->manifest.compressor) == 0)
        return SP_OK;
    return sp_fail(
        SP_ECONFIG, "%s: was trained with compress.name=%s, not %s: %s",
        c->folder, c->manifest.compressor, name, start_anew(c, advice));
}

/* Which ranks keep arrays of the compressor: keeps[0..ranks). Collective. */
static sp_err gather_keepers(sp_comm *c, const sp_local *l, bool *keeps)
{
    sp_on on = { SP_ALL, SP_CHANNEL_MAIN, SP_USE_CHECK };
    bool own = l->kept_count > 0;

    return sp_op_wait(c, sp_gather_all(c, on, &own, sizeof own, keeps));
}

/* A compressor keeps momenta if the optimizer has momentum: arrays that the
 * checkpoint has and that are empty now, or the other way round. */
static sp_err check_momentum(const sp_checkpoint *c, const sp_local *l)
{
    const sp_manifest *m = &c->manifest;
    char advice[ADVICE_ROOM];
    sp_st_file *f = NULL;
    int rank = 0;
    sp_err e;

    while (rank < m->ranks && !m->rank_stamps[rank].keeps)
        rank++;
    if (rank == m->ranks)
        return SP_OK;
    e = sp_rank_file_open(&f, c->folder, rank);
    for (size_t i = 0; e == SP_OK && i < l->kept_count; i++) {
        const sp_st_tensor *have = sp_st_find(f, l->kept[i].name);
        bool was = have && have->dims[0] > 0;

        if (have && was != (sp_kept_size(&l->kept[i]) > 0))
            e = sp_fail(SP_ECONFIG,
                        "optim.momentum: %s holds %s of the compressor (%s), "
                        "%s: go on with the optim.momentum and the settings of "
                        "compress that the run began with; %s",
                        c->folder, was ? "momenta" : "no momenta",
                        l->kept[i].name,
                        was ? "which keeps none now" : "which keeps them now",
                        start_anew(c, advice));
    }
    sp_st_close(f);
    return e;
}

/* A rank's own part: its file if the ranks are as they were, else a share. */
static sp_err load_share(const sp_checkpoint *c, const sp_local *l, sp_place at,
                         bool same)
{
    char name[SP_RANK_FILE_ROOM], *path;
    sp_err e;

    if (!same)
        return sp_reshard(c->folder, &c->manifest, l, at);
    path = sp_path(c->folder, "%s", sp_rank_file(name, at.rank));
    e = path ? sp_local_load(path, l) : no_memory();
    free(path);
    return e;
}

static sp_err load_own(const sp_checkpoint *c, sp_session *s, sp_text *told)
{
    int rank = sp_comm_rank(s->comm), ranks = sp_comm_ranks(s->comm);
    bool *keeps = calloc((size_t)ranks, sizeof *keeps), same;
    sp_local l = { 0 };
    sp_place at;
    sp_err e =
        keeps ? sp_local_open(&l, s, c->manifest.state.batch > 0) : no_memory();

    e = sp_agree(s->comm, e);
    if (e == SP_OK)
        e = gather_keepers(s->comm, &l, keeps);
    if (e == SP_OK)
        e = sp_agree(s->comm, check_momentum(c, &l));
    if (e == SP_OK) {
        at = sp_place_of(keeps, rank, ranks);
        same = sp_place_same(&c->manifest, keeps, ranks);
        sp_reshard_tell(&c->manifest, &l, at, same, told);
        e = load_share(c, &l, at, same);
        e = sp_agree(s->comm, e == SP_OK ? sp_text_check(told) : e);
    }
    sp_local_close(&l);
    free(keeps);
    return e;
}

static sp_err load_all(const sp_checkpoint *c, sp_session *s)
{
    SP_TRY(check_compressor(c, s));
    SP_TRY(sp_checkpoint_load(c, s->params));
    SP_TRY(load_optim(c, s));
    if (s->exchange)
        sp_exchange_set_dense(s->exchange, c->manifest.dense);
    return SP_OK;
}

sp_err sp_checkpoint_load_all(const sp_checkpoint *c, sp_session *s,
                              sp_text *told)
{
    SP_TRY(sp_agree(s->comm, load_all(c, s)));
    return load_own(c, s, told);
}
