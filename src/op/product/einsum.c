/* Einsum of one or two operands. Its canonical form is written out: what only one operand has and the result lacks is summed, then
 *
 *   [batch.., m.., k..] x [batch.., k.., n..] -> [batch.., m.., n..] -> the order of the result
 *
 * by Transpose, Reshape and MatMul, whose rules find every split. Dimensions behind "..." are labelled from the right. */
#include "op/op.h"
#include "op/table/table.h"

#include <string.h>

enum { ELLIPSIS = 256, LABELS = ELLIPSIS + MAX_RANK };
struct labels {
    int n, at[MAX_RANK];
};
struct einsum {
    int nin;
    struct labels in[2], out;
    const struct dim *size[LABELS];
};

/* ---- the equation ----------------------------------------------------------------------------------------------------------------- */

static void add_label(const struct graph *g, const struct node *node, struct labels *l, int label)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i] == label)
            fail("%s: the equation '%s' repeats a letter in one term, which tpc does not handle", node_where(g, node),
                 attr_string(node, "equation"));
    if (l->n == MAX_RANK)
        fail("%s: a term of the equation '%s' has more than %d dimensions", node_where(g, node), attr_string(node, "equation"), MAX_RANK);
    l->at[l->n++] = label;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* One term of n characters; dots: how many dimensions "..." stands for. */
static struct labels read_term(const struct graph *g, const struct node *node, const char *text, size_t n, int dots)
{
    struct labels l = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        if (is_letter(text[i])) {
            add_label(g, node, &l, text[i]);
        } else if (n - i >= 3 && strncmp(text + i, "...", 3) == 0) {
            for (int k = dots - 1; k >= 0; k--)
                add_label(g, node, &l, ELLIPSIS + k);
            i += 2;
        } else if (text[i] != ' ') {
            fail("%s: the equation '%s' is not well formed", node_where(g, node), attr_string(node, "equation"));
        }
    }
    return l;
}

static int count_letters(const char *text, size_t n, bool *dots)
{
    int letters = 0;
    for (size_t i = 0; i < n; i++) {
        letters += is_letter(text[i]);
        *dots = *dots || text[i] == '.';
    }
    return letters;
}

static bool has_label(const struct labels *l, int label)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i] == label)
            return true;
    return false;
}

/* Without "->": the dimensions behind "...", then every letter that occurs in one term only, in order of the alphabet. */
static void implied_result(const struct graph *g, const struct node *node, struct einsum *e, int dots)
{
    for (int k = dots - 1; k >= 0; k--)
        add_label(g, node, &e->out, ELLIPSIS + k);
    for (int label = 'A'; label <= 'z'; label++) {
        int terms = 0;
        for (int i = 0; i < e->nin; i++)
            terms += has_label(&e->in[i], label);
        if (terms == 1)
            add_label(g, node, &e->out, label);
    }
}

/* Gives every label its size. */
static void measure(struct graph *g, const struct node *node, struct einsum *e)
{
    for (int i = 0; i < e->nin; i++) {
        const struct type *t = op_operand(g, node, i);
        if (e->in[i].n != t->rank)
            fail("%s: operand '%s' is %s but its term in the equation '%s' has %d dimensions", node_where(g, node), node->in[i]->name,
                 type_str(g->arena, t), attr_string(node, "equation"), e->in[i].n);
        for (int d = 0; d < t->rank; d++) {
            const struct dim **size = &e->size[e->in[i].at[d]];
            *size = *size ? op_broadcast_dim(g, node, *size, t->dim[d], "dimensions of one letter") : t->dim[d];
        }
    }
    for (int d = 0; d < e->out.n; d++)
        if (!e->size[e->out.at[d]])
            fail("%s: the result of the equation '%s' has a letter that no operand has", node_where(g, node),
                 attr_string(node, "equation"));
}

static struct einsum read_equation(struct graph *g, const struct node *node)
{
    const char *text = attr_string(node, "equation"), *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text);
    struct einsum e = {.nin = node->nin};
    int dots = 0;
    if (node->nin > 2)
        fail("%s: Einsum of %d operands is not handled, at most 2 are", node_where(g, node), node->nin);
    for (int i = 0; i < node->nin; i++) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t n = (size_t)((comma ? comma : end) - text);
        bool dotted = false;
        int letters = count_letters(text, n, &dotted), own = dotted ? op_operand(g, node, i)->rank - letters : 0;
        dots = own > dots ? own : dots;
        e.in[i] = read_term(g, node, text, n, own);
        text = comma ? comma + 1 : end;
        if (!comma != (i == node->nin - 1))
            fail("%s: the equation '%s' does not have a term for each of %d operands", node_where(g, node), attr_string(node, "equation"),
                 node->nin);
    }
    if (arrow)
        e.out = read_term(g, node, arrow + 2, strlen(arrow + 2), dots);
    else
        implied_result(g, node, &e, dots);
    measure(g, node, &e);
    return e;
}

void infer_einsum(struct graph *g, struct node *node)
{
    struct einsum e = read_equation(g, node);
    const struct dim *dim[MAX_RANK];
    if (e.nin == 2)
        op_same_dtype(g, node, 0, 1);
    for (int d = 0; d < e.out.n; d++)
        dim[d] = e.size[e.out.at[d]];
    op_result(g, node, 0, op_operand(g, node, 0)->dtype, e.out.n, dim);
}

/* ---- written out ------------------------------------------------------------------------------------------------------------------- */

struct writer {
    struct rewrite *w;
    const struct node *root;
    struct einsum e;
};

/* Sums over the labels that neither the other operand nor the result has. */
static struct value *sum_own(struct writer *x, int i)
{
    struct graph *g = x->w->g;
    struct labels *own = &x->e.in[i], kept = {.n = 0};
    const struct dim *axes[MAX_RANK];
    int n = 0;
    for (int d = 0; d < own->n; d++) {
        bool needed = has_label(&x->e.out, own->at[d]) || (x->e.nin == 2 && has_label(&x->e.in[1 - i], own->at[d]));
        if (needed)
            kept.at[kept.n++] = own->at[d];
        else
            axes[n++] = dim_int(g->alg, d);
    }
    *own = kept;
    if (n == 0)
        return x->root->in[i];
    struct node *sum = rewrite_node(x->w, "", "ReduceSum", x->root, 1, &x->root->in[i]);
    attr_set_dims(g, sum, "axes", n, axes);
    attr_set_int(sum, "keepdims", 0);
    return rewrite_value(x->w, sum, NULL);
}

static struct node *transposed(struct writer *x, struct value *v, const struct labels *from, const struct labels *to)
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
        if (has_label(a, of->at[d]) == in_a && has_label(b, of->at[d]) == in_b)
            to->at[to->n++] = of->at[d];
}

static const struct dim *product(struct writer *x, const struct labels *l, int from, int to)
{
    const struct dim *size = dim_int(x->w->g->alg, 1);
    for (int d = from; d < to; d++)
        size = dim_mul(x->w->g->alg, size, x->e.size[l->at[d]]);
    return size;
}

/* v, in the order of `to`, as [batch.., rows, columns]: rows are the labels up to `split`. */
static struct value *as_matrix(struct writer *x, int i, struct value *v, const struct labels *to, int batch, int split)
{
    struct value *turned = rewrite_value(x->w, transposed(x, v, &x->e.in[i], to), NULL);
    struct type type = {.dtype = v->type.dtype, .rank = batch + 2};
    memcpy(type.dim, turned->type.dim, (size_t)batch * sizeof type.dim[0]);
    type.dim[batch] = product(x, to, batch, split);
    type.dim[batch + 1] = product(x, to, split, to->n);
    return rewrite_value(x->w, rewrite_node(x->w, "", "Reshape", x->root, 1, &turned), &type);
}

static struct node *write_product(struct writer *x, struct value *const *in)
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
    return transposed(x, y, &result, &e->out);
}

bool write_einsum(struct rewrite *w, struct node *node)
{
    if (!op_is_onnx(node, "Einsum"))
        return false;
    struct writer x = {.w = w, .root = node, .e = read_equation(w->g, node)};
    struct value *in[2] = {NULL, NULL};
    for (int i = 0; i < x.e.nin; i++)
        in[i] = sum_own(&x, i);
    struct node *last = x.e.nin == 2 ? write_product(&x, in) : transposed(&x, in[0], &x.e.in[0], &x.e.out);
    node_output(w->g, last, 0, node->out[0]);
    return true;
}
