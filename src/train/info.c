/* What a configuration will need; opens no data. */
#include <string.h>

#include "train/session.h"

sp_err sp_info_open(const sp_config *c, sp_info *out)
{
    sp_session s;

    SP_TRY(sp_session_open(
        &s, c, (sp_session_opt){ .train = true, .no_memory = true }));
    *out = (sp_info){
        .params = sp_params_count(s.params),
        .params_1d = sp_params_count_1d(s.params),
        .text = s.info.text,
        .macs = sp_graph_macs(s.train.graph),
        .memory = sp_graph_memory(s.train.graph),
        .dense_bytes = 4.0 * (double)sp_params_count(s.params),
        .packet_bytes = 4.0 * (double)sp_params_count(s.params),
        .tensors = s.params,
    };
    s.params = NULL; /* the caller's now; no graph must be left over it */
    sp_session_close(&s);
    return SP_OK;
}

void sp_info_close(sp_info *i)
{
    sp_params_free(i->tensors);
    *i = (sp_info){ 0 };
}
