/* The keys of the sections `model`, `train`, `compress` and `log`. */
#include "train/keys.h"

#include "kernels/kernels.h"
#include "sprat/train.h"

#define MODEL(field) offsetof(sp_model_cfg, field)
#define TRAIN(field) offsetof(sp_train_cfg, field)
#define DIST(field) offsetof(sp_dist_cfg, field)
#define LOG(field) offsetof(sp_log_cfg, field)

static const sp_key model_keys[] = {
    { "classes", SP_INT, MODEL(classes), "0", 0, 1e6,
      "outputs; 0: as many as the data set has classes", NULL },
    { "init", SP_TEXT, MODEL(init), "", 0, 0,
      "safetensors file of weights to start from", NULL },
};

static const sp_key train_keys[] = {
    { "epochs", SP_INT, TRAIN(epochs), "1", 1, 1e6,
      "passes over the training samples", NULL },
    { "max_steps", SP_INT, TRAIN(max_steps), "0", 0, 2e9,
      "end the run after so many steps; 0: no limit", NULL },
    { "max_minutes", SP_FLOAT, TRAIN(max_minutes), "0", 0, 1e9,
      "save and stop after so many minutes; 0: no limit", NULL },
    { "batch", SP_INT, TRAIN(batch), "128", 1, 1 << 20,
      "samples of one step, of the whole job; of text, columns", NULL },
    { "micro_batch", SP_INT, TRAIN(micro_batch), "0", 0, 1 << 20,
      "samples of one forward and backward pass; divides batch; 0: all", NULL },
    { "drop_last", SP_BOOL, TRAIN(drop_last), "true", 0, 0,
      "images: leave out an epoch's last batch when it is short", NULL },
    { "eval_batch", SP_INT, TRAIN(eval_batch), "256", 1, 1 << 20,
      "samples of one pass in evaluation; of text, columns, each of which "
      "begins with states of zero",
      NULL },
    { "bptt", SP_INT, TRAIN(bptt), "35", 1, 65536,
      "text: tokens of each column in a step, through which gradients go back",
      NULL },
    { "seed", SP_INT, TRAIN(seed), "1", 0, 2e9, "of every random number",
      NULL },
    { "threads", SP_INT, TRAIN(threads), "0", 0, SP_MAX_THREADS,
      "of each rank; 0: as many as the affinity mask allows", NULL },
    { "planner", SP_BOOL, TRAIN(planner), "true", 0, 0,
      "share memory between values that are not needed at the same time",
      NULL },
    { "recompute", SP_CHOICE, TRAIN(recompute), "none", 0, 0,
      "norm: compute batch norms again in backward, for less memory",
      "none|norm" },
    { "isa", SP_CHOICE, TRAIN(isa), "auto", 0, 0,
      "instruction set; auto: the best that the CPU has",
      "auto|base|avx2|avx512|neon" },
    { "winograd", SP_CHOICE, TRAIN(winograd), "auto", 0, 0,
      "3 x 3 convolutions by Winograd's tiles: auto: where they are faster; 2, "
      "4: of 2 x 2 or 4 x 4 outputs everywhere",
      "auto|off|2|4" },
    { "reference", SP_BOOL, TRAIN(reference), "false", 0, 0,
      "convolution by im2col and BLAS: slow, for comparison", NULL },
    { "label_smoothing", SP_FLOAT, TRAIN(label_smoothing), "0", 0, 0.999,
      "share of the target that is spread over all classes", NULL },
    { "checkpoint_steps", SP_INT, TRAIN(checkpoint_steps), "0", 0, 2e9,
      "also save every so many steps; 0: at the ends of epochs only", NULL },
    { "checkpoint_minutes", SP_FLOAT, TRAIN(checkpoint_minutes), "0", 0, 1e9,
      "also save after so many minutes; 0: at the ends of epochs only", NULL },
    { "keep", SP_INT, TRAIN(keep), "2", 0, 1e6,
      "older checkpoints that stay beside last and best", NULL },
};

static const sp_key dist_keys[] = {
    { "sync_bn", SP_BOOL, DIST(sync_bn), "false", 0, 0,
      "batch norm over the batch of all ranks, not of each", NULL },
    { "hierarchy", SP_CHOICE, DIST(hierarchy), "flat", 0, 0,
      "node: the ranks of a host add their gradients first and count as one",
      "flat|node" },
    { "ranks_per_node", SP_INT, DIST(ranks_per_node), "0", 0, 65536,
      "so many successive ranks count as a host; 0: those that share memory",
      NULL },
    { "exchange", SP_CHOICE, DIST(exchange), "gather", 0, 0,
      "packets of a compressor: every rank's reach all, or are merged on the "
      "way (recursive doubling)",
      "gather|merge" },
    { "timeout_s", SP_FLOAT, DIST(timeout_s), "600", 1, 1e6,
      "seconds after which a rank that does not come ends the job", NULL },
    { "check_every", SP_INT, DIST(check_every), "500", 0, 2e9,
      "steps between comparisons of all ranks' parameters; 0: never", NULL },
};

static const sp_key log_keys[] = {
    { "every", SP_INT, LOG(every), "50", 1, 1e9,
      "steps from one line of metrics.jsonl to the next", NULL },
    { "tensors", SP_BOOL, LOG(tensors), "true", 0, 0,
      "tensors.jsonl: norms and bytes of each parameter, every epoch", NULL },
    { "csv", SP_BOOL, LOG(csv), "false", 0, 0,
      "metrics.jsonl as tables, too: metrics.csv, steps.csv, times.csv", NULL },
    { "tensorboard", SP_BOOL, LOG(tensorboard), "false", 0, 0,
      "metrics.jsonl as an event file, too, in tensorboard/", NULL },
    { "trace", SP_BOOL, LOG(trace), "false", 0, 0,
      "trace.json: a timeline of steps on all ranks", NULL },
    { "trace_steps", SP_INT, LOG(trace_steps), "20", 1, 10000,
      "steps in it, from where the run begins or goes on", NULL },
};

const sp_section sp_model_section = {
    .name = "model",
    .fallback = "",
    .plural = "models",
    .size = sizeof(sp_model_cfg),
    .keys = model_keys,
    .key_count = sizeof model_keys / sizeof *model_keys,
};

const sp_section sp_train_section = {
    .name = "train",
    .size = sizeof(sp_train_cfg),
    .keys = train_keys,
    .key_count = sizeof train_keys / sizeof *train_keys,
};

const sp_section sp_compress_section = {
    .name = "compress",
    .fallback = "none",
    .plural = "compressors",
};

const sp_section sp_dist_section = {
    .name = "dist",
    .size = sizeof(sp_dist_cfg),
    .keys = dist_keys,
    .key_count = sizeof dist_keys / sizeof *dist_keys,
};

const sp_section sp_log_section = {
    .name = "log",
    .size = sizeof(sp_log_cfg),
    .keys = log_keys,
    .key_count = sizeof log_keys / sizeof *log_keys,
};

const char *sp_isa_choice(int value)
{
    static const char *const words[] = { "auto", "base", "avx2", "avx512",
                                         "neon" };

    return words[value];
}
