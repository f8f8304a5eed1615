/* sprat gradcheck: every operator's gradient against finite differences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/program.h"
#include "sprat.h"
#include "sprat/nn.h"
#include "sprat/random.h"
#include "sprat/train.h"

/* The step of the differences, the worst error that float arithmetic explains,
 * and how many random points may be tried: one of them may lie at a kink (of a
 * ReLU, a maximum), where no derivative exists; a wrong gradient is wrong at
 * all of them. */
static const double difference = 4e-3, limit = 2e-3;
enum { POINTS = 5, PER_ARRAY = 64 };

/* Values on a grid in random order, so that no two are equal and none is 0:
 * ties and kinks are far from small arrays. False: out of memory. */
static bool fill_floats(float *out, size_t n, uint64_t point, uint64_t array)
{
    size_t *order = malloc(n * sizeof *order);

    if (!order)
        return false;
    sp_permute(point, SP_FOR_TEST, array, order, n);
    for (size_t i = 0; i < n; i++)
        out[i] = 4.0f * ((float)order[i] + 0.25f) / (float)n - 2.0f;
    free(order);
    return true;
}

/* How many classes a label input tells apart: the channels of the operand that
 * its reader reads first. */
static int classes_of(const sp_graph *g, const sp_tensor *label)
{
    for (int i = 0; i < g->steps.count; i++) {
        const sp_node *n = &sp_step_at(g, i)->node;
        for (int k = 0; k < n->x_count; k++) {
            if (n->x[k] == label)
                return n->x[0]->shape.c;
        }
    }
    return 1;
}

static bool fill_input(const sp_graph *g, const sp_tensor *x, uint64_t point)
{
    size_t count = sp_count(x->shape);
    int classes = classes_of(g, x);

    if (x->dtype == SP_F32)
        return fill_floats(x->data, count, point, (uint64_t)x->index);
    for (size_t i = 0; i < count; i++)
        ((int *)x->data)[i] = (int)((i + point) % (size_t)classes);
    return true;
}

static bool fill(sp_graph *g, uint64_t point)
{
    sp_param *p;
    bool ok = true;

    sp_params_init(g->params, point);
    for (int i = 0; (p = sp_params_at(g->params, i)); i++) {
        if (!p->buffer)
            ok &= fill_floats(p->value, p->count, point, 1000 + (uint64_t)i);
    }
    for (int i = 0; i < g->values.count; i++) {
        const sp_value *v = sp_value_at(g, i);
        if (v->producer < 0)
            ok &= fill_input(g, &v->t, point);
    }
    return ok;
}

/* A run over everything that the inputs can hold. */
static sp_run whole(const sp_graph *g)
{
    sp_run run = {
        .n = 1, .t = 1, .train = true, .weight = 1.0, .seed = 1, .step = 1
    };

    for (int i = 0; i < g->values.count; i++) {
        sp_shape s = sp_value_at(g, i)->t.shape;
        run.n = s.n > run.n ? s.n : run.n;
        run.t = s.t > run.t ? s.t : run.t;
    }
    return run;
}

/* Compare at up to POINTS points until one agrees. */
static bool compare(sp_graph *g, sp_gradcheck_result *worst)
{
    sp_run run = whole(g);

    for (uint64_t point = 1; point <= POINTS; point++) {
        if (!fill(g, point))
            return false;
        sp_gradcheck(g, &run, difference, PER_ARRAY, worst);
        if (worst->error <= limit)
            break;
    }
    return true;
}

static void print_line(const sp_op *op, int example, const sp_tensor *y,
                       const sp_gradcheck_result *w)
{
    char shape[64];

    snprintf(shape, sizeof shape, "%dx%dx%dx%d", y->shape.n, y->shape.h,
             y->shape.w, y->shape.c);
    printf("%-14s %2d  %-14s %6zu  %.1e  ", op->name, example, shape,
           w->checked, w->error);
    if (w->checked == 0)
        printf("FAILED: nothing to compare\n");
    else if (w->error <= limit)
        printf("ok\n");
    else
        printf("FAILED: %s[%zu] is %.6g, differences give %.6g\n", w->name,
               w->element, w->analytic, w->numeric);
}

/* Check an example that is recorded. */
static bool check_recorded(sp_graph *g, const sp_op *op, int example,
                           sp_tensor *y)
{
    sp_gradcheck_result worst = { 0 };

    sp_output(g, "loss", sp_project(g, y));
    if (sp_compile(g) != SP_OK) {
        printf("%-14s %2d  FAILED: %s\n", op->name, example, sp_last_error());
        return false;
    }
    if (!compare(g, &worst)) {
        printf("%-14s %2d  FAILED: out of memory\n", op->name, example);
        return false;
    }
    print_line(op, example, y, &worst);
    return worst.checked > 0 && worst.error <= limit;
}

/* Check an example. 1: passed; 0: failed; -1: there is no such example; -2: no
 * memory for it. */
static int check_example(const sp_op *op, int example)
{
    sp_graph_opt opt = { .train = true, .input_grads = true };
    sp_params *params = sp_params_new();
    sp_graph *g = params ? sp_graph_new(params, opt) : NULL;
    sp_tensor *y = g ? op->example(g, example) : NULL;
    int verdict = y ? check_recorded(g, op, example, y) : g ? -1 : -2;

    sp_graph_free(g);
    sp_params_free(params);
    return verdict;
}

/* Failed examples of an operator. */
static int check_op(const sp_op *op)
{
    int failed = 0, verdict;

    if (!op->example || !op->backward) {
        printf("%-14s     has no gradient\n", op->name);
        return 0;
    }
    for (int i = 0; (verdict = check_example(op, i)) >= 0; i++)
        failed += !verdict;
    if (verdict == -2)
        printf("%-14s     FAILED: out of memory\n", op->name);
    return failed + (verdict == -2);
}

static const char *op_next(const void *unused, size_t i)
{
    const sp_op *op = sp_op_at((int)i);

    (void)unused;
    return op ? op->name : NULL;
}

static const sp_op *op_find(const char *name)
{
    const sp_op *op;

    for (int i = 0; (op = sp_op_at(i)); i++) {
        if (strcmp(op->name, name) == 0)
            return op;
    }
    return NULL;
}

static int gradcheck(const sp_args *a)
{
    int failed = 0;

    for (size_t i = 0; i < a->word_count; i++) {
        if (!op_find(a->words[i]))
            return sp_unknown("operator", a->words[i], op_next, NULL);
    }
    printf("operator        #  output        checked  worst error\n");
    for (size_t i = 0; i < a->word_count; i++)
        failed += check_op(op_find(a->words[i]));
    for (int i = 0; a->word_count == 0 && sp_op_at(i); i++)
        failed += check_op(sp_op_at(i));
    if (failed)
        printf("%d FAILED\n", failed);
    return failed ? SP_EXIT_FAILED : SP_EXIT_DONE;
}

const sp_verb sp_verb_gradcheck = {
    .name = "gradcheck",
    .words = "[OP...]",
    .most = -1,
    .help = "compare operators' gradients with finite differences",
    .examples =
        "At odd shapes, in single precision; errors are relative to an "
        "array's largest\ngradient. `sprat list ops` names the operators.\n\n"
        "  sprat gradcheck\n"
        "  sprat gradcheck convolve normalize\n",
    .run = gradcheck,
};
