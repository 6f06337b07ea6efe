/* sample: images sampled at positions given by other operands: GridSample, RoiAlign, DeformConv. Images, channels and positions are free;
 * pixels are read from anywhere. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

#include <string.h>

void infer_gridsample(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 3, MAX_RANK);
    const struct type *x = op_operand(g, node, 0), *grid = op_operand(g, node, 1);
    const struct dim *dim[MAX_RANK];
    op_need_rank(g, node, 1, x->rank, x->rank);
    if (!dtype_is_float(grid->dtype))
        fail("%s: the grid '%s' is %s, expected floating point", node_where(g, node), node->in[1]->name, dtype_name(grid->dtype));
    op_same_dim(g, node, grid->dim[x->rank - 1], dim_int(g->alg, x->rank - 2), "the coordinates of a place and the spatial dimensions");
    dim[0] = op_same_dim(g, node, x->dim[0], grid->dim[0], "the batch dimensions of X and grid");
    dim[1] = x->dim[1];
    for (int d = 2; d < x->rank; d++)
        dim[d] = grid->dim[d - 1];
    op_result(g, node, 0, x->dtype, x->rank, dim);
}

void infer_roialign(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 4, 4);
    op_need_rank(g, node, 1, 2, 2);
    op_need_rank(g, node, 2, 1, 1);
    op_index_type(g, node, 2);
    const struct type *x = op_operand(g, node, 0), *rois = op_operand(g, node, 1);
    int64_t rows = attr_int(node, "output_height"), columns = attr_int(node, "output_width");
    if (rows < 1 || columns < 1 || rows > INT32_MAX || columns > INT32_MAX || attr_int(node, "sampling_ratio") < 0 ||
        attr_int(node, "sampling_ratio") > 1024)
        fail("%s: regions of %lld x %lld bins with sampling_ratio %lld, expected positive numbers", node_where(g, node), (long long)rows,
             (long long)columns, (long long)attr_int(node, "sampling_ratio"));
    op_same_dim(g, node, rois->dim[1], dim_int(g->alg, 4), "the entries of a region and the corners of a box");
    const struct dim *n = op_same_dim(g, node, rois->dim[0], op_operand(g, node, 2)->dim[0], "the regions and their images");
    op_result(g, node, 0, x->dtype, 4, (const struct dim *[]){n, x->dim[1], dim_int(g->alg, rows), dim_int(g->alg, columns)});
}

/* ---- DeformConv ------------------------------------------------------------------------------------------------------------------- */

static struct window deform_window(const struct graph *g, const struct node *node)
{
    const struct type *w = op_operand(g, node, 1);
    int64_t kernel[MOST_SPATIAL];
    for (int i = 0; i < 2; i++)
        if (!dim_is_int(w->dim[2 + i], &kernel[i]))
            fail("%s: the window of weight '%s' must have known positive sizes but it is %s", node_where(g, node), node->in[1]->name,
                 type_str(g->arena, w));
    return window_read(g, node, 2, kernel);
}

/* Operand i must have `each` numbers for every tap and every group, at every result position. */
static void need_places(struct graph *g, struct node *node, int i, int64_t each, const struct dim *const *out, const char *what)
{
    op_need_rank(g, node, i, 4, 4);
    const struct type *t = op_operand(g, node, i);
    op_same_dim(g, node, t->dim[0], out[0], what);
    op_same_dim(g, node, t->dim[1], dim_int(g->alg, each), what);
    op_same_dim(g, node, t->dim[2], out[2], what);
    op_same_dim(g, node, t->dim[3], out[3], what);
}

void infer_deformconv(struct graph *g, struct node *node)
{
    for (int i = 0; i < 3; i++)
        op_need_rank(g, node, i, 4, 4);
    const struct type *x = op_operand(g, node, 0), *w = op_operand(g, node, 1);
    op_same_dtype(g, node, 0, 1);
    op_same_dtype(g, node, 0, 2);
    struct window win = deform_window(g, node);
    int64_t group = attr_int(node, "group"), sets = attr_int(node, "offset_group"), channels, taps;
    if (group < 1 || sets < 1 || (dim_is_int(x->dim[1], &channels) && channels % sets) || !i64_mul(win.kernel[0], win.kernel[1], &taps) ||
        !i64_mul(taps, sets, &taps) || taps > INT32_MAX)
        fail("%s: %s cannot be in %lld groups with %lld groups of offsets", node_where(g, node), type_str(g->arena, x), (long long)group,
             (long long)sets);
    op_same_dim(g, node, x->dim[1], dim_mul(g->alg, w->dim[1], dim_int(g->alg, group)), "the channels of X and W");
    const struct dim *out[4] = {x->dim[0], w->dim[0], window_result(g, node, &win, 0, x->dim[2]),
                                window_result(g, node, &win, 1, x->dim[3])};
    need_places(g, node, 2, 2 * taps, out, "the offsets and the places of the result");
    if (node_operand(node, 3)) {
        op_need_rank(g, node, 3, 1, 1);
        op_same_dim(g, node, op_operand(g, node, 3)->dim[0], w->dim[0], "the channels of B and W");
    }
    if (node_operand(node, 4))
        need_places(g, node, 4, taps, out, "the mask and the places of the result");
    op_result(g, node, 0, x->dtype, 4, out);
}
