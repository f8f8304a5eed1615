/* Checks that ranks make together; a rank that finds a fault ends all. */
#ifndef SP_TESTS_COMM_RANKS_H
#define SP_TESTS_COMM_RANKS_H

#include "dist/agree.h"
#include "dist/team.h"

#define EXPECT(condition) expect(c, condition, #condition, __LINE__)
#define DONE(operation) done(c, operation, __LINE__)

void expect(sp_comm *c, bool true_, const char *what, int line);
void done(sp_comm *c, sp_pending *p, int line);

/* All ranks, main channel. */
sp_on on_main(sp_use use);

/* Each operation once, against values by hand. */
void check_operations(sp_comm *c);

/* Many under way, in different orders, and late comers. */
void check_orders(sp_comm *c);

void check_agreement(sp_comm *c);

/* That steps allocate nothing after the first. */
void check_steps(sp_comm *c);

/* Calls of malloc and calloc, without those within MPI. */
int allocations(void);

/* Two ranks a host. */
void check_nodes(sp_comm *c);

#endif
