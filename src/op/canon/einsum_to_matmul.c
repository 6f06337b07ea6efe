/* einsum_to_matmul: writes an Einsum as products of two operands. Labels that one operand has alone and the result lacks are summed, then
 *
 *   [batch.., m.., k..] x [batch.., k.., n..] -> [batch.., m.., n..] -> the order of the result
 *
 * by Transpose, Reshape and MatMul, whose rules find every split; if nothing is contracted, by Mul. A label that an operand has twice
 * selects its diagonal: a sum with zeros off the diagonal. More than two operands are multiplied in the order of
 * product/contraction_order.c. */
#include "op/canon/canon.h"
#include "op/op.h"
#include "op/product/product.h"

#include <string.h>

struct einsum_writer {
    struct rewrite *w;
    const struct node *root;
    struct einsum e;
};

/* A factor of the product, and the label of each of its dimensions, all different. */
struct term {
    struct value *v;
    struct labels labels;
};

/* ---- diagonals -------------------------------------------------------------------------------------------------------------------- */

/* Positions of a label that occurs twice. */
static bool find_pair(const struct labels *l, int *p, int *q)
{
    for (*q = 1; *q < l->n; ++*q)
        for (*p = 0; *p < *q; ++*p)
            if (l->at[*p] == l->at[*q])
                return true;
    return false;
}

/* [n, n], true where both indices are equal. */
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

static struct term take_diagonals(struct einsum_writer *x, int i)
{
    struct term t = {x->root->in[i], x->e.in[i]};
    struct labels *own = &t.labels;
    for (int p, q; find_pair(own, &p, &q);) {
        int label = own->at[q], n = 0;
        t.v = diagonal_of(x, t.v, p, q);
        for (int d = 0; d < own->n; d++)
            if (d != p && d != q)
                own->at[n++] = own->at[d];
        own->at[n++] = label;
        own->n = n;
    }
    return t;
}

/* ---- one operand ------------------------------------------------------------------------------------------------------------------- */

/* Sums over the labels that are not kept. */
static struct term sum_others(struct einsum_writer *x, struct term t, uint64_t kept)
{
    struct graph *g = x->w->g;
    struct labels left = {.n = 0};
    const struct dim *axes[MAX_RANK];
    int n = 0;
    for (int d = 0; d < t.labels.n; d++)
        if (kept >> t.labels.at[d] & 1)
            left.at[left.n++] = t.labels.at[d];
        else
            axes[n++] = dim_int(g->alg, d);
    if (n == 0)
        return t;
    struct node *sum = rewrite_node(x->w, "", "ReduceSum", x->root, 1, &t.v);
    attr_set_dims(g, sum, "axes", n, axes);
    attr_set_int(sum, "keepdims", 0);
    return (struct term){rewrite_value(x->w, sum, NULL), left};
}

/* Drops a dimension of 1 that other operands extend. */
static struct term drop_ones(struct einsum_writer *x, struct term t)
{
    uint64_t kept = 0;
    for (int d = 0; d < t.labels.n; d++)
        if (!dim_equals(t.v->type.dim[d], 1) || dim_equals(x->e.size[t.labels.at[d]], 1))
            kept |= (uint64_t)1 << t.labels.at[d];
    return sum_others(x, t, kept);
}

static struct node *transpose_labels(struct einsum_writer *x, struct term t, const struct labels *to)
{
    int64_t perm[MAX_RANK];
    for (int d = 0; d < to->n; d++)
        for (int k = 0; k < t.labels.n; k++)
            if (t.labels.at[k] == to->at[d])
                perm[d] = k;
    struct node *node = rewrite_node(x->w, "", "Transpose", x->root, 1, &t.v);
    attr_set_ints(x->w->g, node, "perm", to->n, perm);
    return node;
}

/* ---- two: nothing is contracted --------------------------------------------------------------------------------------------------- */

/* Appends the labels of `of` that are in the set. */
static void append_labels(struct labels *to, const struct labels *of, uint64_t set)
{
    for (int d = 0; d < of->n; d++)
        if (set >> of->at[d] & 1)
            to->at[to->n++] = of->at[d];
}

/* With all these dimensions, in this order, of size 1 if it lacks one. */
static struct value *spread_to(struct einsum_writer *x, struct term t, const struct labels *all)
{
    struct labels own = {.n = 0};
    append_labels(&own, all, einsum_set(&t.labels));
    struct value *turned = rewrite_value(x->w, transpose_labels(x, t, &own), NULL);
    struct type type = {.dtype = t.v->type.dtype, .rank = all->n};
    for (int d = 0, k = 0; d < all->n; d++)
        type.dim[d] = k < own.n && own.at[k] == all->at[d] ? turned->type.dim[k++] : dim_int(x->w->g->alg, 1);
    return rewrite_value(x->w, rewrite_node(x->w, "", "Reshape", x->root, 1, &turned), &type);
}

static struct term multiply(struct einsum_writer *x, struct term a, struct term b)
{
    uint64_t both = einsum_set(&a.labels) | einsum_set(&b.labels), out = einsum_set(&x->e.out);
    struct term y = {.labels = {.n = 0}};
    append_labels(&y.labels, &x->e.out, both);
    append_labels(&y.labels, &a.labels, ~out);
    append_labels(&y.labels, &b.labels, ~out & ~einsum_set(&a.labels));
    struct value *in[2] = {spread_to(x, a, &y.labels), spread_to(x, b, &y.labels)};
    y.v = rewrite_value(x->w, rewrite_node(x->w, "", "Mul", x->root, 2, in), NULL);
    return y;
}

/* ---- two: a product of matrices ---------------------------------------------------------------------------------------------------- */

static const struct dim *size_product(struct einsum_writer *x, const struct labels *l, int from, int to)
{
    const struct dim *size = dim_int(x->w->g->alg, 1);
    for (int d = from; d < to; d++)
        size = dim_mul(x->w->g->alg, size, x->e.size[l->at[d]]);
    return size;
}

/* The term, in the order of `to`, as [batch.., rows, columns]: rows are the labels up to `split`. Batch dimensions beyond the maximal rank
 * are merged. */
static struct value *as_matrix(struct einsum_writer *x, struct term t, const struct labels *to, int batch, int split)
{
    struct value *turned = rewrite_value(x->w, transpose_labels(x, t, to), NULL);
    int most = MAX_RANK - 2, joined = batch > most ? batch - most + 1 : 1;
    struct type type = {.dtype = t.v->type.dtype, .rank = batch > most ? MAX_RANK : batch + 2};
    for (int d = 0; d < type.rank - 2; d++)
        type.dim[d] = d ? x->e.size[to->at[d + joined - 1]] : size_product(x, to, 0, joined);
    type.dim[type.rank - 2] = size_product(x, to, batch, split);
    type.dim[type.rank - 1] = size_product(x, to, split, to->n);
    return rewrite_value(x->w, rewrite_node(x->w, "", "Reshape", x->root, 1, &turned), &type);
}

static struct term contract(struct einsum_writer *x, struct term a, struct term b, uint64_t kept)
{
    uint64_t in_a = einsum_set(&a.labels), in_b = einsum_set(&b.labels), common = in_a & in_b;
    struct labels left = {.n = 0}, right;
    struct term y = {.labels = {.n = 0}};
    append_labels(&left, &a.labels, common & kept);
    int batch = left.n;
    right = y.labels = left;
    append_labels(&left, &a.labels, ~common);
    append_labels(&y.labels, &a.labels, ~common);
    append_labels(&y.labels, &b.labels, ~common);
    int rows = left.n;
    append_labels(&left, &a.labels, common & ~kept);
    append_labels(&right, &a.labels, common & ~kept);
    int inner = right.n;
    append_labels(&right, &b.labels, ~common);
    struct value *matrix[2] = {as_matrix(x, a, &left, batch, rows), as_matrix(x, b, &right, batch, inner)};
    y.v = rewrite_value(x->w, rewrite_node(x->w, "", "MatMul", x->root, 2, matrix), NULL);
    struct type type = {.dtype = y.v->type.dtype, .rank = y.labels.n};
    for (int d = 0; d < y.labels.n; d++)
        type.dim[d] = x->e.size[y.labels.at[d]];
    y.v = rewrite_value(x->w, rewrite_node(x->w, "", "Reshape", x->root, 1, &y.v), &type);
    return y;
}

/* ---- all ---------------------------------------------------------------------------------------------------------------------------- */

/* Assumed numbers for symbolic sizes, to choose an order. */
static void guess_sizes(const struct einsum *e, double *size)
{
    enum { USUAL = 128 };
    int64_t n;
    for (int i = 0; i < LABELS; i++)
        size[i] = e->size[i] && dim_is_int(e->size[i], &n) ? (double)n : USUAL;
}

/* Multiplies the terms; the array has space for one more per step. */
static struct term multiply_all(struct einsum_writer *x, struct term *term)
{
    struct arena *a = x->w->g->arena;
    int n = x->e.nin;
    double size[LABELS];
    uint64_t *set = NEWN(a, uint64_t, n), out = einsum_set(&x->e.out);
    struct contraction *step = NEWN(a, struct contraction, n);
    for (int i = 0; i < n; i++)
        set[i] = einsum_set(&term[i].labels);
    guess_sizes(&x->e, size);
    if (!contraction_order(a, n, set, out, size, step))
        fail("%s: its %d operands cannot be multiplied two at a time without a result of more than %d dimensions",
             node_where(x->w->g, x->root), n, MAX_RANK);
    uint64_t *left = NEWN(a, uint64_t, 2 * n); /* labels of the remaining terms; 0: used */
    memcpy(left, set, (size_t)n * sizeof *set);
    for (int k = 0; k < n - 1; k++) {
        struct term one = term[step[k].a], other = term[step[k].b];
        uint64_t kept = contraction_kept(n + k, left, out, step[k].a, step[k].b);
        bool contracts = einsum_set(&one.labels) & einsum_set(&other.labels) & ~kept;
        term[n + k] = contracts ? contract(x, one, other, kept) : multiply(x, one, other);
        left[step[k].a] = left[step[k].b] = 0;
        left[n + k] = kept;
    }
    return term[2 * n - 2];
}

bool canon_einsum_to_matmul(struct rewrite *w, struct node *node)
{
    if (!op_is_onnx(node, "Einsum"))
        return false;
    struct einsum_writer x = {.w = w, .root = node, .e = einsum_read(w->g, node)};
    int n = x.e.nin;
    struct term *term = NEWN(w->g->arena, struct term, 2 * n);
    uint64_t *set = NEWN(w->g->arena, uint64_t, n);
    for (int i = 0; i < n; i++) {
        term[i] = drop_ones(&x, take_diagonals(&x, i));
        set[i] = einsum_set(&term[i].labels);
    }
    for (int i = 0; i < n; i++) {
        uint64_t kept = contraction_kept(n, set, einsum_set(&x.e.out), i, i);
        term[i] = sum_others(&x, term[i], kept);
        set[i] &= kept;
    }
    node_output(w->g, transpose_labels(&x, multiply_all(&x, term), &x.e.out), 0, node->out[0]);
    return true;
}
