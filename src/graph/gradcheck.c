/* Central differences against backward. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/program.h"

static double loss_at(sp_graph *g, const sp_run *run, float *x, float value)
{
    float kept = *x;

    *x = value;
    sp_forward(g, run);
    *x = kept;
    return sp_loss(g, run);
}

/* One array under check: a parameter, or a float input. */
typedef struct sp_array {
    const char *name;
    float *value;
    const float *grad;
    size_t count;
} sp_array;

/* Element number i of `many` spread evenly over an array. */
static size_t pick(const sp_array *a, size_t i, size_t many)
{
    return many <= 1 ? 0 : i * (a->count - 1) / (many - 1);
}

static void check_array(sp_graph *g, const sp_run *run, double h,
                        const sp_array *a, size_t many,
                        sp_gradcheck_result *worst)
{
    double *pair = malloc(2 * many * sizeof *pair), scale = 0.01;

    if (!pair)
        return;
    for (size_t i = 0; i < many; i++)
        pair[2 * i] = a->grad[pick(a, i, many)];
    for (size_t i = 0; i < many; i++) {
        float *x = &a->value[pick(a, i, many)];
        float up = *x + (float)h, down = *x - (float)h;
        double d = loss_at(g, run, x, up) - loss_at(g, run, x, down);
        pair[2 * i + 1] = d / ((double)up - (double)down);
        scale = fmax(scale, fmax(fabs(pair[2 * i]), fabs(pair[2 * i + 1])));
    }
    for (size_t i = 0; i < many; i++) {
        double error = fabs(pair[2 * i] - pair[2 * i + 1]) / scale;
        worst->checked++;
        if (error <= worst->error || isnan(worst->error))
            continue; /* a NaN is the worst of all, and stays */
        worst->error = error;
        worst->name = a->name;
        worst->element = pick(a, i, many);
        worst->analytic = pair[2 * i];
        worst->numeric = pair[2 * i + 1];
    }
    free(pair);
}

/* The i-th array that has a gradient; false past the last. */
static bool array_at(const sp_graph *g, const sp_run *run, int i, sp_array *a)
{
    int values = g->values.count;

    if (i < values) {
        const sp_value *v = sp_value_at(g, i);
        *a = (sp_array){ v->t.name, v->t.data, v->t.grad,
                         sp_elements(&v->t, run) };
        if (v->producer >= 0)
            a->grad = NULL;
        return true;
    }
    const sp_param *p = sp_params_at(g->params, i - values);
    if (p)
        *a = (sp_array){ p->name, p->value, p->grad, p->count };
    return p != NULL;
}

void sp_gradcheck(sp_graph *g, const sp_run *run, double h, size_t per_array,
                  sp_gradcheck_result *worst)
{
    sp_array a;

    *worst = (sp_gradcheck_result){ 0 };
    for (int i = 0; array_at(g, run, i, &a); i++) {
        if (!a.grad || a.count == 0)
            continue;
        /* Anew for each array: the differences above ran forward only. */
        sp_forward(g, run);
        sp_backward(g, run, NULL, NULL);
        check_array(g, run, h, &a, a.count < per_array ? a.count : per_array,
                    worst);
    }
}
