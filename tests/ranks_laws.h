/* What the files of ranks_laws share. */
#ifndef SP_TESTS_RANKS_LAWS_H
#define SP_TESTS_RANKS_LAWS_H

#include "dist/comm.h"
#include "sprat/config.h"

typedef struct world {
    sp_comm *comm;
    sp_registry *registry;
    const char *config;
    int failed;
} world;

/* A law holds if on all ranks there was no error and `far` is not beyond
 * `limit`. */
void tell(world *w, const char *name, sp_err e, double far, double limit);

/* Of packets by themselves (ranks_packets.c). */
void check_packets(world *w);

/* Of a step with all ranks (ranks_exchange.c). */
void check_exchange(world *w);

#endif
