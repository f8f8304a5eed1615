#include "train/trained.h"

#include "train/config_text.h"

sp_err sp_trained_open(sp_trained *t, const sp_registry *r, const char *run,
                       const char *checkpoint)
{
    sp_err e;

    *t = (sp_trained){ 0 };
    SP_TRY(sp_config_of_run(&t->config, r, run, NULL, 0));
    e = sp_checkpoint_open(&t->checkpoint, run,
                           checkpoint ? checkpoint : "best");
    if (e != SP_OK)
        sp_trained_close(t);
    return e;
}

void sp_trained_close(sp_trained *t)
{
    sp_checkpoint_close(&t->checkpoint);
    sp_config_free(t->config);
    *t = (sp_trained){ 0 };
}

sp_err sp_trained_session(const sp_trained *t, sp_session *s)
{
    const sp_manifest *m = &t->checkpoint.manifest;
    sp_data_info info = {
        .text = m->text,
        .chars = m->chars,
        .h = m->h,
        .w = m->w,
        .c = m->c,
        .classes = m->classes,
        .class_names = (const char *const *)m->class_names,
    };
    sp_err e;

    SP_TRY(sp_session_open(s, t->config,
                           (sp_session_opt){ .eval = true,
                                             .no_init = true,
                                             .low = m->low,
                                             .chosen = sp_manifest_ranks(m),
                                             .eval_rows = 1,
                                             .eval_steps = 1,
                                             .info = &info,
                                             .tiles = m->winograd }));
    e = sp_checkpoint_load(&t->checkpoint, s->params);
    if (e != SP_OK)
        sp_session_close(s);
    return e;
}
