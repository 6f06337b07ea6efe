/* measure_host: a look at a job's ranks in well under a second: the memory bandwidth of all ranks together (the triad of STREAM), and the
 * latency of a block between two of them. */
#include "kern/core/core.h"
#include "run/measure/measure.h"

#include <string.h>

enum { TRIAD_RUNS = 4, EXCHANGE_ROUNDS = 3 };

/* ---- a = b + s c ---- */

struct triad {
    double *a, *b, *c;
};

static void triad_fill(void *data, int64_t lo, int64_t hi)
{
    const struct triad *t = data;
    for (int64_t i = lo; i < hi; i++) {
        t->a[i] = 0;
        t->b[i] = 1;
        t->c[i] = 2;
    }
}

static void triad_run(void *data, int64_t lo, int64_t hi)
{
    const struct triad *t = data;
    double *restrict a = t->a;
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

/* ---- blocks between two ranks, and sums over all ---- */

struct exchange {
    struct comm *comm;
    int peer; /* for rank 0 */
    int64_t bytes;
    char *from, *to;
};

static void exchange_with_peer(const struct exchange *e)
{
    struct comm *c = e->comm;
    for (int i = 0; i < c->size; i++) {
        bool pair = (c->rank == 0 && i == e->peer) || (c->rank == e->peer && i == 0);
        c->send[i] = (struct block){e->from, pair ? e->bytes : 0};
        c->recv[i] = (struct block){e->to, pair ? e->bytes : 0};
    }
    c->alltoall(c);
}

static void sum_of_all(const struct exchange *e)
{
    e->comm->allreduce(e->comm, e->from, e->to, e->bytes / (int64_t)sizeof(float), DT_F32, RED_SUM);
}

/* Seconds of one exchange: the least mean of several rounds, after one warm-up round. */
static double time_exchange(struct arena *a, struct exchange e, const char *name, void (*run)(const struct exchange *), int calls)
{
    double least = 0;
    e.from = arena_alloc(a, (size_t)e.bytes);
    e.to = arena_alloc(a, (size_t)e.bytes);
    e.comm->id = 0;
    e.comm->name = name;
    for (int i = 0; i <= EXCHANGE_ROUNDS; i++) {
        e.comm->barrier(e.comm);
        double start = clock_seconds();
        for (int k = 0; k < calls; k++)
            run(&e);
        double took = comm_slowest(e.comm, (clock_seconds() - start) / calls);
        least = i <= 1 || took < least ? took : least;
    }
    return least;
}

double measure_pair(struct arena *a, struct comm *c, int r, int64_t bytes, int calls)
{
    return time_exchange(a, (struct exchange){.comm = c, .peer = r, .bytes = bytes}, "a block between two ranks", exchange_with_peer,
                         calls);
}

double measure_sum(struct arena *a, struct comm *c, int64_t bytes, int calls)
{
    return time_exchange(a, (struct exchange){.comm = c, .bytes = bytes}, "a sum over all ranks", sum_of_all, calls);
}
