/* axis: ops along one axis, line by line: GatherElements, ScatterElements, ArgMax, ArgMin, TopK, OneHot. The axis is split by lowerings
 * (axis_lower.c); every other dimension is free if operands agree on it. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

static int the_axis(const struct graph *g, const struct node *node, int rank)
{
    return op_axis(g, node, attr_int(node, "axis"), rank);
}

/* ---- inference ------------------------------------------------------------------------------------------------------------------- */

void infer_gatherelements(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0), *index = op_operand(g, node, 1);
    op_index_type(g, node, 1);
    op_need_rank(g, node, 1, data->rank, data->rank);
    the_axis(g, node, data->rank);
    op_result(g, node, 0, data->dtype, index->rank, index->dim);
}

void infer_scatterelements(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0), *index = op_operand(g, node, 1), *update = op_operand(g, node, 2);
    op_index_type(g, node, 1);
    op_need_rank(g, node, 1, data->rank, data->rank);
    op_need_rank(g, node, 2, data->rank, data->rank);
    op_same_dtype(g, node, 0, 2);
    the_axis(g, node, data->rank);
    for (int d = 0; d < data->rank; d++)
        op_same_dim(g, node, index->dim[d], update->dim[d], "the indices and the updates");
    op_result(g, node, 0, data->dtype, data->rank, data->dim);
}

void infer_arg(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK];
    int axis = the_axis(g, node, x->rank), rank = 0;
    for (int d = 0; d < x->rank; d++)
        if (d != axis)
            dim[rank++] = x->dim[d];
        else if (attr_int(node, "keepdims"))
            dim[rank++] = dim_int(g->alg, 1);
    op_result(g, node, 0, DT_I64, rank, dim);
}

void infer_topk(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *const *k = NULL, *dim[MAX_RANK];
    int axis = the_axis(g, node, x->rank), n = op_size_operand(g, node, 1, "k", &k);
    if (n >= 0 && n != 1)
        fail("%s: K has %d entries, expected 1", node_where(g, node), n);
    const int first = node_result(node, 0) ? 0 : node->nout - 1; /* both results have the same number */
    for (int i = 0; i < node->nout; i++) {
        memcpy(dim, x->dim, sizeof dim);
        dim[axis] = n == 1 ? k[0] : op_unknown_dim(g, node, first, axis);
        op_result(g, node, i, i == 0 ? x->dtype : DT_I64, x->rank, dim);
    }
}

void infer_onehot(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *const *depth = NULL, *dim[MAX_RANK + 1];
    int axis = the_axis(g, node, x->rank + 1), n = op_size_operand(g, node, 1, "depth", &depth);
    if (n >= 0 && n != 1)
        fail("%s: depth has %d entries, expected 1", node_where(g, node), n);
    for (int d = 0; d < x->rank; d++)
        dim[d < axis ? d : d + 1] = x->dim[d];
    int64_t whole; /* depth may be a float */
    bool known = n < 0 && node->nin > 1 && op_whole_constant(node->in[1], &whole);
    dim[axis] = n == 1 ? depth[0] : known ? dim_int(g->alg, whole) : op_unknown_dim(g, node, 0, axis);
    op_result(g, node, 0, op_operand(g, node, 2)->dtype, x->rank + 1, dim);
}

/* ---- rules --------------------------------------------------------------------------------------------------------------------------- */

/* An indexed dimension: split by a lowering. */
#define POINTED (FACTOR_LOWERED | FACTOR_POSITION)

/* Indices and result have the same dimensions. A dimension other than the axis is shared with the data if it has the same size there. */
struct rule *rule_gatherelements(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *data = &node->in[0]->type, *index = &node->in[1]->type;
    int axis = the_axis(g, node, data->rank);
    for (int d = 0; d < data->rank; d++) {
        bool shared = d != axis && data->dim[d] == index->dim[d];
        int f = rule_numbered(g, r, "i", d, index->dim[d], shared || d == axis ? 0 : FACTOR_REPLICATED);
        int v = shared ? f : rule_numbered(g, r, "v", d, data->dim[d], d == axis ? POINTED : FACTOR_REPLICATED | FACTOR_DROPPED);
        if (d == axis)
            r->factor[v].red = RED_SUM;
        rule_put(g, &r->in[0], d, 0, v);
        rule_put(g, &r->in[1], d, 0, f);
        rule_put(g, &r->out[0], d, 0, f);
    }
    rule_linear(r, 1);
    r->moves = true;
    return r;
}

/* Data and result have the same dimensions; replaced or added elements are linear in data and updates together. */
struct rule *rule_scatterelements(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *data = &node->in[0]->type, *index = &node->in[1]->type;
    int axis = the_axis(g, node, data->rank);
    for (int d = 0; d < data->rank; d++) {
        bool shared = d != axis && data->dim[d] == index->dim[d];
        int f = rule_numbered(g, r, "v", d, data->dim[d], shared ? 0 : d == axis ? POINTED : FACTOR_REPLICATED);
        int k = shared ? f : rule_numbered(g, r, "i", d, index->dim[d], FACTOR_REPLICATED | FACTOR_DROPPED);
        rule_put(g, &r->in[0], d, 0, f);
        rule_put(g, &r->in[1], d, 0, k);
        rule_put(g, &r->in[2], d, 0, k);
        rule_put(g, &r->out[0], d, 0, f);
    }
    rule_scatter(r, node);
    return r;
}

/* The dimension of attribute axis; none without it. */
uint32_t over_axis(struct graph *g, const struct node *node)
{
    int rank = node->in[0]->type.rank;
    return rank && attr_is_set(node, "axis") ? UINT32_C(1) << the_axis(g, node, rank) : 0;
}

/* The number of candidates per rank must be known; they have one more dimension. */
struct rule *rule_topk(struct graph *g, const struct node *node)
{
    const struct type *x = &node->in[0]->type;
    int axis = the_axis(g, node, x->rank);
    const struct dim **k;
    int64_t n;
    bool counted = attr_dims(node, "k", &k) == 1 && dim_is_int(k[0], &n) && n > 0 && dim_is_int(x->dim[axis], NULL);
    bool lowers = counted && x->rank < MAX_RANK && x->dtype != DT_U64;
    return rule_template(g, node, UINT32_C(1) << axis,
                         lowers ? "([n a]...) -> ([!k a]...)*  n*: lowered ordered dropped" : "([!n a]...) -> ([!k a]...)*");
}

struct rule *rule_onehot(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *x = &node->in[0]->type, *values = &node->in[2]->type;
    int axis = the_axis(g, node, x->rank + 1);
    for (int d = 0; d < x->rank; d++) {
        int f = rule_numbered(g, r, "a", d, x->dim[d], 0);
        rule_put(g, &r->in[0], d, 0, f);
        rule_put(g, &r->out[0], d < axis ? d : d + 1, 0, f);
    }
    rule_put(g, &r->out[0], axis, 0, rule_factor(g, r, "depth", node->out[0]->type.dim[axis], POINTED));
    for (int d = 0; d < values->rank; d++)
        rule_put(g, &r->in[2], d, 0, rule_numbered(g, r, "v", d, values->dim[d], FACTOR_REPLICATED | FACTOR_DROPPED));
    if (dtype_is_float(values->dtype))
        rule_linear(r, 4);
    r->increasing = 4;
    return r;
}
