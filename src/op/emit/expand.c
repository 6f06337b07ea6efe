/* expand: the file form of a node. Ops that exist only inside tpc become standard ops, an exporter's norms the standard norm; then
 * size_operands_restore restores every op's size operands with shape_tensor.c.
 *
 * All decisions are the same on every rank, from splits and all ranks' types, never from one rank's extents: rank files differ only in
 * constants, types and size attributes. */
#include "op/emit/emit.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

#include <string.h>

/* ---- Dims, Repeat, Term ------------------------------------------------------------------------------------------------------- */

void expand_dims(struct graph *g, struct node *node)
{
    const struct dim **dims;
    int n = attr_dims(node, "dims", &dims);
    bool as_scalar = attr_int(node, "scalar") != 0;
    require(!as_scalar || n == 1);
    struct value *v = shape_tensor_as(g, shape_tensor(g, n, dims), (enum dtype)attr_int(node, "to"), as_scalar);
    expand_unary(g, "Identity", node->name, v, node->out[0]);
}

/* Each rank has its own index under the same name. */
static void repeat_by_index(struct graph *g, struct node *node, int axis)
{
    const int64_t *index;
    int n = attr_ints(g, node, "index", &index);
    struct value *at = graph_ints(g, expand_name(g, node, "index"), n, index);
    at->placed = true;
    expand_gather(g, node->name, node->in[0], at, axis, node->out[0]);
}

/* [.., n, ..] -> [.., n, 1, ..] -> [.., n, repeats, ..] -> [.., n * repeats, ..] */
static void repeat_evenly(struct graph *g, struct node *node, int axis)
{
    struct type wide = node->in[0]->type;
    require(wide.rank < MAX_RANK);
    memmove(&wide.dim[axis + 2], &wide.dim[axis + 1], (size_t)(wide.rank - axis - 1) * sizeof wide.dim[0]);
    wide.rank++;
    wide.dim[axis + 1] = dim_int(g->alg, 1);
    struct value *v = expand_shaped(g, "Reshape", expand_name(g, node, "unsqueeze"), node->in[0], NULL, &wide);
    wide.dim[axis + 1] = dim_int(g->alg, attr_int(node, "repeats"));
    v = expand_shaped(g, "Expand", expand_name(g, node, "expand"), v, NULL, &wide);
    expand_shaped(g, "Reshape", node->name, v, node->out[0], &node->out[0]->type);
}

void expand_repeat(struct graph *g, struct node *node)
{
    int axis = op_axis(g, node, attr_int(node, "axis"), node->in[0]->type.rank);
    if (attr_is_set(node, "index"))
        repeat_by_index(g, node, axis);
    else
        repeat_evenly(g, node, axis);
}

/* A replicated value as a partial one: rank 0 keeps it, the others have zero. */
void expand_term(struct graph *g, struct node *node)
{
    uint8_t *first = NEW(g->arena, uint8_t);
    *first = g->rank <= 0;
    struct value *keep = expand_scalar(g, "tpc/first", DT_BOOL, first);
    expand_where(g, node->name, keep, node->in[0], expand_zero(g, node->in[0]->type.dtype), node->out[0]);
}

/* ---- norms of one exporter ------------------------------------------------------------------------------------------------------ */

static void rms_norm(struct graph *g, const struct node *node, struct value *x, struct value *scale)
{
    struct node *norm = expand_append(g, "RMSNormalization", node->name, 2, (struct value *[]){x, scale}, node->out[0], NULL);
    node_attr(norm, "epsilon")->f = attr_float(node, "epsilon");
    op_infer(g, norm);
}

void expand_simplified(struct graph *g, struct node *node)
{
    int rank = node->in[0]->type.rank;
    if (op_axis(g, node, attr_int(node, "axis"), rank) == rank - 1 && attr_int(node, "stash_type") == 1 && !node_result(node, 1))
        rms_norm(g, node, node->in[0], node->in[1]);
    else
        graph_append(g, node);
}

void expand_skipsimplified(struct graph *g, struct node *node)
{
    if (node_result(node, 1) || node_result(node, 2)) {
        graph_append(g, node);
        return;
    }
    struct value *sum = node_result(node, 3), *bias = node_operand(node, 3);
    struct value *x = expand_binary(g, "Add", expand_name(g, node, bias ? "skip" : "sum"), node->in[0], node->in[1], bias ? NULL : sum);
    if (bias)
        x = expand_binary(g, "Add", expand_name(g, node, "sum"), x, bias, sum);
    rms_norm(g, node, x, node->in[2]);
}

/* ---- a part of an image ----------------------------------------------------------------------------------------------------------- */

/* The dimensions in which a Resize of known sizes omits positions, the same on every rank. */
static void cut_places(struct graph *g, const struct node *node, struct value *x, const int64_t *crop)
{
    const struct type *y = &node->out[0]->type;
    const struct dim *start[MAX_RANK], *end[MAX_RANK], *axis[MAX_RANK];
    int n = 0;
    for (int d = 0; d < y->rank; d++) {
        if (!dim_is_int(y->dim[d], NULL))
            continue;
        start[n] = dim_int(g->alg, crop[d]);
        end[n] = dim_add(g->alg, start[n], y->dim[d]);
        axis[n++] = dim_int(g->alg, d);
    }
    struct node *cut = expand_append(g, "Slice", node->name, 1, &x, node->out[0], NULL);
    attr_set_dims(g, cut, "starts", n, start);
    attr_set_dims(g, cut, "ends", n, end);
    attr_set_dims(g, cut, "axes", n, axis);
}

void expand_resize(struct graph *g, struct node *node)
{
    struct type whole = node->out[0]->type;
    const int64_t *crop;
    if (!attr_is_set(node, "crop")) {
        graph_append(g, node);
        return;
    }
    require(attr_ints(g, node, "crop", &crop) == 2 * whole.rank);
    for (int d = 0; d < whole.rank; d++)
        whole.dim[d] = dim_add(g->alg, whole.dim[d], dim_int(g->alg, crop[d] + crop[whole.rank + d]));
    struct node *all = expand_append(g, "Resize", expand_name(g, node, "whole"), node->nin, node->in, NULL, &whole);
    attr_copy(all, node);
    node_attr(all, "crop")->set = false;
    cut_places(g, node, all->out[0], crop);
}

void expand_nodes(struct graph *g, unsigned but)
{
    struct node **old = g->nodes.at;
    int n = g->nodes.n;
    g->nodes.at = NULL;
    g->nodes.n = g->nodes.cap = 0;
    for (int i = 0; i < n; i++)
        if (old[i]->op && old[i]->op->expand && !(old[i]->op->flags & but))
            old[i]->op->expand(g, old[i]);
        else
            graph_append(g, old[i]);
    graph_sort(g);
}
