/* What a graph is inside; shared by the files of this folder. */
#ifndef SP_PROGRAM_H
#define SP_PROGRAM_H

#include "base/arena.h"
#include "sprat/op.h"

/* A tensor with what compiling needs to know of it. */
typedef struct sp_value {
    sp_tensor t;           /* first: an sp_tensor * is an sp_value * */
    int producer;          /* index of the node; -1: an input */
    const char *output;    /* the name it is kept under; NULL: none */
    bool reached;          /* by the loss: has a gradient */
    int last_forward;      /* time of the last reader in forward */
    int first_back;        /* of the first reader in backward */
    int last_back;         /* of the last one; 0: none */
    bool again;            /* computed again at first_back */
    int block, grad_block; /* in the plan; -1: none */
    int again_block;       /* where it is computed again; if it is */
    void *data[2];         /* t.data in forward, and from first_back on */
} sp_value;

/* A node with what only the graph needs. */
typedef struct sp_step {
    sp_node node; /* first */
    bool reached; /* runs in backward */
    int saved_block;
    /* The steps that compute their values again before this one's backward, in
     * order: a list through next_again. */
    struct sp_step *first_again, *next_again;
} sp_step;

/* A growing array of pointers. */
typedef struct sp_pointers {
    void **at;
    int count, room;
} sp_pointers;

bool sp_pointers_add(sp_pointers *p, void *item);

struct sp_params {
    sp_arena arena;
    sp_pointers list; /* sp_param */
    bool sealed;      /* compiled: no new ones */
    float *values, *grads, *buffers;
};

struct sp_graph {
    sp_params *params;
    sp_graph_opt opt;
    const sp_kernels *kernels;
    sp_arena arena;
    sp_err err;
    char error[2048];
    char scope[256];
    int scope_at[256]; /* where each open scope starts; none is empty */
    int scopes;
    sp_pointers values; /* sp_value */
    sp_pointers steps;  /* sp_step */
    sp_pointers states; /* sp_state_pair */
    const char *tiles;  /* what is left of opt.tiles; NULL: there is none */
    sp_value *loss;
    sp_value dummy; /* what failed calls return */
    sp_param dummy_param;
    int *final; /* by parameter: the step whose backward ends it */
    sp_memory memory;
    void *planned, *scratch;
    void **own; /* without planner: every block's memory */
    int own_count;
    char where[320]; /* of sp_find_nonfinite() */
};

static inline sp_value *sp_value_at(const sp_graph *g, int i)
{
    return g->values.at[i];
}

static inline sp_step *sp_step_at(const sp_graph *g, int i)
{
    return g->steps.at[i];
}

/* The value that a step's operator could compute again; NULL: none. */
static inline sp_value *sp_step_again(const sp_step *s)
{
    const sp_node *n = &s->node;

    return n->op->recompute && n->y_count == 1 ? (sp_value *)n->y[0] : NULL;
}

/* The open scope + name, in the graph's arena; NULL: out of memory, which is
 * then the graph's error. */
char *sp_full_name(sp_graph *g, const char *name);

/* The tiles of a convolution that can have them: in `tile` stand those of the
 * rule, which stay unless the graph's options say otherwise (tiles.c). Errors:
 * SP_EARG when a record does not go on with this convolution. */
SP_MUST sp_err sp_tiles_choose(const sp_node *n, int tile[SP_TILED_PASSES]);

/* Every state has a next one. Errors: SP_EARG. */
SP_MUST sp_err sp_states_check(const sp_graph *g);

/* All convolutions are recorded. Errors: SP_EARG when the record has more. */
SP_MUST sp_err sp_tiles_end(sp_graph *g);

/* Give a store its blocks, gradients too when `grads`; no effect when they are
 * there. Errors: SP_ENOMEM. */
SP_MUST sp_err sp_params_seal(sp_params *p, bool grads);

#endif
