/* What a program really hands to MPI, counted between the two: loaded before
 * MPI, it prints "shim: RANK BYTES" when MPI ends. Of the program it knows
 * nothing; other ways to send than those here end it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long long bytes;

int MPI_Isend(const void *x, int count, MPI_Datatype type, int peer, int tag,
              MPI_Comm comm, MPI_Request *request)
{
    int size;

    PMPI_Type_size(type, &size);
    bytes += (long long)count * size;
    return PMPI_Isend(x, count, type, peer, tag, comm, request);
}

int MPI_Finalize(void)
{
    int rank;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "shim: %d %lld\n", rank, bytes);
    return PMPI_Finalize();
}

static int refuse(const char *name)
{
    fprintf(stderr, "shim: %s is not counted\n", name);
    abort();
}

/* All other ways to send, by their names behind MPI_. */
/* clang-format off */
#define SENDING(X) \
    X(Send) X(Bsend) X(Rsend) X(Ssend) X(Ibsend) X(Irsend) X(Issend) \
    X(Send_init) X(Bsend_init) X(Rsend_init) X(Ssend_init) X(Sendrecv) \
    X(Sendrecv_replace) X(Bcast) X(Ibcast) X(Reduce) X(Ireduce) X(Allreduce) \
    X(Iallreduce) X(Reduce_scatter) X(Ireduce_scatter) \
    X(Reduce_scatter_block) X(Ireduce_scatter_block) X(Scan) X(Iscan) \
    X(Exscan) X(Iexscan) X(Gather) X(Igather) X(Gatherv) X(Igatherv) \
    X(Allgather) X(Iallgather) X(Allgatherv) X(Iallgatherv) X(Scatter) \
    X(Iscatter) X(Scatterv) X(Iscatterv) X(Alltoall) X(Ialltoall) \
    X(Alltoallv) X(Ialltoallv) X(Alltoallw) X(Ialltoallw) X(Put) X(Rput) \
    X(Get) X(Rget) X(Accumulate) X(Raccumulate) X(Get_accumulate) \
    X(Rget_accumulate) X(Fetch_and_op) X(Compare_and_swap)
/* clang-format on */

/* A function of MPI's, by the linker's name for it: what it takes does not
 * matter, since it does not return. */
#define REFUSE(name)                               \
    int refuse_##name(void) __asm__("MPI_" #name); \
    int refuse_##name(void) { return refuse("MPI_" #name); }

SENDING(REFUSE)
