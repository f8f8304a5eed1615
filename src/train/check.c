/* What can be found wrong before step 0. */
#include <inttypes.h>

#include "train/launcher.h"
#include "train/session.h"

static const double mib = 1024 * 1024;

static void summary(const sp_session *s, FILE *out)
{
    const size_t *count = s->data->count;
    sp_memory m = sp_graph_memory(s->train.graph);

    fprintf(out, "model  %s: %zu parameters, %.1f million MACs a sample\n",
            s->set.model->entry.name, sp_params_count(s->params),
            sp_graph_macs(s->train.graph) / 1e6);
    fprintf(out,
            "data   %s%s%s: %zu training, %zu validation, %zu test images of "
            "%dx%dx%d in %d classes\n",
            s->set.set->entry.name, s->data->root ? " in " : "",
            s->data->root ? s->data->root : "", count[SP_PART_TRAIN],
            count[SP_PART_VALID], count[SP_PART_TEST], s->info.h, s->info.w,
            s->info.c, s->info.classes);
    fprintf(out, "memory %.1f MiB for a step and %.1f MiB of work space\n",
            (double)m.planned / mib, (double)m.scratch / mib);
    fprintf(out, "cpu    %d threads, %s\n", s->threads, s->isa);
}

static void warn(const sp_settings *set, FILE *out)
{
    sp_text text = { 0 };

    sp_settings_warn(set, &text);
    fputs(sp_text_string(&text), out);
    sp_text_free(&text);
}

sp_err sp_check(const sp_config *c, FILE *out)
{
    sp_session s;

    SP_TRY(sp_launcher_check());
    SP_TRY(sp_session_open(
        &s, c, (sp_session_opt){ .train = true, .eval = true, .data = true }));
    if (out) {
        summary(&s, out);
        warn(&s.set, out);
    }
    sp_session_close(&s);
    return SP_OK;
}
