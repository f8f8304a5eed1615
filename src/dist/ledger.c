/* Names and sums of the ledger, and what an operation will come to. */
#include "dist/ledger.h"

const char *sp_use_name(sp_use use)
{
    static const char *const names[SP_USES] = {
        [SP_USE_DENSE] = "dense",       [SP_USE_SIZES] = "sizes",
        [SP_USE_PACKET] = "packet",     [SP_USE_NODE] = "node",
        [SP_USE_STATUS] = "status",     [SP_USE_NORM] = "norm",
        [SP_USE_EVALUATE] = "evaluate", [SP_USE_CHECK] = "check",
        [SP_USE_SAVE] = "save",         [SP_USE_SWITCH] = "switch",
    };

    return names[use];
}

int64_t sp_ledger_step_bytes(const sp_ledger *l)
{
    int64_t bytes = 0;

    for (int i = 0; i < SP_USE_STEP; i++)
        bytes += l->use[i].bytes;
    return bytes;
}

double sp_ledger_step_net(const sp_ledger *l)
{
    double bytes = 0;

    for (int i = 0; i < SP_USE_STEP; i++)
        bytes += l->use[i].net;
    return bytes;
}

double sp_cost_sum(int ranks, double bytes)
{
    return 2.0 * (ranks - 1) / ranks * bytes;
}

double sp_cost_gather(int ranks, double own) { return (ranks - 1) * own; }
