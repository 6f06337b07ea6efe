/* Operands of products. Weights are scaled by the contracted size, so that numbers keep their magnitude from layer to layer. */
#include "tests/graphs/block.h"
#include "tests/graphs/families.h"

#include <math.h>

struct fill weight_fill(struct sketch *s, const struct dim *contracted)
{
    double k = (double)sketch_size(s, contracted), width = k > 0 ? 1.7 / sqrt(k) : 1;
    return s->exact ? (struct fill){INTEGERS, -1, 1} : (struct fill){FLOATS, -width, width};
}

struct value *make_weight(struct sketch *s, const struct dim *rows, const struct dim *columns, const struct dim *contracted)
{
    struct type t = {.dtype = DT_F32, .rank = 2, .dim = {rows, columns}};
    bool is_static = dim_is_int(rows, NULL) && dim_is_int(columns, NULL);
    if (draw(s->draws, 4) == 1)
        return sketch_like(s, DT_F32, 2, t.dim);
    return is_static ? sketch_const(s, &t, weight_fill(s, contracted)) : sketch_input(s, &t, weight_fill(s, contracted));
}

/* The other operand of x: a matrix, a vector, or a batch of matrices. */
static struct value *right_of(struct sketch *s, const struct value *x)
{
    const struct dim *k = x->type.dim[x->type.rank - 1];
    struct type t = x->type;
    switch (draw(s->draws, 4)) {
    case 2: return sketch_like(s, DT_F32, 1, &k);
    case 3:
        if (x->type.rank < 3)
            break;
        t.dim[t.rank - 2] = k;
        t.dim[t.rank - 1] = sketch_dim(s);
        t.dim[0] = draw(s->draws, 3) == 1 ? dim_int(s->g->alg, 1) : t.dim[0];
        return sketch_like(s, DT_F32, t.rank, t.dim);
    }
    const struct dim *columns = draw(s->draws, 2) ? sketch_dim(s) : sketch_static(s);
    return make_weight(s, k, columns, k);
}

void make_matmul(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    sketch_add(s, sketch_node(s, op, 2, (struct value *[]){x, x ? right_of(s, x) : NULL}, 1), NULL);
}

void make_gemm(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 2, 2);
    if (!x)
        return;
    bool ta = draw(s->draws, 3) == 1, tb = draw(s->draws, 2), bias = draw(s->draws, 2);
    const struct dim *k = x->type.dim[ta ? 0 : 1], *m = x->type.dim[ta ? 1 : 0], *n = sketch_static(s);
    struct value *w = make_weight(s, tb ? n : k, tb ? k : n, k), *c = NULL;
    if (bias)
        c = draw(s->draws, 2) ? sketch_like(s, DT_F32, 1, &n) : sketch_like(s, DT_F32, 2, (const struct dim *[]){m, dim_int(s->g->alg, 1)});
    struct node *node = sketch_node(s, op, bias ? 3 : 2, (struct value *[]){x, w, c}, 1);
    if (!node)
        return;
    attr_set_int(node, "transA", ta);
    attr_set_int(node, "transB", tb);
    set_float(node, "alpha", draw(s->draws, 3) == 1 ? 2 : 1);
    set_float(node, "beta", draw(s->draws, 3) == 1 ? -2 : 1);
    sketch_add(s, node, NULL);
}

/* The channels of X come first in W; the image grows. */
void make_convtranspose(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 3, 4);
    int64_t channels, stride[2];
    if (!x || !dim_is_int(x->type.dim[1], &channels) || channels == 0)
        return;
    int64_t group = draw(s->draws, 3) == 1 && channels % 2 == 0 ? 2 : 1;
    struct type t = x->type;
    t.dim[0] = x->type.dim[1];
    t.dim[1] = sketch_static(s);
    for (int d = 2; d < t.rank; d++) {
        t.dim[d] = dim_int(s->g->alg, 1 + draw(s->draws, 2));
        stride[d - 2] = 1 + (int64_t)draw(s->draws, 2);
    }
    struct value *w = sketch_const(s, &t, weight_fill(s, t.dim[0]));
    struct node *n = sketch_node(s, op, 2, (struct value *[]){x, w}, 1);
    if (!n)
        return;
    attr_set_int(n, "group", group);
    attr_set_ints(s->g, n, "strides", t.rank - 2, stride);
    sketch_add(s, n, NULL);
}

/* ---- Einsum ------------------------------------------------------------------------------------------------------------------ */

/* Letters of x, of another operand that shares some, and a result of some of both, in any order. */
static const char *equation(struct sketch *s, const struct value *x, struct type *other)
{
    char left[MAX_RANK + 1] = "", right[MAX_RANK + 1] = "", out[2 * MAX_RANK + 1] = "";
    int n = 0, m = 0;
    for (int d = 0; d < x->type.rank; d++) {
        left[d] = (char)('a' + d);
        bool shared = draw(s->draws, 2), kept = draw(s->draws, 2);
        if (shared) {
            other->dim[m] = x->type.dim[d];
            right[m++] = left[d];
        }
        if (!shared || kept)
            out[n++] = left[d];
    }
    if (m < 3) {
        other->dim[m] = sketch_static(s);
        right[m++] = 'z';
        out[n++] = 'z';
    }
    other->rank = m;
    for (int i = n - 1; i > 0; i--) {
        int j = i - (int)draw(s->draws, (uint32_t)i + 1);
        char c = out[i];
        out[i] = out[j];
        out[j] = c;
    }
    return arena_printf(s->arena, "%s,%s->%s", left, right, out);
}

void make_einsum(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 3);
    struct type other = {.dtype = DT_F32};
    if (!x)
        return;
    const char *text = equation(s, x, &other);
    struct node *n = sketch_node(s, op, 2, (struct value *[]){x, sketch_like(s, DT_F32, other.rank, other.dim)}, 1);
    if (n)
        attr_set_string(n, "equation", text);
    sketch_add(s, n, NULL);
}

struct letters {
    int64_t size[256], at[256];
};

static int64_t offset(const struct letters *l, const char *term, const struct tensor *t)
{
    int64_t at = 0;
    for (int d = 0; d < t->rank; d++)
        at = at * t->dim[d] + l->at[(unsigned char)term[d]];
    return at;
}

static bool next(struct letters *l)
{
    for (int c = 255; c >= 0; c--) {
        if (l->size[c] > 0 && ++l->at[c] < l->size[c])
            return true;
        l->at[c] = 0;
    }
    return false;
}

/* For equations made as above. */
void einsum_compute(struct kcall *call)
{
    const char *left = attr_string(call->node, "equation"), *right = left + call->in[0].rank + 1, *out = right + call->in[1].rank + 2;
    const float *a = call->in[0].data, *b = call->in[1].data;
    float *y = call->out[0].data;
    struct letters l = {{0}, {0}};
    for (int d = 0; d < call->in[0].rank; d++)
        l.size[(unsigned char)left[d]] = call->in[0].dim[d];
    for (int d = 0; d < call->in[1].rank; d++)
        l.size[(unsigned char)right[d]] = call->in[1].dim[d];
    if (tensor_elements(&call->in[0]) && tensor_elements(&call->in[1]))
        do
            y[offset(&l, out, &call->out[0])] += a[offset(&l, left, &call->in[0])] * b[offset(&l, right, &call->in[1])];
        while (next(&l));
}
