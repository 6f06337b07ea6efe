/* How fast one rank computes, measured by sessions on small graphs: products of many rows with large weights (prefill), of one row
 * (decode, which streams the weights from memory), elementwise chains, and nodes that compute almost nothing. Minima count: other programs
 * only ever add time. */
#include "ir/text/text.h"
#include "op/op.h"
#include "run/fuse/fuse.h"
#include "run/measure/measure.h"
#include "run/run.h"

#include <string.h>

enum {
    SIDE = 2048,
    LAYERS = 8, /* 128 MiB of weights: more than caches hold; 64 MiB for many rows */
    MANY = 4,
    ROWS = 128,
    LENGTH = 512,
    WIDTH = 4096,
    NODES = 64,
    LEAST_ROUNDS = 3,
    MOST_ROUNDS = 24
};
static const double budget = 1; /* seconds for each kind of work */

struct work_bench {
    struct arena *arena;
    struct comm *self;
    struct graph *graph;
    struct session *session;
    struct tensor *in, *out;
};

static struct graph *parse_calibration_graph(struct arena *a, const char *text)
{
    return graph_parse(a, alg_new(a), text, "calibration", op_find);
}

/* Ones, so that no product ends in denormal numbers: rows of a weight add up to one. */
static float *constant_data_of(struct arena *a, int64_t n, float x)
{
    float *at = NEWN(a, float, n);
    for (int64_t i = 0; i < n; i++)
        at[i] = x;
    return at;
}

/* Inputs from the second on become weights of side by side; all are read from one block, for a session packs its own. */
static void make_weights(struct graph *g, int64_t side)
{
    struct constant c = {.dtype = DT_F32,
                         .rank = 2,
                         .dim = {side, side},
                         .bytes = side * side * (int64_t)sizeof(float),
                         .data = constant_data_of(g->arena, side * side, 1 / (float)side)};
    for (int i = 1; i < g->inputs.n; i++) {
        struct constant *own = g->inputs.at[i]->constant = NEW(g->arena, struct constant);
        *own = c;
    }
    g->inputs.n = 1;
}

/* n products in a row, with weights of side by side. */
static struct graph *product_graph(struct arena *a, int n, int side)
{
    char *text = arena_printf(a, "graph g { opset 23 dim S >= 1 input x0: f32[S, %d]", side);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s input w%d: f32[%d, %d]", text, i, side, side);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s node n%d: x%d: f32[S, %d] = MatMul(x%d, w%d)", text, i, i + 1, side, i, i);
    struct graph *g = parse_calibration_graph(a, arena_printf(a, "%s output x%d }", text, n));
    make_weights(g, side);
    return g;
}

static struct graph *chain_graph(struct arena *a)
{
    struct graph *g = parse_calibration_graph(
        a,
        "graph g { opset 23 dim S >= 1 input x: f32[S, 4096] input z: f32[S, 4096] node s: s: f32[S, 4096] = Sigmoid(x) "
        "node g: g: f32[S, 4096] = Mul(x, s) node h: h: f32[S, 4096] = Mul(g, z) node y: y: f32[S, 4096] = Add(h, x) output y }");
    fuse_chains(g);
    return g;
}
enum { CHAIN_ELEMENTS = 2 + 3 + 3 + 3 }; /* read and written per element by the four ops if each ran alone */

static struct work_bench bench_new(struct graph *g, int threads)
{
    struct work_bench b = {.arena = g->arena, .self = comm_self(), .graph = g};
    b.session = session_new(g, b.self, (struct session_options){.threads = threads});
    b.in = NEWN(b.arena, struct tensor, g->inputs.n);
    b.out = NEW(b.arena, struct tensor);
    return b;
}

static void bench_rows(struct work_bench *b, int64_t rows, int64_t width)
{
    for (int i = 0; i < b->graph->inputs.n; i++)
        b->in[i] = (struct tensor){.dtype = DT_F32, .rank = 2, .dim = {rows, width}, .data = constant_data_of(b->arena, rows * width, 1)};
}

static void bench_free(struct work_bench *b)
{
    session_free(b->session);
    b->self->free(b->self);
}

/* One run on rank 0, or on all ranks until the last is done. */
static double time_run(struct comm *comm, struct work_bench *b, bool alone)
{
    comm->barrier(comm);
    double start = clock_seconds();
    if (!alone || comm->rank == 0)
        session_run(b->session, b->in, b->out);
    comm->barrier(comm);
    return clock_seconds() - start;
}

struct work_times {
    double alone, together;
};

static struct work_times least_times(struct comm *comm, struct work_bench *b, int64_t rows, int64_t width)
{
    struct work_times t = {0, 0};
    double start = clock_seconds(), spent = 0;
    bench_rows(b, rows, width);
    for (int i = -1; i < LEAST_ROUNDS || (i < MOST_ROUNDS && spent < budget); i++) { /* the first is for warmth */
        double alone = time_run(comm, b, true), together = comm->size > 1 ? time_run(comm, b, false) : alone;
        if (i <= 0 || alone < t.alone)
            t.alone = alone;
        if (i <= 0 || together < t.together)
            t.together = together;
        spent = comm_slowest(comm, clock_seconds() - start);
    }
    return t;
}

/* A graph of one float input [S, width] on so many rows. */
static struct work_times time_graph(struct comm *comm, struct graph *g, int threads, int64_t rows, int64_t width)
{
    struct work_bench b = bench_new(g, threads);
    struct work_times t = least_times(comm, &b, rows, width);
    bench_free(&b);
    return t;
}

static void keep_faster(double *rate, double found)
{
    *rate = found > *rate ? found : *rate;
}
static void keep_shorter(double *seconds, double found)
{
    *seconds = *seconds <= 0 || found < *seconds ? found : *seconds;
}

void measure_work(struct comm *comm, int threads, struct measured *m)
{
    struct arena *a = arena_new();
    const double weights = (double)SIDE * SIDE, flops = 2 * MANY * ROWS * weights, bytes = LAYERS * weights * sizeof(float);
    const double passed = (double)LENGTH * WIDTH * CHAIN_ELEMENTS * sizeof(float);
    struct work_times prompt = time_graph(comm, product_graph(a, MANY, SIDE), threads, ROWS, SIDE),
                      step = time_graph(comm, product_graph(a, LAYERS, SIDE), threads, 1, SIDE);
    keep_faster(&m->flops, flops / prompt.alone);
    keep_faster(&m->flops_together, flops / prompt.together);
    keep_faster(&m->memory, bytes / step.alone);
    keep_faster(&m->memory_together, bytes / step.together);
    keep_shorter(&m->elementwise, time_graph(comm, chain_graph(a), threads, LENGTH, WIDTH).alone / passed);
    keep_shorter(&m->node, time_graph(comm, product_graph(a, NODES, 8), threads, 1, 8).alone / NODES);
    arena_free(a);
}
