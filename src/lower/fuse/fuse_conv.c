/* fuse_conv: a convolution absorbs the nodes that alone read its result, in graph order:
 *
 *   Mul, Add, Sub by one number or by one per channel, constants   scale its weight once, when that is packed; change its bias
 *   Relu, Clip, Sigmoid, x * Sigmoid(x) and their like             computed while results are in registers, with a factor and an addend
 *   Add of another tensor of the same shape                        likewise, before or after the function above
 *   Pad with zeros before it                                       becomes part of its padding
 *
 * An integer convolution also absorbs:
 *
 *   Cast to integers and back, of whole numbers                    no work
 *   Mul by a computed number                                       becomes a factor of its sums
 *   QuantizeLinear with one scale                                  makes its results codes
 *   Add of decoded bytes to these, Relu, QuantizeLinear            likewise; results are rounded before the sum, as in the graph
 *
 * A BatchNormalization of constants is such a product and sum. Scaled weights are rounded, so results may differ in their last bits. */
#include "ir/operands.h"
#include "lower/lower.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

/* ---- norms --------------------------------------------------------------------------------------------------------------------------- */
static bool are_present(const struct node *n, int first)
{
    for (int k = first; k < n->nin; k++)
        if (!n->in[k] || !n->in[k]->constant || !constant_present(n->in[k]->constant))
            return false;
    return true;
}

static struct value *channel_constant(struct graph *g, const char *name, int rank, int64_t channels, const float *at)
{
    int64_t dim[MAX_RANK];
    for (int d = 0; d < rank; d++)
        dim[d] = d == 1 ? channels : 1;
    return graph_constant(g, name, DT_F32, rank, dim, at);
}

/* Replaces node number i by a Mul and an Add. */
static void open_norm(struct graph *g, int i)
{
    struct node *n = g->nodes.at[i];
    struct value *y = n->out[0], *in[2] = {n->in[0]};
    int64_t channels = n->in[1]->constant->dim[0];
    float *factor = NEWN(g->arena, float, channels), *addend = NEWN(g->arena, float, channels);
    for (int64_t c = 0; c < channels; c++) {
        double p[4];
        for (int k = 0; k < 4; k++)
            p[k] = constant_float(n->in[1 + k]->constant, n->in[1 + k]->name, c);
        double f = p[0] / sqrt(p[3] + attr_float(n, "epsilon"));
        factor[c] = (float)f;
        addend[c] = (float)(p[1] - p[2] * f);
    }
    in[1] = channel_constant(g, arena_printf(g->arena, "%s/factor", y->name), y->type.rank, channels, factor);
    struct node *mul = graph_node(g, op_find("", "Mul"), arena_printf(g->arena, "%s/factor", n->name), 2, in, 1);
    in[0] = graph_value(g, arena_printf(g->arena, "%s/scaled", y->name), &y->type);
    node_output(g, mul, 0, in[0]);
    in[1] = channel_constant(g, arena_printf(g->arena, "%s/addend", y->name), y->type.rank, channels, addend);
    struct node *add = graph_node(g, op_find("", "Add"), n->name, 2, in, 1);
    node_output(g, add, 0, y);
    g->nodes.at[i] = add;
    graph_insert(g, i, mul);
}

void fuse_open_norms(struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        bool norm = op_is_onnx(n, "BatchNormalization") && n->nout == 1 && n->nin == 5 && n->out[0]->type.dtype == DT_F32 &&
            n->out[0]->type.rank >= 2 && are_present(n, 1);
        for (int k = 1; norm && k < 5; k++)
            norm = n->in[k]->constant->rank == 1 && n->in[k]->constant->dim[0] == n->in[1]->constant->dim[0];
        if (norm)
            open_norm(g, i++);
    }
}

/* ---- what a convolution absorbs --------------------------------------------------------------------------------------------- */
struct absorb {
    struct graph *g;
    const struct uses *uses;
    int nuses; /* values that `uses` covers */
    struct node *conv;
    struct value *y; /* its current result */
    bool *gone;      /* by value id: its producer was absorbed */
};

static bool is_integer(const struct absorb *a)
{
    return op_is_tpc(a->conv, "IntegerConv");
}

/* Whether the node is neither absorbed nor the last one of a convolution. */
static bool is_free(const struct absorb *a, const struct node *n)
{
    return n && n->op && n->nout == 1 && n->out[0]->producer == n && n->out[0]->id < a->nuses && !a->gone[n->out[0]->id];
}

static struct node *single_user(const struct absorb *a, const struct value *v)
{
    struct node *n = graph_reads_once(a->uses, a->nuses, v) ? a->uses[v->id].at[0].node : NULL;
    return is_free(a, n) ? n : NULL;
}

static void set_operand(struct absorb *a, int k, struct value *v)
{
    struct node *n = a->conv;
    if (n->nin <= k) {
        struct value **in = NEWN(a->g->arena, struct value *, INPUTS_IntegerConv);
        memcpy(in, n->in, (size_t)n->nin * sizeof *in);
        n->in = in;
        n->nin = k + 1;
    }
    n->in[k] = v;
}

/* The operand of a Reshape that makes channels the last dimension; else v. */
static const struct value *channel_vector(const struct value *v)
{
    const struct value *from = v;
    for (int d = 0; d + 1 < v->type.rank; d++)
        if (!dim_equals(v->type.dim[d], 1))
            return v;
    while (from->producer && (op_is_onnx(from->producer, "Reshape") || op_is_onnx(from->producer, "Identity")))
        from = from->producer->in[0];
    return from->constant ? from : v;
}

/* Whether it is one number, or one per channel with channels as the last dimension. */
static bool is_channel_constant(const struct value *v, int64_t channels)
{
    const struct constant *c = v->constant;
    if (!c || c->dtype != DT_F32 || !constant_present(c))
        return false;
    int64_t n = constant_elements(c);
    return n == 1 || (n == channels && c->rank > 0 && c->dim[c->rank - 1] == channels);
}

static float channel_number(const struct value *v, int64_t c, float otherwise)
{
    if (!v)
        return otherwise;
    return (float)constant_float(v->constant, v->name, constant_elements(v->constant) == 1 ? 0 : c);
}

static struct value *numbers(struct absorb *a, const char *what, int64_t n, const float *at)
{
    return graph_constant(a->g, arena_printf(a->g->arena, "%s/%s", a->conv->name, what), DT_F32, 1, &n, at);
}

static bool take_affine(struct absorb *a, struct node *n)
{
    struct node *conv = a->conv;
    bool mul = op_is_onnx(n, "Mul"), sub = op_is_onnx(n, "Sub"), first = n->nin == 2 && n->in[0] == a->y;
    const struct constant *w = conv->in[IN_IntegerConv_W]->constant;
    if ((!mul && !sub && !op_is_onnx(n, "Add")) || (sub && !first) || !w || (w->dtype != DT_F32 && !is_integer(a)))
        return false;
    const struct value *by = channel_vector(n->in[first]), *bias = node_operand(conv, IN_IntegerConv_B);
    int64_t channels = w->dim[0];
    if (*attr_string(conv, "activation") || node_operand(conv, IN_IntegerConv_Z) || !is_channel_constant(by, channels) ||
        (bias && !is_channel_constant(bias, channels)))
        return false;
    float *factor = NEWN(a->g->arena, float, channels), *addend = NEWN(a->g->arena, float, channels);
    for (int64_t c = 0; c < channels; c++) {
        float x = channel_number(by, c, 0);
        factor[c] = channel_number(node_operand(conv, IN_IntegerConv_factor), c, 1) * (mul ? x : 1);
        addend[c] = mul ? channel_number(bias, c, 0) * x : channel_number(bias, c, 0) + (sub ? -x : x);
    }
    if (!mul || bias)
        set_operand(a, IN_IntegerConv_B, numbers(a, "bias", channels, addend));
    if (mul)
        set_operand(a, IN_IntegerConv_factor, numbers(a, "factor", channels, factor));
    return true;
}

static bool take_sum(struct absorb *a, struct node *n)
{
    if (!op_is_onnx(n, "Add") || node_operand(a->conv, IN_IntegerConv_Z))
        return false;
    struct value *other = n->in[n->in[0] == a->y];
    if (other->constant || !type_eq(&other->type, &a->y->type))
        return false;
    set_operand(a, IN_IntegerConv_Z, other);
    return true;
}

/* ---- functions --------------------------------------------------------------------------------------------------------------- */
struct function {
    const char *name;
    double alpha, beta;
};

static bool bound_of(const struct node *n, int k, double otherwise, double *out)
{
    *out = otherwise;
    return !node_operand(n, k) || op_constant_number(n->in[k], out);
}

static bool function_of(const struct node *n, struct function *f)
{
    *f = (struct function){.name = n->optype};
    if (op_is_onnx(n, "Relu")) {
        f->name = "LeakyRelu";
        return true;
    }
    if (op_is_onnx(n, "Clip"))
        return bound_of(n, 1, -(double)INFINITY, &f->alpha) && bound_of(n, 2, (double)INFINITY, &f->beta) && f->alpha <= f->beta;
    if (op_is_onnx(n, "HardSwish"))
        f->alpha = 1.0 / 6, f->beta = 0.5;
    if (op_is_onnx(n, "HardSigmoid"))
        f->beta = attr_float(n, "beta");
    if (op_is_onnx(n, "LeakyRelu") || op_is_onnx(n, "Swish") || op_is_onnx(n, "HardSigmoid"))
        f->alpha = attr_float(n, "alpha");
    if (op_is_onnx(n, "HardSigmoid") && !(f->alpha > 0))
        return false;
    if (op_is_onnx(n, "Gelu"))
        return strcmp(attr_string(n, "approximate"), "none") == 0;
    return op_is_onnx(n, "LeakyRelu") || op_is_onnx(n, "Swish") || op_is_onnx(n, "HardSigmoid") || op_is_onnx(n, "HardSwish") ||
        op_is_onnx(n, "Sigmoid") || op_is_onnx(n, "Tanh");
}

static void set_function(struct absorb *a, const struct function *f, double scale)
{
    attr_set_string(a->conv, "activation", f->name);
    attr_set_int(a->conv, "activates_last", node_operand(a->conv, IN_IntegerConv_Z) != NULL);
    attr_set_float(a->conv, "alpha", f->alpha);
    attr_set_float(a->conv, "beta", f->beta);
    attr_set_float(a->conv, "scale", scale);
}

static bool take_function(struct absorb *a, struct node *n)
{
    struct function f;
    if (*attr_string(a->conv, "activation") || n->in[0] != a->y || !function_of(n, &f))
        return false;
    set_function(a, &f, 1);
    return true;
}

/* ---- gates: the product of y and a function of y ----------------------------------------------------------------------------- */
/* Whether n is this op on v and a number near x. */
static bool is_by(const struct node *n, const char *op, const struct value *v, double x)
{
    double by;
    int other = n && n->nin == 2 && n->in[0] == v;
    return n && op_is_onnx(n, op) && n->nin == 2 && n->in[!other] == v && bound_of(n, other, 0, &by) && fabs(by - x) < 1e-6;
}

static bool is_clip(const struct node *n, double lo, double hi)
{
    double a, b;
    return n && op_is_onnx(n, "Clip") && bound_of(n, 1, -(double)INFINITY, &a) && bound_of(n, 2, (double)INFINITY, &b) &&
        fabs(a - lo) < 1e-6 && fabs(b - hi) < 1e-6;
}

/* The function of y that starts with node n, the factor between it and the gate, and its last node. */
static struct node *gate_of(const struct absorb *a, struct node *n, struct function *f, double *scale)
{
    struct node *second = n->nout == 1 ? single_user(a, n->out[0]) : NULL;
    bool hard = op_is_onnx(n, "HardSigmoid") && fabs(attr_float(n, "alpha") - 1.0 / 6) < 1e-6 && fabs(attr_float(n, "beta") - 0.5) < 1e-6;
    bool clip = is_by(n, "Add", a->y, 3) && is_clip(second, 0, 6);
    *f = (struct function){"Swish", 1, 0};
    *scale = 1;
    if (op_is_onnx(n, "Sigmoid"))
        return n;
    *f = (struct function){"HardSwish", 1.0 / 6, 0.5};
    if (hard)
        return n;
    *scale = 6;
    return clip ? second : NULL;
}

/* The product of y and a function of y, if these alone read both. */
static struct node *take_gate(struct absorb *a)
{
    const struct uses *u = a->y->id < a->nuses ? &a->uses[a->y->id] : NULL;
    struct function f;
    double scale;
    if (*attr_string(a->conv, "activation") || !u || u->n != 2 || !is_free(a, u->at[0].node) || !is_free(a, u->at[1].node))
        return NULL;
    for (int k = 0; k < 2; k++) {
        struct node *mul = u->at[!k].node, *last = op_is_onnx(mul, "Mul") ? gate_of(a, u->at[k].node, &f, &scale) : NULL;
        if (!last || single_user(a, last->out[0]) != mul)
            continue;
        set_function(a, &f, scale);
        for (struct node *n = u->at[k].node; n != mul; n = a->uses[n->out[0]->id].at[0].node)
            a->gone[n->out[0]->id] = true;
        return mul;
    }
    return NULL;
}

/* A factor, divisor or addend of all elements, after the function. */
static bool take_line(struct absorb *a, const struct node *n)
{
    double by, scale = attr_float(a->conv, "scale"), shift = attr_float(a->conv, "shift");
    bool summed = node_operand(a->conv, IN_IntegerConv_Z) && !attr_int(a->conv, "activates_last");
    int other = n->nin == 2 && n->in[0] == a->y;
    if (!*attr_string(a->conv, "activation") || summed || n->nin != 2 || !bound_of(n, other, 0, &by) || !n->in[other])
        return false;
    if (op_is_onnx(n, "Add") || (op_is_onnx(n, "Sub") && other == 1)) {
        attr_set_float(a->conv, "shift", shift + (op_is_onnx(n, "Sub") ? -by : by));
        return true;
    }
    bool div = op_is_onnx(n, "Div") && other == 1 && (by < 0 || by > 0);
    if (!div && !op_is_onnx(n, "Mul"))
        return false;
    attr_set_float(a->conv, "scale", div ? scale / by : scale * by);
    attr_set_float(a->conv, "shift", div ? shift / by : shift * by);
    return true;
}

/* ---- of integers ------------------------------------------------------------------------------------------------------------- */
/* Whether there is at most a factor so far. */
static bool is_linear(const struct absorb *a)
{
    return is_integer(a) && !*attr_string(a->conv, "activation") && !node_operand(a->conv, IN_IntegerConv_B) &&
        !node_operand(a->conv, IN_IntegerConv_Z);
}

/* The Cast back to float. */
static struct node *take_casts(struct absorb *a, const struct node *n)
{
    struct node *back = op_is_onnx(n, "Cast") && n->out[0]->type.dtype == DT_I32 ? single_user(a, n->out[0]) : NULL;
    if (!back || !is_linear(a) || node_operand(a->conv, IN_IntegerConv_factor) || node_operand(a->conv, IN_IntegerConv_X_scale) ||
        !op_is_onnx(back, "Cast") || back->out[0]->type.dtype != DT_F32)
        return NULL;
    a->gone[n->out[0]->id] = true;
    return back;
}

static bool take_scale(struct absorb *a, const struct node *n)
{
    if (!op_is_onnx(n, "Mul") || !is_linear(a) || node_operand(a->conv, IN_IntegerConv_X_scale))
        return false;
    struct value *by = n->in[n->in[0] == a->y];
    if (by->constant || by->type.rank != 0)
        return false;
    set_operand(a, IN_IntegerConv_X_scale, by);
    return true;
}

static bool take_rounding(struct absorb *a, const struct node *n)
{
    const struct value *y = n->out[0];
    if (!is_integer(a) || !op_is_onnx(n, "QuantizeLinear") || !dtype_is_byte(y->type.dtype) || n->in[0] != a->y ||
        n->in[1]->type.rank != 0 || n->in[1]->type.dtype != DT_F32)
        return false;
    set_operand(a, IN_IntegerConv_Y_scale, n->in[1]);
    set_operand(a, IN_IntegerConv_Y_zero, node_operand(n, 2));
    return true;
}

static void set_residual(struct absorb *a, const struct byte_codes *z, const struct byte_codes *between)
{
    struct attr *to = node_attr(a->conv, "residual");
    double *floats = NEWN(a->g->arena, double, 5);
    memcpy(floats, (double[5]){z->scale, z->zero, between->scale, between->zero, between->least}, 5 * sizeof *floats);
    to->set = true;
    to->n = 5;
    to->floats = floats;
}

/* Node n decodes the convolution's codes. Returns the node that rounds the sum of these and others. */
static struct node *take_residual(struct absorb *a, const struct node *n)
{
    const struct node *rounds = a->y->producer, *decodes = byte_scale_decoder(n->out[0]);
    struct node *add = decodes == n ? single_user(a, n->out[0]) : NULL;
    if (!add || !op_is_onnx(add, "Add") || !byte_scale_encodes(rounds) || !byte_scale_same(n, rounds) ||
        node_operand(a->conv, IN_IntegerConv_Z) || *attr_string(a->conv, "activation"))
        return NULL;
    const struct value *other = add->in[add->in[0] == n->out[0]];
    const struct node *z = byte_scale_decoder(other);
    struct node *next = single_user(a, add->out[0]), *relu = next && op_is_onnx(next, "Relu") ? next : NULL;
    struct node *last = relu ? single_user(a, relu->out[0]) : next;
    if (!z || !type_eq(&other->type, &add->out[0]->type) || !type_eq(&n->out[0]->type, &add->out[0]->type) || !last ||
        !byte_scale_encodes(last))
        return NULL;
    struct byte_codes coding = byte_scale_of(z), between = byte_scale_of(n);
    set_residual(a, &coding, &between);
    set_operand(a, IN_IntegerConv_Z, z->in[0]);
    set_operand(a, IN_IntegerConv_Y_scale, last->in[1]);
    set_operand(a, IN_IntegerConv_Y_zero, node_operand(last, 2));
    if (relu)
        set_function(a, &(struct function){.name = "LeakyRelu"}, 1);
    for (struct node *k = a->uses[a->y->id].at[0].node; k != last; k = a->uses[k->out[0]->id].at[0].node)
        a->gone[k->out[0]->id] = true;
    return last;
}

/* ---- padding ----------------------------------------------------------------------------------------------------------------- */
/* The zeros that a Pad before the convolution adds to the spatial dimensions: at their starts, then at their ends. */
static bool zeros_around(const struct node *n, int64_t *pads)
{
    const struct dim **amount, **axes;
    double fill;
    int rank = n->in[0]->type.rank, count;
    if (strcmp(attr_string(n, "mode"), "constant") != 0 || !op_resolved(n) || !bound_of(n, 2, 0, &fill) || fill < 0 || fill > 0)
        return false;
    bool named = attr_is_set(n, "axes");
    count = attr_is_set(n, "pads") ? attr_dims(n, "pads", &amount) / 2 : 0;
    if (named && attr_dims(n, "axes", &axes) != count)
        return false;
    memset(pads, 0, 2 * MAX_RANK * sizeof *pads);
    for (int i = 0; i < 2 * count; i++) {
        int64_t axis = i % count, by;
        if ((named && !dim_is_int(axes[i % count], &axis)) || !dim_is_int(amount[i], &by) || by < 0)
            return false;
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank || (by > 0 && (axis == 0 || axis == rank - 1)))
            return false;
        if (by > 0)
            pads[axis - 1 + (i < count ? 0 : rank - 2)] += by;
    }
    return true;
}

static void take_pad(struct absorb *a)
{
    struct value *x = a->conv->in[IN_IntegerConv_X];
    int64_t pads[2 * MAX_RANK];
    const int64_t *own;
    while (x->producer && op_is_onnx(x->producer, "Identity"))
        x = x->producer->in[0];
    struct node *pad = x->producer;
    const char *how = attr_string(a->conv, "auto_pad");
    bool valid = strcmp(how, "VALID") == 0;
    int n = x->type.rank - 2;
    if (!pad || !op_is_onnx(pad, "Pad") || (!valid && strcmp(how, "NOTSET") != 0) || !zeros_around(pad, pads))
        return;
    if (!valid && attr_is_set(a->conv, "pads") && attr_ints(a->g, a->conv, "pads", &own) == 2 * n)
        for (int i = 0; i < 2 * n; i++)
            pads[i] += own[i];
    attr_set_string(a->conv, "auto_pad", "NOTSET");
    attr_set_ints(a->g, a->conv, "pads", 2 * n, pads);
    a->conv->in[IN_IntegerConv_X] = pad->in[0];
}

/* Absorbs the node that follows; its result becomes the convolution's. */
static struct node *take_next(struct absorb *a)
{
    struct node *mul = take_gate(a), *n = mul ? mul : single_user(a, a->y);
    struct node *back = n ? take_casts(a, n) : NULL;
    if (node_operand(a->conv, IN_IntegerConv_Y_scale))
        return n ? take_residual(a, n) : NULL;
    if (!n || back || take_rounding(a, n))
        return back ? back : n;
    if (!type_eq(&n->out[0]->type, &a->y->type))
        return NULL;
    return mul || take_scale(a, n) || op_is_onnx(n, "Identity") || take_affine(a, n) || take_function(a, n) || take_line(a, n) ||
            take_sum(a, n)
        ? n
        : NULL;
}

void fuse_convs(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct absorb a = {.g = g, .uses = graph_uses(g, tmp), .nuses = g->values.n};
    a.gone = NEWN(tmp, bool, a.nuses);
    const struct op *conv = op_find("tpc", "ChannelsLastConv"), *integer = op_find("tpc", "IntegerConv");
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i], *next, *last = NULL;
        if ((n->op != conv && n->op != integer) || a.gone[n->out[0]->id])
            continue;
        a.conv = n;
        if (n->op == conv)
            take_pad(&a);
        for (a.y = n->out[0]; (next = take_next(&a)); a.y = next->out[0]) {
            a.gone[a.y->id] = true;
            last = next;
        }
        if (!last)
            continue;
        int at = i;
        while (g->nodes.at[at] != last)
            at++;
        g->nodes.at[at] = n;
        node_output(g, n, 0, a.y);
        g->nodes.at[i] = NULL;
    }
    int kept = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (n && (n->nout == 0 || !n->out[0] || n->out[0]->id >= a.nuses || !a.gone[n->out[0]->id]))
            g->nodes.at[kept++] = n;
    }
    g->nodes.n = kept;
    arena_free(tmp);
    graph_prune(g);
}
