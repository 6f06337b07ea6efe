/* product_backward: gradients of products: each operand's is the result's gradient times the other operand, transposed. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

static struct value *gemm(struct backward *b, struct value *x, bool turn_x, struct value *y, bool turn_y, double alpha)
{
    struct node *node = back_node(b, "Gemm", 2, (struct value *[]){x, y});
    attr_set_int(node, "transA", turn_x);
    attr_set_int(node, "transB", turn_y);
    node_attr(node, "alpha")->f = alpha;
    return back_infer(b, node);
}

/* ---- MatMul --------------------------------------------------------------------------------------------------------------------- */

/* A vector as a matrix: a row on the left, a column on the right. */
static struct type as_matrix(const struct backward *b, int i)
{
    struct type type = b->l.node->in[i]->type;
    if (type.rank != 1)
        return type;
    const struct dim *one = dim_int(b->l.g->alg, 1), *k = type.dim[0];
    type.rank = 2;
    type.dim[0] = i == 0 ? one : k;
    type.dim[1] = i == 0 ? k : one;
    return type;
}

/* The type of the product as matrices. */
static struct type product_type(const struct backward *b, const struct type *x, const struct type *y)
{
    struct type type = b->l.node->out[0]->type;
    int vectors = (b->l.node->in[0]->type.rank == 1) + (b->l.node->in[1]->type.rank == 1);
    type.rank += vectors;
    type.dim[type.rank - 2] = x->dim[x->rank - 2];
    type.dim[type.rank - 1] = y->dim[y->rank - 1];
    return type;
}

/* All dimensions but the last as rows. */
static struct value *rows(struct backward *b, struct value *x)
{
    struct alg *alg = b->l.g->alg;
    struct type type = {.rank = 2, .dim = {dim_int(alg, 1), x->type.dim[x->type.rank - 1]}};
    for (int d = 0; d + 1 < x->type.rank; d++)
        type.dim[0] = dim_mul(alg, type.dim[0], x->type.dim[d]);
    return back_reshape(b, x, &type);
}

void backward_matmul(struct backward *b)
{
    const struct node *node = b->l.node;
    struct type xt = as_matrix(b, 0), yt = as_matrix(b, 1), gt = product_type(b, &xt, &yt);
    struct value *x = back_reshape(b, node->in[0], &xt), *y = back_reshape(b, node->in[1], &yt), *g = back_reshape(b, back_dy(b), &gt);
    if (back_wants(b, 0)) {
        struct value *dx = back_binary(b, "MatMul", g, back_turn(b, y));
        back_to(b, 0, node->in[0]->type.rank == 1 ? back_reshape(b, back_sum(b, dx, 0, dx->type.rank - 2, false), &node->in[0]->type) : dx);
    }
    if (!back_wants(b, 1))
        return;
    if (yt.rank == 2) {                                    /* rows of all batches are contracted at once */
        struct value *dy = rows(b, g), *flat = rows(b, x); /* in this order, independent of the compiler */
        back_to(b, 1, back_reshape(b, gemm(b, flat, true, dy, false, 1), &node->in[1]->type));
        return;
    }
    back_to(b, 1, back_binary(b, "MatMul", back_turn(b, x), g));
}

/* ---- Gemm ------------------------------------------------------------------------------------------------------------------------- */

void backward_gemm(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value *x = node->in[0], *y = node->in[1], *g = back_dy(b);
    bool turn_x = attr_int(node, "transA") != 0, turn_y = attr_int(node, "transB") != 0;
    double alpha = attr_float(node, "alpha"), beta = attr_float(node, "beta");
    if (back_wants(b, 0))
        back_to(b, 0, turn_x ? gemm(b, y, turn_y, g, true, alpha) : gemm(b, g, false, y, !turn_y, alpha));
    if (back_wants(b, 1))
        back_to(b, 1, turn_y ? gemm(b, g, true, x, turn_x, alpha) : gemm(b, x, !turn_x, g, false, alpha));
    if (back_wants(b, 2))
        back_to(b, 2, beta == 1 ? g : back_with(b, "Mul", g, beta));
}
