/* The queue of a table's runs. */
#include "sprat/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/yaml_events.h"
#include "sprat/train.h"
#include "table/check.h"
#include "table/queue.h"
#include "table/write.h"
#include "train/launcher.h"
#include "train/shared.h"

enum { LOCK_TRIES = 20 /* in 2 seconds */ };

/* ---- The folder ---------------------------------------------------------- */

/* runs/tables/NAME for .../NAME.yaml; a name of dots would be another folder.
 */
static char *default_folder(const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    const char *dot = strrchr(name, '.');
    size_t n = dot && strspn(name, ".") < (size_t)(dot - name)
                   ? (size_t)(dot - name)
                   : strlen(name);

    return sp_path("runs/tables", "%.*s", (int)n, name);
}

static const struct file {
    const char *name;
    void (*put)(sp_text *out, const sp_findings *f);
} files[] = {
    { "table.csv", sp_write_csv },
    { "table.tex", sp_write_latex },
    { "table.md", sp_write_markdown },
};

enum { FILES = sizeof files / sizeof *files };

/* Whether the table's folder has a file of that name. */
static sp_err find_file(const sp_queue *q, const char *name, bool *there)
{
    char *path = sp_path(q->folder, "%s", name);

    if (!path)
        return sp_fail(SP_ENOMEM, "out of memory");
    *there = access(path, F_OK) == 0;
    free(path);
    return SP_OK;
}

/* Nobody's files are replaced: a folder that a table has is marked by its lock,
 * as that of a run is. */
static sp_err check_own(const sp_queue *q, const char *lock)
{
    bool there = false;

    SP_TRY(find_file(q, "config.yaml", &there));
    if (there)
        return sp_fail(SP_EARG,
                       "%s: is the folder of a run, which a table of runs "
                       "cannot be in: give another --run",
                       q->folder);
    for (size_t i = 0; i < FILES && access(lock, F_OK) != 0; i++) {
        SP_TRY(find_file(q, files[i].name, &there));
        if (there)
            return sp_fail(SP_EARG,
                           "%s: holds a %s, and without a file .lock it is not "
                           "the folder of a table: give another --run",
                           q->folder, files[i].name);
    }
    return SP_OK;
}

/* Try for a while: a report has the lock for a moment only. */
static bool try_lock(int file, bool report)
{
    int tries = report ? 1 : LOCK_TRIES;

    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || --tries == 0)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    }
    return true;
}

/* One process at a time. A report that cannot have the lock, or a file for it,
 * only shows. */
static sp_err take_lock(sp_queue *q, const char *path)
{
    bool report = q->opt->report;

    SP_TRY(check_own(q, path));
    q->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (q->lock < 0)
        return report ? SP_OK : sp_io_fail("write to", path);
    q->writes = try_lock(q->lock, report);
    if (q->writes || (report && errno == EWOULDBLOCK))
        return SP_OK;
    if (errno != EWOULDBLOCK)
        return sp_io_fail("lock", path);
    return sp_fail(SP_EARG,
                   "%s: another process is at work on this table: wait for it, "
                   "or give another --run (--report shows how it stands)",
                   q->folder);
}

static sp_err open_folder(sp_queue *q)
{
    char *path;
    sp_err e;

    if (sp_comm_rank(q->opt->comm) != 0)
        return SP_OK;
    if (q->opt->report && !sp_is_dir(q->folder))
        return sp_fail(SP_EARG,
                       "%s: there is no such folder, and nothing to report: "
                       "leave --report out to train",
                       q->folder);
    if (!q->opt->report)
        SP_TRY(sp_dir_make(q->folder));
    path = sp_path(q->folder, ".lock");
    e = path ? take_lock(q, path) : sp_fail(SP_ENOMEM, "out of memory");
    free(path);
    return e;
}

/* ---- Cells --------------------------------------------------------------- */

static sp_err name_cells(sp_queue *q)
{
    const sp_table *t = &q->table;
    size_t n = 0;

    q->folder = q->opt->run ? sp_copy(q->opt->run, strlen(q->opt->run))
                            : default_folder(q->opt->file);
    if (!q->folder)
        return sp_fail(SP_ENOMEM, "out of memory");
    for (size_t i = 0; i < t->row_count; i++)
        n += (size_t)t->rows[i].seeds.count;
    q->cells.cell = calloc(n, sizeof *q->cells.cell);
    q->rows = calloc(t->row_count, sizeof *q->rows);
    if (!q->cells.cell || !q->rows)
        return sp_fail(SP_ENOMEM, "out of memory");
    for (size_t i = 0; i < t->row_count; i++)
        for (int k = 0; k < t->rows[i].seeds.count; k++)
            SP_TRY(sp_cell_name(&q->cells.cell[q->cells.count++], q->folder,
                                &t->rows[i], (int)t->rows[i].seeds.value[k]));
    return SP_OK;
}

/* The ranks must have read one table. */
static sp_err open_queue(sp_queue *q)
{
    uint8_t *bytes = NULL;
    size_t size;
    sp_err e = sp_table_read(&q->table, q->opt->file);

    if (e == SP_OK)
        e = name_cells(q);
    if (e == SP_OK)
        e = sp_file_read(q->opt->file, SP_YAML_BYTES, &bytes, &size);
    e = sp_agree(q->opt->comm, e);
    if (e == SP_OK)
        e = sp_agree_text(q->opt->comm, q->opt->file, (const char *)bytes);
    free(bytes);
    return e;
}

static void close_queue(sp_queue *q)
{
    for (size_t i = 0; i < q->cells.count; i++)
        sp_cell_free(&q->cells.cell[i]);
    free(q->cells.cell);
    free(q->rows);
    free(q->folder);
    sp_table_close(&q->table);
    if (q->lock >= 0)
        close(q->lock);
}

/* ---- What is told -------------------------------------------------------- */

static sp_err write_one(const sp_queue *q, const struct file *file)
{
    sp_findings f = { &q->table, &q->cells, q->rows };
    char *path = sp_path(q->folder, "%s", file->name);
    sp_text text = { 0 };
    sp_err e;

    file->put(&text, &f);
    e = path ? sp_text_check(&text) : sp_fail(SP_ENOMEM, "out of memory");
    if (e == SP_OK)
        e = sp_file_write_synced(path, sp_text_string(&text), text.size);
    sp_text_free(&text);
    free(path);
    return e;
}

sp_err sp_queue_write(sp_queue *q)
{
    sp_summarize(&q->table, &q->cells, q->rows);
    if (!q->writes)
        return SP_OK;
    for (size_t i = 0; i < FILES; i++)
        SP_TRY(write_one(q, &files[i]));
    return SP_OK;
}

static void show(const sp_queue *q)
{
    sp_findings f = { &q->table, &q->cells, q->rows };
    sp_text text = { 0 };

    if (!q->opt->terminal)
        return;
    sp_write_markdown(&text, &f);
    fprintf(q->opt->terminal, "%stable    %s\n\n%s", q->opt->report ? "" : "\n",
            q->folder, sp_text_string(&text));
    fflush(q->opt->terminal);
    sp_text_free(&text);
}

/* How the table stands. Of rank 0. */
static sp_table_state state_of(const sp_queue *q)
{
    sp_table_state state = { .runs = (int)q->cells.count,
                             .rows = (int)q->table.row_count };

    for (size_t i = 0; i < q->cells.count; i++) {
        state.done += q->cells.cell[i].state == SP_CELL_DONE;
        state.failed += q->cells.cell[i].state == SP_CELL_FAILED;
    }
    for (size_t i = 0; i < q->table.row_count; i++) {
        const sp_row_summary *s = &q->rows[i];

        if (!s->row->judged)
            continue;
        state.equal +=
            s->verdict == SP_VERDICT_EQUAL || s->verdict == SP_VERDICT_GOOD;
        state.worse += s->verdict == SP_VERDICT_WORSE;
        state.open += s->verdict == SP_VERDICT_OPEN && s->failed == 0;
    }
    return state;
}

/* The same on all ranks. */
static sp_err tell_state(const sp_queue *q, sp_table_state *state)
{
    bool started = state->started;

    if (sp_comm_rank(q->opt->comm) == 0)
        *state = state_of(q);
    state->started = started;
    return sp_shared_bytes(q->opt->comm, SP_USE_CHECK, state, sizeof *state);
}

/* ---- The whole ----------------------------------------------------------- */

/* Look at every folder and tell what is there. */
static sp_err look(sp_queue *q, const sp_registry *r, sp_table_state *state)
{
    sp_err e = SP_OK;

    if (sp_comm_rank(q->opt->comm) == 0) {
        e = sp_check_cells(q, r);
        if (e == SP_OK)
            e = sp_queue_write(q);
    }
    SP_TRY(sp_agree(q->opt->comm, e));
    return tell_state(q, state);
}

static sp_err work(sp_queue *q, const sp_registry *r, sp_table_state *state)
{
    sp_err e;

    SP_TRY(open_queue(q));
    if (!q->opt->report)
        SP_TRY(sp_check_ranks(&q->table, q->opt));
    SP_TRY(sp_agree(q->opt->comm, sp_check_settings(q, r)));
    SP_TRY(sp_agree(q->opt->comm, open_folder(q)));
    SP_TRY(look(q, r, state));
    if (q->opt->report)
        return SP_OK;
    SP_TRY(sp_check_data(q, r));
    e = sp_queue_work(q, r, &state->started);
    if (e == SP_OK || e == SP_ESTOPPED) {
        sp_err told = tell_state(q, state);

        e = told == SP_OK ? e : told;
    }
    return e;
}

sp_err sp_table_run(const sp_registry *r, const sp_table_opt *o,
                    sp_table_state *state)
{
    sp_queue q = { .opt = o, .lock = -1 };
    sp_err e = o->comm ? SP_OK : sp_launcher_check();

    *state = (sp_table_state){ 0 };
    if (e == SP_OK)
        e = work(&q, r, state);
    if (e == SP_OK && sp_comm_rank(o->comm) == 0)
        show(&q);
    close_queue(&q);
    return e;
}
