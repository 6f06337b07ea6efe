/* random: random numbers must not depend on the number of ranks, so they are drawn replicated. */
#include "op/infer/infer.h"
#include "op/table/table.h"

/* From the attribute, or the operand's type. */
static enum dtype drawn_type(struct graph *g, const struct node *node)
{
    enum dtype t = attr_is_set(node, "dtype") && attr_int(node, "dtype") ? (enum dtype)attr_int(node, "dtype")
                                                                         : op_operand(g, node, 0)->dtype;
    if (!dtype_size(t) || t == DT_STRING)
        fail("%s: attribute 'dtype' is %lld, which is no element type that is handled", node_where(g, node),
             (long long)attr_int(node, "dtype"));
    return t;
}

void infer_randomlike(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    op_result(g, node, 0, drawn_type(g, node), x->rank, x->dim);
}

void infer_random(struct graph *g, struct node *node)
{
    const int64_t *size = NULL;
    const struct dim *dim[MAX_RANK];
    int n = attr_is_set(node, "shape") ? attr_ints(g, node, "shape", &size) : -1;
    if (n < 0 || n > MAX_RANK)
        fail("%s: attribute 'shape' is missing or has more than %d entries", node_where(g, node), MAX_RANK);
    for (int i = 0; i < n; i++) {
        if (size[i] < 0 || size[i] > INT32_MAX)
            fail("%s: attribute 'shape' has an entry %lld, which is out of range", node_where(g, node), (long long)size[i]);
        dim[i] = dim_int(g->alg, size[i]);
    }
    op_result(g, node, 0, drawn_type(g, node), n, dim);
}
