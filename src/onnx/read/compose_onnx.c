/* Compositions for ops of the standard. */
#include "onnx/read/read.h"

#include <string.h>

struct sequence {
    struct value *of, *sizes;
    int64_t axis;
}; /* parts of a tensor: sizes of all, or one size for each */

/* ---- reductions ---- */

static char *reduced(struct composer *c, const char *op, char *x, bool keep)
{
    char *in[2] = {x, compose_optional(c, 1)};
    Onnx__AttributeProto *attr[2] = {compose_int(c, "keepdims", keep),
                                     compose_int(c, "noop_with_empty_axes", compose_int_of(c->node, "noop_with_empty_axes", 0))};
    return compose_node_of(c, op, in[1] ? 2 : 1, in, 2, attr, 1, NULL);
}

static bool keeps(const struct composer *c)
{
    return compose_int_of(c->node, "keepdims", 1) != 0;
}

static void reduce_l1(struct composer *c)
{
    c->node->input[0] = compose_op(c, "Abs", compose_input(c, 0), NULL);
    compose_rename(c, "ReduceSum");
}

static void reduce_sum_square(struct composer *c)
{
    c->node->input[0] = compose_op(c, "Mul", compose_input(c, 0), compose_input(c, 0));
    compose_rename(c, "ReduceSum");
}

static void reduce_l2(struct composer *c)
{
    char *sum = reduced(c, "ReduceSum", compose_op(c, "Mul", compose_input(c, 0), compose_input(c, 0)), keeps(c));
    compose_become(c, "Sqrt", 1, &sum);
}

static void reduce_log_sum(struct composer *c)
{
    char *sum = reduced(c, "ReduceSum", compose_input(c, 0), keeps(c));
    compose_become(c, "Log", 1, &sum);
}

/* max + log(sum(exp(x - max))) */
static void reduce_log_sum_exp(struct composer *c)
{
    char *x = compose_input(c, 0), *axes = compose_optional(c, 1);
    char *max = reduced(c, "ReduceMax", x, true);
    char *sum = reduced(c, "ReduceSum", compose_op(c, "Exp", compose_op(c, "Sub", x, max), NULL), true);
    char *both[2] = {compose_op(c, "Log", sum, NULL), max};
    if (keeps(c)) {
        compose_become(c, "Add", 2, both);
        return;
    }
    char *in[2] = {compose_op(c, "Add", both[0], both[1]), axes};
    compose_become(c, "Squeeze", axes ? 2 : 1, in);
}

static void mean(struct composer *c)
{
    char *first = compose_input(c, 0), *sum = compose_node_of(c, "Sum", c->node->n_input, c->node->input, 0, NULL, 1, NULL);
    compose_become(c, "Div", 2, (char *[]){sum, compose_number_like(c, (double)c->node->n_input, first)});
}

/* x / norm, and 0 where the norm is. */
static void lp_normalization(struct composer *c)
{
    int64_t axis = compose_int_of(c->node, "axis", -1), p = compose_int_of(c->node, "p", 2);
    char *axes = scope_ints(c->im, c->scope, "axis", 1, &axis), *x = compose_input(c, 0);
    if (p != 1 && p != 2)
        return;
    char *norm = compose_op(c, "ReduceSum", p == 1 ? compose_op(c, "Abs", x, NULL) : compose_op(c, "Mul", x, x), axes);
    if (p == 2)
        norm = compose_op(c, "Sqrt", norm, NULL);
    char *choice[3] = {compose_cast(c, norm, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL), norm, compose_number_like(c, 1, norm)};
    compose_become(c, "Div", 2, (char *[]){x, compose_node_of(c, "Where", 3, choice, 0, NULL, 1, NULL)});
}

/* d / (sqrt(mean(d d)) + 1e-9) with d = x - mean(x) */
static void mean_variance_normalization(struct composer *c)
{
    static const int64_t usual[3] = {0, 2, 3};
    const Onnx__AttributeProto *given = proto_attribute(c->node, "axes");
    char *axes = scope_ints(c->im, c->scope, "axes", given ? given->n_ints : 3, given ? given->ints : usual), *x = compose_input(c, 0);
    char *d = compose_op(c, "Sub", x, compose_op(c, "ReduceMean", x, axes));
    char *spread = compose_op(c, "Sqrt", compose_op(c, "ReduceMean", compose_op(c, "Mul", d, d), axes), NULL);
    compose_become(c, "Div", 2, (char *[]){d, compose_op(c, "Add", spread, compose_number_like(c, 1e-9, spread))});
}

/* 0, 1, .. below the size of dimension d of x. */
static char *counted(struct composer *c, char *x, int64_t d)
{
    Onnx__AttributeProto *which[2] = {compose_int(c, "start", d), compose_int(c, "end", d + 1)};
    int64_t zero = 0, one = 1;
    char *size = compose_node_of(c, "Shape", 1, &x, 2, which, 1, NULL), *axis = scope_ints(c->im, c->scope, "axis", 1, &zero);
    char *start = compose_op(c, "Squeeze", scope_ints(c->im, c->scope, "start", 1, &zero), axis);
    char *step = compose_op(c, "Squeeze", scope_ints(c->im, c->scope, "step", 1, &one), axis);
    return compose_node_of(c, "Range", 3, (char *[]){start, compose_op(c, "Squeeze", size, axis), step}, 0, NULL, 1, NULL);
}

/* Row + k = column, as the number 1. */
static void eye_like(struct composer *c)
{
    int64_t k = compose_int_of(c->node, "k", 0), one = 1, dtype = compose_int_of(c->node, "dtype", 0);
    char *x = compose_input(c, 0), *row = compose_op(c, "Unsqueeze", counted(c, x, 0), scope_ints(c->im, c->scope, "axis", 1, &one));
    char *same = compose_op(c, "Equal", compose_op(c, "Add", row, scope_ints(c->im, c->scope, "k", 1, &k)), counted(c, x, 1));
    Onnx__AttributeProto *to = compose_int(c, "to", dtype);
    if (dtype)
        compose_become_with(c, "Cast", 1, &same, 1, &to);
    else
        compose_become(c, "CastLike", 2, (char *[]){same, x});
}

/* ---- sequences: only as a detour to parts of a tensor ---- */

/* Sizes or an index that the file states. */
static struct value *stated(struct composer *c, size_t i)
{
    struct value *v = compose_has(c->node, i) ? scope_find(c->scope, c->node->input[i]) : NULL;
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
    struct value *sizes = stated(c, 1), *x = compose_has(c->node, 0) ? scope_find(c->scope, c->node->input[0]) : NULL;
    if (!sizes || !x || !compose_gives(c->node, 0))
        return;
    struct sequence *made = NEW(c->im->tmp, struct sequence);
    *made = (struct sequence){.of = x, .sizes = sizes, .axis = compose_int_of(c->node, "axis", 0)};
    text_table_add(c->im->tmp, &c->im->sequences, value_key(c, scope_read(c->im, c->scope, c->node->output[0], c->where)), made);
}

static int64_t size_at(const struct sequence *s, int64_t i)
{
    return constant_int(s->sizes->constant, s->sizes->name, s->sizes->constant->rank ? i : 0);
}

/* Part i lies behind those before it; one size for all is a chunk, the last one may be cut short. */
static void sequence_at(struct composer *c)
{
    struct value *index = stated(c, 1), *value = compose_has(c->node, 0) ? scope_find(c->scope, c->node->input[0]) : NULL;
    const struct sequence *s = value ? text_table_find(c->im->sequences, value_key(c, value)) : NULL;
    if (!s || !index || !is_of(c->im->graph, s->of))
        return;
    bool chunks = s->sizes->constant->rank == 0;
    int64_t i = constant_int(index->constant, index->name, 0), n = chunks ? INT32_MAX : constant_elements(s->sizes->constant), start = 0,
            stop;
    if (i < 0 && chunks)
        return;
    if (i < -n || i >= n)
        fail("%s: %s asks for part %lld of %lld", c->im->path, c->where, (long long)i, (long long)n);
    i = i < 0 ? i + n : i;
    bool fits = !chunks || i64_mul(i, size_at(s, 0), &start);
    for (int64_t k = 0; !chunks && fits && k < i; k++)
        fits = i64_add(start, size_at(s, k), &start);
    if (!fits || !i64_add(start, size_at(s, i), &stop) || start < 0 || stop < start)
        fail("%s: %s asks for a part of no proper size", c->im->path, c->where);
    char *x = scope_fresh(c->im, "part");
    scope_bind(c->im, c->scope, x, s->of);
    compose_become(c, "Slice", 4,
                   (char *[]){x, scope_ints(c->im, c->scope, "starts", 1, &start), scope_ints(c->im, c->scope, "ends", 1, &stop),
                              scope_ints(c->im, c->scope, "axes", 1, &s->axis)});
}

/* ---- windows: a - b cos x + c cos 2x ---- */

static char *window_number(struct composer *c, double number)
{
    return scope_scalar(c->im, c->scope, "number", number);
}

static char *window_range(struct composer *c, char *size)
{
    int64_t zero = 0, one = 1;
    Onnx__AttributeProto *to = compose_int(c, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
    char *scalar = compose_op(c, "Squeeze", compose_node_of(c, "Cast", 1, &size, 1, &to, 1, NULL), NULL);
    char *bounds[3] = {compose_op(c, "Squeeze", scope_ints(c->im, c->scope, "start", 1, &zero), NULL), scalar,
                       compose_op(c, "Squeeze", scope_ints(c->im, c->scope, "delta", 1, &one), NULL)};
    return compose_cast(c, compose_node_of(c, "Range", 3, bounds, 0, NULL, 1, NULL), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
}

static void window(struct composer *c, double a, double b, double twice)
{
    const double turn = 2 * 3.14159265358979323846;
    char *size = compose_input(c, 0), *length = compose_cast(c, size, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    if (!compose_int_of(c->node, "periodic", 1))
        length = compose_op(c, "Sub", length, window_number(c, 1));
    char *x = compose_op(c, "Div", compose_op(c, "Mul", window_range(c, size), window_number(c, turn)), length);
    char *y = compose_op(c, "Sub", window_number(c, a), compose_op(c, "Mul", compose_op(c, "Cos", x, NULL), window_number(c, b)));
    if (twice > 0) {
        char *more = compose_op(c, "Cos", compose_op(c, "Mul", x, window_number(c, 2)), NULL);
        y = compose_op(c, "Add", y, compose_op(c, "Mul", more, window_number(c, twice)));
    }
    Onnx__AttributeProto *to = compose_int(c, "to", compose_int_of(c->node, "output_datatype", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT));
    compose_become_with(c, "Cast", 1, &y, 1, &to);
}

static void hann_window(struct composer *c)
{
    window(c, 0.5, 0.5, 0);
}

static void hamming_window(struct composer *c)
{
    window(c, 25.0 / 46, 21.0 / 46, 0);
}

static void blackman_window(struct composer *c)
{
    window(c, 0.42, 0.5, 0.08);
}

#define WINDOW_OPS "Cast, Squeeze, Range, Mul, Sub, Div, Cos, Add"
const struct composition compose_list_onnx[] = {
    {"", "BlackmanWindow", 17, WINDOW_OPS, blackman_window},
    {"", "EyeLike", 9, "Shape, Squeeze, Range, Unsqueeze, Add, Equal, Cast, CastLike", eye_like},
    {"", "HammingWindow", 17, WINDOW_OPS, hamming_window},
    {"", "HannWindow", 17, WINDOW_OPS, hann_window},
    {"", "LpNormalization", 1, "Abs, Mul, ReduceSum, Sqrt, Cast, CastLike, Where, Div", lp_normalization},
    {"", "Mean", 8, "Sum, CastLike, Div", mean},
    {"", "MeanVarianceNormalization", 9, "ReduceMean, Sub, Mul, Sqrt, CastLike, Add, Div", mean_variance_normalization},
    {"", "ReduceL1", 18, "Abs, ReduceSum", reduce_l1},
    {"", "ReduceL2", 18, "Mul, ReduceSum, Sqrt", reduce_l2},
    {"", "ReduceLogSum", 18, "ReduceSum, Log", reduce_log_sum},
    {"", "ReduceLogSumExp", 18, "ReduceMax, Sub, Exp, ReduceSum, Log, Add, Squeeze", reduce_log_sum_exp},
    {"", "ReduceSumSquare", 18, "Mul, ReduceSum", reduce_sum_square},
    {"", "SequenceAt", 11, "Slice", sequence_at},
    {"", "SplitToSequence", 11, "Slice", split_to_sequence},
    {NULL, NULL, 0, NULL, NULL},
};
