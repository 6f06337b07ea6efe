/* How fast one rank multiplies by large weights, measured by sessions on small graphs: products of many rows (prefill), and of one row
 * (decode), which stream the weights from memory, as f32, bf16 and codes of 4 bits.
 *
 * What memory gives may change within seconds: it depends on what else uses it, and, on a virtual machine, on the cores that run it. So the
 * streams are sampled between all other measurements, and medians of their least times count. */
#include "run/fuse/fuse.h"
#include "run/measure/measure.h"
#include "run/measure/measure_bench.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 2048,
    LAYERS = 8,  /* 128 MiB of weights: more than caches hold; 64 MiB for many rows */
    HALVES = 16, /* 128 MiB */
    CODED = 32,  /* 80 MiB of codes of 4 bits and scales */
    BYTES = 16,  /* 72 MiB of codes of 8 bits and scales */
    MANY = 4,
    ROWS = 128,
    MOST_SAMPLES = 256
};
struct stream {
    struct work_bench bench;
    double bytes;
    double *alone, *together; /* seconds of each sample */
};
enum { FULL, HALF, CODE, BYTE, STREAMS };
struct measuring {
    struct comm *comm;
    int threads, samples;
    struct stream stream[STREAMS];
    double begin, seconds, waited;
};

/* n products in a row, with weights of side by side. */
static struct graph *product_graph(struct arena *a, int n, int side)
{
    char *text = arena_printf(a, "graph g { opset 23 dim S >= 1 input x0: f32[S, %d]", side);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s input w%d: f32[%d, %d]", text, i, side, side);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s node n%d: x%d: f32[S, %d] = MatMul(x%d, w%d)", text, i, i + 1, side, i, i);
    struct graph *g = measure_parse(a, arena_printf(a, "%s output x%d }", text, n));
    measure_weights(g);
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
    struct graph *g = measure_parse(a, arena_printf(a, "%s output x%d }", text, n));
    measure_weights(g);
    fuse_weights(g, false);
    return g;
}

/* The same, with weights of 4 or 8 bits in blocks of 32, and activations that may be rounded to 8 bits. */
static struct graph *codes_graph(struct arena *a, int n, int side, int bits)
{
    char *text = arena_printf(a, "graph g { opset 23 dim S >= 1 input x0: f32[S, %d]", side);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s input w%d: u8[%d, %d, %d]", text, i, side, side / 32, 4 * bits);
    for (int i = 0; i < n; i++)
        text = arena_printf(a, "%s input s%d: f32[%d, %d]", text, i, side, side / 32);
    for (int i = 0; i < n; i++)
        text = arena_printf(a,
                            "%s node n%d: x%d: f32[S, %d] = com.microsoft::MatMulNBits(x%d, w%d, s%d) {K = %d, N = %d, block_size = 32, "
                            "bits = %d, accuracy_level = 4}",
                            text, i, i + 1, side, i, i, i, side, side, bits);
    struct graph *g = measure_parse(a, arena_printf(a, "%s output x%d }", text, n));
    measure_weights(g);
    return g;
}

/* Seconds for each byte of floats in the cache, encoded and decoded. */
static double time_wire(struct arena *a, enum wire wire)
{
    enum { FLOATS = 1 << 14, TIMES = 100 };
    float *x = measure_numbers(a, FLOATS, 1), *y = NEWN(a, float, FLOATS);
    void *code = arena_alloc(a, (size_t)sum_wire_bytes(wire, FLOATS));
    double least = 0;
    for (int i = 0; i < TIMES; i++) {
        double start = clock_seconds();
        comm_wire_encode(wire, x, FLOATS, code);
        comm_wire_decode(wire, code, FLOATS, 0, FLOATS, y);
        measure_keep_shorter(&least, clock_seconds() - start);
    }
    return least / (2.0 * FLOATS * sizeof(float));
}

/* ---- streams ------------------------------------------------------------------------------------------------------------------------- */

static struct stream stream_new(struct arena *a, struct graph *g, int threads, double bytes)
{
    struct stream s = {measure_bench(g, threads), bytes, NEWN(a, double, MOST_SAMPLES), NEWN(a, double, MOST_SAMPLES)};
    measure_rows(&s.bench, 1);
    return s;
}

/* The least of a few runs, as of a step that is repeated: an interruption is no property of memory. */
static double sample(const struct measuring *x, struct stream *s, bool alone)
{
    enum { RUNS = 5 };
    double least = 0;
    for (int i = 0; i < RUNS; i++)
        measure_keep_shorter(&least, measure_run(x->comm, &s->bench, alone));
    return least;
}

static void sample_streams(struct measuring *x)
{
    for (int i = 0; i < STREAMS && x->samples < MOST_SAMPLES; i++) {
        struct stream *s = &x->stream[i];
        s->alone[x->samples] = sample(x, s, true);
        s->together[x->samples] = x->comm->size > 1 ? sample(x, s, false) : s->alone[x->samples];
    }
    x->samples += x->samples < MOST_SAMPLES;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_rate(const struct measuring *x, const struct stream *s, double *seconds)
{
    qsort(seconds, (size_t)x->samples, sizeof *seconds, compare_seconds);
    return s->bytes / seconds[x->samples / 2];
}

/* ---- a measurement ------------------------------------------------------------------------------------------------------------------- */

struct measuring *measure_begin(struct arena *a, struct comm *comm, int threads, double seconds)
{
    const double weights = (double)SIDE * SIDE;
    struct measuring *x = NEW(a, struct measuring);
    *x = (struct measuring){.comm = comm, .threads = threads, .begin = clock_seconds(), .seconds = seconds, .waited = measure_waited()};
    x->stream[FULL] = stream_new(a, product_graph(a, LAYERS, SIDE), threads, LAYERS * weights * sizeof(float));
    x->stream[HALF] = stream_new(a, halves_graph(a, HALVES, SIDE), threads, HALVES * weights * 2);
    x->stream[CODE] = stream_new(a, codes_graph(a, CODED, SIDE, 4), threads, CODED * weights * (0.5 + sizeof(float) / 32.0));
    x->stream[BYTE] = stream_new(a, codes_graph(a, BYTES, SIDE, 8), threads, BYTES * weights * (1 + sizeof(float) / 32.0));
    sample_streams(x); /* warms up */
    if (!measure_is_late(x))
        x->samples = 0;
    return x;
}

bool measure_is_late(const struct measuring *x)
{
    return comm_slowest(x->comm, clock_seconds() - x->begin) > x->seconds;
}

struct work_times measure_graph(struct measuring *x, struct graph *g, int64_t rows)
{
    enum { ROUNDS = 3 };
    bool late = measure_is_late(x);
    struct work_times t = measure_least(x->comm, g, x->threads, rows, late ? 1 : ROUNDS);
    if (!late || x->samples == 0)
        sample_streams(x);
    return t;
}

void measure_work(struct measuring *x, struct measured *m)
{
    struct arena *a = arena_new();
    const double flops = 2.0 * MANY * ROWS * SIDE * SIDE;
    struct work_times prompt = measure_graph(x, product_graph(a, MANY, SIDE), ROWS);
    measure_keep_faster(&m->flops, flops / prompt.alone);
    measure_keep_faster(&m->flops_together, flops / prompt.together);
    measure_keep_faster(&m->integers, flops / measure_graph(x, codes_graph(a, MANY, SIDE, 4), ROWS).alone);
    measure_keep_shorter(&m->bf16, time_wire(a, WIRE_BF16));
    measure_keep_shorter(&m->q8, time_wire(a, WIRE_Q8));
    arena_free(a);
}

void measure_end(struct measuring *x, struct measured *m)
{
    struct stream *s = x->stream;
    m->memory = median_rate(x, &s[FULL], s[FULL].alone);
    m->memory_together = median_rate(x, &s[FULL], s[FULL].together);
    m->halves = median_rate(x, &s[HALF], s[HALF].alone);
    m->halves_together = median_rate(x, &s[HALF], s[HALF].together);
    m->codes = median_rate(x, &s[CODE], s[CODE].alone);
    m->codes_together = median_rate(x, &s[CODE], s[CODE].together);
    m->bytes = median_rate(x, &s[BYTE], s[BYTE].alone);
    m->bytes_together = median_rate(x, &s[BYTE], s[BYTE].together);
    m->busy = comm_slowest(x->comm, (measure_waited() - x->waited) / (clock_seconds() - x->begin));
    for (int i = 0; i < STREAMS; i++)
        measure_bench_free(&s[i].bench);
}
