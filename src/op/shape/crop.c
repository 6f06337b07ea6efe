/* crop: CenterCropPad: crops some dimensions centrally, or pads them with zeros. These are never split, the others are free. AffineGrid: (b
 * !i !j) -> (b !y.. !k), the positions to which a matrix moves the pixels of an image. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

/* ---- CenterCropPad ---------------------------------------------------------------------------------------------------------------- */

/* The dimensions that shape gives, in its order; returns their number. */
static int crop_axes(const struct graph *g, const struct node *node, int rank, int axis[MAX_RANK])
{
    const int64_t *at = NULL;
    int n = attr_is_set(node, "axes") ? attr_ints(g, node, "axes", &at) : rank;
    if (n > rank)
        fail("%s: attribute 'axes' has %d entries for %d dimensions", node_where(g, node), n, rank);
    for (int i = 0; i < n; i++)
        axis[i] = at ? op_axis(g, node, at[i], rank) : i;
    op_distinct_axes(g, node, n, axis, "cropped or padded");
    return n;
}

void infer_centercroppad(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *const *size = NULL, *dim[MAX_RANK];
    int axis[MAX_RANK], n = crop_axes(g, node, x->rank, axis), known = op_size_operand(g, node, 1, "shape", &size);
    if (known >= 0 && known != n)
        fail("%s: shape has %d entries for %d dimensions", node_where(g, node), known, n);
    memcpy(dim, x->dim, sizeof dim);
    for (int i = 0; i < n; i++)
        dim[axis[i]] = known >= 0 ? size[i] : op_unknown_dim(g, node, 0, axis[i]);
    op_result(g, node, 0, x->dtype, x->rank, dim);
}

uint32_t over_cropped(struct graph *g, const struct node *node)
{
    const struct type *x = &node->in[0]->type, *y = &node->out[0]->type;
    int axis[MAX_RANK], n = crop_axes(g, node, x->rank, axis);
    uint32_t set = 0;
    for (int i = 0; i < n; i++)
        set |= (uint32_t)(x->dim[axis[i]] != y->dim[axis[i]]) << axis[i];
    return set;
}

/* ---- AffineGrid ------------------------------------------------------------------------------------------------------------------- */

/* Sizes of the image, batch and channels first; 4 or 5 of them, for theta of two or three dimensions. */
void infer_affinegrid(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, 3);
    const struct type *theta = op_operand(g, node, 0);
    const struct dim *const *size = NULL, *dim[MAX_RANK];
    int known = op_size_operand(g, node, 1, "size", &size);
    int64_t n = known - 2;
    if (known < 0 && !dim_is_int(theta->dim[1], &n))
        fail("%s: neither size nor the shape of theta '%s' is known, so the result has no fixed rank", node_where(g, node),
             node->in[0]->name);
    if (n != 2 && n != 3)
        fail("%s: the grid has %lld spatial dimensions, expected 2 or 3", node_where(g, node), (long long)n);
    op_same_dim(g, node, theta->dim[1], dim_int(g->alg, n), "the rows of theta and the spatial dimensions");
    op_same_dim(g, node, theta->dim[2], dim_int(g->alg, n + 1), "the columns of theta and the spatial dimensions");
    dim[0] = theta->dim[0];
    for (int d = 0; d < n; d++)
        dim[1 + d] = known >= 0 ? size[2 + d] : op_unknown_dim(g, node, 0, 1 + d);
    dim[n + 1] = dim_int(g->alg, n);
    op_result(g, node, 0, theta->dtype, (int)n + 2, dim);
}
