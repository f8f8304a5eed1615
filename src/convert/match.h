/* Which array of a foreign file is which parameter of a network. */
#ifndef SP_CONVERT_MATCH_H
#define SP_CONVERT_MATCH_H

#include "convert/foreign.h"
#include "sprat/graph.h"

enum { SP_MATCH_NAME = 640 };

typedef struct sp_match {
    const sp_foreign *file;
    const sp_graph *graph;
    const sp_params *params;
    const char *except; /* a list for sp_layer_listed(), or "" */
    char prefix[64];    /* before every name in the file */
    bool *used;         /* by the array's index in the file */
    /* By the parameter's index. NULL: it starts anew. */
    const sp_foreign_array **of;
    /* The bias of the convolution before it that a batch norm's mean takes in;
     * the second bias that a recurrent layer's only one takes in; or NULL. */
    const sp_foreign_array **folded;
} sp_match;

/* Find the array of every parameter but those in `except`, and what becomes of
 * the arrays left over. `file`, `graph`, `params` and `except` are set by the
 * caller. Errors: SP_EFORMAT with all names that do not fit, SP_EARG for an
 * unknown name in `except`, SP_ENOMEM. On success sp_match_close() frees what
 * is in *m. */
SP_MUST sp_err sp_match_open(sp_match *m);
void sp_match_close(sp_match *m);

/* The array of that name without its prefix, or NULL. */
const sp_foreign_array *sp_match_find(const sp_match *m, const char *name);

#endif
