/* Units that do not fill a vector, at the end of a row, are computed in one of
 * their own, by the loops that the others go through: a second copy of these
 * might round its products elsewhere. */
#include "kernels/gates.h"

#include <string.h>

#include "kernels/table.h"

enum { GATES = 4 };

/* `units` floats each of `count` arrays, some floats apart. */
typedef struct part {
    size_t units, count;
} part;

static void move(part p, const float *from, size_t from_step, float *to,
                 size_t to_step)
{
    for (size_t i = 0; i < p.count; i++)
        memcpy(to + i * to_step, from + i * from_step, sizeof *to * p.units);
}

static size_t last_units(const sp_kernels *k, size_t units)
{
    return units % (size_t)k->tiles->vl;
}

void sp_lstm_row_forward(const sp_kernels *k, const sp_lstm_row *a)
{
    float gates[GATES * SP_MAX_VL] = { 0 }, before[SP_MAX_VL] = { 0 };
    float c[SP_MAX_VL], h[SP_MAX_VL];
    size_t last = last_units(k, a->units), at = a->units - last;
    const part four = { last, 4 }, one = { last, 1 };
    sp_lstm_row whole = *a;

    whole.units = at;
    k->gates->lstm(&whole);
    if (last == 0)
        return;
    move(four, a->gates + at, a->step, gates, SP_MAX_VL);
    move(one, a->before + at, 0, before, 0);
    k->gates->lstm(&(sp_lstm_row){ SP_MAX_VL, SP_MAX_VL, gates, before, c, h });
    move(four, gates, SP_MAX_VL, a->gates + at, a->step);
    move(one, c, 0, a->c + at, 0);
    move(one, h, 0, a->h + at, 0);
}

void sp_lstm_row_backward(const sp_kernels *k, const sp_lstm_back *a)
{
    float gates[GATES * SP_MAX_VL] = { 0 }, before[SP_MAX_VL] = { 0 };
    float c[SP_MAX_VL] = { 0 }, dh[SP_MAX_VL] = { 0 };
    float dy[SP_MAX_VL] = { 0 }, dc[SP_MAX_VL] = { 0 };
    size_t last = last_units(k, a->units), at = a->units - last;
    const part four = { last, 4 }, one = { last, 1 };
    sp_lstm_back whole = *a;

    whole.units = at;
    k->gates->lstm_back(&whole);
    if (last == 0)
        return;
    move(four, a->gates + at, a->step, gates, SP_MAX_VL);
    move(one, a->before + at, 0, before, 0);
    move(one, a->c + at, 0, c, 0);
    move(one, a->dh + at, 0, dh, 0);
    if (a->dy)
        move(one, a->dy + at, 0, dy, 0);
    move(one, a->dc + at, 0, dc, 0);
    k->gates->lstm_back(&(sp_lstm_back){ SP_MAX_VL, SP_MAX_VL, gates, before, c,
                                         dh, a->dy ? dy : NULL, dc });
    move(four, gates, SP_MAX_VL, a->gates + at, a->step);
    move(one, dc, 0, a->dc + at, 0);
}

void sp_gru_row_forward(const sp_kernels *k, const sp_gru_row *a)
{
    float gates[GATES * SP_MAX_VL] = { 0 }, state[GATES * SP_MAX_VL] = { 0 };
    float bias[GATES * SP_MAX_VL] = { 0 }, before[SP_MAX_VL] = { 0 };
    float m[SP_MAX_VL], h[SP_MAX_VL];
    size_t last = last_units(k, a->units), at = a->units - last;
    const part three = { last, 3 }, one = { last, 1 };
    sp_gru_row whole = *a;

    whole.units = at;
    k->gates->gru(&whole);
    if (last == 0)
        return;
    move(three, a->gates + at, a->step, gates, SP_MAX_VL);
    move(three, a->state + at, a->step, state, SP_MAX_VL);
    if (a->bias)
        move(three, a->bias + at, a->step, bias, SP_MAX_VL);
    move(one, a->before + at, 0, before, 0);
    k->gates->gru(&(sp_gru_row){ SP_MAX_VL, SP_MAX_VL, gates, state,
                                 a->bias ? bias : NULL, m, before, h });
    move(three, gates, SP_MAX_VL, a->gates + at, a->step);
    move(one, m, 0, a->m + at, 0);
    move(one, h, 0, a->h + at, 0);
}

void sp_gru_row_backward(const sp_kernels *k, const sp_gru_back *a)
{
    float gates[GATES * SP_MAX_VL] = { 0 }, state[GATES * SP_MAX_VL];
    float m[SP_MAX_VL] = { 0 }, before[SP_MAX_VL] = { 0 };
    float dy[SP_MAX_VL] = { 0 }, dh[SP_MAX_VL] = { 0 };
    size_t last = last_units(k, a->units), at = a->units - last;
    const part three = { last, 3 }, one = { last, 1 };
    sp_gru_back whole = *a;

    whole.units = at;
    k->gates->gru_back(&whole);
    if (last == 0)
        return;
    move(three, a->gates + at, a->step, gates, SP_MAX_VL);
    move(one, a->m + at, 0, m, 0);
    move(one, a->before + at, 0, before, 0);
    if (a->dy)
        move(one, a->dy + at, 0, dy, 0);
    move(one, a->dh + at, 0, dh, 0);
    k->gates->gru_back(&(sp_gru_back){ SP_MAX_VL, SP_MAX_VL, gates, state, m,
                                       before, a->dy ? dy : NULL, dh });
    move(three, gates, SP_MAX_VL, a->gates + at, a->step);
    move(three, state, SP_MAX_VL, a->state + at, a->step);
    move(one, dh, 0, a->dh + at, 0);
}
