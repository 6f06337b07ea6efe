/* measure_bench: runs small graphs in sessions and takes minimal times, because other programs only add time; and how long a rank waits for
 * a core. */
#include "run/measure/measure_bench.h"

#include "ir/text/text.h"
#include "op/op.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ROUNDS = 24 };
static const double budget = 0.25;       /* seconds per graph */
static const float weight = 1.0f / 2048; /* so that no product ends in denormals */

struct graph *measure_parse(struct arena *a, const char *text)
{
    const char *whole = arena_printf(a, "graph g { opset 23 properties %d dim S >= 1 %s }", PROP_LOADED | PROP_TYPED | PROP_CANONICAL,
                                     text);
    return graph_parse(a, alg_new(a), whole, "calibration", op_find);
}

float *measure_numbers(struct arena *a, int64_t n, float x)
{
    float *at = NEWN(a, float, n);
    for (int64_t i = 0; i < n; i++)
        at[i] = x;
    return at;
}

static int64_t fixed_dim(const struct type *t, int d)
{
    int64_t size;
    return dim_eval(t->dim[d], &(struct bindings){.list = {NULL, 0, 0}}, &size) ? size : 1;
}

static const void *weight_data(struct arena *a, enum dtype dtype, int64_t n)
{
    if (dtype == DT_F32)
        return measure_numbers(a, n, weight);
    size_t bytes = (size_t)n * dtype_size(dtype);
    return memset(arena_alloc(a, bytes), dtype == DT_BF16 ? 0x3a : 0x77, bytes); /* 0.0007; codes just below zero */
}

void measure_weights(struct graph *g, int operands)
{
    struct constant last = {.dtype = DT_NONE};
    for (int i = operands; i < g->inputs.n; i++) {
        const struct type *t = &g->inputs.at[i]->type;
        struct constant *own = g->inputs.at[i]->constant = NEW(g->arena, struct constant);
        *own = (struct constant){.dtype = t->dtype, .rank = t->rank};
        int64_t n = 1;
        for (int d = 0; d < t->rank; d++)
            n *= own->dim[d] = fixed_dim(t, d);
        own->bytes = n * (int64_t)dtype_size(t->dtype);
        own->data = last.dtype == own->dtype && last.bytes == own->bytes ? last.data : weight_data(g->arena, own->dtype, n);
        last = *own;
    }
    g->inputs.n = operands;
}

struct work_bench measure_bench(struct graph *g, int threads)
{
    struct work_bench b = {.arena = g->arena, .self = comm_self(), .graph = g};
    b.session = session_new(g, b.self, (struct session_options){.threads = threads});
    b.in = NEWN(b.arena, struct tensor, g->inputs.n);
    b.out = NEWN(b.arena, struct tensor, g->outputs.n + 1);
    return b;
}

void measure_rows(struct work_bench *b, int64_t rows)
{
    for (int i = 0; i < b->graph->inputs.n; i++) {
        const struct type *t = &b->graph->inputs.at[i]->type;
        b->in[i] = (struct tensor){.dtype = t->dtype, .rank = t->rank, .dim = {rows}};
        int64_t n = rows;
        for (int d = 1; d < t->rank; d++)
            n *= b->in[i].dim[d] = fixed_dim(t, d);
        b->in[i].data = t->dtype == DT_F32 ? measure_numbers(b->arena, n, 1) : arena_alloc(b->arena, (size_t)n * dtype_size(t->dtype));
    }
}

void measure_bench_free(struct work_bench *b)
{
    session_free(b->session);
    b->self->free(b->self);
}

/* Whether this is the first rank of its machine. "Machines" may share memory and cores, as virtual ones do: so one rank of each measures
 * alone, not one of all. */
static bool first_of_machine(const struct comm *comm)
{
    return comm->local_size == 1 || (comm->host ? comm->host->rank : comm->rank) == 0;
}

double measure_run(struct comm *comm, struct work_bench *b, bool alone)
{
    comm->barrier(comm);
    double start = clock_seconds();
    if (!alone || first_of_machine(comm))
        session_run(b->session, b->in, b->out);
    double own = clock_seconds() - start;
    if (alone && first_of_machine(comm))
        measure_keep_shorter(&b->own, own);
    return comm_slowest(comm, own);
}

static struct measured_price least_times(struct comm *comm, struct work_bench *b, int rounds, bool together)
{
    struct measured_price t = {.alone = 0};
    double start = clock_seconds(), spent = 0;
    for (int i = -1; i < rounds || (rounds > 1 && i < MOST_ROUNDS && spent < budget); i++) { /* the first one warms up */
        double alone = measure_run(comm, b, true), all = together && comm->size > 1 ? measure_run(comm, b, false) : alone;
        if (i <= 0 || alone < t.alone)
            t.alone = alone;
        if (i <= 0 || all < t.together)
            t.together = all;
        spent = comm_slowest(comm, clock_seconds() - start);
    }
    return t;
}

struct measured_price measure_least(struct comm *comm, struct graph *g, int threads, int64_t rows, int rounds, bool together)
{
    struct work_bench b = measure_bench(g, threads);
    measure_rows(&b, rows);
    struct measured_price t = least_times(comm, &b, rounds, together);
    t.own = b.own;
    measure_bench_free(&b);
    return t;
}

void measure_keep_shorter(double *seconds, double found)
{
    *seconds = *seconds <= 0 || found < *seconds ? found : *seconds;
}

/* From the scheduler: time on a core, time that the thread was ready without one (in nanoseconds), time slices. */
double measure_waited(void)
{
    unsigned long long ran, waited;
    FILE *f = fopen("/proc/thread-self/schedstat", "r");
    bool known = f && fscanf(f, "%llu %llu", &ran, &waited) == 2;
    if (f)
        (void)fclose(f);
    return known ? 1e-9 * (double)waited : 0;
}
