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

int MPI_Send(const void *x, int n, MPI_Datatype t, int p, int tag, MPI_Comm c)
{
    (void)x, (void)n, (void)t, (void)p, (void)tag, (void)c;
    return refuse("MPI_Send");
}

int MPI_Allreduce(const void *x, void *y, int n, MPI_Datatype t, MPI_Op op,
                  MPI_Comm c)
{
    (void)x, (void)y, (void)n, (void)t, (void)op, (void)c;
    return refuse("MPI_Allreduce");
}

int MPI_Iallreduce(const void *x, void *y, int n, MPI_Datatype t, MPI_Op op,
                   MPI_Comm c, MPI_Request *r)
{
    (void)x, (void)y, (void)n, (void)t, (void)op, (void)c, (void)r;
    return refuse("MPI_Iallreduce");
}
