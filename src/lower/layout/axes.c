/* axes: the dimensions that a node names. */
#include "lower/lower.h"
#include "op/op.h"

int axes_named(struct graph *g, const struct node *n, int rank, int *axes)
{
    const struct dim **dims;
    const int64_t *ints;
    int64_t axis;
    bool set = attr_is_set(n, "axes"), dim = node_attr(n, "axes")->kind == ATTR_DIMS;
    int count = !set ? 0 : dim ? attr_dims(n, "axes", &dims) : attr_ints(g, n, "axes", &ints);
    if (count > rank || !op_resolved(n))
        return -1;
    if (count == 0 && op_is_onnx(n, "Slice"))
        rank = attr_dims(n, "starts", &dims);
    for (int i = 0; i < count; i++) {
        if (!dim)
            axis = ints[i];
        else if (!dim_is_int(dims[i], &axis))
            return -1;
        axes[i] = (int)(axis < 0 ? axis + rank : axis);
    }
    for (int i = 0; count == 0 && i < rank; i++)
        axes[i] = i;
    return count ? count : rank;
}
