/* What was handed to MPI, counted where it is handed over. */
#ifndef SP_DIST_LEDGER_H
#define SP_DIST_LEDGER_H

#include <stdint.h>

/* What an operation is for. The first ones are the exchange of gradients. */
typedef enum sp_use {
    SP_USE_DENSE,              /* gradients as they are, summed */
    SP_USE_SIZES,              /* sizes of packets */
    SP_USE_PACKET,             /* encoded gradients */
    SP_USE_NODE,               /* gradients within a host */
    SP_USE_STATUS,             /* loss, flags to stop: a few numbers a step */
    SP_USE_STEP,               /* the number of those above */
    SP_USE_NORM = SP_USE_STEP, /* statistics of global batch norm */
    SP_USE_EVALUATE,
    SP_USE_CHECK, /* agreement before step 0 and while training */
    SP_USE_SAVE,
    SP_USE_SWITCH, /* to low rank: factors */
    SP_USES
} sp_use;

/* Every operation is made of messages between two ranks, so what one sends is
 * known without a model of MPI's ways. */
typedef struct sp_ledger_entry {
    int64_t calls; /* of MPI_Isend */
    int64_t bytes; /* handed to it */
    double net;    /* of these, what goes to other hosts */
} sp_ledger_entry;

typedef struct sp_ledger {
    sp_ledger_entry use[SP_USES];
} sp_ledger;

/* "dense", "sizes", ...: the name of a use in reports. */
const char *sp_use_name(sp_use use);

/* Sums over the uses of a step. */
int64_t sp_ledger_step_bytes(const sp_ledger *l);
double sp_ledger_step_net(const sp_ledger *l);

/* Bytes that a rank will send, of `ranks`: for its share of a sum (all-reduce)
 * of an array of so many bytes (their mean over ranks, where parts are
 * unequal), and to give its own bytes to all (all-gather). */
double sp_cost_sum(int ranks, double bytes);
double sp_cost_gather(int ranks, double own);

#endif
