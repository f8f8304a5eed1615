/* The test part, scored once with the best weights when a run on text has
 * ended: what is chosen by must not be tested on. */
#include <math.h>

#include "dist/agree.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/trainer.h"

bool sp_trainer_tests_last(const sp_trainer *t)
{
    const size_t *count = t->session.data->count;

    return t->session.info.text && count[SP_PART_VALID] > 0 &&
           count[SP_PART_TEST] > 0;
}

static sp_err load_best(sp_trainer *t)
{
    sp_comm *comm = t->session.comm;
    sp_checkpoint k;
    sp_err e;

    SP_TRY(sp_checkpoint_open_whole(&k, t->dir.path, "best", comm));
    e = sp_agree(comm, sp_checkpoint_load(&k, t->session.params));
    sp_checkpoint_close(&k);
    return e;
}

sp_err sp_trainer_test(sp_trainer *t)
{
    sp_epoch_line *best = &t->state.best, *last = &t->state.last;
    sp_scores scores;

    if (!sp_trainer_tests_last(t) || isnan(best->epoch))
        return SP_OK;
    SP_TRY(load_best(t));
    SP_TRY(sp_evaluate(&t->session, SP_PART_TEST, sp_trainer_must_stop, t,
                       &scores));
    best->test_loss = scores.loss;
    best->test_ppl = scores.ppl;
    if (last->step == best->step) {
        last->test_loss = best->test_loss;
        last->test_ppl = best->test_ppl;
    }
    sp_console_line(&t->console,
                    "test     %.4f ppl %.2f over %zu targets, with the weights "
                    "of epoch %.0f, the best on the validation part",
                    best->test_loss, best->test_ppl, scores.count, best->epoch);
    return SP_OK;
}
