/* shape: ops that read or make shapes: Shape, Size, Identity, Squeeze, Unsqueeze, Flatten, Expand, ConstantOfShape, Dims, Constant. Reshape
 * is in reshape.c.
 *
 * In canonical form there is no shape operand: the recorded output type is the target, which inference checks as far as possible. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

/* ---- results ----------------------------------------------------------------------------------------------------------- */

void infer_constant(struct graph *g, struct node *node)
{
    const struct constant *c = node_attr(node, "value")->tensor;
    if (!c)
        fail("%s: attribute 'value' is missing", node_where(g, node));
    const struct dim *dim[MAX_RANK];
    for (int d = 0; d < c->rank; d++)
        dim[d] = dim_int(g->alg, c->dim[d]);
    op_result(g, node, 0, c->dtype, c->rank, dim);
}

/* The part [first, last) of the dimensions that Shape reports. */
static void shape_range(const struct node *node, int rank, int *first, int *last)
{
    int64_t start = attr_int(node, "start");
    int64_t end = attr_is_set(node, "end") ? attr_int(node, "end") : rank;
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    *first = (int)start;
    *last = (int)end;
}

void infer_shape(struct graph *g, struct node *node)
{
    int first, last;
    shape_range(node, op_operand(g, node, 0)->rank, &first, &last);
    const struct dim *n = dim_int(g->alg, last - first);
    op_result(g, node, 0, DT_I64, 1, &n);
}

void value_shape(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0);
    int first, last;
    shape_range(node, data->rank, &first, &last);
    const struct dim **at = op_set_dims(g, node, last - first);
    for (int d = first; d < last; d++)
        at[d - first] = dim_rewrite(g->alg, data->dim[d]);
}

void infer_size(struct graph *g, struct node *node)
{
    op_operand(g, node, 0);
    op_result(g, node, 0, DT_I64, 0, NULL);
}

void value_size(struct graph *g, struct node *node)
{
    op_set_dims(g, node, 1)[0] = type_elements(g->alg, op_operand(g, node, 0));
}

/* The same entries with another shape. */
void value_identity(struct graph *g, struct node *node)
{
    const struct dims_value *from = op_entries(g, node->in[0]);
    if (!from || node->out[0]->type.rank > 2)
        return;
    const struct dim **at = op_set_dims(g, node, from->n);
    for (int i = 0; i < from->n; i++)
        at[i] = from->at[i];
}

/* ---- dims removed and added -------------------------------------------------------------------------------------------- */

/* Axes of operand 1 or attribute axes as a mask over rank dims. -1: unknown, -2: not given. */
static int axes_mask(struct graph *g, const struct node *node, int rank, unsigned *mask)
{
    const struct dim *const *axes;
    int n = op_size_operand(g, node, 1, "axes", &axes);
    *mask = 0;
    for (int i = 0; i < n; i++) {
        int64_t axis;
        if (!dim_is_int(axes[i], &axis))
            return -1;
        unsigned bit = 1u << op_axis(g, node, axis, rank);
        if (*mask & bit)
            fail("%s: axis %lld is given twice", node_where(g, node), (long long)axis);
        *mask |= bit;
    }
    return n;
}

/* Without axes, every dimension of size 1 is removed. */
static unsigned ones_mask(const struct type *data)
{
    unsigned mask = 0;
    for (int d = 0; d < data->rank; d++)
        if (dim_equals(data->dim[d], 1))
            mask |= 1u << d;
    return mask;
}

static bool may_be_one(const struct type *data)
{
    for (int d = 0; d < data->rank; d++)
        if (!dim_is_int(data->dim[d], NULL) && data->dim[d]->lo <= 1 && data->dim[d]->hi >= 1)
            return true;
    return false;
}

void infer_squeeze(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK], *one = dim_int(g->alg, 1);
    unsigned mask;
    int n = axes_mask(g, node, data->rank, &mask), rank = 0;
    if (n == -1) {
        op_unknown_result(g, node, 0, data->dtype, data->rank - op_axes_count(g, node, 1));
        return;
    }
    if (n == -2 && may_be_one(data)) {
        const char *of = arena_printf(g->arena, "'%s' %s", node->in[0]->name, type_str(g->arena, data));
        op_undecided_by_type(g, data, arena_printf(g->arena, "%s: which dimensions of %s are 1 can't be told", node_where(g, node), of));
        return;
    }
    if (n == -2)
        mask = ones_mask(data);
    for (int d = 0; d < data->rank; d++)
        if (mask >> d & 1u)
            op_same_dim(g, node, data->dim[d], one, "a squeezed dimension and 1");
        else
            dim[rank++] = data->dim[d];
    op_result(g, node, 0, data->dtype, rank, dim);
}

void infer_unsqueeze(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0);
    const struct dim *const *axes, *dim[2 * MAX_RANK];
    int n = op_size_operand(g, node, 1, "axes", &axes), from = 0;
    unsigned mask;
    if (n == -1) {
        op_unknown_result(g, node, 0, data->dtype, data->rank + op_axes_count(g, node, 1));
        return;
    }
    int rank = data->rank + n;
    if (n > MAX_RANK || rank > MAX_RANK)
        fail("%s: the result has %d dimensions, at most %d are handled", node_where(g, node), rank, MAX_RANK);
    if (axes_mask(g, node, rank, &mask) < 0)
        fail("%s: the axes of Unsqueeze are not known at compile time", node_where(g, node));
    for (int d = 0; d < rank; d++)
        dim[d] = mask >> d & 1u ? dim_int(g->alg, 1) : data->dim[from++];
    op_result(g, node, 0, data->dtype, rank, dim);
}

void infer_flatten(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0);
    const struct dim *dim[2] = {dim_int(g->alg, 1), dim_int(g->alg, 1)};
    int64_t axis = attr_int(node, "axis");
    if (axis < -data->rank || axis > data->rank)
        fail("%s: axis %lld is out of range for %d dimensions", node_where(g, node), (long long)axis, data->rank);
    axis = axis < 0 ? axis + data->rank : axis;
    for (int d = 0; d < data->rank; d++)
        dim[d >= axis] = dim_mul(g->alg, dim[d >= axis], data->dim[d]);
    op_result(g, node, 0, data->dtype, 2, dim);
}

/* ---- targets given as a vector ------------------------------------------------------------------------------------------------ */

/* The rank of a tensor whose shape operand i gives: the operand's static length. */
static int shape_length(const struct graph *g, const struct node *node, int i)
{
    const struct type *shape = op_operand(g, node, i);
    int64_t n;
    if (shape->rank != 1 || !dim_is_int(shape->dim[0], &n))
        fail("%s: '%s' must be a shape of known length but is %s", node_where(g, node), node->in[i]->name, type_str(g->arena, shape));
    if (n > MAX_RANK)
        fail("%s: the result has %lld dimensions, at most %d are handled", node_where(g, node), (long long)n, MAX_RANK);
    return (int)n;
}

static void check_nonnegative(const struct graph *g, const struct node *node, int n, const struct dim *const *at)
{
    int64_t k;
    for (int i = 0; i < n; i++)
        if (dim_is_int(at[i], &k) && k < 0)
            fail("%s: size %d of the result is %lld, expected 0 or more", node_where(g, node), i, (long long)k);
}

void infer_expand(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0);
    struct type target = node->out[0]->type;
    if (node_operand(node, 1)) {
        const struct dims_value *shape = op_dims(g, node->in[1]);
        int n = shape_length(g, node, 1);
        if (!shape) {
            op_unknown_result(g, node, 0, data->dtype, n > data->rank ? n : data->rank);
            return;
        }
        check_nonnegative(g, node, n, shape->at);
        target.rank = n;
        for (int d = 0; d < n; d++)
            target.dim[d] = shape->at[d];
    }
    const struct type *both[2] = {data, &target};
    struct type out = op_broadcast(g, node, 2, both);
    op_result(g, node, 0, data->dtype, out.rank, out.dim);
}

void value_expand(struct graph *g, struct node *node)
{
    const struct dims_value *from = op_dims(g, node->in[0]);
    const struct type *out = &node->out[0]->type;
    int64_t n = 1;
    if (!from || out->rank > 1 || (out->rank == 1 && !dim_is_int(out->dim[0], &n)) || n > MOST_ENTRIES || from->n == 0)
        return;
    const struct dim **at = op_set_dims(g, node, (int)n);
    for (int i = 0; i < n; i++)
        at[i] = from->at[from->n == 1 ? 0 : i];
}

void infer_constantofshape(struct graph *g, struct node *node)
{
    const struct constant *c = node_attr(node, "value")->tensor;
    enum dtype dtype = c ? c->dtype : DT_F32;
    if (dtype == DT_STRING)
        fail("%s: its value is a string, expected a number or a boolean", node_where(g, node));
    if (node->nin == 0 || !node->in[0]) {
        struct type recorded = node->out[0]->type;
        op_result(g, node, 0, dtype, recorded.rank, recorded.dim);
        return;
    }
    const struct dims_value *shape = op_dims(g, node->in[0]);
    int n = shape_length(g, node, 0);
    if (!shape) {
        op_unknown_result(g, node, 0, dtype, n);
        return;
    }
    check_nonnegative(g, node, n, shape->at);
    op_result(g, node, 0, dtype, n, shape->at);
}

void value_constantofshape(struct graph *g, struct node *node)
{
    struct constant *c = node_attr(node, "value")->tensor;
    const struct type *out = &node->out[0]->type;
    int64_t n = 1;
    if (!op_carries_dims(out->dtype) || out->rank > 1 || (out->rank == 1 && !dim_is_int(out->dim[0], &n)) || n > MOST_ENTRIES)
        return;
    const struct dim *fill = dim_int(g->alg, c && constant_elements(c) > 0 ? constant_int(c, "value", 0) : 0);
    const struct dim **at = op_set_dims(g, node, (int)n);
    for (int i = 0; i < n; i++)
        at[i] = fill;
}

/* ---- Dims: expressions as a tensor ------------------------------------------------------------------------------------------ */

void infer_dims(struct graph *g, struct node *node)
{
    const struct dim **at;
    int n = attr_dims(node, "dims", &at);
    const struct dim *length = dim_int(g->alg, n);
    if (attr_int(node, "scalar") && n != 1)
        fail("%s: a scalar has one entry, found %d", node_where(g, node), n);
    op_result(g, node, 0, (enum dtype)attr_int(node, "to"), attr_int(node, "scalar") ? 0 : 1, &length);
}

void value_dims(struct graph *g, struct node *node)
{
    const struct dim **from;
    int n = attr_dims(node, "dims", &from);
    if (!op_carries_dims(node->out[0]->type.dtype))
        return;
    const struct dim **at = op_set_dims(g, node, n);
    for (int i = 0; i < n; i++)
        at[i] = dim_rewrite(g->alg, from[i]);
}

/* ---- rules -------------------------------------------------------------------------------------------------------------------- */

struct rule *rule_replicated(struct graph *g, const struct node *node)
{
    (void)g;
    (void)node;
    return NULL;
}
