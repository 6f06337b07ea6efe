/* Writes an Einsum of one or two operands as a product. What only one operand has and the result lacks is summed, then
 *
 *   [batch.., m.., k..] x [batch.., k.., n..] -> [batch.., m.., n..] -> the order of the result
 *
 * by Transpose, Reshape and MatMul, whose rules find every split. A label that an operand has twice is its diagonal there: the sum of its
 * elements, and of zeros beside them. */
#include "op/canon/canon.h"
#include "op/op.h"
#include "op/product/product.h"

#include <string.h>

struct einsum_writer {
    struct rewrite *w;
    const struct node *root;
    struct einsum e;
};

/* ---- diagonals -------------------------------------------------------------------------------------------------------------------- */

/* Positions of a label that an operand has twice. */
static bool find_pair(const struct labels *l, int *p, int *q)
{
    for (*q = 1; *q < l->n; ++*q)
        for (*p = 0; *p < *q; ++*p)
            if (l->at[*p] == l->at[*q])
                return true;
    return false;
}

/* [n, n], true where both indices are one. */
static struct value *diagonal_mask(struct einsum_writer *x, const struct dim *n)
{
    struct graph *g = x->w->g;
    const struct dim *zero = dim_int(g->alg, 0), *one = dim_int(g->alg, 1);
    struct type count = {.dtype = DT_I64, .rank = 1, .dim = {n}}, column = {.dtype = DT_I64, .rank = 2, .dim = {n, one}};
    struct node *range = rewrite_node(x->w, "", "Range", x->root, 0, NULL);
    attr_set_dims(g, range, "start", 1, &zero);
    attr_set_dims(g, range, "limit", 1, &n);
    attr_set_dims(g, range, "delta", 1, &one);
    struct value *in[2] = {NULL, rewrite_value(x->w, range, &count)};
    in[0] = rewrite_value(x->w, rewrite_node(x->w, "", "Reshape", x->root, 1, &in[1]), &column);
    return rewrite_value(x->w, rewrite_node(x->w, "", "Equal", x->root, 2, in), NULL);
}

/* v with the diagonal of dimensions p and q as its last one. */
static struct value *diagonal_of(struct einsum_writer *x, struct value *v, int p, int q)
{
    struct graph *g = x->w->g;
    int64_t perm[MAX_RANK], none = 0;
    int n = 0, last = v->type.rank - 2;
    for (int d = 0; d < v->type.rank; d++)
        if (d != p && d != q)
            perm[n++] = d;
    perm[n] = p;
    perm[n + 1] = q;
    struct node *turned = rewrite_node(x->w, "", "Transpose", x->root, 1, &v);
    attr_set_ints(g, turned, "perm", n + 2, perm);
    const struct dim *size = v->type.dim[q], *axis = dim_int(g->alg, last + 1);
    struct value *in[3] = {diagonal_mask(x, size), rewrite_value(x->w, turned, NULL),
                           graph_constant(g, "zero", v->type.dtype, 0, NULL, &none)}; /* zero is zero in every type */
    struct value *picked = rewrite_value(x->w, rewrite_node(x->w, "", "Where", x->root, 3, in), NULL);
    struct node *sum = rewrite_node(x->w, "", "ReduceSum", x->root, 1, &picked);
    attr_set_dims(g, sum, "axes", 1, &axis);
    attr_set_int(sum, "keepdims", 0);
    return rewrite_value(x->w, sum, NULL);
}

static struct value *take_diagonals(struct einsum_writer *x, int i)
{
    struct value *v = x->root->in[i];
    struct labels *own = &x->e.in[i];
    for (int p, q; find_pair(own, &p, &q);) {
        int label = own->at[q], n = 0;
        v = diagonal_of(x, v, p, q);
        for (int d = 0; d < own->n; d++)
            if (d != p && d != q)
                own->at[n++] = own->at[d];
        own->at[n++] = label;
        own->n = n;
    }
    return v;
}

/* Sums over the labels that neither the other operand nor the result has. */
static struct value *sum_own(struct einsum_writer *x, int i, struct value *v)
{
    struct graph *g = x->w->g;
    struct labels *own = &x->e.in[i], kept = {.n = 0};
    const struct dim *axes[MAX_RANK];
    int n = 0;
    for (int d = 0; d < own->n; d++) {
        bool needed = einsum_has(&x->e.out, own->at[d]) || (x->e.nin == 2 && einsum_has(&x->e.in[1 - i], own->at[d]));
        if (needed)
            kept.at[kept.n++] = own->at[d];
        else
            axes[n++] = dim_int(g->alg, d);
    }
    *own = kept;
    if (n == 0)
        return v;
    struct node *sum = rewrite_node(x->w, "", "ReduceSum", x->root, 1, &v);
    attr_set_dims(g, sum, "axes", n, axes);
    attr_set_int(sum, "keepdims", 0);
    return rewrite_value(x->w, sum, NULL);
}

static struct node *transpose_labels(struct einsum_writer *x, struct value *v, const struct labels *from, const struct labels *to)
{
    int64_t perm[MAX_RANK];
    for (int d = 0; d < to->n; d++)
        for (int k = 0; k < from->n; k++)
            if (from->at[k] == to->at[d])
                perm[d] = k;
    struct node *node = rewrite_node(x->w, "", "Transpose", x->root, 1, &v);
    attr_set_ints(x->w->g, node, "perm", to->n, perm);
    return node;
}

/* Appends the labels of `of` that are (not) in each of `a` and `b`. */
static void select_labels(struct labels *to, const struct labels *of, const struct labels *a, bool in_a, const struct labels *b, bool in_b)
{
    for (int d = 0; d < of->n; d++)
        if (einsum_has(a, of->at[d]) == in_a && einsum_has(b, of->at[d]) == in_b)
            to->at[to->n++] = of->at[d];
}

static const struct dim *size_product(struct einsum_writer *x, const struct labels *l, int from, int to)
{
    const struct dim *size = dim_int(x->w->g->alg, 1);
    for (int d = from; d < to; d++)
        size = dim_mul(x->w->g->alg, size, x->e.size[l->at[d]]);
    return size;
}

/* v, in the order of `to`, as [batch.., rows, columns]: rows are the labels up to `split`. */
static struct value *as_matrix(struct einsum_writer *x, int i, struct value *v, const struct labels *to, int batch, int split)
{
    struct value *turned = rewrite_value(x->w, transpose_labels(x, v, &x->e.in[i], to), NULL);
    struct type type = {.dtype = v->type.dtype, .rank = batch + 2};
    memcpy(type.dim, turned->type.dim, (size_t)batch * sizeof type.dim[0]);
    type.dim[batch] = size_product(x, to, batch, split);
    type.dim[batch + 1] = size_product(x, to, split, to->n);
    return rewrite_value(x->w, rewrite_node(x->w, "", "Reshape", x->root, 1, &turned), &type);
}

static struct node *write_product(struct einsum_writer *x, struct value *const *in)
{
    struct einsum *e = &x->e;
    const struct labels *a = &e->in[0], *b = &e->in[1];
    struct labels left = {.n = 0}, right, result;
    select_labels(&left, a, b, true, &e->out, true);
    int batch = left.n;
    right = result = left;
    select_labels(&left, a, b, false, &e->out, true);
    int rows = left.n;
    result = left;
    select_labels(&left, a, b, true, &e->out, false);
    select_labels(&right, a, b, true, &e->out, false);
    int inner = right.n;
    select_labels(&right, b, a, false, &e->out, true);
    select_labels(&result, b, a, false, &e->out, true);
    struct value *matrix[2] = {as_matrix(x, 0, in[0], &left, batch, rows), as_matrix(x, 1, in[1], &right, batch, inner)};
    struct value *y = rewrite_value(x->w, rewrite_node(x->w, "", "MatMul", x->root, 2, matrix), NULL);
    struct type type = {.dtype = y->type.dtype, .rank = result.n};
    for (int d = 0; d < result.n; d++)
        type.dim[d] = e->size[result.at[d]];
    y = rewrite_value(x->w, rewrite_node(x->w, "", "Reshape", x->root, 1, &y), &type);
    return transpose_labels(x, y, &result, &e->out);
}

bool canon_einsum_to_matmul(struct rewrite *w, struct node *node)
{
    if (!op_is_onnx(node, "Einsum"))
        return false;
    struct einsum_writer x = {.w = w, .root = node, .e = einsum_read(w->g, node)};
    struct value *in[2] = {NULL, NULL};
    for (int i = 0; i < x.e.nin; i++)
        in[i] = sum_own(&x, i, take_diagonals(&x, i));
    struct node *last = x.e.nin == 2 ? write_product(&x, in) : transpose_labels(&x, in[0], &x.e.in[0], &x.e.out);
    node_output(w->g, last, 0, node->out[0]);
    return true;
}
