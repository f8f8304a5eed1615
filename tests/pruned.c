#include "pruned.h"

#include <check.h>

static const char *const resnet[] = {
    "model.name=resnet", "model.depth=8",       "data.shape=[8,8,3]",
    "data.train=48",     "train.epochs=2",      "prune.name=magnitude",
    "prune.rounds=2",    "optim.nesterov=true", NULL
};
const char *const pruned_mlp[] = { "model.hidden=[16,12]",    "train.epochs=2",
                                   "prune.name=magnitude",    "prune.rounds=2",
                                   "optim.weight_decay=0.01", NULL };
static const char *const lstm[] = {
    "model.name=lstm_lm", "model.hidden=8",       "model.dropout=0.25",
    "data.vocab=11",      "data.augment=none",    "data.train=180",
    "data.test=41",       "train.batch=4",        "train.bptt=8",
    "train.epochs=2",     "prune.name=magnitude", "prune.rounds=2",
    "optim.name=adam",    "optim.lr=0.01",        NULL
};
const char *const pruned_late[] = {
    "train.epochs=3",           "data.valid=16",
    "prune.name=magnitude",     "prune.rounds=2",
    "prune.rewind_epoch=1",     "prune.share=0.5",
    "schedule.name=plateau",    "schedule.patience=0",
    "schedule.threshold=1",     "optim.clip=0.5",
    "train.checkpoint_steps=2", NULL
};

const char *const *const pruned_networks[PRUNED_NETWORKS] = { resnet,
                                                              pruned_mlp, lstm,
                                                              pruned_late };

void pruned_train(const runs *r, const char *run, const char *const *overrides)
{
    if (runs_train(r, (runs_job){ .run = run, .overrides = overrides }) !=
        SP_OK)
        ck_abort_msg("%s", sp_last_error());
}

void pruned_resume(const runs *r, const char *run, const char *const *overrides)
{
    if (runs_resume(r, (runs_job){ .run = run, .overrides = overrides }) !=
        SP_OK)
        ck_abort_msg("%s", sp_last_error());
}
