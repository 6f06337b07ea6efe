/* Plug-ins for tests/plugin.tap, one for each CASE: right ones with what samples/plugin/gate.c lacks, and wrong ones. Ops are of the domain
 * "example"; where a macro is not given, the op is y = 2 x. */
#include <stdlib.h>
#include <string.h>
#include <tpc_plugin.h>

#ifndef NAME
#define NAME "case"
#endif
#ifndef OP
#define OP "Twice"
#endif
#ifndef DOMAIN
#define DOMAIN "example"
#endif
#ifndef SIGNATURE
#define SIGNATURE "x: f32[b.., n] -> y: f32[b.., n]"
#endif
#ifndef ATTRIBUTES
#define ATTRIBUTES NULL
#endif
#ifndef RULE
#define RULE "(b.. n) -> (b.. n)  linear 0"
#endif
#ifndef ABI
#define ABI TPC_PLUGIN_ABI
#endif
#ifndef ENTRY
#define ENTRY tpc_plugin_entry
#endif
#ifndef BODY
#define BODY twice(call)
#endif

static int64_t elements(const tpc_plugin_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++)
        n *= t->dim[d];
    return n;
}

static const char *twice(const tpc_plugin_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    for (int64_t i = 0; i < elements(&call->in[0]); i++)
        y[i] = 2 * x[i];
    return NULL;
}

/* By the place of an element in a rank's shard: y = x + i. */
static const char *places(const tpc_plugin_call *call)
{
    for (int64_t i = 0; i < elements(&call->in[0]); i++)
        ((float *)call->out[0].data)[i] = ((const float *)call->in[0].data)[i] + (float)i;
    return NULL;
}

/* A row of a table for each number, and the numbers, twice as large, twice. */
static const char *rows(const tpc_plugin_call *call)
{
    const int64_t *ids = call->in[0].data, v = call->in[1].dim[0], n = call->in[1].dim[1];
    for (int64_t i = 0; i < elements(&call->in[0]); i++) {
        if (ids[i] < 0 || ids[i] >= v)
            return "a number is outside of the table";
        memcpy((float *)call->out[0].data + i * n, (const float *)call->in[1].data + ids[i] * n, (size_t)n * sizeof(float));
        ((int64_t *)call->out[1].data)[2 * i] = ((int64_t *)call->out[1].data)[2 * i + 1] = 2 * ids[i];
    }
    return NULL;
}

static const char *one_short(const tpc_plugin_call *call)
{
    for (int64_t i = 0; i + 1 < elements(&call->in[0]); i++)
        ((float *)call->out[0].data)[i] = 1;
    return NULL;
}

static const char *random_numbers(const tpc_plugin_call *call)
{
    for (int64_t i = 0; i < elements(&call->in[0]); i++)
        ((float *)call->out[0].data)[i] = (float)rand();
    return NULL;
}

static const char *in_place(const tpc_plugin_call *call)
{
    memset(call->in[0].data, 0, sizeof(float));
    return twice(call);
}

/* By an attribute: 0: y = 2 x, else by places. */
static const char *by_mode(const tpc_plugin_call *call)
{
    return call->attr[0].i ? places(call) : twice(call);
}

/* y[2 i], y[2 i + 1] = x[2 i + 1], x[2 i]. */
static const char *swaps(const tpc_plugin_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    if (call->in[0].dim[call->in[0].rank - 1] % 2)
        return "the last dimension is odd";
    for (int64_t i = 0; i < elements(&call->in[0]); i += 2) {
        y[i] = x[i + 1];
        y[i + 1] = x[i];
    }
    return NULL;
}

/* One element too many, in front or behind. */
static const char *beyond(const tpc_plugin_call *call, int64_t at)
{
    twice(call);
    ((float *)call->out[0].data)[at < 0 ? at : elements(&call->out[0])] = 1;
    return NULL;
}

static const char *crashes(const tpc_plugin_call *call)
{
    twice(call);
    abort();
}

/* NaN of what is negative. */
static const char *roots(const tpc_plugin_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    for (int64_t i = 0; i < elements(&call->in[0]); i++)
        y[i] = x[i] < 0 ? x[i] / 0.0F * 0.0F : x[i];
    return NULL;
}

/* y = 2 x + 1: no sum passes it. */
static const char *affine(const tpc_plugin_call *call)
{
    twice(call);
    for (int64_t i = 0; i < elements(&call->in[0]); i++)
        ((float *)call->out[0].data)[i] += 1;
    return NULL;
}

static const char *kernel(const tpc_plugin_call *call)
{
    (void)twice, (void)places, (void)rows, (void)one_short, (void)random_numbers, (void)in_place;
    (void)affine, (void)by_mode, (void)swaps, (void)beyond, (void)crashes, (void)roots, (void)call;
    return BODY;
}

const tpc_plugin *ENTRY(void);
const tpc_plugin *ENTRY(void)
{
    static const tpc_plugin_op op = {
        .domain = DOMAIN, .name = OP, .signature = SIGNATURE, .attributes = ATTRIBUTES, .rule = RULE, .kernel = kernel};
    static const tpc_plugin plugin = {.abi = ABI, .ops = 1, .name = NAME, .op = &op};
    return &plugin;
}
