/* attention_written: attention that an exporter wrote out:
 *
 *   MatMul(guard(Softmax(scale * MatMul(Q, K^T) + mask)), V)
 *
 * scale: products with single numbers, before or after the first MatMul, on Q, on K^T or on both. mask: an added float tensor, on either
 * side, that does not broadcast the scores. guard: Where(IsNaN(p), 0, p), kept as an attribute: without it a fully masked row is NaN, as in
 * the written form. K^T: a Transpose of the last two axes, of [batch, rows, heads, size], or of a [batch * heads, rows, size] view.
 * Repeated heads (Repeat) are read in place, and so are transposes from and to [batch, rows, heads, size]. */
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <string.h>

enum { Q = ATTENTION_Q, K = ATTENTION_K, V = ATTENTION_V, MASK = ATTENTION_MASK, Y = ATTENTION_Y };

static bool is_op(const struct node *n, const char *name)
{
    return op_is_onnx(n, name) || op_is_tpc(n, name);
}

static struct node *producer_of(const struct value *v, const char *op)
{
    return v && is_op(v->producer, op) ? v->producer : NULL;
}

static bool is_single(const struct attention_search *s, const struct value *v)
{
    return graph_reads_once(s->uses, s->nvalues, v);
}

bool op_number(const struct value *v, double *x)
{
    return v->constant && v->constant->rank <= 4 && op_constant_real(v, x);
}

bool op_transposes(const struct graph *g, const struct node *n, int a, int b, int c, int d)
{
    const int64_t want[4] = {a, b, c, d}, *perm;
    return n && attr_is_set(n, "perm") && attr_ints(g, n, "perm", &perm) == 4 && memcmp(perm, want, sizeof want) == 0;
}

struct value *op_unscale(struct value *v, double *scale)
{
    for (double x;;) {
        struct node *mul = producer_of(v, "Mul"), *div = producer_of(v, "Div");
        if (mul && op_number(mul->in[1], &x) && type_eq(&mul->in[0]->type, &v->type))
            v = mul->in[0];
        else if (mul && op_number(mul->in[0], &x) && type_eq(&mul->in[1]->type, &v->type))
            v = mul->in[1];
        else if (div && op_number(div->in[1], &x) && type_eq(&div->in[0]->type, &v->type))
            v = div->in[0], x = 1 / x;
        else
            return v;
        *scale *= x;
    }
}

/* Reshape(Transpose(Reshape(k, [B*H, S, D]), 0 2 1), [B, H, D, S]): k. */
static struct value *through_views(const struct graph *g, struct value *v)
{
    const int64_t want[3] = {0, 2, 1}, *perm;
    struct node *outer = producer_of(v, "Reshape"), *transpose = outer ? producer_of(outer->in[0], "Transpose") : NULL;
    struct node *inner = transpose ? producer_of(transpose->in[0], "Reshape") : NULL;
    if (!inner || attr_ints(g, transpose, "perm", &perm) != 3 || memcmp(perm, want, sizeof want))
        return NULL;
    const struct type *k = &inner->in[0]->type, *flat = &transpose->in[0]->type, *t = &v->type;
    bool same = k->rank == 4 && flat->rank == 3 && t->rank == 4 && k->dim[0] == t->dim[0] && k->dim[1] == t->dim[1] &&
        k->dim[2] == t->dim[3] && k->dim[3] == t->dim[2] && flat->dim[1] == k->dim[2] && flat->dim[2] == k->dim[3];
    return same ? inner->in[0] : NULL;
}

bool attention_key(const struct graph *g, struct value *v, struct attention_match *m)
{
    struct node *transpose = producer_of(v, "Transpose");
    if (op_transposes(g, transpose, 0, 1, 3, 2))
        m->in[K] = transpose->in[0];
    else if (op_transposes(g, transpose, 0, 2, 3, 1))
        m->in[K] = transpose->in[0], m->rows_first[K] = true;
    else
        m->in[K] = through_views(g, v);
    return m->in[K] != NULL;
}

static struct value *unrepeat(struct value *v)
{
    struct node *n = producer_of(v, "Repeat");
    return n && attr_int(n, "axis") == 1 && !attr_is_set(n, "index") ? n->in[0] : NULL;
}

/* Reads the heads before they are repeated, if both keys and values are repeated alike. */
static void share_heads(struct attention_match *m)
{
    struct value *k = m->rows_first[K] ? NULL : unrepeat(m->in[K]), *v = unrepeat(m->in[V]);
    if (!k || !v || k->type.dim[1] != v->type.dim[1])
        return;
    m->in[K] = k;
    m->in[V] = v;
}

static void read_in_place(const struct graph *g, struct attention_match *m, int i)
{
    struct node *transpose = m->rows_first[i] ? NULL : producer_of(m->in[i], "Transpose");
    if (!op_transposes(g, transpose, 0, 2, 1, 3))
        return;
    m->in[i] = transpose->in[0];
    m->rows_first[i] = true;
}

/* Matches the scores: the first MatMul before numbers and at most one mask. */
static bool match_scores(const struct attention_search *s, struct value *v, struct attention_match *m)
{
    struct node *add = producer_of(v, "Add"), *product = NULL;
    for (int side = 0; side < 2 && add && !product; side++) {
        double scale = 1;
        struct value *scores = op_unscale(add->in[side], &scale);
        if (!type_eq(&scores->type, &v->type) || !producer_of(scores, "MatMul") || !is_single(s, add->in[side]))
            continue;
        product = producer_of(scores, "MatMul");
        m->in[MASK] = add->in[1 - side];
        m->scale = scale;
    }
    if (!add)
        product = producer_of(op_unscale(v, &m->scale), "MatMul");
    if (!product || !is_single(s, product->out[0]))
        return false;
    m->in[Q] = op_unscale(product->in[0], &m->scale);
    return attention_key(s->graph, op_unscale(product->in[1], &m->scale), m);
}

/* p, or the p inside Where(IsNaN(p), 0, p). */
static struct value *unguard(const struct attention_search *s, struct value *v, struct attention_match *m)
{
    struct node *where = producer_of(v, "Where"), *test = where ? producer_of(where->in[0], "IsNaN") : NULL;
    double x;
    if (!test || test->in[0] != where->in[2] || !op_number(where->in[1], &x) || x < 0 || x > 0)
        return v;
    if (!is_single(s, where->in[0]) || s->uses[test->in[0]->id].n != 2)
        return v;
    m->guarded = true;
    return test->in[0];
}

static bool known_type(const struct value *v)
{
    return v->type.rank == 4 && (v->type.dtype == DT_F32 || v->type.dtype == DT_F16 || v->type.dtype == DT_BF16);
}

static bool check_types(const struct attention_match *m)
{
    for (int i = Q; i <= V; i++)
        if (!known_type(m->in[i]) || m->in[i]->type.dtype != m->in[Q]->type.dtype)
            return false;
    const struct type *q = &m->in[Q]->type, *k = &m->in[K]->type, *v = &m->in[V]->type;
    int kv_heads = m->rows_first[K] ? 2 : 1, rows = m->rows_first[K] ? 1 : 2;
    return q->dim[0] == k->dim[0] && k->dim[0] == v->dim[0] && k->dim[kv_heads] == v->dim[1] && k->dim[rows] == v->dim[2];
}

/* Whether the numbers of heads match. One query head with several key heads is no shared key. */
static bool heads_fit(const struct attention_match *m)
{
    const struct type *q = &m->in[Q]->type, *k = &m->in[K]->type;
    int kv_heads = m->rows_first[K] ? 2 : 1;
    return q->rank == 4 && k->rank == 4 && (q->dim[1] == k->dim[kv_heads] || dim_equals(k->dim[kv_heads], 1));
}

bool attention_read_heads(const struct graph *g, struct attention_match *m)
{
    if (!heads_fit(m))
        return false;
    share_heads(m);
    if (!check_types(m))
        return false;
    for (int i = Q; i <= V; i++)
        read_in_place(g, m, i);
    return true;
}

static bool match_products(const struct attention_search *s, struct node *n, struct attention_match *m)
{
    *m = (struct attention_match){.scale = 1, .last = n};
    if (!is_op(n, "MatMul") || !known_type(n->out[0]) || !is_single(s, n->in[0]))
        return false;
    struct node *softmax = producer_of(unguard(s, n->in[0], m), "Softmax");
    if (!softmax || !is_single(s, softmax->in[0]))
        return false;
    int64_t axis = attr_int(softmax, "axis");
    m->in[V] = n->in[1];
    if ((axis != -1 && axis != 3) || softmax->in[0]->type.rank != 4 || !match_scores(s, softmax->in[0], m))
        return false;
    return attention_read_heads(s->graph, m);
}

/* The only user, if it transposes heads and rows. */
static struct node *transposed_result(const struct attention_search *s, const struct node *n)
{
    const struct value *y = n->out[0];
    struct node *user = is_single(s, y) ? s->uses[y->id].at[0].node : NULL;
    return is_op(user, "Transpose") && op_transposes(s->graph, user, 0, 2, 1, 3) ? user : NULL;
}

bool attention_written(const struct attention_search *s, struct node *n, struct attention_match *m)
{
    if (!match_products(s, n, m))
        return false;
    struct node *transpose = transposed_result(s, n);
    m->rows_first[Y] = transpose != NULL;
    m->last = transpose ? transpose : n;
    return true;
}
