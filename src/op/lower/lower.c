/* lower: writes lowerings: a body of nodes in place of one node. */
#include "op/lower/lower.h"

#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"

#include <string.h>

static const char *part_name(const struct lowering *l, const char *part)
{
    return arena_printf(l->g->arena, "%s/%s", l->name, part);
}

struct node *lower_node(struct lowering *l, const char *domain, const char *op, const char *part, int nin, struct value *const *in)
{
    struct node *node = op_node(l->g, domain, op, part_name(l, part), nin, in);
    VEC_PUSH(l->g->arena, &l->nodes, node);
    return node;
}

struct node *lower_copy_of(struct graph *g, const struct node *from, const char *name, int nin, struct value *const *in)
{
    struct node *node = graph_node_like(g, from, name, nin, in);
    for (int i = 0; i < from->nout; i++)
        if (from->out[i])
            node_output(g, node, i, graph_value(g, name, &from->out[i]->type));
    return node;
}

struct node *lower_copy(struct lowering *l, const char *part, int nin, struct value *const *in)
{
    struct node *node = lower_copy_of(l->g, l->node, part_name(l, part), nin, in);
    VEC_PUSH(l->g->arena, &l->nodes, node);
    return node;
}

struct value *lower_unary(struct lowering *l, const char *op, const char *part, struct value *x)
{
    return lower_node(l, "", op, part, 1, &x)->out[0];
}

struct value *lower_binary(struct lowering *l, const char *op, const char *part, struct value *a, struct value *b)
{
    return lower_node(l, "", op, part, 2, (struct value *[]){a, b})->out[0];
}

struct value *lower_where(struct lowering *l, const char *part, struct value *condition, struct value *a, struct value *b)
{
    return lower_node(l, "", "Where", part, 3, (struct value *[]){condition, a, b})->out[0];
}

struct value *lower_cast(struct lowering *l, const char *part, struct value *x, enum dtype to)
{
    if (x->type.dtype == to)
        return x;
    struct node *node = lower_node(l, "", "Cast", part, 1, &x);
    attr_set_int(node, "to", (int)to);
    op_infer(l->g, node);
    return node->out[0];
}

/* A node with dimensions from .. to - 1 as its axes. */
static struct value *over_axes(struct lowering *l, const char *op, const char *part, struct value *x, int from, int to)
{
    struct node *node = lower_node(l, "", op, part, 1, &x);
    const struct dim *axes[MAX_RANK];
    for (int d = from; d < to; d++)
        axes[d - from] = dim_int(l->g->alg, d);
    attr_set_dims(l->g, node, "axes", to - from, axes);
    op_infer(l->g, node);
    return node->out[0];
}

struct value *lower_reduce(struct lowering *l, const char *op, const char *part, struct value *x, int from, int to)
{
    return over_axes(l, op, part, x, from, to);
}

struct value *lower_float(struct lowering *l, const char *part, struct value *x)
{
    return x->type.dtype == DT_F64 ? x : lower_cast(l, part, x, DT_F32);
}

struct value *lower_reshape(struct lowering *l, const char *part, struct value *x, int rank, const struct dim *const *dim)
{
    struct node *node = lower_node(l, "", "Reshape", part, 1, &x);
    node->out[0]->type = (struct type){.dtype = x->type.dtype, .rank = rank};
    memcpy(node->out[0]->type.dim, dim, sizeof *dim * (size_t)rank);
    op_infer(l->g, node);
    return node->out[0];
}

struct value *lower_transpose(struct lowering *l, const char *part, struct value *x, const int64_t *perm)
{
    struct node *node = lower_node(l, "", "Transpose", part, 1, &x);
    attr_set_ints(l->g, node, "perm", x->type.rank, perm);
    op_infer(l->g, node);
    return node->out[0];
}

struct value *lower_unsqueeze(struct lowering *l, const char *part, struct value *x, int axis, int n)
{
    return n > 0 ? over_axes(l, "Unsqueeze", part, x, axis, axis + n) : x;
}

struct value *lower_squeeze(struct lowering *l, const char *part, struct value *x, int axis)
{
    return over_axes(l, "Squeeze", part, x, axis, axis + 1);
}

struct value *lower_concat(struct lowering *l, const char *part, int n, struct value *const *in, int axis)
{
    struct node *node = lower_node(l, "", "Concat", part, n, in);
    attr_set_int(node, "axis", axis);
    op_infer(l->g, node);
    return node->out[0];
}

struct node *lower_split(struct lowering *l, const char *part, struct value *x, int axis, int n, const struct dim *const *size)
{
    struct graph *g = l->g;
    struct node *node = graph_node(g, op_find("", "Split"), part_name(l, part), 1, &x, n);
    struct type type = x->type;
    for (int i = 0; i < n; i++) {
        type.dim[axis] = size[i];
        node_output(g, node, i, graph_value(g, arena_printf(g->arena, "%s.%d", node->name, i), &type));
    }
    attr_set_int(node, "axis", axis);
    attr_set_dims(g, node, "split", n, size);
    op_infer(g, node);
    VEC_PUSH(g->arena, &l->nodes, node);
    return node;
}

struct node *lower_apart(struct lowering *l, const char *part, struct value *x, int axis, int n)
{
    const struct dim **one = NEWN(l->g->arena, const struct dim *, n);
    for (int i = 0; i < n; i++)
        one[i] = dim_int(l->g->alg, 1);
    return lower_split(l, part, x, axis, n, one);
}

void lower_together(struct lowering *l, int axis, int n, struct value *const *in, struct value **out)
{
    const struct placement *replicated = NEWN(l->g->arena, struct placement, n + 1); /* zeros: replicated */
    struct node *split = lower_apart(l, "apart", lower_concat(l, "together", n, in, axis), axis, n);
    for (int i = 0; i < n; i++)
        out[i] = split->out[i];
    lower_on_ranks(l, split, replicated, replicated);
}

static void *scalar_bytes(struct lowering *l, enum dtype dtype, double number)
{
    void *bytes = arena_alloc(l->g->arena, sizeof(double));
    float single = (float)number;
    int64_t integer = (int64_t)number;
    if (dtype == DT_F32)
        memcpy(bytes, &single, sizeof single);
    else if (dtype == DT_F64)
        memcpy(bytes, &number, sizeof number);
    else if (dtype == DT_I64)
        memcpy(bytes, &integer, sizeof integer);
    else
        require(number == 0 && dtype_size(dtype) <= sizeof number); /* zero is zero in every type */
    return bytes;
}

struct value *lower_scalar(struct lowering *l, const char *part, enum dtype dtype, double number)
{
    void *bytes = scalar_bytes(l, dtype, number);
    struct value *v = graph_constant(l->g, part_name(l, part), dtype, 0, NULL, bytes);
    v->place = placement_replicated;
    v->placed = true;
    return v;
}

struct value *lower_size(struct lowering *l, const char *part, const struct dim *size, enum dtype dtype)
{
    const int64_t most = (int64_t)1 << 53; /* exactly representable in a double */
    int64_t n;
    if (dim_is_int(size, &n) && n <= most && n >= -most)
        return lower_scalar(l, part, dtype, (double)n);
    struct node *node = lower_node(l, "tpc", "Dims", part, 0, NULL);
    attr_set_dims(l->g, node, "dims", 1, &size);
    attr_set_int(node, "scalar", 1);
    op_infer(l->g, node);
    return lower_cast(l, arena_printf(l->g->arena, "%s.cast", part), node->out[0], dtype);
}

struct value *lower_extent(struct lowering *l, const char *part, const struct type *type, int from, int to, enum dtype dtype)
{
    const struct dim *size = dim_int(l->g->alg, 1);
    for (int d = from; d < to; d++)
        size = dim_mul(l->g->alg, size, type->dim[d]);
    return lower_size(l, part, size, dtype);
}

/* Whether every rank holds at most one interval, in ascending order of ranks. */
static bool ascends(const struct split *s)
{
    int64_t last = 0;
    for (int r = 0; !s->balanced && r < s->ranks; r++) {
        if (s->count[r] > 1 || (s->count[r] == 1 && s->list[r][0].lo < last))
            return false;
        last = s->count[r] == 1 ? s->list[r][0].hi : last;
    }
    return true;
}

bool op_lowers(const struct rule *r, int factor, const struct split *s)
{
    unsigned flags = r->factor[factor].flags;
    bool plain = dim_equals(s->outer, 1) && dim_equals(s->inner, 1);
    return s->partition && !s->shares && (!(flags & FACTOR_POSITION) || plain) && (!(flags & FACTOR_ORDERED) || (plain && ascends(s)));
}

static bool made_here(const struct lowering *l, const struct value *v)
{
    for (int i = 0; i < l->nodes.n; i++)
        if (v->producer == l->nodes.at[i])
            return true;
    return false;
}

void lower_result(struct lowering *l, int i, struct value *v)
{
    struct value *result = l->node->out[i];
    if (!made_here(l, v))
        v = lower_unary(l, "Identity", "result", v);
    require(type_eq(&v->type, &result->type));
    for (int k = 0; k < l->nodes.n; k++)
        for (int j = 0; j < l->nodes.at[k]->nin; j++)
            if (l->nodes.at[k]->in[j] == v)
                l->nodes.at[k]->in[j] = result;
    node_output(l->g, v->producer, v->index, result);
}

void lower_on_ranks(struct lowering *l, struct node *node, const struct placement *in, const struct placement *out)
{
    struct strategy *s = NEW(l->g->arena, struct strategy);
    s->in = NEWN(l->g->arena, struct placement, node->nin + 1);
    s->out = NEWN(l->g->arena, struct placement, node->nout + 1);
    memcpy(s->in, in, sizeof *in * (size_t)node->nin);
    memcpy(s->out, out, sizeof *out * (size_t)node->nout);
    node->strategy = s;
    node->on_ranks = true;
    for (int i = 0; i < node->nout; i++)
        if (node->out[i]) {
            node->out[i]->place = out[i];
            node->out[i]->placed = true;
        }
}

void lower_on_own(struct lowering *l, struct node *node, struct placement out)
{
    struct placement *in = NEWN(l->g->arena, struct placement, node->nin + 1), *outs = NEWN(l->g->arena, struct placement, node->nout + 1);
    for (int i = 0; i < node->nin; i++)
        in[i] = node->in[i] && node->in[i]->placed ? node->in[i]->place : placement_replicated;
    for (int i = 0; i < node->nout; i++)
        outs[i] = out;
    lower_on_ranks(l, node, in, outs);
}
