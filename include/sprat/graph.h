/* Parameters, and programs over them.
 *
 * A program is recorded by plain calls in the order of execution: each appends
 * one operator to a list. Compiling checks it, plans all memory and marks when
 * each parameter's gradient is final; after that a step allocates nothing and
 * cannot fail. Backward is the same list from its end.
 *
 *   sp_params *p = sp_params_new();
 *   sp_graph *g = sp_graph_new(p, (sp_graph_opt){ .train = true });
 *   sp_tensor *x = sp_input(g, "image", (sp_shape){ .n = 8, .c = 4 }, SP_F32);
 *   sp_tensor *t = sp_input(g, "label", (sp_shape){ .n = 8, .c = 1 }, SP_I32);
 *   sp_tensor *y = sp_linear(g, "fc", x, (sp_linear_opt){ .out = 10 });
 *   sp_output(g, "loss", sp_cross_entropy(g, y, t, 0));
 *   SP_TRY(sp_compile(g));
 *   sp_params_init(p, seed);
 *   ... fill x->data and t->data ...
 *   sp_run run = { .n = 8, .t = 1, .train = true, .weight = 1.0 / 8 };
 *   sp_forward(g, &run);
 *   sp_backward(g, &run, NULL, NULL);
 */
#ifndef SPRAT_GRAPH_H
#define SPRAT_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sprat/base.h"

/* ---- Shapes and tensors ------------------------------------------------ */

typedef enum sp_dtype { SP_F32, SP_I32 } sp_dtype;

/* The capacity of a tensor: t time steps of n rows, each an image of h x w
 * pixels with c adjacent channels. A field left 0 counts as 1. How many of the
 * t and n are valid in one run is said by sp_run; memory is always dense over
 * the valid ones: element (t,n,h,w,c) stands at
 * (((t*run.n + n)*h + y)*w + x)*c + channel. */
typedef struct sp_shape {
    int t, n, h, w, c;
} sp_shape;

/* A value of the program. `data` and `grad` are set by sp_compile(); `grad` is
 * NULL where no gradient flows. Their memory is shared with other tensors, and
 * `data` may stand elsewhere in backward than in forward, unless the tensor is
 * an input or output. Owned by the graph. */
typedef struct sp_tensor {
    sp_shape shape;
    sp_dtype dtype;
    void *data, *grad;
    const char *name; /* "layer1.0.conv1", for messages */
    int index;
} sp_tensor;

/* Elements at full capacity. */
size_t sp_count(sp_shape s);

/* ---- Parameter store --------------------------------------------------- */

enum { SP_MAX_DIMS = 4 };

/* How a parameter starts. Every element is a function of (seed, name, element
 * number) alone. */
typedef struct sp_init {
    enum { SP_CONSTANT, SP_UNIFORM, SP_NORMAL } kind;
    float a; /* the constant; the bound of [-a, a); the standard deviation */
} sp_init;

/* One named array: trained, or a buffer such as a running mean. Axes stand in
 * PyTorch's order (convolution: out, in/groups, kh, kw; linear: out, in), in
 * memory as in files. */
typedef struct sp_param {
    const char *name; /* PyTorch's, "layer1.0.conv1.weight" */
    int ndim, dims[SP_MAX_DIMS];
    size_t count;  /* elements */
    size_t offset; /* floats from the start of its block */
    sp_init init;
    bool buffer; /* not trained: no gradient, not counted as a parameter */
    /* Of a low-rank layer, see sp_factors_of(): the name of the parameter of
     * full rank that this is a factor of, and the other factor; else NULL. With
     * a name alone it is that parameter, see sp_stands_for(). */
    const char *whole;
    struct sp_param *other;
    bool left; /* it is v of v u, not u */
    float *value, *grad;
    int index;
} sp_param;

typedef struct sp_params sp_params;

/* An empty store. NULL: out of memory. Graphs recorded over it must be freed
 * before it. */
sp_params *sp_params_new(void);
void sp_params_free(sp_params *p);

/* The parameter of that name, or NULL. */
sp_param *sp_params_find(const sp_params *p, const char *name);

/* The i-th, in recording order, trained and buffers mixed; NULL past the
 * last. */
sp_param *sp_params_at(const sp_params *p, int i);

/* Parameters and buffers. */
int sp_params_size(const sp_params *p);

/* Trained elements, and those of them in one-dimensional parameters. */
size_t sp_params_count(const sp_params *p);
size_t sp_params_count_1d(const sp_params *p);

/* The contiguous blocks of all trained values and of all their gradients, in
 * recording order (sp_params_count() floats each). NULL before the first
 * sp_compile(). */
float *sp_params_values(const sp_params *p);
float *sp_params_grads(const sp_params *p);

/* Set every parameter and buffer of a compiled store (one with memory) to its
 * initial value for `seed`. */
void sp_params_init(sp_params *p, uint64_t seed);

/* ---- Recording --------------------------------------------------------- */

typedef struct sp_graph sp_graph;
typedef struct sp_kernels sp_kernels;

/* Where 3 x 3 convolutions of stride 1 go by Winograd's tiles, which need 2 to
 * 4 times fewer multiplications and round some times more coarsely. */
typedef enum sp_winograd {
    SP_WINOGRAD_AUTO, /* where a rule finds them faster: a function of shape,
                         pass and instruction set, fitted to measurements */
    SP_WINOGRAD_OFF,  /* nowhere */
    SP_WINOGRAD_2,    /* everywhere, in tiles of 2 x 2 outputs */
    SP_WINOGRAD_4     /* everywhere, in tiles of 4 x 4 outputs */
} sp_winograd;

/* Which layers are of low rank: their weights a product v u of two factors.
 * Layers ask by their full names ("layer1.0.conv1"; matrices of a recurrent
 * layer "rnn.weight_ih_l0"), where their own options do not give a rank. */
typedef struct sp_rank_rule {
    /* The rank of the layer's weights, taken as a matrix {rows, columns} (of a
     * recurrent layer, of one gate); 0: full, in one piece. */
    int (*rank)(void *arg, const char *layer, int rows, int columns);
    void *arg;
    bool extra_norm; /* a batch norm between the factors of a convolution */
    bool joined;     /* recurrent: all gates of a matrix as one, of the rank of
                        a single gate */
} sp_rank_rule;

/* Whether a list of layers, apart by spaces, has this one: an entry is a full
 * name, or the first of its parts from dot to dot ("layer1.0" for
 * "layer1.0.conv1"), or, with a dot before them, parts anywhere in it
 * (".downsample" for "layer2.0.downsample.0"). For sp_rank_rule.rank. */
bool sp_layer_listed(const char *list, const char *layer);

typedef struct sp_graph_opt {
    bool train;      /* record for training: plan a backward pass */
    bool no_planner; /* every buffer gets its own memory; same results */
    bool recompute;  /* keep no output from forward to backward that its
                        operator can compute again (batch norms), where that
                        lowers the planned memory: one more pass over input and
                        output for each; same results */
    int threads;     /* used by every operator; 0 counts as 1 */
    const char *isa; /* NULL or "auto": the best this CPU has; else its name */
    bool reference;  /* convolution by im2col and BLAS instead of tiles */
    sp_winograd winograd;
    const char *tiles; /* what SP_WINOGRAD_AUTO chose in another program of the
                          same network, from sp_graph_tiles(): to choose the
                          same; "": none at all; NULL: by the rule. Read until
                          the program is compiled */
    const sp_rank_rule *ranks; /* NULL: as the layers' options say. Read until
                                  the program is compiled */
    bool no_memory;   /* sp_compile() checks and plans but allocates nothing:
                         for reports on networks of any size */
    bool input_grads; /* plan gradients of float inputs too: for checks */
} sp_graph_opt;

/* A program under recording over the store `p`. A store that is already
 * compiled gives its existing parameters by name; asking it for a new one is
 * an error. NULL: out of memory. */
sp_graph *sp_graph_new(sp_params *p, sp_graph_opt opt);
void sp_graph_free(sp_graph *g);

/* Recording never fails at the call: the first mistake sticks to the graph and
 * sp_compile() returns it. Calls after it do nothing and give a valid dummy.
 *
 * Names: sp_push(g, "layer1") puts "layer1." before the names recorded until
 * the matching sp_pop(). Scopes nest; a name may have dots, "layer1.0". */
void sp_push(sp_graph *g, const char *name);
void sp_pop(sp_graph *g);

/* A value that the caller fills before each run. Its memory is its own. */
sp_tensor *sp_input(sp_graph *g, const char *name, sp_shape s, sp_dtype type);

/* Keep a tensor's data until the end of the run, for the caller to read, under
 * a name. The output "loss" must be {n or t*n rows of 1}: sp_loss() sums its
 * valid rows, and backward starts from it. */
void sp_output(sp_graph *g, const char *name, sp_tensor *x);

/* A value {1,n,1,1,c} of floats that one run leaves to the next, such as the
 * hidden state of a recurrent layer: sp_state() gives what it is at the run's
 * start, an input; sp_next_state() says what it is at the end, an output of
 * the same shape, as sp_output(g, NAME, next) would make it. The caller
 * carries it over: see sp_graph_state(). sp_compile() refuses with SP_EARG a
 * state without a next one, with two, or that is none, and with SP_ESHAPE a
 * next one of another shape. */
sp_tensor *sp_state(sp_graph *g, const char *name, int n, int c);
void sp_next_state(sp_graph *g, sp_tensor *state, sp_tensor *next);

/* A trained parameter or a buffer of the store, created at first use;
 * `dims` ends with the first 0 or after SP_MAX_DIMS. The same name must always
 * come with the same dims. */
sp_param *sp_weight(sp_graph *g, const char *name, const int *dims,
                    sp_init init);
sp_param *sp_buffer(sp_graph *g, const char *name, const int *dims,
                    sp_init init);

/* The trained parameter of that full name, whatever scope is open, recorded
 * before: for a part that shares it with another. SP_EARG sticks to the graph
 * when there is none. */
sp_param *sp_weight_named(sp_graph *g, const char *full_name);

/* For layers that may be of low rank: the rank that NAME's weights are to have,
 * {rows, columns} taken as a matrix: `asked`, if that is not 0, or what the
 * graph's sp_rank_rule says; 0: full rank. SP_EARG sticks to the graph for a
 * rank that is negative or above the smaller side. */
int sp_layer_rank(sp_graph *g, const char *name, int asked, int rows,
                  int columns);

/* The graph's rule; all zero where it has none. */
sp_rank_rule sp_graph_ranks(const sp_graph *g);

/* Say that u and v are the factors of what the layer of full rank calls `whole`
 * (within the open scope, "conv1.weight"): taken as matrices, whole = v u, with
 * u {rank, columns} and v {rows, rank}. Blocks of rows may have factors of
 * their own, as gates do: u is then {blocks * rank, columns} and block b of v's
 * rows meets block b of u's. This is what sp_factorize() goes by. */
void sp_factors_of(sp_graph *g, const char *whole, sp_param *u, sp_param *v);

/* Say that p is what the layer of full rank calls `whole` (within the open
 * scope, "fc.bias"), though it has another name here. */
void sp_stands_for(sp_graph *g, const char *whole, sp_param *p);

/* How both factors have to start for their product to be spread as `whole`: of
 * N(0, a^2) both are N(0, s^2) with rank s^4 = a^2; of uniform in +-a, in +-b
 * with b^4 = 3 a^2 / rank; of a constant, the root of |a| / rank.
 *
 * Differs: the code that was published with Wang et al. 2021 starts each factor
 *          as a layer of its own, whose product is spread otherwise. */
sp_init sp_factor_init(sp_init whole, int rank);

/* Make the graph's first error, as any failing record call does: how a builder
 * refuses a value that does not fit. */
void sp_graph_fail(sp_graph *g, sp_err e, const char *fmt, ...) SP_PRINTF(3, 4);

/* ---- Compiling --------------------------------------------------------- */

/* Check everything, plan and allocate memory; once for each graph. Errors: the
 * first recording error; SP_ESHAPE; SP_EARG for a parameter that the loss does
 * not reach, a training program without a loss, an unknown `isa` or a graph
 * that is compiled already; SP_ENOMEM, with the bytes that were wanted. */
SP_MUST sp_err sp_compile(sp_graph *g);

typedef struct sp_memory {
    size_t planned;     /* bytes of all values, gradients and saved data */
    size_t unplanned;   /* the same if every buffer had its own memory; a value
                           that is computed again has two */
    size_t lower_bound; /* the most that is live at one time: no plan can do
                           with less */
    size_t scratch;     /* bytes of the shared work space, not in the above */
} sp_memory;

sp_memory sp_graph_memory(const sp_graph *g);

/* Multiplications of convolutions and matrix products for one row and time
 * step of the first input, forward. */
double sp_graph_macs(const sp_graph *g);

/* The i-th state, in recording order: what the caller has to fill before a run
 * (zeros for the first), and where it stands after it. NULL past the last. */
typedef struct sp_state_pair {
    sp_tensor *now, *next;
} sp_state_pair;

const sp_state_pair *sp_graph_state(const sp_graph *g, int i);

sp_tensor *sp_graph_input(const sp_graph *g, const char *name);  /* or NULL */
sp_tensor *sp_graph_output(const sp_graph *g, const char *name); /* or NULL */

/* The name of the instruction set in use: "base", "avx2", "avx512", "neon". */
const char *sp_graph_isa(const sp_graph *g);

/* What SP_WINOGRAD_AUTO chose, for sp_graph_opt.tiles: an entry for each
 * convolution that may have tiles, in their order, "layer1.0.conv1=440
 * layer1.0.conv2=444": tiles of 2 x 2 or 4 x 4 outputs, or 0 for none, forward,
 * backward to the input and backward to the weights. NULL where nothing was
 * chosen: another setting, or the reference. The caller frees *text. Errors:
 * SP_ENOMEM. */
SP_MUST sp_err sp_graph_tiles(const sp_graph *g, char **text);

/* ---- Running ----------------------------------------------------------- */

/* What one run is told. Operators loop over the valid rows only. */
typedef struct sp_run {
    int n, t;      /* valid rows (0 allowed) and steps, up to the capacity */
    bool train;    /* batch statistics and dropout, not running statistics */
    bool add;      /* parameter gradients: add to what is there, not store */
    double weight; /* of one row in the loss: 1 / rows of the whole batch */
    uint64_t seed;
    int64_t step; /* of training, from 0 */
    int64_t row;  /* index of the first row in the whole job's batch */
    int threads;  /* set by the graph */
    const sp_kernels *kernels; /* set by the graph */
    /* Who follows the run, see op.h; NULL: nobody. */
    const struct sp_watch *watch;
    /* How numbers are added over the runs that share the batch, see op.h; NULL:
     * each counts for itself. */
    const struct sp_across *across;
} sp_run;

/* Run the program on the inputs' data. */
void sp_forward(sp_graph *g, const sp_run *run);

/* Sum over the valid rows of the output "loss", times run->weight. */
double sp_loss(const sp_graph *g, const sp_run *run);

/* Called during backward as soon as a parameter's gradient is final. */
typedef void (*sp_ready)(void *arg, sp_param *p);

/* Gradients of sp_loss() with respect to every trained parameter (and every
 * tensor), after sp_forward() with the same run. `ready` may be NULL. */
void sp_backward(sp_graph *g, const sp_run *run, sp_ready ready, void *arg);

/* Run forward and backward once more, looking at every result: *where becomes
 * the operator whose output or gradient is the first that is not finite, e.g.
 * "fc (matmul), forward"; or NULL if all is finite. Owned by the graph. */
void sp_find_nonfinite(sp_graph *g, const sp_run *run, const char **where);

/* ---- Checking gradients ------------------------------------------------ */

/* The worst disagreement that sp_gradcheck() found. */
typedef struct sp_gradcheck_result {
    double error;     /* |analytic - numeric| over the largest gradient of the
                         same array (at least 0.01) */
    const char *name; /* of the parameter or input, owned by the graph */
    size_t element;
    double analytic, numeric;
    size_t checked; /* elements compared */
} sp_gradcheck_result;

/* Compare the gradients of a compiled training program with central
 * differences at the inputs' and parameters' present values, for up to
 * `per_array` elements of every float input and every parameter. */
void sp_gradcheck(sp_graph *g, const sp_run *run, double h, size_t per_array,
                  sp_gradcheck_result *worst);

#endif
