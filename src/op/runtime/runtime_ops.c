/* runtime_ops: ops that tpc-run makes for speed: result types, and rules for running in blocks of rows or images. */
#include "ir/operands.h"
#include "kern/core/core.h"
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

/* Q, K and V of rank 4, each [batch, heads, rows, size], or [batch, rows, heads, size] if rows_first says so; the result likewise. */
void infer_fusedattention(struct graph *g, struct node *node)
{
    const int64_t *first;
    const struct type *q = &node->in[0]->type, *v = &node->in[2]->type;
    if (q->rank != 4 || v->rank != 4 || attr_ints(g, node, "rows_first", &first) != 4)
        bug("%s is not well formed", node_where(g, node));
    const struct dim *heads = q->dim[first[0] ? 2 : 1], *rows = q->dim[first[0] ? 1 : 2];
    const struct dim *dim[4] = {q->dim[0], first[3] ? rows : heads, first[3] ? heads : rows, v->dim[3]};
    op_result(g, node, 0, q->dtype, 4, dim);
}

static void convert_rows(struct graph *g, struct node *node, enum dtype to, int64_t (*last)(int64_t))
{
    struct type y = node->in[0]->type;
    int64_t n = 0;
    if (y.rank < 1 || !dim_is_int(y.dim[y.rank - 1], &n))
        bug("%s is not well formed", node_where(g, node));
    y.dim[y.rank - 1] = dim_int(g->alg, last(n));
    op_result(g, node, 0, to, y.rank, y.dim);
}

/* f32 to and from codes with scales (kern/core/coded_rows.c). */
INFER_IS(quantizerows, convert_rows(g, node, DT_I8, coded_rows_bytes))
INFER_IS(dequantizerows, convert_rows(g, node, DT_F32, coded_rows_numbers))

/* Q and dY [batch, heads, rows, size], K and V [batch, key heads, keys, size], each with rows before heads if rows_first says so. Per query
 * head: dQ [batch, heads, rows, size], dK [batch, heads, size, keys], dV [batch, heads, keys, size]. */
void infer_attentiongradient(struct graph *g, struct node *node)
{
    const int64_t *first;
    const struct type *q = &node->in[0]->type, *k = &node->in[1]->type, *v = &node->in[2]->type;
    if (q->rank != 4 || k->rank != 4 || v->rank != 4 || attr_ints(g, node, "rows_first", &first) != 4)
        bug("%s is not well formed", node_where(g, node));
    const struct dim *batch = q->dim[0], *heads = q->dim[first[0] ? 2 : 1], *rows = q->dim[first[0] ? 1 : 2];
    const struct dim *keys = k->dim[first[1] ? 1 : 2];
    op_result(g, node, 0, q->dtype, 4, (const struct dim *[]){batch, heads, rows, q->dim[3]});
    op_result(g, node, 1, q->dtype, 4, (const struct dim *[]){batch, heads, q->dim[3], keys});
    op_result(g, node, 2, q->dtype, 4, (const struct dim *[]){batch, heads, keys, v->dim[3]});
}

/* A [.., k], a matrix [k, n] ([n, k] if transposed). */
void infer_quantmatmul(struct graph *g, struct node *node)
{
    struct type y = node->in[0]->type;
    y.dim[y.rank - 1] = node->in[1]->type.dim[!attr_int(node, "transposed")];
    op_result(g, node, 0, y.dtype, y.rank, y.dim);
}

/* The same for integers; the last operand's type is the result's. */
void infer_integermatmul(struct graph *g, struct node *node)
{
    struct type y = node->in[0]->type;
    y.dim[y.rank - 1] = node->in[1]->type.dim[!attr_int(node, "transposed")];
    op_result(g, node, 0, node->in[4]->type.dtype, y.rank, y.dim);
}

void infer_quantgather(struct graph *g, struct node *node)
{
    struct type y = node->in[0]->type;
    require(y.rank < MAX_RANK);
    y.dim[y.rank++] = node->in[1]->type.dim[1];
    op_result(g, node, 0, node->in[2]->type.dtype, y.rank, y.dim);
}

/* The pass that makes the node sets the size of the memory. */
void infer_room(struct graph *g, struct node *node)
{
    struct type y = node->out[0]->type;
    op_result(g, node, 0, y.dtype, y.rank, y.dim);
}

void infer_append(struct graph *g, struct node *node)
{
    struct type y = *op_operand(g, node, 0);
    int axis = op_axis(g, node, attr_int(node, "axis"), y.rank);
    y.dim[axis] = dim_int(g->alg, attr_int(node, "start"));
    for (int i = 1; i < node->nin; i++)
        y.dim[axis] = dim_add(g->alg, y.dim[axis], op_operand(g, node, i)->dim[axis]);
    op_result(g, node, 0, y.dtype, y.rank, y.dim);
}

/* With scales, operands may be bytes, and the pass that makes the node sets whether the result is. */
void infer_chain(struct graph *g, struct node *node)
{
    const struct type *type[MAX_RANK];
    require(node->nin <= MAX_RANK);
    for (int i = 0; i < node->nin; i++)
        type[i] = op_operand(g, node, i);
    struct type out = op_broadcast(g, node, node->nin, type);
    op_result(g, node, 0, attr_is_set(node, "scales") ? node->out[0]->type.dtype : out.dtype, out.rank, out.dim);
}

/* The pass that makes the node permutes the type of the node that it replaces. Images are those of X. */
void infer_channelslast(struct graph *g, struct node *node)
{
    struct type y = node->out[0]->type;
    if (y.rank < 1 || y.rank != node->in[0]->type.rank)
        bug("%s is not well formed", node_where(g, node));
    y.dim[0] = node->in[0]->type.dim[0];
    op_result(g, node, 0, y.dtype, y.rank, y.dim);
}

static void image_operand(struct graph *g, struct rule *r, struct rule_operand *x, const struct type *t, int images, int *others)
{
    for (int d = 0; d < t->rank; d++)
        rule_put(g, x, d, 0, d == 0 && images >= 0 ? images : rule_numbered(g, r, "k", (*others)++, t->dim[d], FACTOR_REPLICATED));
}

/* Each image of X, and of Z, separately. */
struct rule *rule_channelslast(struct graph *g, const struct node *node)
{
    enum { X = IN_ChannelsLastConv_X, Z = IN_ChannelsLastConv_Z };
    struct rule *r = rule_new(g, node);
    int b = rule_factor(g, r, "b", node->in[X]->type.dim[0], 0), others = 0;
    for (int k = 0; k < node->nin; k++)
        if (node->in[k])
            image_operand(g, r, &r->in[k], &node->in[k]->type, k == X || k == Z ? b : -1, &others);
    image_operand(g, r, &r->out[0], &node->out[0]->type, b, &others);
    return r;
}
