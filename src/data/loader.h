/* Batches of images, prepared ahead by threads of the loader's own, or chunks
 * of text.
 *
 * What a batch holds is a pure function of (seed, epoch, number of the batch,
 * rank, ranks), whatever the number of workers.
 *
 * Text is a stream of N tokens. It is cut into columns that are read side by
 * side, `steps` time steps at a time; a row is a column, and the target of a
 * token is the one after it.
 *   training  `batch` columns of L = N / batch tokens, the remainder dropped;
 *             each has L - 1 targets. The last chunk may be shorter and counts.
 *   scoring   all N - 1 targets, each once, in min(batch, N - 1) columns that
 *             overlap by one token; their numbers of targets differ by at most
 *             one, longer ones first. Where they differ, the last target of
 *             the longer columns is a batch of its own with fewer rows.
 * Row r of a chunk goes on where row r of the chunk before it ended. Of a
 * rank's columns the ones that have ended are at its end.
 *
 *   SP_TRY(sp_loader_new(&l, &opt));
 *   for (;;) {
 *       SP_TRY(sp_loader_next(l, &b));
 *       if (b.end)
 *           break;
 *       ... b.n rows in b.x and b.labels, or b.t * b.n in b.tokens ...
 *   }
 *   sp_loader_free(l);
 *
 * Source: the ring of slots is the classical bounded buffer; Dijkstra 1965,
 *         "Cooperating sequential processes". Columns of text: Zaremba,
 *         Sutskever, Vinyals 2014, "Recurrent neural network regularization".
 */
#ifndef SPRAT_DATA_LOADER_H
#define SPRAT_DATA_LOADER_H

#include "data/dataset.h"

typedef struct sp_loader_opt {
    const sp_dataset *data; /* must outlive the loader */
    sp_part part;
    size_t batch;    /* rows of the whole job's batch; text: columns */
    int rank, ranks; /* whose share of each batch; ranks 0 means 1 */
    /* Of images. */
    bool shuffle;   /* a new order each epoch; else that of the part */
    bool augment;   /* as the data set's settings ask; else only normalise */
    bool drop_last; /* leave out a last batch that is not full */
    uint64_t seed;
    int workers; /* threads; 0: as data.workers says */
    /* Of text. */
    int steps;    /* time steps of a chunk: train.bptt */
    bool scoring; /* columns for scoring, not for training */
} sp_loader_opt;

/* One rank's share of a batch; valid until the next call for its loader. */
typedef struct sp_batch {
    bool end;  /* the epoch has ended; the rest is 0 */
    bool last; /* nothing follows in this epoch */
    int epoch;
    size_t index;      /* of the batch in its epoch */
    size_t rows;       /* of the whole job's batch */
    size_t row;        /* where this rank's rows start in it */
    size_t targets;    /* of the whole job's batch: rows * t */
    int n;             /* this rank's rows; may be 0 */
    int t;             /* time steps; 1 for images */
    const int *labels; /* t*n: of step s and row i at s*n + i */
    /* Of images that a thread has prepared ahead: which, from 0, and when, by
     * sp_now(); else 0. */
    int worker;
    double begun, ended;
    /* Of images; NULL for text. */
    const float *x;    /* n images of h*w*c floats */
    const size_t *ids; /* n: number of each sample in its split */
    /* Of text; NULL for images. */
    const int32_t *tokens; /* t*n, as the labels */
} sp_batch;

typedef struct sp_loader sp_loader;

/* Start preparing epoch 0. Errors: SP_EDATA when dropping short batches
 * leaves none, or a training text is too short for one chunk; SP_EARG,
 * SP_ENOMEM. */
SP_MUST sp_err sp_loader_new(sp_loader **out, const sp_loader_opt *opt);

/* Stop the threads, whatever they are doing, and free everything. */
void sp_loader_free(sp_loader *l);

/* Batches in an epoch. */
size_t sp_loader_batches(const sp_loader *l);

/* The most rows a batch of this rank can have. */
size_t sp_loader_capacity(const sp_loader *l);

/* The next call of sp_loader_next() gives batch `index` of `epoch`; index =
 * sp_loader_batches() stands for the epoch's end. Errors: SP_EARG. */
SP_MUST sp_err sp_loader_seek(sp_loader *l, int epoch, size_t index);

/* The next batch, or once after an epoch's last the end mark; then comes the
 * next epoch. Errors: those of reading a sample; repeating the call repeats
 * the error. */
SP_MUST sp_err sp_loader_next(sp_loader *l, sp_batch *batch);

/* How `rows` rows are shared: rank r of R gets those from rows*r/R up to
 * rows*(r+1)/R. */
void sp_share(size_t rows, int rank, int ranks, size_t *first, size_t *n);

#endif
