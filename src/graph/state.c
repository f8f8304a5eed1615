/* States: values that one run leaves to the next. */
#include "graph/program.h"

sp_tensor *sp_state(sp_graph *g, const char *name, int n, int c)
{
    sp_tensor *now = sp_input(g, name, (sp_shape){ .n = n, .c = c }, SP_F32);
    sp_state_pair *pair = NULL;

    if (g->err == SP_OK)
        pair = sp_arena_alloc(&g->arena, sizeof *pair);
    if (pair && sp_pointers_add(&g->states, pair))
        *pair = (sp_state_pair){ .now = now };
    else
        sp_graph_fail(g, SP_ENOMEM, "recording: out of memory");
    return now;
}

static bool same_shape(sp_shape a, sp_shape b)
{
    return a.t == b.t && a.n == b.n && a.h == b.h && a.w == b.w && a.c == b.c;
}

void sp_next_state(sp_graph *g, sp_tensor *state, sp_tensor *next)
{
    sp_state_pair *pair = NULL;

    if (g->err != SP_OK)
        return;
    for (int i = 0; i < g->states.count && !pair; i++) {
        sp_state_pair *p = g->states.at[i];
        pair = p->now == state ? p : NULL;
    }
    if (!pair || pair->next) {
        sp_graph_fail(g, SP_EARG, "%s: %s", state->name,
                      pair ? "has its next state already"
                           : "is no state: record it with sp_state()");
        return;
    }
    if (next->dtype != SP_F32 || !same_shape(state->shape, next->shape)) {
        sp_graph_fail(g, SP_ESHAPE,
                      "state %s: %d rows of %d floats, but the next one has "
                      "%d x %d rows of %d x %d x %d %s",
                      state->name, state->shape.n, state->shape.c,
                      next->shape.t, next->shape.n, next->shape.h,
                      next->shape.w, next->shape.c,
                      next->dtype == SP_F32 ? "floats" : "ints");
        return;
    }
    pair->next = next;
    /* Kept to the end of the run, under the state's name. */
    sp_output(g, state->name, next);
}

const sp_state_pair *sp_graph_state(const sp_graph *g, int i)
{
    return i >= 0 && i < g->states.count ? g->states.at[i] : NULL;
}

sp_err sp_states_check(const sp_graph *g)
{
    for (int i = 0; i < g->states.count; i++) {
        const sp_state_pair *p = g->states.at[i];
        if (!p->next)
            return sp_fail(SP_EARG,
                           "state %s: sp_next_state() does not say what it "
                           "becomes",
                           p->now->name);
    }
    return SP_OK;
}
