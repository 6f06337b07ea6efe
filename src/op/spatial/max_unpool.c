/* max_unpool: MaxUnpool: positions are indices into the whole tensor, so it runs replicated. */
#include "op/infer/infer.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

void infer_maxunpool(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, MAX_RANK);
    const struct type *x = op_operand(g, node, 0), *index = op_operand(g, node, 1);
    const struct dim *const *given = NULL, *dim[MAX_RANK] = {x->dim[0], x->dim[1]};
    const int64_t *kernel = NULL;
    int n = attr_is_set(node, "kernel_shape") ? attr_ints(g, node, "kernel_shape", &kernel) : 0;
    int known = op_size_operand(g, node, 2, "output_shape", &given);
    op_index_type(g, node, 1);
    op_need_rank(g, node, 1, x->rank, x->rank);
    for (int d = 0; d < x->rank; d++)
        op_same_dim(g, node, x->dim[d], index->dim[d], "the dimensions of X and I");
    if (n != x->rank - 2 || (known >= 0 && known != x->rank))
        fail("%s: %d sizes of a window and %d of the result do not fit %s", node_where(g, node), n, known, type_str(g->arena, x));
    struct window win = window_read(g, node, n, kernel);
    for (int d = 0; d < n; d++) {
        const struct dim *steps = dim_mul(g->alg, dim_sub(g->alg, x->dim[2 + d], dim_int(g->alg, 1)), dim_int(g->alg, win.stride[d]));
        dim[2 + d] = known >= 0 ? given[2 + d]
            : known == -1       ? op_unknown_dim(g, node, 0, 2 + d)
                                : dim_add(g->alg, steps, dim_int(g->alg, win.kernel[d] - win.pad[d] - win.pad[n + d]));
        int64_t size;
        if (dim_is_int(dim[2 + d], &size) && size < 0)
            fail("%s: spatial dimension %d of the result would have size %lld", node_where(g, node), d, (long long)size);
    }
    op_result(g, node, 0, x->dtype, x->rank, dim);
}
