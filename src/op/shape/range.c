/* range: start, start + delta, ... Each element follows from its position, so any part can be computed alone. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <math.h>

/* A bound of a float type that is an integer: a size that was cast to it, or a constant. */
static bool real_bound(struct graph *g, const struct node *node, int i, const struct dim **out)
{
    struct value *v = node_operand(node, i);
    const struct node *cast = v && (v->type.dtype == DT_F32 || v->type.dtype == DT_F64) && v->producer && v->producer->op ? v->producer
                                                                                                                          : NULL;
    const struct dims_value *from = cast && cast->op->infer == infer_cast ? op_dims(g, cast->in[0]) : NULL;
    int64_t number;
    if (from && from->n == 1)
        *out = from->at[0];
    else if (op_whole_constant(v, &number))
        *out = dim_int(g->alg, number);
    else
        return false;
    return true;
}

/* start, limit, delta as expressions; false if one is unknown. */
static bool range_bounds(struct graph *g, const struct node *node, const struct dim *out[3])
{
    static const char *const name[3] = {"start", "limit", "delta"};
    for (int i = 0; i < 3; i++) {
        const struct dim *const *at;
        if (op_size_operand(g, node, i, name[i], &at) == 1)
            out[i] = at[0];
        else if (!real_bound(g, node, i, &out[i]))
            return false;
    }
    return true;
}

/* Number of elements: max(0, ceil((limit - start) / delta)); NULL if delta is not an integer. */
static const struct dim *range_length(struct graph *g, const struct node *node, const struct dim *const bound[3])
{
    int64_t delta;
    if (!dim_is_int(bound[2], &delta) || delta == INT64_MIN)
        return NULL;
    if (delta == 0)
        fail("%s: the step of Range is 0", node_where(g, node));
    const struct dim *zero = dim_int(g->alg, 0), *size = delta > 0 ? dim_int(g->alg, delta) : dim_int(g->alg, -delta);
    const struct dim *way = delta > 0 ? dim_sub(g->alg, bound[1], bound[0]) : dim_sub(g->alg, bound[0], bound[1]);
    const struct dim *up = dim_add(g->alg, way, dim_sub(g->alg, size, dim_int(g->alg, 1)));
    return dim_max(g->alg, dim_div(g->alg, up, size), zero);
}

/* The same for constants that are not integers. */
static const struct dim *real_length(struct graph *g, const struct node *node)
{
    double bound[3];
    for (int i = 0; i < 3; i++)
        if (i >= node->nin || !op_constant_number(node->in[i], &bound[i]))
            return NULL;
    double n = ceil((bound[1] - bound[0]) / bound[2]);
    if (!(fabs(n) < OP_LARGEST_WHOLE))
        fail("%s: Range from %g to %g by %g has no length", node_where(g, node), bound[0], bound[1], bound[2]);
    return dim_int(g->alg, n > 0 ? (int64_t)n : 0);
}

void infer_range(struct graph *g, struct node *node)
{
    const struct dim *bound[3], *n = NULL;
    enum dtype dtype = node_operand(node, 0) ? op_operand(g, node, 0)->dtype : node->out[0]->type.dtype;
    if (dtype == DT_NONE)
        fail("%s: the type of '%s' is not known", node_where(g, node), node->out[0]->name);
    if (!dtype_is_float(dtype) && !dtype_is_integer(dtype))
        fail("%s: counts in %s, expected integers or floats of 16 bits and more", node_where(g, node), dtype_name(dtype));
    for (int i = 1; i < node->nin; i++)
        if (node->in[0] && node->in[i])
            op_same_dtype(g, node, 0, i);
    if (range_bounds(g, node, bound))
        n = range_length(g, node, bound);
    if (!n)
        n = real_length(g, node);
    if (!n)
        n = op_unknown_dim(g, node, 0, 0);
    op_result(g, node, 0, dtype, 1, &n);
}

void value_range(struct graph *g, struct node *node)
{
    const struct dim *bound[3];
    const struct type *out = &node->out[0]->type;
    int64_t n;
    if ((out->dtype != DT_I64 && out->dtype != DT_I32) || !dim_is_int(out->dim[0], &n) || n > MOST_ENTRIES || !range_bounds(g, node, bound))
        return;
    const struct dim **at = op_set_dims(g, node, (int)n);
    for (int i = 0; i < n; i++)
        at[i] = dim_add(g->alg, bound[0], dim_mul(g->alg, dim_int(g->alg, i), bound[2]));
}

/* ---- the rule, and a part of it --------------------------------------------------------------------------------------------- */

void lower_range(struct lowering *l)
{
    const struct value *y = l->node->out[0];
    const struct dim *bound[3];
    require(range_bounds(l->g, l->node, bound));
    struct value *made = lower_progression(l, lower_positions(l, "position", y->place.split), bound[0], bound[2]);
    lower_result(l, 0, lower_cast(l, "typed", made, y->type.dtype));
}
