/* Beginning operations, and waiting for them. */
#include <assert.h>
#include <string.h>

#include "base/half.h"
#include "dist/team.h"

/* Stands for operations that are done when they are begun. */
static const sp_pending done = { .done = true };

int sp_lane(sp_on on) { return (int)on.group * 2 + (int)on.channel; }

static void add_floats(size_t bytes, const void *from, void *to)
{
    const float *restrict b = from;
    float *restrict a = to;

    for (size_t i = 0; i < bytes / sizeof *a; i++)
        a[i] += b[i];
}

static void add_doubles(size_t bytes, const void *from, void *to)
{
    const double *restrict b = from;
    double *restrict a = to;

    for (size_t i = 0; i < bytes / sizeof *a; i++)
        a[i] += b[i];
}

static void max_doubles(size_t bytes, const void *from, void *to)
{
    const double *restrict b = from;
    double *restrict a = to;

    for (size_t i = 0; i < bytes / sizeof *a; i++)
        a[i] = a[i] < b[i] ? b[i] : a[i];
}

static void add_halfs(size_t bytes, const void *b, void *a)
{
    sp_half_add(bytes / sizeof(uint16_t), b, a);
}

/* Begin what `what` describes; its group and so on are filled in. */
static sp_pending *begin(sp_comm *c, sp_on on, sp_pending what)
{
    assert(sp_group_rank(c, on.group) >= 0 && "not in the group");
    if (c)
        c->agreed = false;
    if (sp_group_ranks(c, on.group) == 1)
        return (sp_pending *)&done;
    what.on = on;
    what.rank = c->group[on.group].rank;
    what.ranks = c->group[on.group].ranks;
    what.watch = c->watch;
    return c->carrier->begin(c->team, &what);
}

/* n numbers of `unit` bytes that come together by `add`. */
static sp_pending numbers(void *x, size_t n, size_t unit, sp_adder add)
{
    return (sp_pending){
        .script = &sp_script_sum, .x = x, .n = n, .unit = unit, .add = add
    };
}

sp_pending *sp_sum_floats(sp_comm *c, sp_on on, float *x, size_t n)
{
    return begin(c, on, numbers(x, n, sizeof *x, add_floats));
}

sp_pending *sp_sum_halfs(sp_comm *c, sp_on on, uint16_t *x, size_t n)
{
    return begin(c, on, numbers(x, n, sizeof *x, add_halfs));
}

sp_pending *sp_sum_doubles(sp_comm *c, sp_on on, double *x, size_t n)
{
    return begin(c, on, numbers(x, n, sizeof *x, add_doubles));
}

sp_pending *sp_max_doubles(sp_comm *c, sp_on on, double *x, size_t n)
{
    return begin(c, on, numbers(x, n, sizeof *x, max_doubles));
}

sp_pending *sp_reduce_floats(sp_comm *c, sp_on on, float *x, size_t n)
{
    sp_pending what = numbers(x, n, sizeof *x, add_floats);

    what.script = &sp_script_reduce;
    return begin(c, on, what);
}

sp_pending *sp_broadcast(sp_comm *c, sp_on on, int root, void *x, size_t bytes)
{
    return begin(c, on,
                 (sp_pending){ .script = &sp_script_broadcast,
                               .peer = root,
                               .x = x,
                               .n = bytes,
                               .unit = 1 });
}

/* A rank's own part needs no message. */
static void keep(void *at, const void *own, size_t bytes)
{
    if (bytes && at != own)
        memmove(at, own, bytes);
}

sp_pending *sp_gather_all(sp_comm *c, sp_on on, const void *x, size_t bytes,
                          void *all)
{
    size_t rank = (size_t)sp_group_rank(c, on.group);

    keep((char *)all + rank * bytes, x, bytes);
    return begin(
        c, on,
        (sp_pending){
            .script = &sp_script_gather, .x = all, .own = x, .bytes = bytes });
}

sp_pending *sp_gather_packets(sp_comm *c, sp_on on, const void *x,
                              const size_t *sizes, const size_t *offsets,
                              void *all)
{
    int rank = sp_group_rank(c, on.group);

    keep((char *)all + offsets[rank], x, sizes[rank]);
    return begin(c, on,
                 (sp_pending){ .script = &sp_script_gather,
                               .x = all,
                               .own = x,
                               .sizes = sizes,
                               .offsets = offsets });
}

sp_pending *sp_swap(sp_comm *c, sp_on on, int peer, const void *send,
                    size_t send_bytes, void *receive, size_t receive_bytes)
{
    assert(peer != sp_group_rank(c, on.group) && "swapping with itself");
    return begin(c, on,
                 (sp_pending){ .script = &sp_script_swap,
                               .peer = peer,
                               .x = receive,
                               .n = receive_bytes,
                               .own = send,
                               .bytes = send_bytes });
}

sp_pending *sp_barrier(sp_comm *c, sp_on on)
{
    return begin(c, on, (sp_pending){ .script = &sp_script_barrier });
}

sp_err sp_op_wait(sp_comm *c, sp_pending *p)
{
    if (!p)
        return sp_fail(SP_ENOMEM, "out of memory for an exchange");
    return p == &done ? SP_OK : c->carrier->wait(c->team, p);
}
