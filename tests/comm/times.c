/* times: AllReduce and AllGather of tpc and of the MPI library, of the ranks of this machine:  mpirun -n N times [SECONDS]
 *
 * For each size all take turns for a fixed time; operands were just written, as by a node. The least time of the slowest rank counts.
 * Prints rows of a table: ranks, bytes, and microseconds of AllReduce by tpc and by the library, and of AllGather. */
#include "run/comm/comm.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 64, MOST_BYTES = 16 << 20, GROWTH = 4, BATCH_BYTES = 1 << 19, MOST_CALLS = 64, LEAST_CALLS = 2 };

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

/* In turn, for a fixed time. */
static void time_size(struct bench *b, int bytes, double seconds, double least[KINDS])
{
    double begin = clock_seconds();
    for (int round = 0; round == 0 || comm_slowest(b->comm, clock_seconds() - begin) < seconds; round++)
        for (int kind = 0; kind < KINDS; kind++) {
            double took = time_calls(b, kind, bytes);
            least[kind] = round == 0 || took < least[kind] ? took : least[kind];
        }
}

int main(int argc, char **argv)
{
    double least[KINDS], seconds = argc > 1 ? atof(argv[1]) : 0.5;
    diag_setup("times", 0);
    struct comm *comm = comm_mpi(&argc, &argv);
    struct arena *a = arena_new();
    struct bench b = {comm, arena_alloc(a, MOST_BYTES), arena_alloc(a, MOST_BYTES), NEWN(a, int64_t, comm->size)};
    for (int bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes *= GROWTH) {
        time_size(&b, bytes, seconds, least);
        if (comm->rank != 0)
            continue;
        printf("| %d | %d |", comm->size, bytes);
        for (int kind = 0; kind < KINDS; kind++)
            printf(" %.3g |", 1e6 * least[kind]);
        printf("\n");
        (void)fflush(stdout);
    }
    arena_free(a);
    comm->free(comm);
    return 0;
}
