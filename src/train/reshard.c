/* Sharing out again. */
#include "train/reshard.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "data/loader.h"
#include "train/statistics.h"

static int keepers_of(const sp_manifest *m)
{
    int n = 0;

    for (int r = 0; r < m->ranks; r++)
        n += m->rank_stamps[r].keeps;
    return n;
}

bool sp_place_same(const sp_manifest *m, const bool *keeps, int ranks)
{
    if (ranks != m->ranks)
        return false;
    for (int r = 0; r < ranks; r++)
        if (keeps[r] != m->rank_stamps[r].keeps)
            return false;
    return true;
}

sp_place sp_place_of(const bool *keeps, int rank, int ranks)
{
    sp_place at = { .rank = rank, .ranks = ranks, .keeper = -1 };

    for (int r = 0; r < ranks; r++) {
        if (r == rank && keeps[r])
            at.keeper = at.keepers;
        at.keepers += keeps[r];
    }
    return at;
}

/* ---- Statistics -------------------------------------------------------- */

static sp_err read_buffers(const char *folder, const sp_local *to, int rank)
{
    sp_st_file *f = NULL;
    sp_err e = sp_rank_file_open(&f, folder, rank);

    for (int i = 0; e == SP_OK && sp_params_at(to->params, i); i++) {
        const sp_param *p = sp_params_at(to->params, i);
        sp_st_tensor t = { .name = p->name, .ndim = p->ndim };

        for (int k = 0; k < p->ndim; k++)
            t.dims[k] = p->dims[k];
        if (p->buffer)
            e = sp_st_load(f, &t, p->value);
    }
    sp_st_close(f);
    return e;
}

/* ---- Columns of text --------------------------------------------------- */

/* Of rank r's columns, those from `first` on that this rank goes on with. */
static sp_err read_columns(const sp_st_file *f, const sp_manifest *m, int r,
                           const sp_carried *s, size_t first, size_t n)
{
    size_t begin, rows, from, to, c = (size_t)s->c;
    sp_st_tensor t = { .name = s->name, .ndim = 2 };
    float *all;
    sp_err e;

    sp_share((size_t)m->batch, r, m->ranks, &begin, &rows);
    from = begin > first ? begin : first;
    to = begin + rows < first + n ? begin + rows : first + n;
    t.dims[0] = (int64_t)rows;
    t.dims[1] = s->c;
    all = malloc((rows * c + 1) * sizeof *all);
    e = all ? sp_st_load(f, &t, all) : sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK)
        memcpy(s->now + (from - first) * c, all + (from - begin) * c,
               (to - from) * c * sizeof *all);
    free(all);
    return e;
}

static sp_err cut_columns(const char *folder, const sp_manifest *m,
                          const sp_carry *to, sp_place at)
{
    size_t first, n, begin, rows;
    sp_err e = SP_OK;

    sp_share((size_t)m->batch, at.rank, at.ranks, &first, &n);
    for (int r = 0; e == SP_OK && r < m->ranks; r++) {
        sp_st_file *f = NULL;

        sp_share((size_t)m->batch, r, m->ranks, &begin, &rows);
        if (rows == 0 || n == 0 || begin >= first + n || begin + rows <= first)
            continue;
        e = sp_rank_file_open(&f, folder, r);
        for (int i = 0; e == SP_OK && i < to->count; i++)
            e = read_columns(f, m, r, &to->at[i], first, n);
        sp_st_close(f);
    }
    return e;
}

/* ---- Arrays of the compressor ------------------------------------------ */

/* Whether a file's tensor is neither a buffer nor a carried state. */
static bool is_kept(const char *name, const sp_local *to)
{
    const sp_param *p = sp_params_find(to->params, name);

    for (int i = 0; to->carry && i < to->carry->count; i++)
        if (strcmp(to->carry->at[i].name, name) == 0)
            return false;
    return !p || !p->buffer;
}

/* A keeper's file must hold exactly the arrays that are kept now: what it has
 * more would be lost, and what it has not would begin from nothing. */
static sp_err check_kept(const sp_st_file *f, const char *folder, int rank,
                         const sp_local *to)
{
    static const char advice[] = "go on with the settings of compress that "
                                 "the run began with";
    char file[SP_RANK_FILE_ROOM];

    for (size_t i = 0; i < to->kept_count; i++)
        if (!sp_st_find(f, to->kept[i].name))
            return sp_fail(SP_ECONFIG, "%s/%s: has no %s: %s", folder,
                           sp_rank_file(file, rank), to->kept[i].name, advice);
    for (size_t i = 0; sp_st_at(f, i); i++) {
        const char *name = sp_st_at(f, i)->name;
        size_t k = 0;

        if (!is_kept(name, to))
            continue;
        while (k < to->kept_count && strcmp(to->kept[k].name, name) != 0)
            k++;
        if (k == to->kept_count)
            return sp_fail(SP_ECONFIG,
                           "%s/%s: holds %s, which is not kept any "
                           "more: %s",
                           folder, sp_rank_file(file, rank), name, advice);
    }
    return SP_OK;
}

/* The ranks whose arrays come to this one, in their order; true while there is
 * another, which is *rank. `number`: of the next keeper; both start at -1. */
static bool next_source(const sp_manifest *m, sp_place at, int *rank,
                        int *number)
{
    int64_t keepers = keepers_of(m);

    for (++*rank; *rank < m->ranks; ++*rank) {
        if (!m->rank_stamps[*rank].keeps)
            continue;
        ++*number;
        if (*number * (int64_t)at.keepers / keepers == at.keeper)
            return true;
    }
    return false;
}

/* All that comes to this rank for one array: in double, rounded once. */
static sp_err sum_up(const char *folder, const sp_manifest *m,
                     const sp_kept *to, sp_place at)
{
    size_t n = sp_kept_size(to);
    double *sum = calloc(n + 1, sizeof *sum);
    float *part = malloc((n + 1) * sizeof *part);
    int rank = -1, number = -1;
    sp_err e =
        sum && part ? SP_OK : sp_fail(SP_ENOMEM, "%s: out of memory", to->name);

    while (e == SP_OK && next_source(m, at, &rank, &number)) {
        sp_st_file *f = NULL;

        e = sp_rank_file_open(&f, folder, rank);
        if (e == SP_OK)
            e = sp_st_load(f, &to->tensor, part);
        for (size_t i = 0; e == SP_OK && i < n; i++)
            sum[i] += (double)part[i];
        sp_st_close(f);
    }
    for (size_t i = 0; e == SP_OK && i < n; i++)
        to->data[i] = (float)sum[i];
    free(sum);
    free(part);
    return e;
}

static sp_err check_sources(const char *folder, const sp_manifest *m,
                            const sp_local *to, sp_place at)
{
    int rank = -1, number = -1;
    sp_err e = SP_OK;

    while (e == SP_OK && next_source(m, at, &rank, &number)) {
        sp_st_file *f = NULL;

        e = sp_rank_file_open(&f, folder, rank);
        if (e == SP_OK)
            e = check_kept(f, folder, rank, to);
        sp_st_close(f);
    }
    return e;
}

static sp_err share_out(const char *folder, const sp_manifest *m,
                        const sp_local *to, sp_place at)
{
    if ((keepers_of(m) == 0) != (at.keepers == 0))
        return sp_fail(SP_ECONFIG,
                       "%s: %s: go on with the settings of compress that the "
                       "run began with",
                       folder,
                       at.keepers > 0
                           ? "holds none of what the compressor keeps"
                           : "holds what the compressor would not keep");
    if (at.keeper < 0)
        return SP_OK;
    SP_TRY(check_sources(folder, m, to, at));
    for (size_t i = 0; i < to->kept_count; i++) {
        const sp_kept *k = &to->kept[i];

        if (k->adds)
            SP_TRY(sum_up(folder, m, k, at));
        else
            memset(k->data, 0, sp_kept_size(k) * sizeof *k->data);
    }
    return SP_OK;
}

sp_err sp_reshard(const char *folder, const sp_manifest *m, const sp_local *to,
                  sp_place at)
{
    if (at.ranks == m->ranks)
        SP_TRY(read_buffers(folder, to, at.rank));
    if (to->carry)
        SP_TRY(cut_columns(folder, m, to->carry, at));
    return share_out(folder, m, to, at);
}

static bool keeps_sums(const sp_local *l)
{
    for (size_t i = 0; i < l->kept_count; i++)
        if (l->kept[i].adds)
            return true;
    return false;
}

/* Array i as its compressor calls it: what is behind the parameter's name. */
static const char *kind_of(const sp_local *l, size_t i)
{
    const char *dot = strrchr(l->kept[i].name, '.');

    return dot ? dot + 1 : l->kept[i].name;
}

/* Whether one before array i is of its kind. */
static bool is_known(const sp_local *l, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(kind_of(l, k), kind_of(l, i)) == 0)
            return true;
    return false;
}

/* What starts anew, each kind of it once. */
static void tell_anew(const sp_local *l, sp_text *out)
{
    for (size_t i = 0; i < l->kept_count; i++)
        if (!l->kept[i].adds && sp_kept_size(&l->kept[i]) > 0 &&
            !is_known(l, i))
            sp_text_add(out,
                        "other    %s, which the compressor keeps, starts "
                        "anew\n",
                        kind_of(l, i));
}

void sp_reshard_tell(const sp_manifest *m, const sp_local *to, sp_place at,
                     bool same, sp_text *out)
{
    if (same && at.ranks > 1)
        sp_text_add(out, "ranks    %d, as up to here: all is exact\n",
                    at.ranks);
    if (same)
        return;
    if (at.ranks != m->ranks)
        sp_text_add(out, "ranks    %d, up to here there were %d\n", at.ranks,
                    m->ranks);
    else
        sp_text_add(out, "ranks    %d, of which others keep what is not sent\n",
                    at.ranks);
    sp_text_add(out,
                "exact    weights, optimizer, position, order of samples, "
                "random numbers%s\n",
                to->carry && to->carry->count > 0
                    ? ", states that text is carried on with"
                    : "");
    if (keeps_sums(to))
        sp_text_add(out,
                    "exact    the sum over ranks of what was not yet sent, "
                    "up to rounding; it is shared out anew\n");
    tell_anew(to, out);
    if (at.ranks != m->ranks && sp_statistics_count(to->params) > 0)
        sp_text_add(out,
                    "other    running statistics start from their average, and "
                    "batch norms see batches of another size\n");
    sp_text_add(out, "other    sums over ranks round in another order\n");
}
