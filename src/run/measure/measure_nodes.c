/* How fast one rank computes nodes that are not bound by large weights: elementwise ops by size, functions, rows, convolutions, codes. A
 * kind of convolution is measured by what more layers of it take, so that what surrounds them does not count. */
#include "run/fuse/fuse.h"
#include "run/measure/measure.h"
#include "run/measure/measure_bench.h"

#include <math.h>

enum {
    WIDTH = 4096,
    FEW = 16, /* rows that stay in a rank's cache */
    PASSES = 8,
    CHAINED = 2,
    OPERANDS = 3,
    ROW_COUNT = 1 << 14,
    REPEATED = 24, /* numbers */
    NODES = 64
};

/* ---- elementwise ops, functions, rows --------------------------------------------------------------------------------------------- */

/* Ops of three arrays each. In a chain every one reads what the one before made; else what was made a while ago, so that it is in memory if
 * it does not fit the caches. */
static struct graph *chain_graph(struct arena *a)
{
    struct graph *g = measure_parse(a,
                                    "graph g { opset 23 dim S >= 1 input x: f32[S, 4096] input z: f32[S, 4096] "
                                    "node m: m: f32[S, 4096] = Mul(x, z) node y: y: f32[S, 4096] = Add(m, x) output y }");
    fuse_chains(g);
    return g;
}

static struct graph *passes_graph(struct arena *a)
{
    return measure_parse(a,
                         "graph g { opset 23 dim S >= 1 input x: f32[S, 4096] input z: f32[S, 4096] "
                         "node a: a: f32[S, 4096] = Mul(x, z) node b: b: f32[S, 4096] = Add(x, z) "
                         "node c: c: f32[S, 4096] = Sub(x, z) node d: d: f32[S, 4096] = Add(a, b) "
                         "node e: e: f32[S, 4096] = Add(b, c) node f: f: f32[S, 4096] = Mul(a, c) "
                         "node h: h: f32[S, 4096] = Add(d, e) node y: y: f32[S, 4096] = Add(f, h) output y }");
}

/* Rows of 24 numbers, each multiplied by the same 24, and a sum. */
static struct graph *repeat_graph(struct arena *a)
{
    struct graph *g = measure_parse(a,
                                    "graph g { opset 23 dim S >= 1 input x: f32[S, 24] input z: f32[1, 24] "
                                    "node m: m: f32[S, 24] = Mul(x, z) node y: y: f32[S, 24] = Add(m, x) output y }");
    measure_weights(g);
    fuse_chains(g);
    return g;
}

static struct graph *turn_graph(struct arena *a)
{
    return measure_parse(a,
                         "graph g { opset 23 dim S >= 1 input x: f32[S, 4096, 24] "
                         "node y: y: f32[S, 24, 4096] = Transpose(x) {perm = [0, 2, 1]} output y }");
}

static struct graph *function_graph(struct arena *a, const char *function)
{
    return measure_parse(
        a, arena_printf(a, "graph g { opset 23 dim S >= 1 input x: f32[S, 4096] node y: y: f32[S, 4096] = %s(x) output y }", function));
}

static struct graph *columns_graph(struct arena *a)
{
    return measure_parse(a,
                         "graph g { opset 23 dim S >= 1 input x: f32[S, 16, 256] "
                         "node y: y: f32[S, 16, 256] = Softmax(x) {axis = 1} output y }");
}

static struct graph *rows_graph(struct arena *a)
{
    return measure_parse(a,
                         "graph g { opset 23 dim S >= 1 input x: f32[S, 8] input z: f32[S, 8] "
                         "node y: y: f32[S, 16] = Concat(x, z) {axis = 1} output y }");
}

/* Nodes with nothing to do. */
static struct graph *idle_graph(struct arena *a)
{
    const char *text = "graph g { opset 23 dim S >= 1 input x0: f32[S, 8] input w: f32[8, 8]";
    for (int i = 0; i < NODES; i++)
        text = arena_printf(a, "%s node n%d: x%d: f32[S, 8] = MatMul(x%d, w)", text, i, i + 1, i);
    struct graph *g = measure_parse(a, arena_printf(a, "%s output x%d }", text, NODES));
    measure_weights(g);
    return g;
}

/* A sum of codes, so many times: two arrays are decoded, one is rounded. */
static struct graph *sums_of_codes(struct arena *a, int sums)
{
    const char *text = "graph g { opset 23 dim S >= 1 input y0: u8[S, 4096] input y1: u8[S, 4096] const s: f32[] = [0.5]";
    for (int i = 0; i < sums; i++)
        text = arena_printf(
            a,
            "%s node a%d: a%d: f32[S, 4096] = DequantizeLinear(y%d, s) node b%d: b%d: f32[S, 4096] = DequantizeLinear(y%d, s) "
            "node c%d: c%d: f32[S, 4096] = Add(a%d, b%d) node y%d: y%d: u8[S, 4096] = QuantizeLinear(c%d, s)",
            text, i, i, i, i, i, i + 1, i, i, i, i, i + 2, i + 2, i);
    struct graph *g = measure_parse(a, arena_printf(a, "%s output y%d }", text, sums + 1));
    fuse_chains(g);
    return g;
}

static void measure_passes(struct arena *a, struct measuring *x, struct measured *m)
{
    const double row = WIDTH * sizeof(float) * OPERANDS;
    double bytes = MEASURED_PASS;
    for (int i = 0; i < MEASURED_PASSES; i++, bytes *= MEASURED_PASS_GROWTH) {
        int64_t rows = (int64_t)(bytes / row);
        double seconds = measure_graph(x, passes_graph(a), rows).alone;
        measure_keep_faster(&m->pass[i], PASSES * row * (double)rows / seconds);
        if (i == 1)
            measure_keep_shorter(&m->chain, measure_graph(x, chain_graph(a), rows).alone / (CHAINED * row * (double)rows));
    }
}

/* ---- convolutions ------------------------------------------------------------------------------------------------------------------ */

struct layer {
    int channels, side, kernel, group; /* of the result as of the operand */
    bool integers;
};

static double layer_flops(const struct layer *l)
{
    return 2.0 * l->channels * l->side * l->side * l->channels / l->group * l->kernel * l->kernel;
}

static double layer_bytes(const struct layer *l)
{
    return 2.0 * l->channels * l->side * l->side * (l->integers ? 1 : sizeof(float));
}

static const char *layer_text(struct arena *a, const struct layer *l, int i)
{
    int c = l->channels, n = l->side, pad = l->kernel / 2;
    const char *attributes = arena_printf(a, "{group = %d, pads = [%d, %d, %d, %d]}", l->group, pad, pad, pad, pad);
    if (!l->integers)
        return arena_printf(a, "node n%d: x%d: f32[S, %d, %d, %d] = Conv(x%d, w%d) %s", i, i + 1, c, n, n, i, i, attributes);
    return arena_printf(a,
                        "node a%d: a%d: f32[S, %d, %d, %d] = DequantizeLinear(x%d, s) "
                        "node b%d: b%d: f32[%d, %d, %d, %d] = DequantizeLinear(w%d, s) "
                        "node c%d: c%d: f32[S, %d, %d, %d] = Conv(a%d, b%d) %s "
                        "node n%d: x%d: u8[S, %d, %d, %d] = QuantizeLinear(c%d, s)",
                        i, i, c, n, n, i, i, i, c, c / l->group, l->kernel, l->kernel, i, i, i, c, n, n, i, i, attributes, i, i + 1, c, n,
                        n, i);
}

static struct graph *layers_graph(struct arena *a, const struct layer *l, int layers)
{
    const char *type = l->integers ? "u8" : "f32";
    const char *text = arena_printf(a, "graph g { opset 23 dim S >= 1 input x0: %s[S, %d, %d, %d] input s: f32[]", type, l->channels,
                                    l->side, l->side);
    for (int i = 0; i < layers; i++)
        text = arena_printf(a, "%s input w%d: %s[%d, %d, %d, %d]", text, i, l->integers ? "i8" : "f32", l->channels, l->channels / l->group,
                            l->kernel, l->kernel);
    for (int i = 0; i < layers; i++)
        text = arena_printf(a, "%s %s", text, layer_text(a, l, i));
    struct graph *g = measure_parse(a, arena_printf(a, "%s output x%d }", text, layers));
    measure_weights(g);
    channels_last(g, false);
    fuse_convs(g);
    return g;
}

/* Seconds of one layer: what six take longer than two. */
static double time_layer(struct arena *a, struct measuring *x, const struct layer *l)
{
    enum { SHORT = 2, LONG = 6 };
    double few = measure_graph(x, layers_graph(a, l, SHORT), 1).alone, many = measure_graph(x, layers_graph(a, l, LONG), 1).alone;
    return many > few ? (many - few) / (LONG - SHORT) : many / LONG;
}

enum { ROUNDS = 16 };

/* Convolutions of one place, behind each of which a pass takes their weights out of the cache; without them if none. */
static struct graph *small_convs_graph(struct arena *a, int convs)
{
    enum { CHANNELS = 32 };
    const char *text = "graph g { opset 23 dim S >= 1 input b0: f32[S, 512, 512] input x0: f32[1, 32, 1, 1]";
    for (int i = 0; i < convs; i++)
        text = arena_printf(a, "%s input w%d: f32[%d, %d, 1, 1]", text, i, CHANNELS, CHANNELS);
    for (int i = 0; i < ROUNDS; i++) {
        text = arena_printf(a, "%s node p%d: b%d: f32[S, 512, 512] = Mul(b%d, b%d)", text, i, i + 1, i, i);
        if (i < convs)
            text = arena_printf(a, "%s node n%d: x%d: f32[1, %d, 1, 1] = Conv(x%d, w%d)", text, i, i + 1, CHANNELS, i, i);
    }
    struct graph *g = measure_parse(
        a, convs ? arena_printf(a, "%s output x%d output b%d }", text, convs, ROUNDS) : arena_printf(a, "%s output b%d }", text, ROUNDS));
    measure_weights(g);
    channels_last(g, false);
    return g;
}

/* A convolution of 3 x 3 with so many channels in its result. */
static struct graph *conv_graph(struct arena *a, int channels)
{
    struct graph *g = measure_parse(a,
                                    arena_printf(a,
                                                 "graph g { opset 23 dim S >= 1 input x: f32[S, 64, 56, 56] input w: f32[%d, 64, 3, 3] "
                                                 "node y: y: f32[S, %d, 54, 54] = Conv(x, w) output y }",
                                                 channels, channels));
    measure_weights(g);
    channels_last(g, false);
    return g;
}

static double pass_seconds(const struct measured *m, const struct layer *l)
{
    return layer_bytes(l) / m->pass[layer_bytes(l) > 2 * MEASURED_PASS];
}

static double layer_results(const struct layer *l)
{
    return (double)l->channels * l->side * l->side;
}

static double code_seconds(const struct measured *m, const struct layer *l)
{
    return m->code * layer_results(l);
}

/* A time without a part that was measured apart. Where other programs run, the part can seem to be all of it. */
static double without(double seconds, double part)
{
    return fmax(seconds - part, seconds / 10);
}

/* A layer takes its products at one speed, and a time for each result: two unknowns. */
static void measure_integer_convs(struct arena *a, struct measuring *x, struct measured *m)
{
    const struct layer deep = {128, 28, 3, 1, true}, thin = {32, 56, 1, 1, true};
    double share = layer_flops(&thin) / layer_flops(&deep);
    measure_keep_shorter(&m->deep_layer, without(time_layer(a, x, &deep), pass_seconds(m, &deep)));
    measure_keep_shorter(&m->thin_layer, without(time_layer(a, x, &thin), pass_seconds(m, &thin)));
    m->sum = fmax(0, (m->thin_layer - share * m->deep_layer) / (layer_results(&thin) - share * layer_results(&deep)));
    m->integer_conv = layer_flops(&deep) / without(m->deep_layer, m->sum * layer_results(&deep));
}

void measure_nodes(struct measuring *x, struct measured *m)
{
    struct arena *a = arena_new();
    enum { SUMS = 4 };
    const double few = (double)FEW * WIDTH;
    measure_passes(a, x, m);
    measure_keep_shorter(&m->node, measure_graph(x, idle_graph(a), 1).alone / NODES);
    const double pass = sizeof(float) / m->pass[0]; /* of a number, beside the work itself */
    measure_keep_shorter(&m->function, without(measure_graph(x, function_graph(a, "Sigmoid"), FEW).alone / few, 2 * pass));
    measure_keep_shorter(&m->erf, without(measure_graph(x, function_graph(a, "Erf"), FEW).alone / few, 2 * pass));
    measure_keep_shorter(&m->column, measure_graph(x, columns_graph(a), FEW).alone / few);
    measure_keep_shorter(&m->code, without(measure_graph(x, sums_of_codes(a, SUMS), FEW).alone / (few * SUMS * OPERANDS), 1 / m->pass[0]));
    measure_keep_shorter(&m->repeat, measure_graph(x, repeat_graph(a), ROW_COUNT).alone / ROW_COUNT);
    measure_keep_shorter(&m->turn, measure_graph(x, turn_graph(a), 1).alone / (REPEATED * WIDTH));
    measure_keep_shorter(&m->row, measure_graph(x, rows_graph(a), ROW_COUNT).alone / (2.0 * ROW_COUNT));
    arena_free(a);
}

void measure_convs(struct measuring *x, struct measured *m)
{
    struct arena *a = arena_new();
    const struct layer full = {128, 28, 3, 1, false}, deep = {384, 28, 3, 384, false}, deep_codes = {384, 28, 3, 384, true};
    measure_keep_shorter(&m->small_convs, measure_graph(x, small_convs_graph(a, ROUNDS), 1).alone / ROUNDS);
    measure_keep_shorter(&m->no_convs, measure_graph(x, small_convs_graph(a, 0), 1).alone / ROUNDS);
    measure_keep_faster(&m->conv, layer_flops(&full) / without(time_layer(a, x, &full), pass_seconds(m, &full)));
    measure_keep_faster(&m->depthwise, layer_flops(&deep) / without(time_layer(a, x, &deep), pass_seconds(m, &deep)));
    measure_integer_convs(a, x, m);
    measure_keep_faster(&m->integer_depthwise,
                        layer_flops(&deep_codes) /
                            without(time_layer(a, x, &deep_codes), pass_seconds(m, &deep_codes) + code_seconds(m, &deep_codes)));
    measure_keep_shorter(&m->of_many, measure_graph(x, conv_graph(a, MEASURED_CHANNELS), 1).alone);
    measure_keep_shorter(&m->of_one, measure_graph(x, conv_graph(a, 1), 1).alone);
    arena_free(a);
}
