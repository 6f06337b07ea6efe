/* What a look at a job of ranks needs, in well under a second: how fast all ranks read and write memory together (the triad of STREAM), and
 * how long a block is on its way between two of them. */
#include "kern/core/core.h"
#include "run/measure/measure.h"

#include <string.h>

enum { TRIAD_RUNS = 4, PAIR_ROUNDS = 3 };

/* ---- a = b + s c ---- */

struct triad {
    double *a, *b, *c;
};

static void triad_fill(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct triad *t = data;
    (void)thread;
    for (int64_t i = lo; i < hi; i++) {
        t->a[i] = 0;
        t->b[i] = 1;
        t->c[i] = 2;
    }
}

static void triad_run(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct triad *t = data;
    double *restrict a = t->a;
    (void)thread;
    for (int64_t i = lo; i < hi; i++)
        a[i] = t->b[i] + 3 * t->c[i];
}

double measure_triad(struct comm *comm, int threads, int64_t bytes)
{
    struct arena *arena = arena_new();
    struct kenv *env = kenv_new(threads, false);
    int64_t n = bytes / 3 / (int64_t)sizeof(double);
    struct triad t = {NEWN(arena, double, n), NEWN(arena, double, n), NEWN(arena, double, n)};
    double least = 0;
    kenv_parallel_for(env, n, 1, triad_fill, &t);
    for (int i = 0; i < TRIAD_RUNS; i++) {
        comm->barrier(comm);
        double start = clock_seconds();
        kenv_parallel_for(env, n, 1, triad_run, &t);
        double took = clock_seconds() - start;
        least = i == 0 || took < least ? took : least;
    }
    require(n == 0 || t.a[n - 1] > 6.5);
    comm->barrier(comm);
    kenv_free(env);
    arena_free(arena);
    return least > 0 ? 3.0 * (double)sizeof(double) * (double)n / least : 0;
}

/* ---- blocks between two ranks ---- */

static void exchange_pair(struct comm *c, int r, char *from, char *to, int64_t bytes)
{
    for (int i = 0; i < c->size; i++) {
        bool pair = (c->rank == 0 && i == r) || (c->rank == r && i == 0);
        c->send[i] = (struct block){from, pair ? bytes : 0};
        c->recv[i] = (struct block){to, pair ? bytes : 0};
    }
    c->alltoall(c);
}

double measure_pair(struct arena *a, struct comm *c, int r, int64_t bytes, int calls)
{
    char *from = arena_alloc(a, (size_t)bytes), *to = arena_alloc(a, (size_t)bytes);
    double least = 0;
    c->id = 0;
    c->name = "a block between two ranks";
    for (int i = 0; i <= PAIR_ROUNDS; i++) {
        c->barrier(c);
        double start = clock_seconds();
        for (int k = 0; k < calls; k++)
            exchange_pair(c, r, from, to, bytes);
        double took = (clock_seconds() - start) / calls;
        least = i <= 1 || took < least ? took : least; /* the first round warms up */
    }
    return least;
}

double measure_sum(struct arena *a, struct comm *c, int64_t bytes, int calls)
{
    char *from = arena_alloc(a, (size_t)bytes), *to = arena_alloc(a, (size_t)bytes);
    double least = 0;
    c->id = 0;
    c->name = "a sum over all ranks";
    for (int i = 0; i <= PAIR_ROUNDS; i++) {
        c->barrier(c);
        double start = clock_seconds();
        for (int k = 0; k < calls; k++)
            c->allreduce(c, from, to, bytes / (int64_t)sizeof(float), DT_F32, RED_SUM);
        double took = comm_slowest(c, (clock_seconds() - start) / calls);
        least = i <= 1 || took < least ? took : least;
    }
    return least;
}
