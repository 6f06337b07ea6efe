/* times: AllReduce and AllGather of tpc and of the MPI library, in turn, of the ranks of this machine:  mpirun -n N times [SECONDS]
 *
 * The operand was just written, as by a node. Of each the least time counts, of the slowest rank; prints rows of a table, microseconds. */
#include "run/comm/comm.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 64, MOST_BYTES = 16 << 20, GROWTH = 4, SIZES = 10, BATCH_BYTES = 1 << 19, MOST_CALLS = 64, LEAST_CALLS = 2 };

struct bench {
    struct comm *comm;
    char *x, *y;
    int64_t *bytes;
};

static void own_allreduce(struct bench *b, int n)
{
    b->comm->allreduce(b->comm, b->x, b->y, n, DT_F32, RED_SUM);
}

static void own_allgather(struct bench *b, int n)
{
    for (int r = 0; r < b->comm->size; r++)
        b->bytes[r] = n / b->comm->size * (int64_t)sizeof(float);
    b->comm->allgatherv(b->comm, b->x, b->bytes);
}

static void library_allreduce(struct bench *b, int n)
{
    MPI_Allreduce(b->x, b->y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void library_allgather(struct bench *b, int n)
{
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b->x, n / b->comm->size, MPI_FLOAT, MPI_COMM_WORLD);
}

static void (*const collectives[])(struct bench *, int elements) = {own_allreduce, library_allreduce, own_allgather, library_allgather};
enum { KINDS = sizeof collectives / sizeof *collectives };

static double time_calls(struct bench *b, int kind, int bytes)
{
    int calls = BATCH_BYTES / bytes < LEAST_CALLS ? LEAST_CALLS : BATCH_BYTES / bytes > MOST_CALLS ? MOST_CALLS : BATCH_BYTES / bytes;
    double seconds = 0;
    for (int i = 0; i < calls; i++) {
        memset(b->x, 0, (size_t)bytes);
        b->comm->barrier(b->comm);
        double start = clock_seconds();
        collectives[kind](b, bytes / (int)sizeof(float));
        seconds += clock_seconds() - start;
    }
    return comm_slowest(b->comm, seconds / calls);
}

static void print_row(int ranks, int bytes, const double *least)
{
    printf("| %d | %d |", ranks, bytes);
    for (int kind = 0; kind < KINDS; kind++)
        printf(" %.3g |", 1e6 * least[kind]);
    printf("\n");
}

int main(int argc, char **argv)
{
    double least[SIZES][KINDS] = {{0}}, seconds = argc > 1 ? atof(argv[1]) : 5, begin = clock_seconds();
    diag_setup("times", 0);
    struct comm *comm = comm_mpi(&argc, &argv);
    struct arena *a = arena_new();
    struct bench b = {comm, arena_alloc(a, MOST_BYTES), arena_alloc(a, MOST_BYTES), NEWN(a, int64_t, comm->size)};
    for (int k = 0; k < SIZES; k++) {
        begin = clock_seconds();
        do {
            for (int kind = 0; kind < KINDS; kind++) {
                double took = time_calls(&b, kind, LEAST_BYTES << 2 * k);
                least[k][kind] = least[k][kind] == 0 || took < least[k][kind] ? took : least[k][kind];
            }
        } while (comm_slowest(comm, clock_seconds() - begin) < seconds / SIZES);
        if (comm->rank == 0)
            print_row(comm->size, LEAST_BYTES << 2 * k, least[k]);
    }
    arena_free(a);
    comm->free(comm);
    return 0;
}
