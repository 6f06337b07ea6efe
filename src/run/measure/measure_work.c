/* How fast one rank computes, measured by sessions on small graphs: products of many rows with large weights (prefill), of one row
 * (decode, which streams the weights from memory), elementwise chains, functions, nodes that compute almost nothing, products with weights
 * of 4 bits, and convolutions whose result has one channel or many. Minima count: other programs
 * only ever add time. */
#include "ir/text/text.h"
#include "op/op.h"
#include "run/fuse/fuse.h"
#include "run/measure/measure.h"
#include "run/run.h"

#include <string.h>

enum {
    SIDE = 2048,
    LAYERS = 8,  /* 128 MiB of weights: more than caches hold; 64 MiB for many rows */
    HALVES = 16, /* 128 MiB */
    CODED = 32,  /* 80 MiB of codes and scales */
    MANY = 4,
    ROWS = 128,
    LENGTH = 512,
    WIDTH = 4096,
    NODES = 64,
    FEW = 16, /* rows that stay in a rank's cache */
    FUNCTIONS = 3,
    ROW_COUNT = 1 << 14,
    CHANNELS = MEASURED_CHANNELS,
    LEAST_ROUNDS = 3,
    MOST_ROUNDS = 24
};
static const double budget = 0.5; /* seconds for each kind of work */

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

/* So that no product ends in denormal numbers. */
static float *constant_data_of(struct arena *a, int64_t n, float x)
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
        return constant_data_of(a, n, 1 / (float)SIDE);
    size_t bytes = (size_t)n * dtype_size(dtype);
    return memset(arena_alloc(a, bytes), dtype == DT_BF16 ? 0x3a : 0x77, bytes); /* 0.0007; codes just below zero */
}

/* Inputs from the second on become weights; those of one size are read from one block, for a session packs its own. */
static void make_weights(struct graph *g)
{
    struct constant last = {.dtype = DT_NONE};
    for (int i = 1; i < g->inputs.n; i++) {
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
    make_weights(g);
    return g;
}

/* The same, with weights of bf16. */
static struct graph *halves_graph(struct arena *a, int n, int side)
{
    char *text = arena_printf(a, "graph g { opset 23 dim S >= 1 input x0: f32[S, %d]", side);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s input h%d: bf16[%d, %d]", text, i, side, side);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s node c%d: w%d: f32[%d, %d] = Cast(h%d) {to = 1} node n%d: x%d: f32[S, %d] = MatMul(x%d, w%d)", text, i,
                            i, side, side, i, i, i + 1, side, i, i);
    struct graph *g = parse_calibration_graph(a, arena_printf(a, "%s output x%d }", text, n));
    make_weights(g);
    fuse_weights(g, false);
    return g;
}

/* The same, with weights of 4 bits in blocks of 32, and activations that may be rounded to 8 bits. */
static struct graph *codes_graph(struct arena *a, int n, int side)
{
    char *text = arena_printf(a, "graph g { opset 23 dim S >= 1 input x0: f32[S, %d]", side);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s input w%d: u8[%d, %d, 16]", text, i, side, side / 32);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s input s%d: f32[%d, %d]", text, i, side, side / 32);
    for (int i = 0; i < n; i++)
        text = arena_printf(a,
                            "%s node n%d: x%d: f32[S, %d] = com.microsoft::MatMulNBits(x%d, w%d, s%d) {K = %d, N = %d, block_size = 32, "
                            "accuracy_level = 4}",
                            text, i, i + 1, side, i, i, i, side, side);
    struct graph *g = parse_calibration_graph(a, arena_printf(a, "%s output x%d }", text, n));
    make_weights(g);
    return g;
}

/* A convolution of 3 x 3 with so many channels in its result. */
static struct graph *conv_graph(struct arena *a, int channels)
{
    struct graph *g = parse_calibration_graph(
        a,
        arena_printf(a,
                     "graph g { opset 23 dim S >= 1 input x: f32[S, 64, 56, 56] input w: f32[%d, 64, 3, 3] "
                     "node y: y: f32[S, %d, 54, 54] = Conv(x, w) output y }",
                     channels, channels));
    make_weights(g);
    channels_last(g, false);
    return g;
}

static struct graph *rows_graph(struct arena *a)
{
    return parse_calibration_graph(a,
                                   "graph g { opset 23 dim S >= 1 input x: f32[S, 8] input z: f32[S, 8] "
                                   "node y: y: f32[S, 16] = Concat(x, z) {axis = 1} output y }");
}

static struct graph *functions_graph(struct arena *a)
{
    struct graph *g = parse_calibration_graph(a,
                                              "graph g { opset 23 dim S >= 1 input x: f32[S, 4096] node s: s: f32[S, 4096] = Sigmoid(x) "
                                              "node t: t: f32[S, 4096] = Tanh(s) node e: y: f32[S, 4096] = Erf(t) output y }");
    fuse_chains(g);
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

static void bench_rows(struct work_bench *b, int64_t rows)
{
    for (int i = 0; i < b->graph->inputs.n; i++) {
        const struct type *t = &b->graph->inputs.at[i]->type;
        b->in[i] = (struct tensor){.dtype = DT_F32, .rank = t->rank, .dim = {rows}};
        int64_t n = rows;
        for (int d = 1; d < t->rank; d++)
            n *= b->in[i].dim[d] = fixed_dim(t, d);
        b->in[i].data = constant_data_of(b->arena, n, 1);
    }
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

static struct work_times least_times(struct comm *comm, struct work_bench *b, int64_t rows)
{
    struct work_times t = {0, 0};
    double start = clock_seconds(), spent = 0;
    bench_rows(b, rows);
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

/* A graph on so many rows. */
static struct work_times time_graph(struct comm *comm, struct graph *g, int threads, int64_t rows)
{
    struct work_bench b = bench_new(g, threads);
    struct work_times t = least_times(comm, &b, rows);
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

/* Seconds for each byte of floats in the cache, encoded and decoded. */
static double time_wire(struct arena *a, enum wire wire)
{
    enum { FLOATS = 1 << 14, TIMES = 100 };
    float *x = constant_data_of(a, FLOATS, 1), *y = NEWN(a, float, FLOATS);
    void *code = arena_alloc(a, (size_t)sum_wire_bytes(wire, FLOATS));
    double least = 0;
    for (int i = 0; i < TIMES; i++) {
        double start = clock_seconds();
        comm_wire_encode(wire, x, FLOATS, code);
        comm_wire_decode(wire, code, FLOATS, 0, FLOATS, y);
        keep_shorter(&least, clock_seconds() - start);
    }
    return least / (2.0 * FLOATS * sizeof(float));
}

void measure_work(struct comm *comm, int threads, struct measured *m)
{
    struct arena *a = arena_new();
    const double weights = (double)SIDE * SIDE, flops = 2 * MANY * ROWS * weights, bytes = LAYERS * weights * sizeof(float);
    const double passed = (double)LENGTH * WIDTH * CHAIN_ELEMENTS * sizeof(float);
    struct work_times prompt = time_graph(comm, product_graph(a, MANY, SIDE), threads, ROWS),
                      step = time_graph(comm, product_graph(a, LAYERS, SIDE), threads, 1);
    struct work_times halves = time_graph(comm, halves_graph(a, HALVES, SIDE), threads, 1);
    keep_faster(&m->halves, HALVES * weights * 2 / halves.alone);
    keep_faster(&m->halves_together, HALVES * weights * 2 / halves.together);
    struct work_times coded = time_graph(comm, codes_graph(a, CODED, SIDE), threads, 1);
    const double code_bytes = CODED * weights * (0.5 + sizeof(float) / 32.0);
    keep_faster(&m->codes, code_bytes / coded.alone);
    keep_faster(&m->codes_together, code_bytes / coded.together);
    keep_faster(&m->flops, flops / prompt.alone);
    keep_faster(&m->flops_together, flops / prompt.together);
    keep_faster(&m->memory, bytes / step.alone);
    keep_faster(&m->memory_together, bytes / step.together);
    keep_shorter(&m->elementwise, time_graph(comm, chain_graph(a), threads, LENGTH).alone / passed);
    keep_shorter(&m->node, time_graph(comm, product_graph(a, NODES, 8), threads, 1).alone / NODES);
    keep_shorter(&m->function, time_graph(comm, functions_graph(a), threads, FEW).alone / ((double)FEW * WIDTH * FUNCTIONS));
    keep_shorter(&m->row, time_graph(comm, rows_graph(a), threads, ROW_COUNT).alone / (2.0 * ROW_COUNT));
    keep_faster(&m->integers, flops / time_graph(comm, codes_graph(a, MANY, SIDE), threads, ROWS).alone);
    keep_shorter(&m->bf16, time_wire(a, WIRE_BF16));
    keep_shorter(&m->q8, time_wire(a, WIRE_Q8));
    keep_shorter(&m->conv, time_graph(comm, conv_graph(a, CHANNELS), threads, 1).alone);
    keep_shorter(&m->conv_of_one, time_graph(comm, conv_graph(a, 1), threads, 1).alone);
    arena_free(a);
}
