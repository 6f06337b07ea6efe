/* col2im: Col2Im adds overlapping blocks up to images, (b (c !k) !l) -> (b c !h..). The sizes of image and block are operands, or dims
 * attributes in canonical form. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

/* The number of elements of a block; NULL: its sizes are data-dependent. */
static const struct dim *block_elements(struct graph *g, const struct node *node)
{
    const struct dim *const *block = NULL, *n = dim_int(g->alg, 1);
    int count = op_size_operand(g, node, 2, "block_shape", &block);
    for (int i = 0; i < count; i++)
        n = dim_mul(g->alg, n, block[i]);
    return count < 0 ? NULL : n;
}

/* The number of spatial dimensions of the image: the entries of image_shape, by its type if its data is unknown. */
static int image_rank(struct graph *g, const struct node *node, int known)
{
    int64_t n = known;
    if (known < 0 && (node->nin < 2 || !node->in[1] || node->in[1]->type.rank != 1 || !dim_is_int(node->in[1]->type.dim[0], &n)))
        fail("%s: image_shape must be a vector of known length", node_where(g, node));
    if (n < 1 || n > MAX_RANK - 2)
        fail("%s: image_shape has %lld entries, expected 1 to %d", node_where(g, node), (long long)n, MAX_RANK - 2);
    return (int)n;
}

static const struct dim *image_channels(struct graph *g, const struct node *node, const struct dim *all)
{
    const struct dim *block = block_elements(g, node), *exact = block ? dim_quotient(g->alg, all, block) : NULL;
    if (exact || !block)
        return exact ? exact : op_unknown_dim(g, node, 0, 1);
    if (dim_is_int(block, NULL) && dim_is_int(all, NULL))
        fail("%s: %s rows are no whole number of blocks of %s elements", node_where(g, node), dim_str(g->arena, all),
             dim_str(g->arena, block));
    return dim_equals(block, 0) ? op_unknown_dim(g, node, 0, 1) : dim_div(g->alg, all, block);
}

void infer_col2im(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, 3);
    const struct type *x = op_operand(g, node, 0);
    const struct dim *const *image = NULL, *dim[MAX_RANK];
    int known = op_size_operand(g, node, 1, "image_shape", &image), n = image_rank(g, node, known);
    dim[0] = x->dim[0];
    dim[1] = image_channels(g, node, x->dim[1]);
    for (int d = 0; d < n; d++)
        dim[2 + d] = known >= 0 ? image[d] : op_unknown_dim(g, node, 0, 2 + d);
    op_result(g, node, 0, x->dtype, 2 + n, dim);
}

struct rule *rule_col2im(struct graph *g, const struct node *node)
{
    const struct dim *block = block_elements(g, node);
    if (!block || dim_mul(g->alg, node->out[0]->type.dim[1], block) != node->in[0]->type.dim[1])
        return NULL;
    return rule_template(g, node, 0, "(b (c !k) !l)(x..)* -> (b c !h..)  k: dropped  l: dropped  linear 0 if float");
}
