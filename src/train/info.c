/* What a configuration will need; opens no data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/session.h"

/* What each parameter's gradient takes in a step, when warm-ups are over. */
static sp_err forecast(const sp_session *s, sp_info *out)
{
    const sp_settings *set = &s->set;
    sp_exchange_args a = { .compressor = set->compressor,
                           .own = set->compressor_own,
                           .clip = set->optim->clip };
    const sp_param *p;

    out->tensor_bytes =
        calloc((size_t)sp_params_size(s->params) + 1, sizeof(double));
    if (!out->tensor_bytes)
        return sp_fail(SP_ENOMEM, "info: out of memory");
    for (int i = 0; (p = sp_params_at(s->params, i)); i++) {
        if (p->buffer)
            continue;
        out->tensor_bytes[i] = sp_exchange_forecast(&a, p, 1).packet;
        out->packet_bytes += out->tensor_bytes[i];
        for (int k = 0; k < SP_INFO_RANKS; k++) {
            sp_info_ranks *r = &out->on[k];
            r->mpi_bytes += sp_exchange_forecast(&a, p, r->ranks).mpi;
            r->dense_bytes += sp_cost_sum(r->ranks, 4.0 * (double)p->count);
        }
    }
    return SP_OK;
}

sp_err sp_info_open(const sp_config *c, bool at_end, sp_info *out)
{
    const sp_lowrank_cfg *cfg = sp_config_own(c, "lowrank");
    bool unknown = at_end && cfg && cfg->rank == SP_RANK_AUTO;
    bool low = at_end && !unknown ? cfg != NULL : sp_lowrank_from_start(cfg);
    sp_session s;
    sp_err e;

    SP_TRY(sp_session_open(
        &s, c,
        (sp_session_opt){ .train = true, .no_memory = true, .low = low }));
    *out = (sp_info){
        .low = low,
        .unknown = unknown,
        .params = sp_params_count(s.params),
        .params_1d = sp_params_count_1d(s.params),
        .text = s.info.text,
        .macs = sp_graph_macs(s.train.graph),
        .memory = sp_graph_memory(s.train.graph),
        .dense_bytes = 4.0 * (double)sp_params_count(s.params),
    };
    for (int k = 0, ranks = 2; k < SP_INFO_RANKS; k++, ranks *= 4)
        out->on[k].ranks = ranks;
    e = forecast(&s, out);
    if (e == SP_OK) {
        out->tensors = s.params;
        s.params = NULL; /* the caller's now; no graph must be left over it */
    }
    sp_session_close(&s);
    return e;
}

void sp_info_close(sp_info *i)
{
    sp_params_free(i->tensors);
    free(i->tensor_bytes);
    *i = (sp_info){ 0 };
}
