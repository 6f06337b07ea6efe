/* moe: mixtures of experts. The router's values choose experts for each row. Expert by expert, its rows are gathered, multiplied with its
 * matrices, and added to the result with their weights: always in the order of experts. Among equal values the first experts are chosen, as
 * in TopK. */
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/product/product.h"

#include <string.h>

enum { FC1, FC2, FC3, MATRICES };
typedef void activation(const float *gate, const float *value, int64_t step, int64_t n, const float *param, float *out);

struct token_route {
    int64_t row;
    float weight;
};
struct moe_call {
    struct kcall *call;
    struct experts matrix[MATRICES];       /* weight NULL: absent */
    const struct tensor *x, *router, *mix; /* mix: the weights of the chosen experts, if not the router's */
    int64_t rows, hidden, inner, experts, k;
    activation *activate;
    int64_t gates, step; /* fc1 holds gates and values (2) or not; elements from one gate to the next */
    float param[3];      /* alpha, beta, limit */
    int64_t *start;      /* by expert: its first route; [experts]: the number of routes */
    struct token_route *route;
    float *in, *first, *third, *out; /* for the rows of one expert */
};

/* ---- activations: out[n] of gates and values `step` apart; value NULL: there are none ----------------------------------------------- */

#define ACTIVATION(name, G)                                                                                               \
    static SIMD void name(const float *gate, const float *value, int64_t step, int64_t n, const float *param, float *out) \
    {                                                                                                                     \
        (void)param;                                                                                                      \
        LOOP for (int64_t i = 0; i < n; i++)                                                                              \
        {                                                                                                                 \
            float g = gate[i * step];                                                                                     \
            out[i] = (G);                                                                                                 \
        }                                                                                                                 \
        if (value)                                                                                                        \
            LOOP for (int64_t i = 0; i < n; i++) out[i] *= value[i * step];                                               \
    }
ACTIVATION(relu, g > 0 || g != g ? g : 0)
ACTIVATION(gelu, 0.5f * g * (1.0f + mathf_tanh(0.7978845608f * (g + 0.044715f * g * g * g))))
ACTIVATION(silu, g *mathf_sigmoid(g))
ACTIVATION(identity, g)

static SIMD void swiglu(const float *gate, const float *value, int64_t step, int64_t n, const float *param, float *out)
{
    float alpha = param[0], beta = param[1], limit = param[2];
    LOOP for (int64_t i = 0; i < n; i++)
    {
        float g = gate[i * step], v = value[i * step];
        g = g > limit ? limit : g;
        v = v > limit ? limit : v < -limit ? -limit : v;
        out[i] = g * mathf_sigmoid(alpha * g) * (v + beta);
    }
}

static activation *activation_of(const struct kcall *call)
{
    static const struct {
        const char *name;
        activation *at;
    } known[] = {{"relu", relu}, {"gelu", gelu}, {"silu", silu}, {"identity", identity}, {"swiglu", swiglu}};
    int i = NAMED_ROW(known, attr_string(call->node, "activation_type"));
    if (i >= 0)
        return known[i].at;
    fail("%s: activation_type is '%s', which tpc does not know", kcall_where(call), attr_string(call->node, "activation_type"));
}

/* ---- operands ---------------------------------------------------------------------------------------------------------------- */

static int64_t weight_bits(const struct kcall *call, int j)
{
    static const char *const own[MATRICES] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
    return attr_int(call->node, attr_is_set(call->node, own[j]) ? own[j] : "expert_weight_bits");
}

/* In the order of MoE: a weight and its bias; of QMoE: weight, scales, bias, and zero points after all of these. */
static struct experts matrix_of(const struct kcall *call, int j, int64_t k)
{
    bool quantized = strcmp(call->node->op->name, "QMoE") == 0;
    int at = 2 + j * (quantized ? 3 : 2);
    struct experts w = {.weight = kcall_in(call, at), .bias = kcall_in(call, at + (quantized ? 2 : 1)), .bits = 8};
    w.transposed = strcmp(call->node->op->name, "Experts") == 0 && attr_int(call->node, "transposed");
    if (!w.weight)
        return w;
    w.panels.n = w.weight->dim[w.transposed ? 2 : 1];
    w.panels.k = k;
    if (quantized) {
        w.scales = kcall_in(call, at + 1);
        w.zeros = kcall_in(call, 11 + j);
        w.bits = weight_bits(call, j);
        w.block = attr_is_set(call->node, "block_size") ? attr_int(call->node, "block_size") : 0;
    }
    return w;
}

static struct moe_call moe_of(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    struct moe_call m = {.call = call, .x = x, .router = &call->in[1], .activate = activation_of(call)};
    bool quantized = strcmp(call->node->op->name, "QMoE") == 0;
    m.mix = kcall_in(call, quantized ? 14 : 8);
    m.hidden = x->dim[x->rank - 1];
    m.rows = tensor_dims_product(x->dim, 0, x->rank - 1);
    m.experts = m.router->dim[1];
    m.k = attr_int(call->node, "k") < m.experts ? attr_int(call->node, "k") : m.experts;
    m.matrix[FC1] = matrix_of(call, FC1, m.hidden);
    m.matrix[FC3] = matrix_of(call, FC3, m.hidden);
    int64_t fusion = strcmp(attr_string(call->node, "activation_type"), "swiglu") == 0 ? attr_int(call->node, "swiglu_fusion") : 0;
    m.gates = fusion ? 2 : 1;
    m.step = fusion == 1 ? 2 : 1;
    m.inner = m.matrix[FC1].panels.n / m.gates;
    m.matrix[FC2] = matrix_of(call, FC2, m.inner);
    m.param[0] = (float)attr_float(call->node, "activation_alpha");
    m.param[1] = (float)attr_float(call->node, "activation_beta");
    m.param[2] = attr_is_set(call->node, "swiglu_limit") ? (float)attr_float(call->node, "swiglu_limit") : INFINITY;
    return m;
}

/* ---- routing ----------------------------------------------------------------------------------------------------------------- */

/* Row r of a [rows, experts] tensor, in scratch. */
static void read_row(const struct tensor *t, int64_t r, float *room)
{
    convert_to_f32(t->dtype, element_at_const(t->data, dtype_size(t->dtype), r * t->dim[1]), t->dim[1], room);
}

/* The k largest; NaN is chosen only if no number is left. */
static void choose_experts(const float *value, int64_t n, int64_t k, int64_t *chosen)
{
    for (int64_t j = 0; k == n && j < k; j++)
        chosen[j] = j;
    for (int64_t j = 0; k < n && j < k; j++) {
        chosen[j] = -1;
        for (int64_t e = 0; e < n; e++) {
            bool taken = false;
            for (int64_t i = 0; i < j; i++)
                taken |= chosen[i] == e;
            if (!taken && (chosen[j] < 0 || value[e] > value[chosen[j]] || (value[chosen[j]] != value[chosen[j]] && value[e] == value[e])))
                chosen[j] = e;
        }
    }
}

static void softmax(float *x, int64_t n)
{
    float most = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = mathf_exp(x[i] - most);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* The experts of row r and their weights. value: scratch for a row. */
static void route_row(const struct moe_call *m, int64_t r, float *value, int64_t *expert, float *weight)
{
    float sum = 0;
    read_row(m->router, r, value);
    choose_experts(value, m->experts, m->k, expert);
    if (m->mix)
        read_row(m->mix, r, value);
    else
        softmax(value, m->experts);
    for (int64_t j = 0; j < m->k; j++)
        sum += weight[j] = value[expert[j]];
    for (int64_t j = 0; j < m->k && attr_int(m->call->node, "normalize_routing_weights"); j++)
        weight[j] /= sum;
}

/* Bytes of n elements, rounded up so that each part starts at a multiple of 64 bytes. */
static size_t part(const struct kcall *call, int64_t n, size_t size)
{
    return (kcall_bytes(call, n, size) + 63) & ~(size_t)63;
}

static bool counts(float weight)
{
    return weight < 0 || weight > 0 || weight != weight;
}

/* Of n choices; start: scratch. Each expert's routes are counted first. */
static void place_routes(struct moe_call *m, int64_t n, const int64_t *expert, const float *weight)
{
    memset(m->start, 0, kcall_bytes(m->call, m->experts + 1, sizeof *m->start));
    for (int64_t i = 0; i < n; i++)
        m->start[expert[i] + 1] += counts(weight[i]);
    for (int64_t e = 0; e < m->experts; e++)
        m->start[e + 1] += m->start[e];
    int64_t total = m->start[m->experts];
    for (int64_t i = n - 1; i >= 0; i--) /* from the end of each expert's routes to their start */
        if (counts(weight[i]))
            m->route[--m->start[expert[i] + 1]] = (struct token_route){i / m->k, weight[i]};
    memmove(m->start, m->start + 1, kcall_bytes(m->call, m->experts, sizeof *m->start));
    m->start[m->experts] = total;
}

/* Rows by expert, in order; without rows of weight 0. */
static void group_by_expert(struct moe_call *m)
{
    struct kcall *call = m->call;
    int64_t n = m->rows * m->k;
    size_t starts = part(call, m->experts + 1, sizeof *m->start), routes = part(call, n, sizeof *m->route),
           chosen = part(call, n, sizeof(int64_t));
    char *room = kenv_room(call->env, ROOM_ROUTES,
                           starts + routes + chosen + part(call, n, sizeof(float)) + part(call, m->experts, sizeof(float)));
    int64_t *expert = (int64_t *)(void *)(room + starts + routes);
    float *weight = (float *)(void *)(room + starts + routes + chosen), *value = weight + part(call, n, sizeof(float)) / sizeof(float);
    m->start = (int64_t *)(void *)room;
    m->route = (struct token_route *)(void *)(room + starts);
    for (int64_t r = 0; r < m->rows; r++)
        route_row(m, r, value, expert + r * m->k, weight + r * m->k);
    place_routes(m, n, expert, weight);
}

/* ---- one expert -------------------------------------------------------------------------------------------------------------- */

struct expert_rows {
    const struct moe_call *m;
    const struct token_route *route;
    float *y;
};

static void take_range(void *data, int64_t lo, int64_t hi)
{
    const struct expert_rows *t = data;
    const struct tensor *x = t->m->x;
    for (int64_t i = lo; i < hi; i++)
        convert_to_f32(x->dtype, element_at_const(x->data, dtype_size(x->dtype), t->route[i].row * t->m->hidden), t->m->hidden,
                       t->m->in + i * t->m->hidden);
}

/* Gate and value: from fc1 and fc3, interleaved in fc1, or one after the other. */
static void activate_range(void *data, int64_t lo, int64_t hi)
{
    const struct moe_call *m = ((const struct expert_rows *)data)->m;
    int64_t inner = m->inner;
    for (int64_t i = lo; i < hi; i++) {
        const float *gate = m->first + i * inner * m->gates, *fused = m->gates == 1 ? NULL : gate + (m->step == 2 ? 1 : inner);
        m->activate(gate, m->matrix[FC3].weight ? m->third + i * inner : fused, m->step, inner, m->param, m->in + i * inner);
    }
}

static SIMD void add_weighted(const float *x, float weight, int64_t n, float *y)
{
    LOOP for (int64_t i = 0; i < n; i++) y[i] += weight * x[i];
}

static void give_range(void *data, int64_t lo, int64_t hi)
{
    const struct expert_rows *t = data;
    int64_t n = t->m->matrix[FC2].panels.n;
    for (int64_t i = lo; i < hi; i++)
        add_weighted(t->m->out + i * n, t->route[i].weight, n, t->y + t->route[i].row * n);
}

static void run_expert(struct moe_call *m, int64_t e, float *y)
{
    int64_t n = m->start[e + 1] - m->start[e];
    struct expert_rows rows = {m, m->route + m->start[e], y};
    for (int j = 0; j < MATRICES; j++)
        m->matrix[j].expert = e;
    kenv_parallel_for(m->call->env, n, m->hidden, take_range, &rows);
    expert_product(m->call, &m->matrix[FC1], n, m->in, m->first);
    if (m->matrix[FC3].weight)
        expert_product(m->call, &m->matrix[FC3], n, m->in, m->third);
    kenv_parallel_for(m->call->env, n, 16 * m->inner, activate_range, &rows);
    expert_product(m->call, &m->matrix[FC2], n, m->in, m->out);
    kenv_parallel_for(m->call->env, n, m->hidden, give_range, &rows);
}

static void make_room(struct moe_call *m)
{
    int64_t most = 0, wide = m->hidden > m->inner ? m->hidden : m->inner;
    for (int64_t e = 0; e < m->experts; e++)
        most = m->start[e + 1] - m->start[e] > most ? m->start[e + 1] - m->start[e] : most;
    size_t in = part(m->call, most * wide, sizeof(float)), first = part(m->call, most * m->matrix[FC1].panels.n, sizeof(float));
    size_t third = part(m->call, most * m->inner, sizeof(float)), out = part(m->call, most * m->hidden, sizeof(float));
    char *room = kenv_scratch(m->call->env, in + first + third + out);
    m->in = (float *)(void *)room;
    m->first = (float *)(void *)(room + in);
    m->third = (float *)(void *)(room + in + first);
    m->out = (float *)(void *)(room + in + first + third);
}

void kern_MoE(struct kcall *call)
{
    struct moe_call m = moe_of(call);
    int64_t n = m.rows * m.matrix[FC2].panels.n;
    if (n == 0)
        return;
    float *y = kcall_result_f32(call, &call->out[0]);
    memset(y, 0, kcall_bytes(call, n, sizeof *y));
    group_by_expert(&m);
    make_room(&m);
    for (int64_t e = 0; e < m.experts; e++)
        if (m.start[e + 1] > m.start[e])
            run_expert(&m, e, y);
    kcall_result_store(y, &call->out[0]);
}
