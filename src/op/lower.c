/* Writing lowerings: a body of nodes in place of one. */
#include "op/op.h"

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

struct node *lower_copy(struct lowering *l, const char *part, int nin, struct value *const *in)
{
    struct graph *g = l->g;
    const struct node *from = l->node;
    struct node *node = graph_node(g, from->op, part_name(l, part), nin, in, from->nout);
    memcpy(node->attr, from->attr, sizeof *node->attr * (size_t)node->nattr);
    for (int i = 0; i < from->nout; i++)
        if (from->out[i])
            node_output(g, node, i, graph_value(g, part_name(l, part), &from->out[i]->type));
    VEC_PUSH(g->arena, &l->nodes, node);
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

struct value *lower_reduce(struct lowering *l, const char *op, const char *part, struct value *x, int from, int to)
{
    struct node *node = lower_node(l, "", op, part, 1, &x);
    const struct dim *axes[MAX_RANK];
    for (int d = from; d < to; d++)
        axes[d - from] = dim_int(l->g->alg, d);
    attr_set_dims(l->g, node, "axes", to - from, axes);
    op_infer(l->g, node);
    return node->out[0];
}

static struct value *axis_changed(struct lowering *l, const char *op, const char *part, struct value *x, int axis)
{
    struct node *node = lower_node(l, "", op, part, 1, &x);
    const struct dim *at = dim_int(l->g->alg, axis);
    attr_set_dims(l->g, node, "axes", 1, &at);
    op_infer(l->g, node);
    return node->out[0];
}

struct value *lower_unsqueeze(struct lowering *l, const char *part, struct value *x, int axis)
{
    return axis_changed(l, "Unsqueeze", part, x, axis);
}

struct value *lower_squeeze(struct lowering *l, const char *part, struct value *x, int axis)
{
    return axis_changed(l, "Squeeze", part, x, axis);
}

struct value *lower_float(struct lowering *l, const char *part, struct value *x)
{
    return x->type.dtype == DT_F64 ? x : lower_cast(l, part, x, DT_F32);
}

void lower_together(struct lowering *l, int axis, int n, struct value *const *in, struct value **out)
{
    struct graph *g = l->g;
    const struct placement *whole = NEWN(g->arena, struct placement, n + 1);     /* that is what zeros say */
    struct node *concat = lower_node(l, "", "Concat", "together", n, in);
    const struct dim **one = NEWN(g->arena, const struct dim *, n);
    attr_set_int(concat, "axis", axis);
    op_infer(g, concat);
    struct node *split = graph_node(g, op_find("", "Split"), part_name(l, "apart"), 1, concat->out, n);
    for (int i = 0; i < n; i++) {
        one[i] = in[i]->type.dim[axis];
        out[i] = graph_value(g, arena_printf(g->arena, "%s.whole", in[i]->name), &in[i]->type);
        node_output(g, split, i, out[i]);
    }
    attr_set_int(split, "axis", axis);
    attr_set_dims(g, split, "split", n, one);
    op_infer(g, split);
    VEC_PUSH(g->arena, &l->nodes, split);
    lower_on_ranks(l, split, whole, whole);
}

static void *scalar_bytes(struct lowering *l, enum dtype dtype, double number)
{
    void *bytes = arena_alloc(l->g->arena, sizeof(double));
    float single = (float)number;
    int64_t whole = (int64_t)number;
    if (dtype == DT_F32)
        memcpy(bytes, &single, sizeof single);
    else if (dtype == DT_F64)
        memcpy(bytes, &number, sizeof number);
    else if (dtype == DT_I64)
        memcpy(bytes, &whole, sizeof whole);
    else
        require(number == 0 && dtype_size(dtype) <= sizeof number);     /* zero is zero in every type */
    return bytes;
}

struct value *lower_scalar(struct lowering *l, const char *part, enum dtype dtype, double number)
{
    void *bytes = scalar_bytes(l, dtype, number);
    struct value *v = graph_constant(l->g, part_name(l, part), dtype, 0, NULL, bytes);
    v->place = placement_whole;
    v->placed = true;
    return v;
}

struct value *lower_extent(struct lowering *l, const char *part, const struct type *type, int from, int to, enum dtype dtype)
{
    const struct dim *size = dim_int(l->g->alg, 1);
    int64_t n;
    for (int d = from; d < to; d++)
        size = dim_mul(l->g->alg, size, type->dim[d]);
    if (dim_is_int(size, &n))
        return lower_scalar(l, part, dtype, (double)n);
    struct node *node = lower_node(l, "tpc", "Dims", part, 0, NULL);
    attr_set_dims(l->g, node, "dims", 1, &size);
    attr_set_int(node, "scalar", 1);
    op_infer(l->g, node);
    return lower_cast(l, arena_printf(l->g->arena, "%s.cast", part), node->out[0], dtype);
}

bool op_lowers(const struct rule *r, int factor, const struct split *s)
{
    bool counts = r->factor[factor].flags & FACTOR_POSITION;
    return s->partition && (!counts || (dim_equals(s->outer, 1) && dim_equals(s->inner, 1)));
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
    for (int i = 0; i < node->nout; i++) {
        node->out[i]->place = out[i];
        node->out[i]->placed = true;
    }
}
