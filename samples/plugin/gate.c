/* gate: two operators for tpc, as a plug-in. docs/plugins.md explains each line.
 *
 *     cc -O2 -shared -fPIC gate.c -o gate.so $(pkg-config --cflags tpc) -lm */
#include <math.h>
#include <tpc_plugin.h>

static int64_t elements(const tpc_plugin_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++)
        n *= t->dim[d];
    return n;
}

/* y = x * sigmoid(slope * g + w), w along the last dimension. */
static const char *gate(const tpc_plugin_call *call)
{
    const float *x = call->in[0].data, *g = call->in[1].data, *w = call->in[2].data;
    float *y = call->out[0].data;
    float slope = (float)call->attr[0].f;
    int64_t n = call->in[2].dim[0];
    for (int64_t i = 0; i < elements(&call->out[0]); i++)
        y[i] = x[i] / (1 + expf(-slope * g[i] - w[i % n]));
    return 0;
}

/* y[k] = the sum over i of |x[i] - c[i, k]|: distances to columns. */
static const char *distances(const tpc_plugin_call *call)
{
    const float *x = call->in[0].data, *c = call->in[1].data;
    float *y = call->out[0].data;
    int64_t n = call->in[1].dim[0], m = call->in[1].dim[1], rows = elements(&call->out[0]) / m;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < m; k++) {
            float sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += fabsf(x[r * n + i] - c[i * m + k]);
            y[r * m + k] = sum;
        }
    return 0;
}

static const tpc_plugin_op ops[] = {
    {.domain = "example",
     .name = "Gate",
     .signature = "x: f32[b.., n], g: f32[b.., n], w: f32[n] -> y: f32[b.., n]",
     .attributes = "slope:f=1",
     .rule = "(b.. n)(b.. n)(n) -> (b.. n)  linear 0",
     .kernel = gate},
    {.domain = "example",
     .name = "Distances",
     .signature = "x: f32[b.., n], c: f32[n, m] -> y: f32[b.., m]",
     .rule = "(b.. n)(n m) -> (b.. m)  n: sum contracted",
     .kernel = distances},
};

const tpc_plugin *tpc_plugin_entry(void)
{
    static const tpc_plugin plugin = {.abi = TPC_PLUGIN_ABI, .ops = 2, .name = "gate", .op = ops};
    return &plugin;
}
