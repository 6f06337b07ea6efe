/* channels_last: convolutions run with channels as the last dimension, so that their loops run over contiguous elements, whatever the
 * window.
 *
 * A value of [batch, channels, spatial..] may have a twin, its channels-last form [batch, spatial.., channels]. Nodes are visited in order.
 * A convolution reads and makes twins. Nodes after it do too if they can: pools, elementwise operators, and operators with axes. All others
 * read the model's form. A Transpose is inserted where one form is needed and only the other exists; the model's own Transposes are merged
 * with these. If there is only one channel or one spatial element, both forms have the same bytes. Twins of constants are computed here.
 *
 * Collectives transfer twins if all ranks would do so alike. They may not, because the rewrite depends on sizes, which may differ between
 * ranks. So the ranks compare channels_last_digest. */
#include "lower/lower.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <string.h>
#include <xxhash.h>

enum { MOST_CONSTANT = 1 << 16 }; /* most elements of a constant whose twin is computed here */

struct twins {
    struct graph *g;
    struct value **at;  /* by value id: the twin; NULL: none */
    bool *missing;      /* by value id: only the twin exists */
    int nvalues;        /* number of values before any twin is made */
    struct nodes nodes; /* the new node list */
    bool collectives;   /* collectives transfer twins */
};

/* ---- the two forms ------------------------------------------------------------------------------------------------------------------- */
/* The dimension of a twin for dimension d of the value, and the reverse. */
static int dim_in_twin(int d, int rank)
{
    return d == 0 ? 0 : d == 1 ? rank - 1 : d - 1;
}

static int dim_of_twin(int d, int rank)
{
    return d == 0 ? 0 : d == rank - 1 ? 1 : d + 1;
}

static struct type twin_type(const struct type *t)
{
    struct type twin = *t;
    for (int d = 0; d < t->rank; d++)
        twin.dim[d] = t->dim[dim_of_twin(d, t->rank)];
    return twin;
}

static struct value *twin_value(struct twins *t, const struct value *v)
{
    struct type type = twin_type(&v->type);
    return graph_form(t->g, v, arena_printf(t->g->arena, "%s/last", v->name), &type);
}

/* Whether both forms have the same bytes: one channel or one spatial element. */
static bool same_bytes(const struct type *t)
{
    bool point = true;
    for (int d = 2; d < t->rank; d++)
        point = point && dim_equals(t->dim[d], 1);
    return point || dim_equals(t->dim[1], 1);
}

static void append_node(struct twins *t, struct node *n, struct value *out)
{
    node_output(t->g, n, 0, out);
    VEC_PUSH(t->g->arena, &t->nodes.list, n);
}

/* Appends a Transpose: dimension d of `to` is dimension perm[d] of `from`. */
static void append_transpose(struct twins *t, struct value *from, const int64_t *perm, struct value *to, bool view)
{
    bool plain = true;
    for (int d = 0; d < from->type.rank; d++)
        plain = plain && perm[d] == d;
    const char *op = plain ? "Identity" : view ? "Reshape" : "Transpose";
    struct node *n = graph_node(t->g, op_find("", op), arena_printf(t->g->arena, "%s/%s", to->name, op), 1, &from, 1);
    if (!plain && !view)
        attr_set_ints(t->g, n, "perm", from->type.rank, perm);
    append_node(t, n, to);
}

static struct value *constant_twin(struct twins *t, const struct value *v, int rank)
{
    int64_t dim[MAX_RANK], stride[MAX_RANK], n = constant_elements(v->constant), step = 1;
    size_t size = dtype_size(v->constant->dtype);
    char *to = arena_alloc(t->g->arena, (size_t)n * size);
    const char *from = constant_data(v->constant, v->name);
    for (int d = rank - 1; d >= 0; d--) {
        int at = d - (rank - v->constant->rank), e = dim_in_twin(d, rank);
        dim[e] = at < 0 ? 1 : v->constant->dim[at];
        stride[e] = step;
        step *= dim[e];
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, source = 0;
        for (int e = rank - 1; e >= 0; e--) {
            source += rest % dim[e] * stride[e];
            rest /= dim[e];
        }
        memcpy(to + (size_t)i * size, from + (size_t)source * size, size);
    }
    return graph_constant(t->g, arena_printf(t->g->arena, "%s/last", v->name), v->constant->dtype, rank, dim, to);
}

/* ---- fetching a form ----------------------------------------------------------------------------------------------------------------- */
static struct value *twin_of(const struct twins *t, const struct value *v)
{
    return v->id < t->nvalues ? t->at[v->id] : NULL;
}

/* The value in the model's form, transposed from its twin if necessary. */
static struct value *need_value(struct twins *t, struct value *v)
{
    if (!v || v->id >= t->nvalues || !t->missing[v->id])
        return v;
    int64_t perm[MAX_RANK];
    for (int d = 0; d < v->type.rank; d++)
        perm[d] = dim_in_twin(d, v->type.rank);
    t->missing[v->id] = false;
    append_transpose(t, t->at[v->id], perm, v, same_bytes(&v->type));
    return v;
}

/* If a Transpose makes v, its operand and permutation; else v. */
static struct value *untransposed(struct twins *t, struct value *v, int64_t *perm)
{
    const int64_t *given;
    for (int d = 0; d < v->type.rank; d++)
        perm[d] = d;
    struct node *n = v->producer;
    if (!n || !op_is_onnx(n, "Transpose") || n->in[0]->id >= t->nvalues || t->missing[n->in[0]->id] || !attr_is_set(n, "perm") ||
        attr_ints(t->g, n, "perm", &given) != v->type.rank)
        return v;
    for (int d = 0; d < v->type.rank; d++)
        perm[d] = given[d] < 0 ? given[d] + v->type.rank : given[d];
    return n->in[0];
}

static struct value *need_twin(struct twins *t, struct value *v)
{
    int64_t own[MAX_RANK], perm[MAX_RANK];
    if (twin_of(t, v))
        return t->at[v->id];
    if (v->constant)
        return t->at[v->id] = constant_twin(t, v, v->type.rank);
    struct value *from = untransposed(t, v, own);
    for (int d = 0; d < v->type.rank; d++)
        perm[d] = own[dim_of_twin(d, v->type.rank)];
    t->at[v->id] = twin_value(t, v);
    append_transpose(t, from, perm, t->at[v->id], from == v && same_bytes(&v->type));
    return t->at[v->id];
}

/* Gives the node's result a twin as its only form. */
static struct value *make_twin(struct twins *t, struct value *v)
{
    t->at[v->id] = twin_value(t, v);
    t->missing[v->id] = true;
    return t->at[v->id];
}

/* ---- nodes like others --------------------------------------------------------------------------------------------------------------- */
static void set_dimension(struct node *n, const char *name, int rank)
{
    int64_t axis = attr_int(n, name);
    attr_set_int(n, name, dim_in_twin((int)(axis < 0 ? axis + rank : axis), rank));
}

static void set_axis(struct node *n, int rank)
{
    set_dimension(n, "axis", rank);
}

static void set_axes(struct graph *g, struct node *n, int rank, int count, const int *axes)
{
    const struct dim *dims[MAX_RANK];
    int64_t ints[MAX_RANK];
    for (int i = 0; i < count; i++) {
        ints[i] = dim_in_twin(axes[i], rank);
        dims[i] = dim_int(g->alg, ints[i]);
    }
    if (node_attr(n, "axes")->kind == ATTR_DIMS)
        attr_set_dims(g, n, "axes", count, dims);
    else
        attr_set_ints(g, n, "axes", count, ints);
}

/* ---- convolutions -------------------------------------------------------------------------------------------------------------------- */
static bool wants_twin(const struct node *n)
{
    bool transposed = op_is_onnx(n, "ConvTranspose");
    if ((!op_is_onnx(n, "Conv") && !transposed) || n->nin < 2)
        return false;
    const struct type *x = &n->in[0]->type, *w = &n->in[1]->type;
    if (transposed && (w->dtype != x->dtype || attr_int(n, "group") != 1))
        return false;
    int64_t none;
    for (int d = 0; d < w->rank; d++)
        if (dim_is_int(w->dim[d], &none) && none == 0)
            return false;
    return x->dtype == DT_F32 && x->rank >= 3 && x->rank <= 5 && n->out[0]->type.rank == x->rank && attr_int(n, "group") >= 1;
}

/* A weight with output channels last; computed once if it is a constant. */
static struct value *weight_twin(struct twins *t, struct value *w)
{
    if (!twin_of(t, w)) {
        int64_t perm[MAX_RANK];
        for (int d = 0; d < w->type.rank; d++)
            perm[d] = dim_of_twin(d, w->type.rank);
        t->at[w->id] = twin_value(t, w);
        append_transpose(t, w, perm, t->at[w->id], false);
        if (op_evaluate_later(t->g, t->at[w->id]->producer))
            t->nodes.list.n--;
    }
    return t->at[w->id];
}

static void put_transposed(struct twins *t, const struct node *n)
{
    struct value *in[3] = {need_twin(t, n->in[0]), weight_twin(t, need_value(t, n->in[1])), n->nin > 2 ? need_value(t, n->in[2]) : NULL};
    struct node *made = graph_node(t->g, op_find("tpc", "ChannelsLastConvTranspose"), n->name, in[2] ? 3 : 2, in, 1);
    attr_copy(made, n);
    append_node(t, made, make_twin(t, n->out[0]));
}

static void put_conv(struct twins *t, const struct node *n)
{
    if (op_is_onnx(n, "ConvTranspose")) {
        put_transposed(t, n);
        return;
    }
    if (fuse_integer_conv_is(n)) {
        struct value *x = need_twin(t, fuse_integer_conv_codes(n)), *bias = n->nin > 2 ? need_value(t, n->in[2]) : NULL;
        struct node *made = fuse_integer_conv_node(t->g, n, x, bias);
        attr_copy(made, n);
        append_node(t, made, make_twin(t, n->out[0]));
        return;
    }
    struct value *in[3] = {need_twin(t, n->in[0]), need_value(t, n->in[1]), n->nin > 2 ? need_value(t, n->in[2]) : NULL};
    struct node *made = graph_node(t->g, op_find("tpc", "ChannelsLastConv"), n->name, in[2] ? 3 : 2, in, 1);
    attr_copy(made, n);
    append_node(t, made, make_twin(t, n->out[0]));
}

/* ---- what follows them --------------------------------------------------------------------------------------------------------------- */
/* Rewrites a node to channels-last: operand 0 has a twin, or any operand as large as the result has. Returns false if the node must read
 * channels-first values. */
typedef bool follower(struct twins *, const struct node *);

/* The average of decoded bytes may be one of their codes. */
static bool follow_pool(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]);
    if (!x || n->nout != 1 || n->nin != 1 || n->out[0]->type.rank != x->type.rank)
        return false;
    const struct node *d = op_is_onnx(n, "GlobalAveragePool") ? byte_scale_decoder(x) : NULL;
    struct node *made = graph_node(t->g, op_find("tpc", "ChannelsLastPool"), n->name, 1, d ? &d->in[0] : &x, 1);
    attr_copy(made, n);
    attr_set_string(made, "kind", n->optype);
    if (d) {
        attr_set_float(made, "scale", byte_scale_of(d).scale);
        attr_set_float(made, "zero", byte_scale_of(d).zero);
    }
    append_node(t, made, make_twin(t, n->out[0]));
    return true;
}

static bool follow_norm(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]);
    if (!x || !t->missing[n->in[0]->id] || n->nin != 3 || n->nout != 1)
        return false;
    struct value *in[3] = {x, need_value(t, n->in[1]), need_value(t, n->in[2])};
    struct node *made = graph_node(t->g, op_find("tpc", "ChannelsLastNorm"), n->name, 3, in, 1);
    attr_copy(made, n);
    append_node(t, made, make_twin(t, n->out[0]));
    return true;
}

/* An operand of an elementwise node: its twin, or the value itself if that broadcasts alike; NULL: neither works. */
static bool operand_follows(const struct value *v, int rank)
{
    if (!v)
        return true;
    if (v->constant)
        return constant_elements(v->constant) <= MOST_CONSTANT && v->constant->rank <= rank && dtype_size(v->constant->dtype) != 0 &&
            constant_present(v->constant);
    return v->type.rank == rank || v->type.rank == 0;
}

static struct value *elementwise_operand(struct twins *t, struct value *v, int rank)
{
    if (!v || v->type.rank == 0 || (v->constant && constant_elements(v->constant) == 1))
        return need_value(t, v);
    return v->constant ? constant_twin(t, v, rank) : need_twin(t, v);
}

static bool follow_elementwise(struct twins *t, const struct node *n)
{
    const struct value *y = n->out[0];
    struct value *in[8];
    bool some = false;
    if (n->nout != 1 || n->nin > 8)
        return false;
    for (int k = 0; k < n->nin; k++) {
        if (!operand_follows(n->in[k], y->type.rank))
            return false;
        const struct value *twin = n->in[k] ? twin_of(t, n->in[k]) : NULL;
        bool large = twin && memcmp(n->in[k]->type.dim, y->type.dim, (size_t)y->type.rank * sizeof *y->type.dim) == 0;
        some = some || (large && t->missing[n->in[k]->id]);
    }
    if (!some)
        return false;
    for (int k = 0; k < n->nin; k++)
        in[k] = elementwise_operand(t, n->in[k], y->type.rank);
    append_node(t, graph_node_like(t->g, n, n->name, n->nin, in), make_twin(t, n->out[0]));
    return true;
}

/* QuantizeLinear and DequantizeLinear with one scale. */
static bool follow_coded(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]), *in[3] = {x};
    int64_t one;
    for (int d = 0; d < n->in[1]->type.rank; d++)
        if (!dim_is_int(n->in[1]->type.dim[d], &one) || one != 1)
            return false;
    if (!x || !t->missing[n->in[0]->id] || n->nin > 3)
        return false;
    for (int k = 1; k < n->nin; k++)
        in[k] = need_value(t, n->in[k]);
    append_node(t, graph_node_like(t->g, n, n->name, n->nin, in), make_twin(t, n->out[0]));
    return true;
}

static bool follow_dynamic(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]);
    if (!x || !t->missing[n->in[0]->id])
        return false;
    struct node *made = graph_node_like(t->g, n, n->name, n->nin, &x);
    for (int k = 1; k < n->nout; k++)
        if (n->out[k])
            node_output(t->g, made, k, n->out[k]);
    append_node(t, made, make_twin(t, n->out[0]));
    return true;
}

static bool follow_concat(struct twins *t, const struct node *n)
{
    struct value **in = NEWN(t->g->arena, struct value *, n->nin);
    int rank = n->out[0]->type.rank;
    bool all = true;
    for (int k = 0; k < n->nin; k++)
        all = all && n->in[k] && n->in[k]->type.rank == rank && (n->in[k]->constant ? operand_follows(n->in[k], rank) : true);
    if (!all || !twin_of(t, n->in[0]))
        return false;
    for (int k = 0; k < n->nin; k++)
        in[k] = need_twin(t, n->in[k]);
    struct node *made = graph_node_like(t->g, n, n->name, n->nin, in);
    set_axis(made, rank);
    append_node(t, made, make_twin(t, n->out[0]));
    return true;
}

static bool follow_split(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]);
    if (!x || n->nin != 1 || !op_resolved(n))
        return false;
    struct node *made = graph_node_like(t->g, n, n->name, n->nin, &x);
    set_axis(made, x->type.rank);
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            node_output(t->g, made, k, make_twin(t, n->out[k]));
    VEC_PUSH(t->g->arena, &t->nodes.list, made);
    return true;
}

/* Over channels, which are then contiguous. */
static bool follow_softmax(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]);
    if (!x || (attr_int(n, "axis") != 1 && attr_int(n, "axis") != 1 - x->type.rank))
        return false;
    struct node *made = graph_node_like(t->g, n, n->name, n->nin, &x);
    set_axis(made, x->type.rank);
    append_node(t, made, make_twin(t, n->out[0]));
    return true;
}

/* Slice, Pad, Resize: their per-axis attributes are in the order of `axes`. */
static bool follow_axes(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]), *in[8];
    int axes[MAX_RANK], count = x && n->nin <= 8 ? axes_named(t->g, n, x->type.rank, axes) : -1;
    if (count < 0)
        return false;
    for (int i = 0; i < count; i++)
        if (axes[i] < 0 || axes[i] >= x->type.rank)
            return false;
    for (int k = 0; k < n->nin; k++)
        in[k] = k == 0 ? x : need_value(t, n->in[k]);
    struct node *made = graph_node_like(t->g, n, n->name, n->nin, in);
    set_axes(t->g, made, x->type.rank, count, axes);
    append_node(t, made, make_twin(t, n->out[0]));
    return true;
}

/* A result with batch, channels and a spatial dimension gets a twin; without spatial dimensions or without channels, both forms are the
 * same. */
static bool follow_reduce(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]);
    int axes[MAX_RANK], count = x && n->nin == 1 ? axes_named(t->g, n, x->type.rank, axes) : -1;
    bool channels = true, keeps = attr_int(n, "keepdims") != 0;
    if (count < 0 || (!attr_is_set(n, "axes") && attr_int(n, "noop_with_empty_axes")))
        return false;
    for (int i = 0; i < count; i++) {
        if (axes[i] < 0 || axes[i] >= x->type.rank || (axes[i] == 0 && !keeps && count < x->type.rank))
            return false;
        channels = channels && axes[i] != 1;
    }
    struct node *made = graph_node_like(t->g, n, n->name, n->nin, &x);
    set_axes(t->g, made, x->type.rank, count, axes);
    bool twin = keeps || (channels && n->out[0]->type.rank > 2);
    append_node(t, made, twin ? make_twin(t, n->out[0]) : n->out[0]);
    return true;
}

static bool follow_transpose(struct twins *t, const struct node *n)
{
    struct value *x = twin_of(t, n->in[0]);
    const int64_t *given;
    int64_t perm[MAX_RANK];
    if (!x || !t->missing[n->in[0]->id] || !attr_is_set(n, "perm") || attr_ints(t->g, n, "perm", &given) != x->type.rank)
        return false;
    for (int d = 0; d < x->type.rank; d++)
        perm[d] = dim_in_twin((int)(given[d] < 0 ? given[d] + x->type.rank : given[d]), x->type.rank);
    append_transpose(t, x, perm, n->out[0], false);
    return true;
}

/* A Reshape of the spatial dimensions only; or of a tensor with the same bytes in both forms. */
static bool follow_view(struct twins *t, const struct node *n)
{
    struct value *x = node_operand(n, 0) ? twin_of(t, n->in[0]) : NULL;
    const struct type *from = &n->in[0]->type, *to = &n->out[0]->type;
    if (!x || !t->missing[n->in[0]->id])
        return false;
    bool inside = from->rank >= 3 && to->rank >= 3 && from->dim[0] == to->dim[0] && from->dim[1] == to->dim[1];
    if (!inside && !same_bytes(from))
        return false;
    struct node *made = graph_node(t->g, op_find("", "Reshape"), n->name, 1, &x, 1);
    append_node(t, made, inside ? make_twin(t, n->out[0]) : n->out[0]);
    return true;
}

static bool follow_collective(struct twins *t, const struct node *n)
{
    static const char *const axis[] = {"axis", "split_axis", "concat_axis"};
    struct value *x = twin_of(t, n->in[0]), *in[2];
    if (!t->collectives || !x || n->nin > 2 || n->nout != 1)
        return false;
    for (int k = 0; k < n->nin; k++)
        in[k] = k == 0 ? x : need_value(t, n->in[k]);
    struct node *made = graph_node_like(t->g, n, n->name, n->nin, in);
    for (size_t i = 0; i < sizeof axis / sizeof *axis; i++)
        if (attr_find(n, axis[i]))
            set_dimension(made, axis[i], x->type.rank);
    append_node(t, made, make_twin(t, n->out[0]));
    return true;
}

static follower *follower_of(const struct node *n)
{
    static const struct {
        const char *op;
        follower *follow;
    } table[] = {{"MaxPool", follow_pool},
                 {"AveragePool", follow_pool},
                 {"LpPool", follow_pool},
                 {"GlobalMaxPool", follow_pool},
                 {"GlobalAveragePool", follow_pool},
                 {"GlobalLpPool", follow_pool},
                 {"InstanceNormalization", follow_norm},
                 {"GroupNormalization", follow_norm},
                 {"QuantizeLinear", follow_coded},
                 {"DequantizeLinear", follow_coded},
                 {"DynamicQuantizeLinear", follow_dynamic},
                 {"Concat", follow_concat},
                 {"Split", follow_split},
                 {"Softmax", follow_softmax},
                 {"LogSoftmax", follow_softmax},
                 {"Slice", follow_axes},
                 {"Pad", follow_axes},
                 {"Resize", follow_axes},
                 {"ReduceMean", follow_reduce},
                 {"ReduceSum", follow_reduce},
                 {"ReduceMax", follow_reduce},
                 {"ReduceMin", follow_reduce},
                 {"Transpose", follow_transpose}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (op_is_onnx(n, table[i].op))
            return table[i].follow;
    if (n->op->flags & OP_ELEMENTWISE)
        return follow_elementwise;
    if (n->op->flags & OP_COLLECTIVE)
        return follow_collective;
    return n->op->flags & OP_VIEW ? follow_view : NULL;
}

/* ---- the graph ----------------------------------------------------------------------------------------------------------------------- */
static void put_node(struct twins *t, struct node *n)
{
    bool typed = n->op && n->nout > 0 && node_operand(n, 0) && n->out[0] && n->out[0]->type.dtype != DT_NONE;
    follower *follow = typed ? follower_of(n) : NULL;
    if (n->op && wants_twin(n)) {
        put_conv(t, n);
        return;
    }
    if (follow && follow(t, n))
        return;
    for (int k = 0; k < n->nin; k++)
        n->in[k] = need_value(t, n->in[k]);
    VEC_PUSH(t->g->arena, &t->nodes.list, n);
}

uint64_t channels_last_digest(const struct graph *g)
{
    uint64_t digest = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (n->op && n->op->flags & OP_COLLECTIVE && n->nout > 0)
            digest = XXH3_64bits_withSeed(n->out[0]->name, strlen(n->out[0]->name), digest);
    }
    return digest;
}

void channels_last(struct graph *g, bool collectives)
{
    struct arena *tmp = arena_new();
    struct twins t = {.g = g, .nvalues = g->values.n, .collectives = collectives};
    bool some = false;
    for (int i = 0; i < g->nodes.n; i++)
        some = some || (g->nodes.at[i]->op && wants_twin(g->nodes.at[i]));
    if (some) {
        t.at = NEWN(tmp, struct value *, t.nvalues);
        t.missing = NEWN(tmp, bool, t.nvalues);
        for (int i = 0; i < g->nodes.n; i++)
            put_node(&t, g->nodes.at[i]);
        for (int i = 0; i < g->outputs.n; i++)
            need_value(&t, g->outputs.at[i]);
        g->nodes.n = 0;
        for (int i = 0; i < t.nodes.list.n; i++)
            graph_append(g, t.nodes.list.at[i]);
        graph_name_nodes(g);
        graph_prune(g);
    }
    arena_free(tmp);
}
