/* Ops that are a few other ops: rewritten at load, so that the rules and kernels of those serve them, also where an axis is split.
 *
 * A node becomes the last of the ops it stands for; the ones before are imported as helpers. A form that does not fit is left alone: the
 * node then has no row and is kept whole. */
#include <string.h>

#include "onnx/private.h"

typedef Onnx__NodeProto proto;
struct composer { struct import *im; struct scope *scope; proto *node; const char *where; };

struct sequence { struct value *of, *sizes; int64_t axis; };     /* parts of a tensor: sizes of all, or one size for each */

/* ---- reading the node ---- */

static bool has_input(const proto *node, size_t i)
{
    return i < node->n_input && *node->input[i];
}

static char *input(struct composer *c, size_t i)
{
    if (!has_input(c->node, i)) fail("%s: %s lacks its operand %zu", c->im->path, c->where, i);
    return c->node->input[i];
}

static bool has_output(const proto *node, size_t i)
{
    return i < node->n_output && *node->output[i];
}

static int64_t int_of(const proto *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = find_attribute(node, name);
    return a ? a->i : otherwise;
}

static float float_of(const proto *node, const char *name, float otherwise)
{
    const Onnx__AttributeProto *a = find_attribute(node, name);
    return a ? a->f : otherwise;
}

/* ---- making nodes ---- */

static Onnx__AttributeProto *attribute(struct composer *c, const char *name, Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = NEW(c->im->tmp, Onnx__AttributeProto);
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(c->im->tmp, name);
    a->has_type = 1;
    a->type = type;
    return a;
}

static Onnx__AttributeProto *int_attribute(struct composer *c, const char *name, int64_t i)
{
    Onnx__AttributeProto *a = attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = i;
    return a;
}

static Onnx__AttributeProto *string_attribute(struct composer *c, const char *name, const char *text)
{
    Onnx__AttributeProto *a = attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s.len = strlen(text);
    a->s.data = (uint8_t *)arena_strdup(c->im->tmp, text);
    return a;
}

static Onnx__AttributeProto *float_attribute(struct composer *c, const char *name, float f)
{
    Onnx__AttributeProto *a = attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = f;
    return a;
}

static void set_attributes(struct composer *c, proto *node, size_t n, Onnx__AttributeProto *const *list)
{
    node->attribute = NEWN(c->im->tmp, Onnx__AttributeProto *, n + 1);
    node->n_attribute = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i]) node->attribute[node->n_attribute++] = list[i];
}

static void set_inputs(struct composer *c, proto *node, size_t n, char *const *in)
{
    node->input = NEWN(c->im->tmp, char *, n + 1);
    node->n_input = 0;
    for (size_t i = 0; i < n; i++) node->input[node->n_input++] = in[i] ? in[i] : arena_strdup(c->im->tmp, "");
}

/* A node before the last; its results are new values. Returns the key of the first; more: room for the others. */
static char *helper_of(struct composer *c, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr, size_t nout, char **more)
{
    proto *node = NEW(c->im->tmp, proto);
    onnx__node_proto__init(node);
    node->op_type = arena_strdup(c->im->tmp, op);
    const char *base = has_output(c->node, 0) ? c->node->output[0] : "result";
    char **out = NEWN(c->im->tmp, char *, nout + 1);
    for (size_t i = 0; i < nout; i++) out[i] = scope_fresh(c->im, arena_printf(c->im->tmp, "%s_%s", (unsigned char)*base > 1 ? base : strchr(base, ':') + 1, op));
    node->name = arena_printf(c->im->tmp, "%s_%s", text_or(c->node->name, ""), op);
    node->output = out;
    node->n_output = nout;
    set_inputs(c, node, nin, in);
    set_attributes(c, node, nattr, attr);
    import_plain(c->im, c->scope, node, FORM_OPSET);
    for (size_t i = 1; i < nout; i++) more[i - 1] = out[i];
    return out[0];
}

static char *helper(struct composer *c, const char *op, char *a, char *b)
{
    return helper_of(c, op, b ? 2 : 1, (char *[]){ a, b }, 0, NULL, 1, NULL);
}

/* The node itself becomes op; attributes are dropped, results kept. */
static void become(struct composer *c, const char *op, size_t nin, char *const *in)
{
    c->node->op_type = arena_strdup(c->im->tmp, op);
    c->node->domain = NULL;
    set_inputs(c, c->node, nin, in);
    c->node->n_attribute = 0;
}

static void become_with(struct composer *c, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr)
{
    become(c, op, nin, in);
    set_attributes(c, c->node, nattr, attr);
}

/* A number of x's type. */
static char *number_like(struct composer *c, double number, char *x)
{
    return helper(c, "CastLike", scope_scalar(c->im, c->scope, "number", number), x);
}

static char *helper_cast(struct composer *c, char *x, int64_t dtype)
{
    Onnx__AttributeProto *to = int_attribute(c, "to", dtype);
    return helper_of(c, "Cast", 1, &x, 1, &to, 1, NULL);
}

/* ---- reductions ---- */

static char *reduced(struct composer *c, const char *op, char *x, bool keep)
{
    char *in[2] = { x, has_input(c->node, 1) ? c->node->input[1] : NULL };
    Onnx__AttributeProto *attr[2] = { int_attribute(c, "keepdims", keep), int_attribute(c, "noop_with_empty_axes", int_of(c->node, "noop_with_empty_axes", 0)) };
    return helper_of(c, op, in[1] ? 2 : 1, in, 2, attr, 1, NULL);
}

static bool keeps(const struct composer *c)
{
    return int_of(c->node, "keepdims", 1) != 0;
}

static void reduce_l1(struct composer *c)
{
    c->node->input[0] = helper(c, "Abs", input(c, 0), NULL);
    c->node->op_type = arena_strdup(c->im->tmp, "ReduceSum");
}

static void reduce_sum_square(struct composer *c)
{
    c->node->input[0] = helper(c, "Mul", input(c, 0), input(c, 0));
    c->node->op_type = arena_strdup(c->im->tmp, "ReduceSum");
}

static void reduce_l2(struct composer *c)
{
    char *sum = reduced(c, "ReduceSum", helper(c, "Mul", input(c, 0), input(c, 0)), keeps(c));
    become(c, "Sqrt", 1, &sum);
}

static void reduce_log_sum(struct composer *c)
{
    char *sum = reduced(c, "ReduceSum", input(c, 0), keeps(c));
    become(c, "Log", 1, &sum);
}

/* max + log(sum(exp(x - max))) */
static void reduce_log_sum_exp(struct composer *c)
{
    char *x = input(c, 0), *axes = has_input(c->node, 1) ? c->node->input[1] : NULL;
    char *max = reduced(c, "ReduceMax", x, true);
    char *sum = reduced(c, "ReduceSum", helper(c, "Exp", helper(c, "Sub", x, max), NULL), true);
    char *both[2] = { helper(c, "Log", sum, NULL), max };
    if (keeps(c)) {
        become(c, "Add", 2, both);
        return;
    }
    char *in[2] = { helper(c, "Add", both[0], both[1]), axes };
    become(c, "Squeeze", axes ? 2 : 1, in);
}

static void mean(struct composer *c)
{
    char *first = input(c, 0), *sum = helper_of(c, "Sum", c->node->n_input, c->node->input, 0, NULL, 1, NULL);
    become(c, "Div", 2, (char *[]){ sum, number_like(c, (double)c->node->n_input, first) });
}

/* x / norm, and 0 where the norm is. */
static void lp_normalization(struct composer *c)
{
    int64_t axis = int_of(c->node, "axis", -1), p = int_of(c->node, "p", 2);
    char *axes = scope_ints(c->im, c->scope, "axis", 1, &axis), *x = input(c, 0);
    if (p != 1 && p != 2) return;
    char *norm = helper(c, "ReduceSum", p == 1 ? helper(c, "Abs", x, NULL) : helper(c, "Mul", x, x), axes);
    if (p == 2) norm = helper(c, "Sqrt", norm, NULL);
    char *choice[3] = { helper_cast(c, norm, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL), norm, number_like(c, 1, norm) };
    become(c, "Div", 2, (char *[]){ x, helper_of(c, "Where", 3, choice, 0, NULL, 1, NULL) });
}

/* d / (sqrt(mean(d d)) + 1e-9) with d = x - mean(x) */
static void mean_variance_normalization(struct composer *c)
{
    static const int64_t usual[3] = { 0, 2, 3 };
    const Onnx__AttributeProto *given = find_attribute(c->node, "axes");
    char *axes = scope_ints(c->im, c->scope, "axes", given ? given->n_ints : 3, given ? given->ints : usual), *x = input(c, 0);
    char *d = helper(c, "Sub", x, helper(c, "ReduceMean", x, axes));
    char *spread = helper(c, "Sqrt", helper(c, "ReduceMean", helper(c, "Mul", d, d), axes), NULL);
    become(c, "Div", 2, (char *[]){ d, helper(c, "Add", spread, number_like(c, 1e-9, spread)) });
}

/* 0, 1, .. below the size of dimension d of x. */
static char *counted(struct composer *c, char *x, int64_t d)
{
    Onnx__AttributeProto *which[2] = { int_attribute(c, "start", d), int_attribute(c, "end", d + 1) };
    int64_t zero = 0, one = 1;
    char *size = helper_of(c, "Shape", 1, &x, 2, which, 1, NULL), *axis = scope_ints(c->im, c->scope, "axis", 1, &zero);
    char *start = helper(c, "Squeeze", scope_ints(c->im, c->scope, "start", 1, &zero), axis);
    char *step = helper(c, "Squeeze", scope_ints(c->im, c->scope, "step", 1, &one), axis);
    return helper_of(c, "Range", 3, (char *[]){ start, helper(c, "Squeeze", size, axis), step }, 0, NULL, 1, NULL);
}

/* Row + k = column, as the number 1. */
static void eye_like(struct composer *c)
{
    int64_t k = int_of(c->node, "k", 0), one = 1, dtype = int_of(c->node, "dtype", 0);
    char *x = input(c, 0), *row = helper(c, "Unsqueeze", counted(c, x, 0), scope_ints(c->im, c->scope, "axis", 1, &one));
    char *same = helper(c, "Equal", helper(c, "Add", row, scope_ints(c->im, c->scope, "k", 1, &k)), counted(c, x, 1));
    Onnx__AttributeProto *to = int_attribute(c, "to", dtype);
    if (dtype) become_with(c, "Cast", 1, &same, 1, &to);
    else become(c, "CastLike", 2, (char *[]){ same, x });
}

/* ---- sequences: only as a detour to parts of a tensor ---- */

/* Sizes or an index that the file states. */
static struct value *stated(struct composer *c, size_t i)
{
    struct value *v = has_input(c->node, i) ? scope_find(c->scope, c->node->input[i]) : NULL;
    bool whole = v && v->constant && (v->constant->dtype == DT_I64 || v->constant->dtype == DT_I32);
    return whole && v->constant->rank <= 1 && constant_elements(v->constant) > 0 ? v : NULL;
}

/* Names are unique in their graph only. */
static char *value_key(struct composer *c, const struct value *v)
{
    return arena_printf(c->im->tmp, "%p", (const void *)v);
}

static bool is_of(const struct graph *g, const struct value *v)
{
    return v->id < g->values.n && g->values.at[v->id] == v;
}

/* Remembered for SequenceAt; nobody reads the node itself any more once every part has been found. */
static void split_to_sequence(struct composer *c)
{
    struct value *sizes = stated(c, 1), *x = has_input(c->node, 0) ? scope_find(c->scope, c->node->input[0]) : NULL;
    if (!sizes || !x || !has_output(c->node, 0)) return;
    struct sequence *made = NEW(c->im->tmp, struct sequence);
    *made = (struct sequence){ .of = x, .sizes = sizes, .axis = int_of(c->node, "axis", 0) };
    keyed_add(c->im->tmp, &c->im->sequences, value_key(c, scope_read(c->im, c->scope, c->node->output[0], c->where)), made);
}

static int64_t size_at(const struct sequence *s, int64_t i)
{
    return constant_int(s->sizes->constant, s->sizes->name, s->sizes->constant->rank ? i : 0);
}

/* Part i lies behind those before it; one size for all is a chunk, the last one may be cut short. */
static void sequence_at(struct composer *c)
{
    struct value *index = stated(c, 1), *value = has_input(c->node, 0) ? scope_find(c->scope, c->node->input[0]) : NULL;
    const struct sequence *s = value ? keyed_find(c->im->sequences, value_key(c, value)) : NULL;
    if (!s || !index || !is_of(c->im->graph, s->of)) return;
    bool chunks = s->sizes->constant->rank == 0;
    int64_t i = constant_int(index->constant, index->name, 0), n = chunks ? INT32_MAX : constant_elements(s->sizes->constant), start = 0, stop;
    if (i < 0 && chunks) return;
    if (i < -n || i >= n) fail("%s: %s asks for part %lld of %lld", c->im->path, c->where, (long long)i, (long long)n);
    i = i < 0 ? i + n : i;
    bool fits = !chunks || mul_i64(i, size_at(s, 0), &start);
    for (int64_t k = 0; !chunks && fits && k < i; k++) fits = add_i64(start, size_at(s, k), &start);
    if (!fits || !add_i64(start, size_at(s, i), &stop) || start < 0 || stop < start) fail("%s: %s asks for a part of no proper size", c->im->path, c->where);
    char *x = scope_fresh(c->im, "part");
    scope_bind(c->im, c->scope, x, s->of);
    become(c, "Slice", 4, (char *[]){ x, scope_ints(c->im, c->scope, "starts", 1, &start), scope_ints(c->im, c->scope, "ends", 1, &stop),
                                      scope_ints(c->im, c->scope, "axes", 1, &s->axis) });
}

/* ---- com.microsoft ---- */

static char *biased(struct composer *c)
{
    return has_input(c->node, 1) ? helper(c, "Add", input(c, 0), c->node->input[1]) : input(c, 0);
}

static void fast_gelu(struct composer *c)
{
    char *x = biased(c);
    Onnx__AttributeProto *tanh = string_attribute(c, "approximate", "tanh");
    become_with(c, "Gelu", 1, &x, 1, &tanh);
}

static void exact_gelu(struct composer *c)
{
    char *x = biased(c);
    become(c, "Gelu", 1, &x);
}

/* LayerNormalization(input + skip + bias); result 3 is the sum. */
static void skip_layer_norm(struct composer *c)
{
    char *a = input(c, 0), *b = input(c, 1), *in[3] = { NULL, input(c, 2), has_input(c->node, 3) ? c->node->input[3] : NULL };
    if (has_input(c->node, 4)) a = helper(c, "Add", a, c->node->input[4]);
    in[0] = helper(c, "Add", a, b);
    if (has_output(c->node, 3)) {
        proto copy = *c->node;
        struct composer sum = { c->im, c->scope, &copy, c->where };
        become(&sum, "Identity", 1, in);
        copy.name = arena_printf(c->im->tmp, "%s_sum", text_or(c->node->name, ""));
        copy.output = c->node->output + 3;
        copy.n_output = 1;
        import_plain(c->im, c->scope, &copy, FORM_OPSET);
    }
    Onnx__AttributeProto *attr[2] = { int_attribute(c, "axis", -1), float_attribute(c, "epsilon", float_of(c->node, "epsilon", 1e-12f)) };
    become_with(c, "LayerNormalization", 3, in, 2, attr);
    if (c->node->n_output > 3) c->node->n_output = 3;
}

/* Operands in another order; positions are required. */
static void rotary(struct composer *c)
{
    if (int_of(c->node, "is_packed_batching", 0) || find_attribute(c->node, "scale")) return;
    Onnx__AttributeProto *attr[3] = { int_attribute(c, "interleaved", int_of(c->node, "interleaved", 0)), int_attribute(c, "num_heads", int_of(c->node, "num_heads", 0)),
                                      int_attribute(c, "rotary_embedding_dim", int_of(c->node, "rotary_embedding_dim", 0)) };
    become_with(c, "RotaryEmbedding", 4, (char *[]){ input(c, 0), input(c, 2), input(c, 3), input(c, 1) }, 3, attr);
}

/* alpha a b, either transposed in its last two dimensions. */
static void fused_matmul(struct composer *c)
{
    bool ta = int_of(c->node, "transA", 0) != 0, tb = int_of(c->node, "transB", 0) != 0;
    float alpha = float_of(c->node, "alpha", 1);
    if (int_of(c->node, "transBatchA", 0) || int_of(c->node, "transBatchB", 0)) return;
    char *in[2] = { input(c, 0), input(c, 1) };
    if (alpha < 1 || alpha > 1) in[0] = helper(c, "Mul", in[0], number_like(c, (double)alpha, in[0]));
    Onnx__AttributeProto *equation = string_attribute(c, "equation", arena_printf(c->im->tmp, "...%s,...%s->...mn", ta ? "km" : "mk", tb ? "nk" : "kn"));
    become_with(c, "Einsum", 2, in, 1, &equation);
}

/* Attention, where queries, keys and values come apart and the mask is one that is added. */
static void multi_head_attention(struct composer *c)
{
    static const size_t past[2] = { 6, 7 };
    if (!has_input(c->node, 1) || !has_input(c->node, 2) || has_input(c->node, 4) || has_input(c->node, 8) || has_input(c->node, 9)) return;
    char *in[6] = { input(c, 0), input(c, 1), input(c, 2), has_input(c->node, 5) ? c->node->input[5] : NULL, NULL, NULL }, *bias[3];
    for (int i = 0; i < 2; i++)
        if (has_input(c->node, past[i])) in[4 + i] = c->node->input[past[i]];
    if (has_input(c->node, 3)) {
        Onnx__AttributeProto *thirds[2] = { int_attribute(c, "axis", 0), int_attribute(c, "num_outputs", 3) };
        bias[0] = helper_of(c, "Split", 1, &c->node->input[3], 2, thirds, 3, bias + 1);
        for (int i = 0; i < 3; i++) in[i] = helper(c, "Add", in[i], bias[i]);
    }
    int64_t heads = int_of(c->node, "num_heads", 0);
    const Onnx__AttributeProto *scale = find_attribute(c->node, "scale");
    Onnx__AttributeProto *attr[4] = { int_attribute(c, "q_num_heads", heads), int_attribute(c, "kv_num_heads", heads), int_attribute(c, "is_causal", int_of(c->node, "unidirectional", 0)),
                                      scale ? float_attribute(c, "scale", scale->f) : NULL };
    become_with(c, "Attention", 6, in, 4, attr);
}

/* ---- the table ---- */

static const struct { const char *domain, *op; void (*run)(struct composer *); } composed[] = {
    { "", "EyeLike", eye_like },
    { "", "LpNormalization", lp_normalization },
    { "", "Mean", mean },
    { "", "MeanVarianceNormalization", mean_variance_normalization },
    { "", "ReduceL1", reduce_l1 },
    { "", "ReduceL2", reduce_l2 },
    { "", "ReduceLogSum", reduce_log_sum },
    { "", "ReduceLogSumExp", reduce_log_sum_exp },
    { "", "ReduceSumSquare", reduce_sum_square },
    { "", "SequenceAt", sequence_at },
    { "", "SplitToSequence", split_to_sequence },
    { "com.microsoft", "BiasGelu", exact_gelu },
    { "com.microsoft", "FastGelu", fast_gelu },
    { "com.microsoft", "FusedMatMul", fused_matmul },
    { "com.microsoft", "Gelu", exact_gelu },
    { "com.microsoft", "MultiHeadAttention", multi_head_attention },
    { "com.microsoft", "RotaryEmbedding", rotary },
    { "com.microsoft", "SkipLayerNormalization", skip_layer_norm },
};

void compose_node(struct import *im, struct scope *scope, Onnx__NodeProto *node)
{
    struct composer c = { im, scope, node, node_label(im, node) };
    for (size_t i = 0; i < sizeof composed / sizeof *composed; i++)
        if (!strcmp(plain_domain(node->domain), composed[i].domain) && !strcmp(node->op_type, composed[i].op)) {
            composed[i].run(&c);
            return;
        }
}
