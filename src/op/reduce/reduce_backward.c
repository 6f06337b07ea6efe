/* reduce_backward: gradients of reductions and running sums. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

/* ---- reductions ----------------------------------------------------------------------------------------------------------------- */

/* The reduced dimensions of the operand: in canonical form those of attribute axes, all without it. */
static void reduced_axes(const struct backward *b, bool *reduced)
{
    const struct node *node = b->l.node;
    int rank = node->in[0]->type.rank;
    const struct dim *const *axes = NULL;
    int n = op_size_operand(b->l.g, node, 1, "axes", &axes);
    for (int d = 0; d < rank; d++)
        reduced[d] = n <= 0 && attr_int(node, "noop_with_empty_axes") == 0;
    for (int i = 0; i < n; i++)
        reduced[op_axis(b->l.g, node, axes[i]->k, rank)] = true;
}

/* A result of the reduction, with ones for the removed dimensions. */
static struct value *as_kept(struct backward *b, struct value *y)
{
    bool reduced[MAX_RANK];
    struct type type = b->l.node->in[0]->type;
    reduced_axes(b, reduced);
    for (int d = 0; d < type.rank; d++)
        if (reduced[d])
            type.dim[d] = dim_int(b->l.g->alg, 1);
    return back_reshape(b, y, &type);
}

void backward_reducesum(struct backward *b)
{
    back_to(b, 0, as_kept(b, back_dy(b)));
}

void backward_reducemean(struct backward *b)
{
    bool reduced[MAX_RANK];
    const struct type *type = &b->l.node->in[0]->type;
    const struct dim *count = dim_int(b->l.g->alg, 1);
    reduced_axes(b, reduced);
    for (int d = 0; d < type->rank; d++)
        if (reduced[d])
            count = dim_mul(b->l.g->alg, count, type->dim[d]);
    struct value *n = lower_cast(&b->l, "count.narrow", lower_size(&b->l, "count", count, DT_F32), type->dtype);
    back_to(b, 0, back_binary(b, "Div", as_kept(b, back_dy(b)), n));
}

/* In equal parts to all elements that are the largest, or the least. */
void backward_reduceextreme(struct backward *b)
{
    bool reduced[MAX_RANK];
    struct value *x = back_operand(b, 0), *is = back_binary(b, "Equal", x, as_kept(b, b->l.node->out[0]));
    struct value *count = lower_cast(&b->l, "count", is, x->type.dtype);
    reduced_axes(b, reduced);
    for (int d = 0; d < x->type.rank; d++)
        if (reduced[d])
            count = back_sum(b, count, d, d + 1, true);
    struct value *each = back_expand(b, back_binary(b, "Div", as_kept(b, back_dy(b)), count), &x->type);
    back_to(b, 0, back_chosen(b, is, each));
}

void backward_cumsum(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value *dy = back_dy(b);
    struct node *sum = back_node(b, "CumSum", 1, &dy);
    const struct dim **axis;
    int n = attr_dims(node, "axis", &axis);
    attr_set_dims(b->l.g, sum, "axis", n, axis);
    attr_set_int(sum, "exclusive", attr_int(node, "exclusive"));
    attr_set_int(sum, "reverse", !attr_int(node, "reverse"));
    back_to(b, 0, back_infer(b, sum));
}
