/* A loss that reaches every element of any tensor, for checking gradients.
 *
 *   y[row]     = sum_j r_j x[row][j], summed in double
 *   dx[row][j] = r_j dy[row]
 *
 * with fixed r_j in [-1, 1), a function of j alone.
 *
 * Shapes: x {t,n,h,w,c} -> y {t,n,1,1,1}.
 */
#include "sprat/nn.h"
#include "sprat/op.h"
#include "sprat/random.h"

static sp_err project_shape(sp_node *n)
{
    sp_shape s = n->x[0]->shape;

    if (n->x[0]->dtype != SP_F32)
        return sp_fail(SP_ESHAPE, "%s (project): the input must be floats",
                       n->name);
    n->y[0]->shape = (sp_shape){ .t = s.t, .n = s.n };
    return SP_OK;
}

static float factor(size_t j)
{
    uint32_t word[4];

    sp_random(0, SP_FOR_TEST, 0, j / 4, word);
    return 2.0f * sp_unit(word[j % 4]) - 1.0f;
}

static size_t row_floats(const sp_tensor *x)
{
    return (size_t)x->shape.h * (size_t)x->shape.w * (size_t)x->shape.c;
}

static void forward_rows(void *arg, size_t begin, size_t end)
{
    const sp_node *n = arg;
    size_t count = row_floats(n->x[0]);
    float *y = n->y[0]->data;

    for (size_t i = begin; i < end; i++) {
        const float *x = (const float *)n->x[0]->data + i * count;
        double sum = 0;
        for (size_t j = 0; j < count; j++)
            sum += (double)(factor(j) * x[j]);
        y[i] = (float)sum;
    }
}

static void project_forward(const sp_node *n, const sp_run *r)
{
    sp_parallel_for(r->threads, (size_t)sp_images(n->x[0], r), 1, forward_rows,
                    (void *)n);
}

static void backward_rows(void *arg, size_t begin, size_t end)
{
    const sp_node *n = arg;
    size_t count = row_floats(n->x[0]);
    const float *dy = n->y[0]->grad;
    bool add = sp_beta(n, 0) != 0.0f;

    for (size_t i = begin; i < end; i++) {
        float *dx = (float *)n->x[0]->grad + i * count;
        for (size_t j = 0; j < count; j++)
            dx[j] = (add ? dx[j] : 0.0f) + factor(j) * dy[i];
    }
}

static void project_backward(const sp_node *n, const sp_run *r)
{
    if (n->x[0]->grad)
        sp_parallel_for(r->threads, (size_t)sp_images(n->x[0], r), 1,
                        backward_rows, (void *)n);
}

static sp_tensor *project_example(sp_graph *g, int i)
{
    static const sp_shape shapes[] = {
        { .n = 2, .h = 3, .w = 5, .c = 7 },
        { .n = 1 },
        { .t = 2, .n = 3, .c = 5 },
    };

    if (i >= (int)(sizeof shapes / sizeof *shapes))
        return NULL;
    return sp_project(g, sp_input(g, "x", shapes[i], SP_F32));
}

const sp_op sp_op_project = {
    .name = "project",
    .help = "y = sum of r_j x_j over a row, r fixed: for checks",
    .shape = project_shape,
    .forward = project_forward,
    .backward = project_backward,
    .example = project_example,
};

sp_tensor *sp_project(sp_graph *g, sp_tensor *x)
{
    return sp_record(g, &sp_op_project, "project", NULL, 0,
                     (sp_tensor *[]){ x, NULL }, NULL);
}
