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
