/* Operations between ranks, against values by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/half.h"
#include "comm_ranks.h"

/* Whole numbers, so that sums are exact. */
static void sums(sp_comm *c, size_t n)
{
    int R = sp_comm_ranks(c), r = sp_comm_rank(c), all = R * (R + 1) / 2;
    float *f = malloc((n + 1) * sizeof *f);
    double *d = malloc((n + 1) * sizeof *d), *m = malloc((n + 1) * sizeof *m);
    uint16_t *h = malloc((n + 1) * sizeof *h);

    for (size_t i = 0; i < n; i++) {
        f[i] = (float)((r + 1) * (int)(i % 7));
        d[i] = (r + 1) * ((double)i + 0.5);
        h[i] = sp_half(f[i]);
        m[i] = (int)i % R == r ? (double)i : -(double)i;
    }
    f[n] = 99;
    DONE(sp_sum_floats(c, on_main(SP_USE_DENSE), f, n));
    DONE(sp_sum_doubles(c, on_main(SP_USE_STATUS), d, n));
    DONE(sp_sum_halfs(c, on_main(SP_USE_PACKET), h, n));
    DONE(sp_max_doubles(c, on_main(SP_USE_EVALUATE), m, n));
    for (size_t i = 0; i < n; i++) {
        EXPECT(f[i] == (float)(all * (int)(i % 7)));
        EXPECT(d[i] == all * ((double)i + 0.5));
        EXPECT(sp_half_float(h[i]) == f[i]);
        EXPECT(m[i] == (double)i);
    }
    EXPECT(f[n] == 99); /* nothing beyond */
    free(f);
    free(d);
    free(m);
    free(h);
}

/* Three ranks add part 0 as 0 + 2 + 1, part 1 as 1 + 0 + 2, part 2 as
 * 2 + 1 + 0: with 1e8, 1, -1e8 only the first keeps the 1. Of halfs, 2048 + 1
 * is 2048, since of 2048 and 2050 it is the even one. */
static void order_of_sums(sp_comm *c)
{
    static const float big[] = { 1e8f, 1, -1e8f };
    static const float step[] = { 2048, 1, 1 };
    int r = sp_comm_rank(c);
    float x[3];
    uint16_t h[3];

    if (sp_comm_ranks(c) != 3)
        return;
    for (int i = 0; i < 3; i++) {
        x[i] = big[r];
        h[i] = sp_half(step[r]);
    }
    DONE(sp_sum_floats(c, on_main(SP_USE_DENSE), x, 3));
    DONE(sp_sum_halfs(c, on_main(SP_USE_DENSE), h, 3));
    EXPECT(x[0] == 1 && x[1] == 0 && x[2] == 0);
    EXPECT(sp_half_float(h[0]) == 2048 && sp_half_float(h[1]) == 2048 &&
           sp_half_float(h[2]) == 2050);
}

static void reduce(sp_comm *c, int n)
{
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);
    float *x = malloc(((size_t)n + 1) * sizeof *x);

    for (int i = 0; i < n; i++)
        x[i] = (float)(i + r);
    DONE(sp_reduce_floats(c, on_main(SP_USE_NODE), x, (size_t)n));
    for (int i = 0; r == 0 && i < n; i++)
        EXPECT(x[i] == (float)(R * i + R * (R - 1) / 2));
    free(x);
}

static void broadcast(sp_comm *c, size_t n)
{
    for (int root = 0; root < sp_comm_ranks(c); root++) {
        unsigned char *x = malloc(n + 1);

        for (size_t i = 0; i <= n; i++)
            x[i] = (unsigned char)(sp_comm_rank(c) == root ? i + 1 : 0);
        x[n] = 77;
        DONE(sp_broadcast(c, on_main(SP_USE_CHECK), root, x, n));
        for (size_t i = 0; i < n; i++)
            EXPECT(x[i] == (unsigned char)(i + 1));
        EXPECT(x[n] == 77);
        free(x);
    }
}

static void gather(sp_comm *c, size_t n)
{
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);
    char *own = malloc(n + 1), *all = malloc((size_t)R * n + 1);

    memset(own, 'a' + r, n);
    memset(all, '.', (size_t)R * n + 1);
    DONE(sp_gather_all(c, on_main(SP_USE_SIZES), own, n, all));
    for (size_t i = 0; i < (size_t)R * n; i++)
        EXPECT(all[i] == 'a' + (int)(i / n));
    EXPECT(all[(size_t)R * n] == '.');
    free(own);
    free(all);
}

/* Rank r gives unit * (r % 3) bytes; they stand from the end, with gaps. */
static void packets(sp_comm *c, size_t unit, bool in_place)
{
    enum { RANKS = 16 };
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);
    size_t sizes[RANKS], offsets[RANKS], room = (2 * unit + 3) * (size_t)R;
    char *own = malloc(2 * unit + 1), *all = malloc(room);

    EXPECT(R <= RANKS);
    for (int i = 0; i < R; i++) {
        sizes[i] = unit * (size_t)(i % 3);
        offsets[i] = (2 * unit + 3) * (size_t)(R - 1 - i);
    }
    memset(own, 'a' + r, 2 * unit + 1);
    memset(all, '.', room);
    if (in_place)
        memset(all + offsets[r], 'a' + r, sizes[r]);
    DONE(sp_gather_packets(c, on_main(SP_USE_PACKET),
                           in_place ? all + offsets[r] : own, sizes, offsets,
                           all));
    for (int i = 0; i < R; i++)
        for (size_t k = 0; k < 2 * unit + 3; k++)
            EXPECT(all[offsets[i] + k] == (k < sizes[i] ? 'a' + i : '.'));
    free(own);
    free(all);
}

/* With the next rank and the one before; then one way only. */
static void swap(sp_comm *c)
{
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);
    int next = (r + 1) % R, before = (r + R - 1) % R;
    char up[100], down[50], got_up[100], got_down[50], word[6] = "";
    sp_pending *p[2];

    if (R == 1)
        return;
    memset(up, 'u' + r, sizeof up);
    memset(down, 'A' + r, sizeof down);
    if (R == 2) {
        DONE(sp_swap(c, on_main(SP_USE_PACKET), next, r ? down : up,
                     r ? 50 : 100, r ? got_up : got_down, r ? 100 : 50));
        EXPECT(r ? got_up[99] == 'u' : got_down[49] == 'B');
    } else {
        p[0] = sp_swap(c, on_main(SP_USE_PACKET), next, up, 100, got_down, 50);
        p[1] =
            sp_swap(c, on_main(SP_USE_PACKET), before, down, 50, got_up, 100);
        DONE(p[1]);
        DONE(p[0]);
        EXPECT(got_up[0] == 'u' + before && got_up[99] == 'u' + before);
        EXPECT(got_down[0] == 'A' + next && got_down[49] == 'A' + next);
    }
    if (r == 0)
        DONE(sp_swap(c, on_main(SP_USE_SAVE), 1, "hello", 6, NULL, 0));
    if (r == 1) {
        DONE(sp_swap(c, on_main(SP_USE_SAVE), 0, NULL, 0, word, 6));
        EXPECT(strcmp(word, "hello") == 0);
    }
}

void check_operations(sp_comm *c)
{
    static const size_t counts[] = { 0, 1, 2, 3, 5, 17, 1000 };

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sums(c, counts[i]);
        reduce(c, (int)counts[i]);
        broadcast(c, counts[i]);
        if (counts[i])
            gather(c, counts[i]);
        packets(c, counts[i], i % 2 == 0);
    }
    order_of_sums(c);
    swap(c);
    DONE(sp_barrier(c, on_main(SP_USE_CHECK)));
}

static void nap(long microseconds)
{
    nanosleep(&(struct timespec){ 0, 1000 * microseconds }, NULL);
}

/* Ranks begin two channels in different orders, and wait in any order. */
static void channels(sp_comm *c)
{
    sp_on main = on_main(SP_USE_DENSE), gathers = main;
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);
    float x[300];
    sp_pending *sum, *gather;
    float *all = malloc((size_t)R * sizeof x);

    gathers.channel = SP_CHANNEL_GATHER;
    for (int i = 0; i < 300; i++)
        x[i] = 1;
    if (r % 2) {
        gather = sp_gather_all(c, gathers, &r, sizeof r, all);
        nap(3000);
        sum = sp_sum_floats(c, main, x, 300);
        DONE(gather);
        DONE(sum);
    } else {
        sum = sp_sum_floats(c, main, x, 300);
        gather = sp_gather_all(c, gathers, &r, sizeof r, all);
        DONE(sum);
        DONE(gather);
    }
    for (int i = 0; i < 300; i++)
        EXPECT(x[i] == (float)R);
    for (int i = 0; i < R; i++)
        EXPECT(((int *)(void *)all)[i] == i);
    free(all);
}

/* More than are ever under way at once; one rank comes late each time. */
static void many(sp_comm *c)
{
    enum { MANY = 60, SIZE = 70 };
    static float x[MANY][SIZE];
    static sp_pending *p[MANY];
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);

    for (int k = 0; k < MANY; k++) {
        for (int i = 0; i < SIZE; i++)
            x[k][i] = (float)(k + r);
        if (k % (4 * R) == 4 * r)
            nap(500);
        p[k] =
            sp_sum_floats(c, on_main(SP_USE_DENSE), x[k], (size_t)(k % SIZE));
    }
    for (int k = MANY - 1; k >= 0; k--) {
        DONE(p[k]);
        for (int i = 0; i < k % SIZE; i++)
            EXPECT(x[k][i] == (float)(R * k + R * (R - 1) / 2));
    }
}

void check_orders(sp_comm *c)
{
    channels(c);
    many(c);
}

/* What a step does, with more at once than are under way at once. */
static void step(sp_comm *c)
{
    enum { SUMS = 9, SIZE = 700, RANKS = 16 };
    static const size_t sizes[RANKS] = { [0] = 3, [1] = 5 };
    static const size_t offsets[RANKS] = { 0, 3 };
    static float x[SUMS][SIZE];
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);
    double loss = r;
    char all[RANKS] = "abcdefg", other = 0;
    sp_pending *p[SUMS], *gather, *swap = NULL;

    for (int i = 0; i < SUMS; i++)
        p[i] = sp_sum_floats(c, on_main(SP_USE_DENSE), x[i], SIZE);
    gather = sp_gather_packets(c, on_main(SP_USE_PACKET), all + offsets[r],
                               sizes, offsets, all);
    if (r < 2 && R > 1)
        swap = sp_swap(c, on_main(SP_USE_PACKET), 1 - r, "?", 1, &other, 1);
    DONE(sp_sum_doubles(c, on_main(SP_USE_STATUS), &loss, 1));
    DONE(gather);
    if (swap)
        DONE(swap);
    for (int i = 0; i < SUMS; i++)
        DONE(p[i]);
    DONE(sp_barrier(c, on_main(SP_USE_CHECK)));
}

void check_steps(sp_comm *c)
{
    int before;

    step(c);
    before = allocations();
    for (int i = 0; i < 20; i++)
        step(c);
    EXPECT(allocations() == before);
}

void check_nodes(sp_comm *c)
{
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);
    sp_on node = { SP_NODE, SP_CHANNEL_MAIN, SP_USE_NODE };
    sp_on leaders = { SP_LEADERS, SP_CHANNEL_MAIN, SP_USE_PACKET };
    int ranks = r == R - 1 && r % 2 == 0 ? 1 : 2;
    double net = sp_comm_ledger(c)->use[SP_USE_NODE].net;
    float x = (float)(r + 1);
    char name[SP_RANK_NAME], want[SP_RANK_NAME];

    EXPECT(sp_group_ranks(c, SP_NODE) == R); /* one host's memory */
    EXPECT(sp_group_rank(c, SP_LEADERS) == (r ? -1 : 0));
    EXPECT(sp_comm_nodes(c, -1) == SP_EARG);
    EXPECT(sp_comm_nodes(c, 2) == SP_OK);
    EXPECT(sp_group_ranks(c, SP_NODE) == ranks);
    EXPECT(sp_group_rank(c, SP_NODE) == r % 2);
    EXPECT(sp_group_ranks(c, SP_LEADERS) == (R + 1) / 2);
    EXPECT(sp_group_rank(c, SP_LEADERS) == (r % 2 ? -1 : r / 2));
    snprintf(want, sizeof want, "rank %d (%s)", r / 2 * 2, sp_comm_host(c));
    EXPECT(strcmp(sp_rank_name(c, SP_NODE, 0, name), want) == 0);
    snprintf(want, sizeof want, "rank %d (%s)", (R - 1) / 2 * 2,
             sp_comm_host(c));
    EXPECT(strcmp(sp_rank_name(c, SP_LEADERS, (R - 1) / 2, name), want) == 0);
    DONE(sp_sum_floats(c, node, &x, 1));
    EXPECT(x == (float)(ranks == 1 ? r + 1 : 4 * (r / 2) + 3));
    EXPECT(sp_comm_ledger(c)->use[SP_USE_NODE].net == net);
    if (r % 2 == 0)
        DONE(sp_sum_floats(c, leaders, &x, 1));
    DONE(sp_broadcast(c, node, 0, &x, sizeof x));
    EXPECT(x == (float)(R * (R + 1) / 2));
    EXPECT(sp_comm_nodes(c, 0) == SP_OK);
    EXPECT(sp_group_ranks(c, SP_NODE) == R);
    DONE(sp_barrier(c, on_main(SP_USE_CHECK)));
}
