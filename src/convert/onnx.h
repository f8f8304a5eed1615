/* Networks as ONNX models, opset 13: the recorded program, operator by
 * operator.
 *
 * Source: the ONNX project, "ONNX IR specification", onnx.proto, and
 *         "Operator Schemas", of release 1.12.
 */
#ifndef SP_CONVERT_ONNX_H
#define SP_CONVERT_ONNX_H

#include "base/arena.h"
#include "base/text.h"
#include "convert/about.h"
#include "sprat/op.h"

/* A model under way. Images are {N,c,h,w} there; what matmul gives is {N,c}. */
typedef struct sp_onnx {
    const sp_graph *graph;
    sp_text nodes, weights; /* fields of the graph's message */
    struct sp_onnx_value {  /* by the tensor's index */
        const char *name;
        bool flat; /* {N,c} */
    } * values;
    bool *written; /* by the parameter's index */
    int made;      /* values that no tensor is */
    sp_arena arena;
    sp_err error; /* the first */
} sp_onnx;

/* One operator's translation: a row of the table in onnx_ops.c. */
typedef struct sp_onnx_row {
    const char *op; /* sp_op.name */
    void (*translate)(sp_onnx *o, const sp_node *n);
} sp_onnx_row;

/* The row of an operator, or NULL. */
const sp_onnx_row *sp_onnx_find(const char *op);

/* ---- For translations; what fails sticks to o->error -------------------- */

/* An attribute: whole numbers, or one number. */
typedef struct sp_onnx_attr {
    const char *name; /* NULL: none */
    int64_t ints[4];
    int count; /* of the ints; 0: a single one, the first; -1: `number` */
    float number;
} sp_onnx_attr;

enum { SP_ONNX_INPUTS = 6, SP_ONNX_ATTRS = 6 };

/* An ONNX operator. Inputs end with NULL. */
typedef struct sp_onnx_node {
    const char *type;
    const char *inputs[SP_ONNX_INPUTS];
    sp_onnx_attr attrs[SP_ONNX_ATTRS];
} sp_onnx_node;

/* The name of a tensor's value, as {N,c} or as {N,c,h,w}. */
const char *sp_onnx_flat(sp_onnx *o, const sp_tensor *x);
const char *sp_onnx_image(sp_onnx *o, const sp_tensor *x);

/* Whether it is {N,c}. */
bool sp_onnx_is_flat(const sp_onnx *o, const sp_tensor *x);

/* The name of a parameter, which is among the weights from then on; and of a
 * list of whole numbers. */
const char *sp_onnx_weight(sp_onnx *o, const sp_param *p);
const char *sp_onnx_ints(sp_onnx *o, const int64_t *values, int count);

/* Append an operator; gives the name of its value. */
const char *sp_onnx_add(sp_onnx *o, const sp_onnx_node *node);

/* Say that a tensor is that value. */
void sp_onnx_set(sp_onnx *o, const sp_tensor *y, const char *value, bool flat);

/* ---- The model ----------------------------------------------------------- */

/* Write the network of an open session of images, with its parameters' values,
 * to a file; *about becomes its metadata.
 * Errors: SP_EARG for an operator that has no row, or for more than the 2 GiB
 * that a model can have; SP_EIO; SP_ENOMEM. */
SP_MUST sp_err sp_onnx_write(const char *path, const sp_session *s,
                             const sp_about *about);

#endif
