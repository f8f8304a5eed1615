/* Agreement of ranks. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm_ranks.h"

static bool says(const char *text)
{
    return strstr(sp_last_error(), text) != NULL;
}

/* The last two ranks fail, each with an error of its own. */
static void agree(sp_comm *c)
{
    int R = sp_comm_ranks(c), r = sp_comm_rank(c), first = R > 2 ? R - 2 : 0;
    sp_err e = SP_OK;

    EXPECT(sp_agree(c, SP_OK) == SP_OK);
    EXPECT(sp_agreed(c) == (R == 1));
    if (r >= first)
        e = sp_fail(r == first ? SP_EDATA : SP_EIO, "disk %d is on fire", r);
    EXPECT(sp_agree(c, e) == SP_EDATA);
    EXPECT(sp_agreed(c));
    if (r == first) {
        EXPECT(says("disk") && !says("rank"));
    } else {
        char start[40], rest[40];

        snprintf(start, sizeof start, "rank %d (", first);
        snprintf(rest, sizeof rest, "): disk %d is on fire", first);
        EXPECT(strncmp(sp_last_error(), start, strlen(start)) == 0);
        EXPECT(says(rest));
    }
    DONE(sp_barrier(c, on_main(SP_USE_CHECK))); /* and they went on */
    EXPECT(sp_agreed(c) == (R == 1));
    EXPECT(sp_agree(c, SP_OK) == SP_OK);
}

/* Rank 1 has another second line, and the last rank one line less. */
static void agree_text(sp_comm *c)
{
    int R = sp_comm_ranks(c), r = sp_comm_rank(c);
    const char *same = "width: 2\nlr: 0.1\n";
    const char *text = r == 1       ? "width: 2\nlr: 0.2\n"
                       : r == R - 1 ? "width: 2\n"
                                    : same;
    char who[80];

    EXPECT(sp_agree_text(c, "the configuration", same) == SP_OK);
    if (R == 1)
        return;
    EXPECT(sp_agree_text(c, "the configuration", text) == SP_EPEER);
    EXPECT(sp_agreed(c));
    if (R == 2)
        snprintf(who, sizeof who, "the configuration: rank 1 differs from");
    else
        snprintf(who, sizeof who,
                 "the configuration: ranks 1 and %d differ from", R - 1);
    EXPECT(says(who));
    EXPECT(says("\"lr: 0.1\" on rank 0 ("));
    EXPECT(says("\"lr: 0.2\" on rank 1 ("));
    text = r == R - 1 ? "width: 2\n" : same;
    EXPECT(sp_agree_text(c, "it", text) == SP_EPEER);
    EXPECT(says("\"lr: 0.1\" on rank 0 (") && says("no such line on rank "));
}

/* All on one core; then, given two, even ranks on the one, odd ones on the
 * other. */
static void threads(sp_comm *c)
{
    int R = sp_comm_ranks(c), r = sp_comm_rank(c), n = 0, core[2], found = 0;
    cpu_set_t before, set;
    bool over;

    sched_getaffinity(0, sizeof before, &before);
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &before))
            core[found++] = i;
    CPU_ZERO(&set);
    CPU_SET(core[0], &set);
    sched_setaffinity(0, sizeof set, &set);
    EXPECT(sp_agree_threads(c, 0, &n, &over) == SP_OK);
    EXPECT(n == 1 && over == (R > 1));
    EXPECT(sp_agree_threads(c, 3, &n, &over) == SP_OK);
    EXPECT(n == 3 && over);
    if (found == 2) {
        CPU_SET(core[1], &set);
        sched_setaffinity(0, sizeof set, &set);
        EXPECT(sp_agree_threads(c, 0, &n, &over) == SP_OK);
        EXPECT(n == (R == 1 ? 2 : 1) && over == (R > 2));
        CPU_CLR(core[(r + 1) % 2], &set);
        sched_setaffinity(0, sizeof set, &set);
        EXPECT(sp_agree_threads(c, 0, &n, &over) == SP_OK);
        EXPECT(n == 1 && over == (R > 2));
    }
    sched_setaffinity(0, sizeof before, &before);
}

void check_agreement(sp_comm *c)
{
    agree(c);
    agree_text(c);
    threads(c);
}
