/* index_backward: gradients of lookups are sums at the looked-up indices; gradients of scatters are lookups. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

#include <string.h>

static struct value *scatter(struct backward *b, const char *op, struct value *data, struct value *index, struct value *updates, int axis,
                             const char *reduction)
{
    struct node *node = back_node(b, op, 3, (struct value *[]){data, index, updates});
    if (axis >= 0)
        attr_set_int(node, "axis", axis);
    attr_set_string(node, "reduction", reduction);
    return back_infer(b, node);
}

static struct value *look_up(struct backward *b, const char *op, struct value *data, struct value *index, int axis)
{
    struct node *node = back_node(b, op, 2, (struct value *[]){data, index});
    if (axis >= 0)
        attr_set_int(node, "axis", axis);
    return back_infer(b, node);
}

/* The gathered dimension comes first in the table; the gradient has the dimensions of the indices first. */
void backward_gather(struct backward *b)
{
    const struct node *node = b->l.node;
    const struct type *data = &node->in[0]->type, *index = &node->in[1]->type;
    int axis = op_axis(b->l.g, node, attr_int(node, "axis"), data->rank), rank = node->out[0]->type.rank;
    int rows_first[MAX_RANK], back[MAX_RANK], n = 0;
    struct type table = *data;
    if (!back_wants(b, 0))
        return;
    for (int d = 0; d < index->rank; d++)
        rows_first[n++] = axis + d;
    for (int d = 0; d < rank; d++)
        if (d < axis || d >= axis + index->rank)
            rows_first[n++] = d;
    for (int d = 0; d < data->rank; d++) {
        int from = d == 0 ? axis : d <= axis ? d - 1 : d;
        table.dim[d] = data->dim[from];
        back[from] = d;
    }
    struct value *g = axis == 0 ? back_dy(b) : back_transpose(b, back_dy(b), rows_first);
    struct value *at = lower_unsqueeze(&b->l, "row", node->in[1], index->rank, 1);
    g = scatter(b, "ScatterND", back_zeros(b, &table), at, g, -1, "add");
    back_to(b, 0, axis == 0 ? g : back_transpose(b, g, back));
}

void backward_gathernd(struct backward *b)
{
    const struct node *node = b->l.node;
    if (attr_int(node, "batch_dims") != 0)
        fail("%s: no gradient passes this node: the gradient of batched tuples is not supported", node_where(b->l.g, node));
    back_to(b, 0, scatter(b, "ScatterND", back_zeros(b, &node->in[0]->type), node->in[1], back_dy(b), -1, "add"));
}

void backward_gatherelements(struct backward *b)
{
    const struct node *node = b->l.node;
    int axis = op_axis(b->l.g, node, attr_int(node, "axis"), node->in[0]->type.rank);
    back_to(b, 0, scatter(b, "ScatterElements", back_zeros(b, &node->in[0]->type), node->in[1], back_dy(b), axis, "add"));
}

/* Overwritten elements get no gradient. */
static void scattered(struct backward *b, const char *scatters, const char *looks_up, int axis)
{
    const struct node *node = b->l.node;
    bool adds = strcmp(attr_string(node, "reduction"), "add") == 0;
    if (!adds && strcmp(attr_string(node, "reduction"), "none") != 0)
        fail("%s: no gradient passes this node: the gradient is supported only for reduction 'none' and 'add'", node_where(b->l.g, node));
    if (back_wants(b, 0))
        back_to(b, 0, adds ? back_dy(b) : scatter(b, scatters, back_dy(b), node->in[1], back_zeros(b, &node->in[2]->type), axis, "none"));
    if (back_wants(b, 2))
        back_to(b, 2, look_up(b, looks_up, back_dy(b), node->in[1], axis));
}

void backward_scatternd(struct backward *b)
{
    scattered(b, "ScatterND", "GatherND", -1);
}

void backward_scatterelements(struct backward *b)
{
    const struct node *node = b->l.node;
    scattered(b, "ScatterElements", "GatherElements", op_axis(b->l.g, node, attr_int(node, "axis"), node->in[0]->type.rank));
}

/* The gradient of the selected elements. */
void backward_topk(struct backward *b)
{
    const struct node *node = b->l.node;
    int axis = op_axis(b->l.g, node, attr_int(node, "axis"), node->in[0]->type.rank);
    struct value *zeros = back_zeros(b, &node->in[0]->type);
    back_to(b, 0, scatter(b, "ScatterElements", zeros, back_result(b, 1), back_dy(b), axis, "none"));
}

/* Reverses the gradient again. */
void backward_reversesequence(struct backward *b)
{
    const struct node *node = b->l.node;
    struct node *made = back_node(b, "ReverseSequence", 2, (struct value *[]){back_dy(b), node->in[1]});
    attr_copy(made, node);
    back_to(b, 0, back_infer(b, made));
}
