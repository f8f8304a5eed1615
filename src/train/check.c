/* What can be found wrong before step 0. */
#include <inttypes.h>

#include "dist/agree.h"
#include "train/alike.h"
#include "train/launcher.h"
#include "train/session.h"
#include "train/switch.h"

static const double mib = 1024 * 1024;

static void summary(const sp_session *s, FILE *out)
{
    sp_memory m = sp_graph_memory(s->train.graph);
    char text[SP_DESCRIBE_ROOM];

    sp_describe_model(s, text);
    fprintf(out, "model  %s\n", text);
    sp_describe_data(s, text);
    fprintf(out, "data   %s\n", text);
    sp_describe_batch(s, text);
    fprintf(out, "batch  %s\n", text);
    fprintf(out, "memory %.1f MiB for a step and %.1f MiB of work space\n",
            (double)m.planned / mib, (double)m.scratch / mib);
    fprintf(out, "cpu    %d thread%s, %s", s->threads,
            s->threads == 1 ? "" : "s", s->isa);
    fprintf(out, sp_comm_ranks(s->comm) > 1 ? ", on each of %d ranks\n" : "\n",
            sp_comm_ranks(s->comm));
}

sp_err sp_check(const sp_config *c, sp_comm *comm, FILE *out)
{
    sp_loader *batches = NULL;
    sp_text warnings = { 0 };
    sp_session s;
    bool low;
    sp_err e;

    if (!comm)
        SP_TRY(sp_launcher_check());
    SP_TRY(sp_switch_from_start(c, comm, &low));
    SP_TRY(sp_session_open(&s, c,
                           (sp_session_opt){ .train = true,
                                             .eval = true,
                                             .data = true,
                                             .low = low,
                                             .comm = comm }));
    e = sp_agree(comm, sp_session_batches(&s, &batches));
    if (e == SP_OK) {
        sp_session_warn(&s, (int64_t)sp_loader_batches(batches), &warnings);
        e = sp_switch_check(&s, NULL, &warnings);
    }
    sp_loader_free(batches);
    if (e == SP_OK)
        e = sp_session_agree(&s);
    if (e == SP_OK && out && sp_comm_rank(comm) == 0) {
        summary(&s, out);
        fputs(sp_text_string(&warnings), out);
    }
    sp_text_free(&warnings);
    sp_session_close(&s);
    return e;
}
