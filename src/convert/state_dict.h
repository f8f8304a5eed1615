/* All arrays that PyTorch knows of a network. */
#ifndef SP_CONVERT_STATE_DICT_H
#define SP_CONVERT_STATE_DICT_H

#include "base/arena.h"
#include "base/safetensors.h"
#include "train/session.h"

typedef struct sp_state_dict {
    sp_st_tensor *tensors; /* their data are the session's, or in the arena */
    size_t count;
    sp_arena arena;
} sp_state_dict;

/* List the parameters and buffers of an open session's network, and what
 * PyTorch has besides: a counter at every batch norm, here `steps`; the second
 * bias of a recurrent layer, zeros, where the network has one; a tied layer's
 * weights under its own name too. Errors: SP_ENOMEM. On success
 * sp_state_dict_close() frees what is in *d. */
SP_MUST sp_err sp_state_dict_open(sp_state_dict *d, const sp_session *s,
                                  int64_t steps);
void sp_state_dict_close(sp_state_dict *d);

/* The i-th layer, a node of the graph, whose weights n->p[0] are those of
 * another layer: in PyTorch they stand under NAME.weight too. NULL past the
 * last. */
const sp_node *sp_tied_node(const sp_graph *g, int i);

#endif
