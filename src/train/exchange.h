/* The exchange of a step's gradients between ranks: which parameters a
 * compressor takes and which travel dense, their packets, and what arrives.
 *
 *   SP_TRY(sp_exchange_begin(x, &step));
 *   sp_backward(g, &run, sp_exchange_ready, x);
 *   SP_TRY(sp_exchange_end(x));
 *
 * Afterwards the gradients in the store are the sums over all ranks, with the
 * same bits on each. With one rank all is encoded and decoded, too, but nothing
 * is handed to MPI; without a compressor nothing is done.
 *
 * Source: Lin, Han, Mao, Wang, Dally 2018, "Deep gradient compression",
 *         algorithm 1 (the order of a step) and section 5 (encoding).
 */
#ifndef SP_TRAIN_EXCHANGE_H
#define SP_TRAIN_EXCHANGE_H

#include "dist/comm.h"
#include "optim/optim.h"
#include "sprat/compress.h"
#include "sprat/graph.h"
#include "train/packets.h"

typedef struct sp_exchange sp_exchange;

typedef struct sp_exchange_args {
    sp_comm *comm;     /* NULL: one rank */
    sp_params *params; /* compiled for training */
    sp_optim *optim;   /* whose momentum a compressor may take over */
    const sp_compressor *compressor;
    const void *own; /* its settings */
    double momentum; /* the optimizer's */
    bool nesterov;
    double clip;        /* optim.clip */
    bool node;          /* the ranks of a host count as one */
    bool merge;         /* merge packets on the way, not gather them all */
    bool always_gather; /* and `window`: as in sp_packets_args */
    int window;
    uint64_t seed;
    int threads;
} sp_exchange_args;

/* On success *out is the caller's to free. Not collective. Errors: SP_ECONFIG
 * when the compressor would compress nothing, or cannot merge; SP_ENOMEM. */
SP_MUST sp_err sp_exchange_new(sp_exchange **out, const sp_exchange_args *args);
void sp_exchange_free(sp_exchange *x);

/* Numbers that travel with the gradients and are added over the ranks; all of
 * them, as an array. */
typedef struct sp_status {
    double loss, correct, failed, stop, save, not_finite;
} sp_status;

/* Begin step `step` (from 0) at `progress` epochs; this rank has the share
 * `weight` of the batch. Collective. Errors: SP_ENOMEM for packets of another
 * density; SP_ECONFIG when all is to travel dense again after some was not;
 * SP_EPEER. */
SP_MUST sp_err sp_exchange_begin(sp_exchange *x, int64_t step, double progress,
                                 double weight);

/* An sp_ready: the parameter's gradient is final and leaves when its turn has
 * come. `exchange` is an sp_exchange. */
void sp_exchange_ready(void *exchange, sp_param *p);

/* Wait for what is under way. *status becomes the sum over all ranks, counting
 * in not_finite those whose gradients are not finite; then the gradients are
 * of no use. Collective.
 * Errors: SP_EPEER, SP_EFORMAT for a packet that cannot be decoded. Of merged
 * packets some ranks may have met the one, and not others, who find it counted
 * in status->failed: they then call sp_agree() once, as those have. */
SP_MUST sp_err sp_exchange_end(sp_exchange *x, sp_status *status);

/* Let `trace` have the spans of encoding and decoding; NULL: nobody. */
void sp_exchange_trace(sp_exchange *x, sp_trace *trace);

/* Whether the sum is not to be clipped, since each rank has clipped. */
bool sp_exchange_clips(const sp_exchange *x);

/* Array i that this rank keeps for a parameter: *n floats under *name; *adds:
 * as sp_compressor.state_adds. NULL: there is none (past the last, a parameter
 * that travels dense, a rank that is not its node's leader). */
float *sp_exchange_state(const sp_exchange *x, const sp_param *p, int i,
                         size_t *n, const char **name, bool *adds);

/* Whether training was dense up to here, so that the optimizer still holds all
 * momentum; it is part of the state, too. */
bool sp_exchange_dense(const sp_exchange *x);
void sp_exchange_set_dense(sp_exchange *x, bool dense);

/* Bytes of a parameter in a step, once the density has settled: of a rank's own
 * gradient as papers count it, without headers, and what each of `ranks` ranks
 * hands to MPI for it. */
typedef struct sp_forecast {
    double packet, mpi;
} sp_forecast;

sp_forecast sp_exchange_forecast(const sp_exchange_args *args,
                                 const sp_param *p, int ranks);

/* What travels how, in a line for people; NULL: out of memory. The caller frees
 * it. */
char *sp_exchange_describe(const sp_exchange *x);

/* Bytes of this rank's gradients so far. */
sp_packet_bytes sp_exchange_bytes(const sp_exchange *x);

/* Those of one parameter; false for a buffer. */
bool sp_exchange_tensor_bytes(const sp_exchange *x, const sp_param *p,
                              sp_packet_bytes *out);

/* Density of the last step; 0: before the first, or of no meaning. And whether
 * packets were decoded by their sender and summed dense, since gathering them
 * would cost more. */
double sp_exchange_density(const sp_exchange *x);
bool sp_exchange_sums(const sp_exchange *x);

/* Steps at one density, and their bytes; since it was opened, in order. False
 * past the last. */
typedef struct sp_level {
    double density;
    int64_t steps;
    sp_packet_bytes bytes;
} sp_level;

bool sp_exchange_level(const sp_exchange *x, int i, sp_level *out);

/* Bytes so far: of this rank's gradients as they were sent, handed to MPI for
 * the exchange, and of those what went to other hosts. */
typedef struct sp_sent {
    double packet, mpi, net;
} sp_sent;

sp_sent sp_exchange_sent(const sp_exchange *x);

/* Seconds so far in encoding and decoding, and in waiting for others. */
void sp_exchange_seconds(const sp_exchange *x, double *compress, double *wait);

#endif
