/* depth_space: DepthToSpace and SpaceToDepth: blocks of b x b positions in space are b * b channels in depth. With mode CRD a channel's
 * positions are adjacent. The channels c and the coarse positions h, w are free; the positions i, j of a block are never split; the
 * attribute gives their number. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

static int64_t block_size(const struct graph *g, const struct node *node)
{
    int64_t b = attr_is_set(node, "blocksize") ? attr_int(node, "blocksize") : 0;
    if (b < 1 || b > INT32_MAX)
        fail("%s: attribute 'blocksize' is %lld, expected a positive number", node_where(g, node), (long long)b);
    return b;
}

static bool is_crd(const struct graph *g, const struct node *node)
{
    const char *mode = attr_string(node, "mode");
    if (strcmp(mode, "CRD") != 0 && strcmp(mode, "DCR") != 0)
        fail("%s: attribute 'mode' is '%s', expected DCR or CRD", node_where(g, node), mode);
    return strcmp(mode, "CRD") == 0;
}

/* size / by, which must be an integer. */
static const struct dim *divided(struct graph *g, struct node *node, const struct dim *size, int64_t by, const char *what)
{
    const struct dim *whole = dim_quotient(g->alg, size, dim_int(g->alg, by));
    if (whole)
        return whole;
    whole = dim_div(g->alg, size, dim_int(g->alg, by));
    op_same_dim(g, node, size, dim_mul(g->alg, whole, dim_int(g->alg, by)), what);
    return whole;
}

void infer_depthtospace(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 4, 4);
    const struct type *x = op_operand(g, node, 0);
    int64_t b = block_size(g, node);
    is_crd(g, node);
    const struct dim *by = dim_int(g->alg, b),
                     *dim[4] = {x->dim[0], divided(g, node, x->dim[1], b * b, "the channels and whole blocks of them")};
    for (int d = 2; d < 4; d++)
        dim[d] = dim_mul(g->alg, x->dim[d], by);
    op_result(g, node, 0, x->dtype, 4, dim);
}

void infer_spacetodepth(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 4, 4);
    const struct type *x = op_operand(g, node, 0);
    int64_t b = block_size(g, node);
    is_crd(g, node);
    const struct dim *dim[4] = {x->dim[0], dim_mul(g->alg, x->dim[1], dim_int(g->alg, b * b))};
    for (int d = 2; d < 4; d++)
        dim[d] = divided(g, node, x->dim[d], b, "a spatial dimension and whole blocks of it");
    op_result(g, node, 0, x->dtype, 4, dim);
}
