/* Odd shapes of recurrent layers, for checks of gradients. */
#include "ops/recurrent.h"

enum { NONE = 0, IH = 1, HH = 2 };

/* Of one example: sizes, what there is, which matrices are of what rank. */
typedef struct sizes {
    int t, n, in, hidden;
    bool reverse, b_ih, b_hh, last, twice;
    int low, rank;
    bool joined;
} sizes;

static const sizes cases[] = {
    { 1, 1, 1, 1, false, true, true, false, false, NONE, 0, false },
    { 5, 3, 4, 7, false, true, true, false, false, NONE, 0, false },
    { 4, 2, 3, 5, true, true, false, false, false, NONE, 0, false },
    { 3, 5, 9, 17, true, false, false, false, false, NONE, 0, false },
    { 2, 13, 17, 33, false, false, true, false, false, NONE, 0, false },
    { 3, 2, 5, 7, false, true, true, true, false, NONE, 0, false },
    { 3, 2, 7, 7, true, true, true, false, true, NONE, 0, false },
    { 4, 3, 5, 7, false, true, true, false, false, IH | HH, 2, false },
    { 3, 2, 9, 5, true, true, false, false, false, IH | HH, 3, true },
    { 2, 5, 3, 19, false, false, true, false, false, IH, 1, false },
    { 3, 3, 4, 6, true, false, false, false, false, HH, 5, false },
    { 2, 2, 4, 6, false, true, true, true, false, HH, 3, true },
    { 3, 2, 7, 7, true, true, true, false, true, IH | HH, 3, false },
    { 2, 2, 6, 6, false, true, true, false, true, IH, 4, true },
};

static const sp_init some = { SP_UNIFORM, 0.5f };

static sp_param *weight(sp_graph *g, const char *name, int rows, int columns)
{
    return sp_weight(g, name, (int[]){ rows, columns, 0 }, some);
}

static sp_recurrent_params params_of(sp_graph *g, const sizes *s, int wide)
{
    int high = (s->joined ? 1 : wide / s->hidden) * s->rank;
    sp_recurrent_params p = { 0 };

    if (s->low & IH) {
        p.u_ih = weight(g, "u_ih", high, s->in);
        p.v_ih = weight(g, "v_ih", wide, s->rank);
    } else {
        p.w_ih = weight(g, "w_ih", wide, s->in);
    }
    if (s->low & HH) {
        p.u_hh = weight(g, "u_hh", high, s->hidden);
        p.v_hh = weight(g, "v_hh", wide, s->rank);
    } else {
        p.w_hh = weight(g, "w_hh", wide, s->hidden);
    }
    if (s->b_ih)
        p.b_ih = weight(g, "b_ih", wide, 0);
    if (s->b_hh)
        p.b_hh = weight(g, "b_hh", wide, 0);
    return p;
}

bool sp_recurrent_example_at(sp_graph *g, int i, int gates, int states,
                             sp_recurrent_example *e)
{
    static const char *const names[] = { "h", "c" };
    const sizes *s = &cases[i];

    if (i >= (int)(sizeof cases / sizeof *cases))
        return false;
    *e = (sp_recurrent_example){ .reverse = s->reverse,
                                 .last = s->last,
                                 .twice = s->twice };
    e->x[0] = sp_input(g, "x", (sp_shape){ .t = s->t, .n = s->n, .c = s->in },
                       SP_F32);
    for (int k = 0; k < states; k++)
        e->x[1 + k] = sp_input(g, names[k],
                               (sp_shape){ .n = s->n, .c = s->hidden }, SP_F32);
    e->p = params_of(g, s, gates * s->hidden);
    return true;
}
