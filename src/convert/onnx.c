#include "convert/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/protobuf.h"
#include "graph/program.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw_data is little endian, and nothing here swaps bytes"
#endif

enum { IR_VERSION = 8, OPSET = 13 };

/* Numbers of the fields that are written, by message. */
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14,
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_WEIGHT = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_TYPE = 4,
    NODE_ATTR = 5,
    ATTR_NAME = 1,
    ATTR_FLOAT = 2,
    ATTR_INT = 3,
    ATTR_INTS = 8,
    ATTR_TYPE = 20,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_ELEMENT = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2
};

/* Kinds of attribute, and of element. */
enum { KIND_FLOAT = 1, KIND_INT = 2, KIND_INTS = 7 };
enum { ELEMENT_FLOAT = 1, ELEMENT_INT64 = 7 };

static void stick(sp_onnx *o, sp_err e)
{
    if (o->error == SP_OK)
        o->error = e;
}

/* Append a finished message, and free it. */
static void put(sp_text *t, int field, sp_text *message)
{
    sp_pb_message(t, field, message);
    sp_text_free(message);
}

/* ---- Values ------------------------------------------------------------- */

static const char *new_name(sp_onnx *o, const char *stem)
{
    char text[512];
    char *name;

    snprintf(text, sizeof text, "%s/%d", stem, o->made++);
    name = sp_arena_text(&o->arena, text);
    if (!name)
        stick(o, sp_fail(SP_ENOMEM, "onnx: out of memory"));
    return name ? name : "";
}

static void put_attr(sp_text *node, const sp_onnx_attr *a)
{
    sp_text t = { 0 };

    sp_pb_string(&t, ATTR_NAME, a->name);
    if (a->count < 0)
        sp_pb_float(&t, ATTR_FLOAT, a->number);
    else if (a->count == 0)
        sp_pb_int(&t, ATTR_INT, a->ints[0]);
    for (int i = 0; i < a->count; i++)
        sp_pb_int(&t, ATTR_INTS, a->ints[i]);
    sp_pb_int(&t, ATTR_TYPE,
              a->count < 0    ? KIND_FLOAT
              : a->count == 0 ? KIND_INT
                              : KIND_INTS);
    put(node, NODE_ATTR, &t);
}

static void put_node(sp_onnx *o, const sp_onnx_node *node, const char *value)
{
    sp_text t = { 0 };

    for (int i = 0; i < SP_ONNX_INPUTS && node->inputs[i]; i++)
        sp_pb_string(&t, NODE_INPUT, node->inputs[i]);
    sp_pb_string(&t, NODE_OUTPUT, value);
    sp_pb_string(&t, NODE_NAME, value);
    sp_pb_string(&t, NODE_TYPE, node->type);
    for (int i = 0; i < SP_ONNX_ATTRS && node->attrs[i].name; i++)
        put_attr(&t, &node->attrs[i]);
    put(&o->nodes, GRAPH_NODE, &t);
}

const char *sp_onnx_add(sp_onnx *o, const sp_onnx_node *node)
{
    const char *name = new_name(o, node->type);

    put_node(o, node, name);
    return name;
}

void sp_onnx_set(sp_onnx *o, const sp_tensor *y, const char *value, bool flat)
{
    o->values[y->index].name = value;
    o->values[y->index].flat = flat;
}

bool sp_onnx_is_flat(const sp_onnx *o, const sp_tensor *x)
{
    return o->values[x->index].flat;
}

const char *sp_onnx_flat(sp_onnx *o, const sp_tensor *x)
{
    const char *name = o->values[x->index].name;

    if (sp_onnx_is_flat(o, x))
        return name;
    return sp_onnx_add(
        o, &(sp_onnx_node){ "Flatten", { name }, { { "axis", { 1 }, 0, 0 } } });
}

const char *sp_onnx_image(sp_onnx *o, const sp_tensor *x)
{
    const char *name = o->values[x->index].name;
    const int64_t axes[] = { 2, 3 };

    if (!sp_onnx_is_flat(o, x))
        return name;
    return sp_onnx_add(o, &(sp_onnx_node){ "Unsqueeze",
                                           { name, sp_onnx_ints(o, axes, 2) },
                                           { { 0 } } });
}

const char *sp_onnx_weight(sp_onnx *o, const sp_param *p)
{
    sp_text t = { 0 };

    if (o->written[p->index])
        return p->name;
    o->written[p->index] = true;
    for (int i = 0; i < p->ndim; i++)
        sp_pb_int(&t, TENSOR_DIMS, p->dims[i]);
    sp_pb_int(&t, TENSOR_TYPE, ELEMENT_FLOAT);
    sp_pb_string(&t, TENSOR_NAME, p->name);
    sp_pb_bytes(&t, TENSOR_RAW, p->value, p->count * sizeof *p->value);
    put(&o->weights, GRAPH_WEIGHT, &t);
    return p->name;
}

const char *sp_onnx_ints(sp_onnx *o, const int64_t *values, int count)
{
    const char *name = new_name(o, "ints");
    sp_text t = { 0 };

    sp_pb_int(&t, TENSOR_DIMS, count);
    sp_pb_int(&t, TENSOR_TYPE, ELEMENT_INT64);
    sp_pb_string(&t, TENSOR_NAME, name);
    sp_pb_bytes(&t, TENSOR_RAW, values, (size_t)count * sizeof *values);
    put(&o->weights, GRAPH_WEIGHT, &t);
    return name;
}

/* ---- The graph ----------------------------------------------------------- */

/* Mark the steps that `y` depends on. */
static void mark(const sp_graph *g, const sp_tensor *y, bool *values,
                 bool *steps)
{
    values[y->index] = true;
    for (int i = g->steps.count; i-- > 0;) {
        const sp_node *n = &sp_step_at(g, i)->node;
        for (int k = 0; k < n->y_count; k++)
            steps[i] = steps[i] || values[n->y[k]->index];
        for (int k = 0; steps[i] && k < n->x_count; k++)
            values[n->x[k]->index] = true;
    }
}

static sp_err translate(sp_onnx *o, const bool *steps)
{
    for (int i = 0; i < o->graph->steps.count; i++) {
        const sp_node *n = &sp_step_at(o->graph, i)->node;
        const sp_onnx_row *row = sp_onnx_find(n->op->name);

        if (!steps[i])
            continue;
        if (!row)
            return sp_fail(SP_EARG,
                           "%s: operator %s has no translation to ONNX: write "
                           "the weights alone, as .safetensors or .npz",
                           n->name, n->op->name);
        row->translate(o, n);
        SP_TRY(o->error);
    }
    return SP_OK;
}

/* Translate all that the logits depend on; the last value gets their name. */
static sp_err put_steps(sp_onnx *o, const sp_program *p)
{
    const sp_graph *g = p->graph;
    bool *values = calloc((size_t)g->values.count + 1, sizeof *values);
    bool *steps = calloc((size_t)g->steps.count + 1, sizeof *steps);
    sp_err e = SP_OK;

    if (values && steps) {
        mark(g, p->logits, values, steps);
        e = translate(o, steps);
    } else {
        e = sp_fail(SP_ENOMEM, "onnx: out of memory");
    }
    if (e == SP_OK) {
        const char *y = sp_onnx_flat(o, p->logits);
        put_node(o, &(sp_onnx_node){ "Identity", { y }, { { 0 } } }, "logits");
        e = o->error;
    }
    free(values);
    free(steps);
    return e;
}

/* An input or output of floats {N, ...}. */
static void put_value(sp_text *graph, int field, const char *name,
                      const int64_t *dims, int count)
{
    sp_text value = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };

    for (int i = 0; i <= count; i++) {
        sp_text dim = { 0 };
        if (i == 0)
            sp_pb_string(&dim, DIM_PARAM, "N");
        else
            sp_pb_int(&dim, DIM_VALUE, dims[i - 1]);
        put(&shape, SHAPE_DIM, &dim);
    }
    sp_pb_int(&tensor, TENSOR_ELEMENT, ELEMENT_FLOAT);
    put(&tensor, TENSOR_SHAPE, &shape);
    put(&type, TYPE_TENSOR, &tensor);
    sp_pb_string(&value, VALUE_NAME, name);
    put(&value, VALUE_TYPE, &type);
    put(graph, field, &value);
}

static void put_graph(sp_text *model, const sp_onnx *o, const sp_session *s)
{
    const int64_t image[] = { s->info.c, s->info.h, s->info.w };
    const int64_t logits[] = { s->classes };
    sp_text t = { 0 };

    sp_text_put(&t, sp_text_string(&o->nodes), o->nodes.size);
    sp_pb_string(&t, GRAPH_NAME, s->set.model->entry.name);
    sp_text_put(&t, sp_text_string(&o->weights), o->weights.size);
    put_value(&t, GRAPH_INPUT, s->eval.input->name, image, 3);
    put_value(&t, GRAPH_OUTPUT, "logits", logits, 1);
    t.failed = t.failed || o->nodes.failed || o->weights.failed;
    put(model, MODEL_GRAPH, &t);
}

static void put_about(sp_text *model, const sp_about *about)
{
    for (size_t i = 0; i < about->count; i++) {
        sp_text t = { 0 };
        sp_pb_string(&t, PAIR_KEY, about->pairs[i].key);
        sp_pb_string(&t, PAIR_VALUE, about->pairs[i].value);
        put(model, MODEL_METADATA, &t);
    }
}

static sp_err write_model(const char *path, const sp_onnx *o,
                          const sp_session *s, const sp_about *about)
{
    sp_text model = { 0 }, opset = { 0 };
    sp_err e;

    sp_pb_int(&model, MODEL_IR, IR_VERSION);
    sp_pb_string(&model, MODEL_PRODUCER, "sprat");
    sp_pb_string(&model, MODEL_PRODUCER_VERSION, SP_VERSION);
    put_graph(&model, o, s);
    sp_pb_int(&opset, OPSET_VERSION, OPSET);
    put(&model, MODEL_OPSET, &opset);
    put_about(&model, about);
    e = sp_text_check(&model);
    if (e == SP_OK && model.size > INT32_MAX)
        e = sp_fail(SP_EARG,
                    "%s: the model would have %zu bytes, and ONNX files have "
                    "at most 2 GiB: write the weights as .safetensors",
                    path, model.size);
    if (e == SP_OK)
        e = sp_file_write_synced(path, model.bytes, model.size);
    sp_text_free(&model);
    return e;
}

sp_err sp_onnx_write(const char *path, const sp_session *s,
                     const sp_about *about)
{
    const sp_graph *g = s->eval.graph;
    const sp_tensor *x = s->eval.input;
    sp_onnx o = {
        .graph = g,
        .values = calloc((size_t)g->values.count + 1, sizeof *o.values),
        .written =
            calloc((size_t)sp_params_size(s->params) + 1, sizeof *o.written),
    };
    sp_err e = SP_OK;

    if (o.values && o.written) {
        sp_onnx_set(&o, x, x->name, false);
        e = put_steps(&o, &s->eval);
    } else {
        e = sp_fail(SP_ENOMEM, "onnx: out of memory");
    }
    if (e == SP_OK)
        e = write_model(path, &o, s, about);
    sp_text_free(&o.nodes);
    sp_text_free(&o.weights);
    sp_arena_free(&o.arena);
    free(o.values);
    free(o.written);
    return e;
}
