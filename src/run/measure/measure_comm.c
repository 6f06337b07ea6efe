/* measure_comm: the time of each collective of a communicator, by size, and the compute time that a sum takes from ranks. All are measured
 * in turn for some seconds, and the least time of each counts. */
#include "run/measure/measure.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_BYTES = 64,
    MOST_BYTES = 4 << 20,
    GROWTH = 4,
    ROUND_BYTES = 1 << 19, /* of one size in turn: switches and cards delay some messages */
    MOST_CALLS = 64,
    LEAST_CALLS = 2,
    LEAST_ROUNDS = 3,
    MOST_ROUNDS = 60
};
static const double budget = 2; /* seconds */

struct comm_bench {
    struct comm *comm, *all; /* whose collectives are timed; all ranks, which run theirs at the same time */
    char *x, *y;
    int64_t *bytes, calls;
};

static struct comm_bench comm_bench_new(struct arena *a, struct comm *comm, struct comm *all)
{
    return (struct comm_bench){comm, all, arena_alloc(a, MOST_BYTES), arena_alloc(a, MOST_BYTES), NEWN(a, int64_t, comm->size), 0};
}

/* Bytes per rank of n elements. */
static void set_share_bytes(struct comm_bench *r, int64_t n)
{
    for (int i = 0; i < r->comm->size; i++)
        r->bytes[i] = (n * (i + 1) / r->comm->size - n * i / r->comm->size) * (int64_t)sizeof(float);
}

static void measure_allreduce(struct comm_bench *r, int64_t n)
{
    r->comm->allreduce(r->comm, r->x, r->y, n, DT_F32, RED_SUM);
}

static void measure_allgather(struct comm_bench *r, int64_t n)
{
    set_share_bytes(r, n);
    r->comm->allgatherv(r->comm, r->x, r->bytes);
}

static void measure_reducescatter(struct comm_bench *r, int64_t n)
{
    set_share_bytes(r, n);
    char *at = r->x;
    for (int i = 0; i < r->comm->size; at += r->bytes[i++])
        r->comm->send[i] = (struct block){at, r->bytes[i]};
    r->comm->reduce_scatter(r->comm, r->y, r->bytes[r->comm->rank] / (int64_t)sizeof(float), DT_F32, RED_SUM);
}

/* Equal parts, so that i sends k as much as k sends i. */
static void measure_alltoall(struct comm_bench *r, int64_t n)
{
    struct comm *comm = r->comm;
    int64_t bytes = n / comm->size / comm->size * (int64_t)sizeof(float);
    for (int i = 0; i < comm->size; i++) {
        comm->send[i] = (struct block){r->x + i * bytes, bytes};
        comm->recv[i] = (struct block){r->y + i * bytes, bytes};
    }
    comm->alltoall(comm);
}

/* From rank 0 to the last one, and back in the next call. */
static void measure_message(struct comm_bench *r, int64_t n)
{
    struct comm *comm = r->comm;
    int last = comm->size - 1, from = r->calls++ % 2 ? last : 0;
    memset(comm->send, 0, sizeof *comm->send * (size_t)comm->size);
    memset(comm->recv, 0, sizeof *comm->recv * (size_t)comm->size);
    struct block *there = &comm->send[last - from], *here = &comm->recv[from];
    if (comm->rank == from)
        *there = (struct block){r->x, n * (int64_t)sizeof(float)};
    if (comm->rank == last - from)
        *here = (struct block){r->y, n * (int64_t)sizeof(float)};
    comm->alltoall(comm);
}

static const struct {
    enum collective kind;
    void (*call)(struct comm_bench *, int64_t elements);
} measured_kinds[] = {
    {COLL_ALLREDUCE, measure_allreduce}, {COLL_ALLGATHER, measure_allgather}, {COLL_REDUCESCATTER, measure_reducescatter},
    {COLL_ALLTOALL, measure_alltoall},   {COLL_NONE, measure_message},
};
enum { KINDS = sizeof measured_kinds / sizeof *measured_kinds };

static double time_batch(struct comm_bench *r, int kind, int64_t bytes, int64_t calls)
{
    memset(r->x, 0, (size_t)bytes);
    r->all->barrier(r->all);
    double start = clock_seconds();
    for (int64_t i = 0; i < calls; i++)
        measured_kinds[kind].call(r, bytes / (int64_t)sizeof(float));
    return clock_seconds() - start;
}

/* On one machine the operand is written before each call, as by a node, so it is in its rank's cache. Between machines, calls follow one
 * another without a pause: after a pause, some links accept a burst faster than they send. */
static double time_calls(struct comm_bench *r, int kind, int64_t bytes)
{
    int64_t calls = ROUND_BYTES / bytes < LEAST_CALLS ? LEAST_CALLS : ROUND_BYTES / bytes > MOST_CALLS ? MOST_CALLS : ROUND_BYTES / bytes;
    int64_t batch = r->all->local_size < r->all->size ? calls : 1;
    double seconds = 0;
    for (int64_t i = 0; i < calls; i += batch)
        seconds += time_batch(r, kind, bytes, batch);
    return comm_slowest(r->all, seconds / (double)calls);
}

static void keep_least(double *seconds, double took)
{
    if (*seconds <= 0 || took < *seconds)
        *seconds = took;
}

static void measure_round(struct comm_bench *r, struct measured_link *to)
{
    for (int i = 0; i < to->n; i++)
        keep_least(&to->collective[i].seconds, time_calls(r, i % KINDS, to->collective[i].bytes));
}

static struct measured_link link_new(struct arena *a, int units)
{
    struct measured_link link = {.units = units};
    for (int64_t bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes *= GROWTH)
        link.n += KINDS;
    link.collective = NEWN(a, struct measured_collective, link.n);
    int64_t bytes = LEAST_BYTES;
    for (int i = 0; i < link.n; bytes *= GROWTH)
        for (int k = 0; k < KINDS; k++)
            link.collective[i++] = (struct measured_collective){measured_kinds[k].kind, bytes, 0};
    return link;
}

/* Seconds of the largest message between machines, while only the first rank of each sends. */
static double time_alone(struct comm_bench *r)
{
    r->all->barrier(r->all);
    double start = clock_seconds();
    if (r->all->host->rank == 0)
        for (int i = 0; i < LEAST_CALLS; i++)
            measure_message(r, MOST_BYTES / (int64_t)sizeof(float));
    return comm_slowest(r->all, (clock_seconds() - start) / LEAST_CALLS);
}

/* ---- compute time that a sum takes from a rank, by its size ---- */

struct sum_behind {
    float *x, *y;
    int64_t elements;
    double took; /* seconds of all so far */
};
enum { BEHIND_LEAST = 32 << 10, BEHIND_MOST = 512 << 10, BEHIND_CALLS = 5 }; /* bytes */
static const double behind_budget = 0.3;                                     /* seconds */

static void add_behind(struct comm *c, void *data)
{
    struct sum_behind *s = data;
    double start = clock_seconds();
    c->id = 0;
    c->name = "measurement";
    c->allreduce(c, s->x, s->y, s->elements, DT_F32, RED_SUM);
    s->took += clock_seconds() - start;
}

/* Computes in the core's cache. Returns the seconds. */
static double compute(volatile float *at, int64_t times)
{
    double start = clock_seconds();
    for (int64_t i = 0; i < times; i++)
        at[i % 1024] = at[i % 1024] * 0.5f + 1;
    return clock_seconds() - start;
}

static double sum_alone(struct comm *c, struct sum_behind *s)
{
    double start = clock_seconds();
    for (int i = 0; i < BEHIND_CALLS; i++)
        add_behind(c, s);
    return comm_slowest(c, (clock_seconds() - start) / BEHIND_CALLS);
}

/* Amount of work that takes longer than a sum of this many seconds. */
static int64_t work_for(struct comm *c, double sum, volatile float *at)
{
    enum { TRIAL = 1000000, TIMES_AS_LONG = 4 };
    double trial = 0;
    for (int i = 0; i < BEHIND_CALLS; i++)
        keep_least(&trial, comm_slowest(c, compute(at, TRIAL)));
    return (int64_t)(TIMES_AS_LONG * TRIAL * sum / trial);
}

/* From minima over several turns with and without a sum: other programs only add to either. */
static struct measured_behind time_behind(struct arena *a, struct comm *whole, struct comm *c, struct sum_behind *s, volatile float *at)
{
    double sum = sum_alone(c, s), alone = 0, with_sum = 0;
    const double least = 1e-6;
    int64_t times = work_for(c, sum, at);
    struct behind *b = behind_start(a, c);
    double begin = clock_seconds();
    int turns = 0;
    s->took = 0;
    for (; turns < BEHIND_CALLS || comm_slowest(whole, clock_seconds() - begin) < behind_budget; turns++) {
        whole->barrier(whole);
        keep_least(&alone, comm_slowest(whole, compute(at, times)));
        double start = clock_seconds();
        int64_t number = behind_add(b, add_behind, s);
        (void)compute(at, times);
        behind_wait(b, number, "measurement");
        keep_least(&with_sum, comm_slowest(whole, clock_seconds() - start));
    }
    behind_end(b);
    return (struct measured_behind){sum, comm_slowest(whole, s->took / turns), with_sum - alone > least ? with_sum - alone : least};
}

static void measure_behind(struct arena *a, struct comm *whole, struct measured *m)
{
    m->nbehind = 0;
    if (!whole->overlaps)
        return;
    struct comm *c = whole->split(whole, 0);
    struct sum_behind s = {arena_alloc(a, BEHIND_MOST), arena_alloc(a, BEHIND_MOST), 0, 0};
    volatile float *at = NEWN(a, float, 1024);
    memset(s.x, 0, BEHIND_MOST);
    for (int64_t bytes = BEHIND_LEAST; bytes <= BEHIND_MOST; bytes *= GROWTH) {
        s.elements = bytes / (int64_t)sizeof(float);
        m->behind[m->nbehind++] = time_behind(a, whole, c, &s, at);
    }
    c->free(c);
}

/* Seconds per byte of floats in the cache, encoded and decoded. */
static double time_wire(struct arena *a, enum wire wire)
{
    enum { FLOATS = 1 << 14, TIMES = 100 };
    float *x = NEWN(a, float, FLOATS), *y = NEWN(a, float, FLOATS);
    void *code = arena_alloc(a, (size_t)sum_wire_bytes(wire, FLOATS));
    double least = 0;
    for (int i = 0; i < FLOATS; i++)
        x[i] = 1;
    for (int i = 0; i < TIMES; i++) {
        double start = clock_seconds();
        comm_wire_encode(wire, x, FLOATS, code);
        comm_wire_decode(wire, code, FLOATS, 0, FLOATS, y);
        keep_least(&least, clock_seconds() - start);
    }
    return least / (2.0 * FLOATS * sizeof(float));
}

void measure_comm(struct arena *a, struct comm *comm, struct measured *m)
{
    m->bf16 = time_wire(a, WIRE_BF16);
    m->q8 = time_wire(a, WIRE_Q8);
    m->links = 0;
    if (comm->size == 1)
        return;
    struct arena *tmp = arena_new();
    struct comm_bench whole = comm_bench_new(tmp, comm, comm), part[MEASURED_LINKS];
    double start = clock_seconds(), spent = 0, alone = 0;
    m->whole = link_new(a, comm->size);
    for (struct comm *of[] = {comm->host, comm->across}; m->links < (comm->host ? MEASURED_LINKS : 0); m->links++) {
        m->link[m->links] = link_new(a, of[m->links]->size);
        part[m->links] = comm_bench_new(tmp, of[m->links], comm);
    }
    for (int i = 0; i < LEAST_ROUNDS || (i < MOST_ROUNDS && spent < budget * (1 + m->links)); i++) {
        measure_round(&whole, &m->whole);
        for (int k = 0; k < m->links; k++)
            measure_round(&part[k], &m->link[k]);
        if (m->links)
            keep_least(&alone, time_alone(&part[LINK_BETWEEN]));
        spent = comm_slowest(comm, clock_seconds() - start);
    }
    if (m->links)
        m->alone = MOST_BYTES / alone;
    else
        m->link[m->links++] = m->whole;
    measure_behind(tmp, comm, m);
    arena_free(tmp);
}
