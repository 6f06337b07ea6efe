/* fuse_attention_gradient: the gradient of written-out attention becomes one AttentionGradient node, so that nothing of the size of the
 * scores is stored, nor kept from the forward pass:
 *
 *   p = guard(Softmax(s)), s = mask(scale q' k'), q' = q_scale Q, k' = k_scale K^T    the forward pass
 *   dV = p^T dY
 *   dp = guard(dY V^T)    w = dp p    ds = w - p ReduceSum(w)
 *   dq' = scale ds k'^T    dk' = scale q'^T ds
 *
 * guard: Where(IsNaN(p), 0, .). mask: an added float tensor, or Where(seen, ., -inf), whose gradient is Where(seen, ., 0). */
#include "lower/lower.h"
#include "op/analysis/analysis.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

enum { Q = ATTENTION_Q, K = ATTENTION_K, V = ATTENTION_V };
struct gradient_match {
    struct attention_match m;
    struct value *dy, *mask, *seen;
    double q_scale, k_scale, scale;      /* of q, k and the scores */
    struct node *product, *dq, *dk, *dv; /* of the scores; of gradients. dk, dv NULL: unused */
};
struct gradient_search {
    struct graph *g;
    const struct uses *uses;
    int nvalues;
};

static bool is_zero(const struct value *v)
{
    double x;
    return op_number(v, &x) && fpclassify(x) == FP_ZERO;
}

/* Where(IsNaN(p), 0, x): x, and *p. */
static struct value *unguarded(struct value *v, struct value **p)
{
    struct node *where = op_made_by(v, "Where"), *test = where ? op_made_by(where->in[0], "IsNaN") : NULL;
    if (!test || !is_zero(where->in[1]))
        return v;
    *p = test->in[0];
    return where->in[2];
}

static bool sums_last(const struct node *n)
{
    const struct dim **axes;
    int64_t axis;
    return attr_int(n, "keepdims") && attr_dims(n, "axes", &axes) == 1 && dim_is_int(axes[0], &axis) && (axis == 3 || axis == -1);
}

/* ds = w - p ReduceSum(w): w and p. */
static bool match_softmax(const struct node *sub, struct value **dp, struct value **p)
{
    struct node *w = op_made_by(sub->in[0], "Mul"), *rest = op_made_by(sub->in[1], "Mul");
    for (int side = 0; side < 2 && w && rest; side++) {
        struct node *sum = op_made_by(rest->in[side], "ReduceSum");
        if (!sum || sum->in[0] != sub->in[0] || !sums_last(sum))
            continue;
        *p = rest->in[1 - side];
        *dp = w->in[0] == *p ? w->in[1] : w->in[0];
        return w->in[0] == *p || w->in[1] == *p;
    }
    return false;
}

/* Matches the scores back to q and k. */
static bool match_scores(const struct graph *g, struct value *v, struct gradient_match *x)
{
    for (double number;;) {
        struct node *add = op_made_by(v, "Add"), *where = op_made_by(v, "Where");
        v = op_unscale(v, &x->scale);
        if ((x->product = op_made_by(v, "MatMul")))
            break;
        if (x->mask || x->seen || x->scale < 1 || x->scale > 1)
            return false;
        if (where && op_number(where->in[2], &number) && isinf(number) && number < 0) {
            x->seen = where->in[0];
            v = where->in[1];
        } else if (add) {
            struct value *left = op_unscale(add->in[0], &(double){1});
            x->mask = op_made_by(left, "MatMul") ? add->in[1] : add->in[0];
            v = x->mask == add->in[1] ? add->in[0] : add->in[1];
        } else {
            return false;
        }
    }
    x->m.in[Q] = op_unscale(x->product->in[0], &x->q_scale);
    return attention_key(g, op_unscale(x->product->in[1], &x->k_scale), &x->m);
}

/* ---- readers --------------------------------------------------------------------------------------------------------------------- */

/* The MatMul of a and b, maybe transposed; a or b NULL: any value. */
static struct node *product_of(const struct gradient_search *s, const struct value *v, int operand, const struct value *other, bool turned)
{
    EACH (const struct use, u, s->uses[v->id]) {
        if (!op_is_onnx(u->node, "MatMul") || u->index != operand)
            continue;
        const struct value *with = u->node->in[1 - operand];
        const struct node *turn = with->producer;
        bool turns = op_transposes(s->g, op_is_onnx(turn, "Transpose") ? turn : NULL, 0, 1, 3, 2) && turn->in[0] == other;
        if (turned ? turns : with == other)
            return u->node;
    }
    return NULL;
}

/* Follows a gradient through the nodes between the scores and their product, in the order of the walk. */
static const struct value *through_scores(const struct gradient_search *s, const struct value *v, const struct gradient_match *x)
{
    for (double scale = 1;;) {
        const struct use *u = s->uses[v->id].at;
        const struct node *n = s->uses[v->id].n == 1 ? u->node : NULL;
        if (!n || op_is_onnx(n, "MatMul"))
            return v;
        bool numbers = op_unscale(n->out[0], &scale) == v;
        bool hides = op_is_onnx(n, "Where") && n->in[0] == x->seen && n->in[1] == v && is_zero(n->in[2]);
        if (!numbers && !hides)
            return NULL;
        v = n->out[0];
    }
}

/* dq' = ds k'^T and dk' = q'^T ds must be the only readers of ds. */
static bool match_products(const struct gradient_search *s, const struct value *ds, struct gradient_match *x)
{
    if (!(ds = through_scores(s, ds, x)))
        return false;
    x->dq = product_of(s, ds, 0, x->product->in[1], true);
    x->dk = product_of(s, ds, 1, x->product->in[0], true);
    if (!x->dq && op_made_by(x->product->in[1], "Transpose"))
        x->dq = product_of(s, ds, 0, x->product->in[1]->producer->in[0], false);
    return x->dq && s->uses[ds->id].n == 1 + (x->dk != NULL);
}

static void find_value_gradient(const struct gradient_search *s, const struct value *guarded, struct gradient_match *x)
{
    for (int i = 0; i < s->uses[guarded->id].n && !x->dv; i++) {
        struct node *turn = s->uses[guarded->id].at[i].node;
        if (op_is_onnx(turn, "Transpose") && op_transposes(s->g, turn, 0, 1, 3, 2))
            x->dv = product_of(s, turn->out[0], 0, x->dy, false);
    }
}

/* Finds p, or its guarded form in the forward pass. */
static void find_all_values(const struct gradient_search *s, const struct value *p, struct gradient_match *x)
{
    find_value_gradient(s, p, x);
    for (int i = 0; i < s->uses[p->id].n && !x->dv; i++) {
        const struct node *n = s->uses[p->id].at[i].node;
        struct value *of = NULL;
        if (op_is_onnx(n, "Where") && unguarded(n->out[0], &of) == p && of == p)
            find_value_gradient(s, n->out[0], x);
    }
}

/* ---- the node -------------------------------------------------------------------------------------------------------------------- */

static bool all_f32(const struct gradient_match *x)
{
    const struct value *v[] = {x->m.in[Q], x->m.in[K], x->m.in[V], x->dy, x->mask ? x->mask : x->dy};
    for (int i = 0; i < 5; i++)
        if (v[i]->type.dtype != DT_F32 || v[i]->type.rank > 4)
            return false;
    return x->dy->type.rank == 4 && (!x->seen || (x->seen->type.dtype == DT_BOOL && x->seen->type.rank <= 4));
}

static bool match_gradient(const struct gradient_search *s, const struct node *sub, struct gradient_match *x)
{
    *x = (struct gradient_match){.m = {.scale = 1}, .q_scale = 1, .k_scale = 1, .scale = 1};
    struct value *dp, *p, *of = NULL, *of_dp = NULL;
    if (!op_is_onnx(sub, "Sub") || sub->out[0]->type.rank != 4 || sub->out[0]->id >= s->nvalues || !match_softmax(sub, &dp, &p))
        return false;
    p = unguarded(p, &of);
    dp = unguarded(dp, &of_dp);
    struct node *softmax = op_made_by(p, "Softmax"), *product = op_made_by(dp, "MatMul");
    if (!softmax || !product || (of && of != p) || of != of_dp)
        return false;
    struct attention_match value = {.in = {NULL}};
    int64_t axis = attr_int(softmax, "axis");
    if ((axis != 3 && axis != -1) || !match_scores(s->g, softmax->in[0], x) || !attention_key(s->g, product->in[1], &value))
        return false;
    x->m.guarded = of != NULL;
    x->m.in[V] = value.in[K];
    x->dy = product->in[0];
    if (!match_products(s, sub->out[0], x) || value.rows_first[K] || !attention_read_heads(s->g, &x->m) || !all_f32(x))
        return false;
    find_all_values(s, p, x);
    return true;
}

static struct node *gradient_node(struct graph *g, const struct gradient_match *x)
{
    struct node *turn = op_made_by(x->dy, "Transpose");
    bool rows_first = op_transposes(g, turn, 0, 2, 1, 3);
    struct value *in[6] = {x->m.in[Q], x->m.in[K], x->m.in[V], rows_first ? turn->in[0] : x->dy, x->mask, x->seen};
    struct node *n = graph_node(g, op_find("tpc", "AttentionGradient"), x->dq->name, x->seen ? 6 : x->mask ? 5 : 4, in, 3);
    const int64_t first[4] = {x->m.rows_first[Q], x->m.rows_first[K], x->m.rows_first[V], rows_first};
    attr_set_ints(g, n, "rows_first", 4, first);
    attr_set_int(n, "guarded", x->m.guarded);
    attr_set_float(n, "scale", x->q_scale * x->k_scale * x->scale);
    attr_set_float(n, "q_scale", x->q_scale * x->scale);
    attr_set_float(n, "k_scale", x->k_scale * x->scale);
    return n;
}

/* The fused node takes over the result; the old node gets an unused one. */
static void take_over(struct graph *g, struct node *n, int result, struct node *old)
{
    if (!old)
        return;
    struct value *v = old->out[0];
    node_output(g, old, 0, graph_value(g, arena_printf(g->arena, "%s/unread", v->name), &v->type));
    node_output(g, n, result, v);
}

static int position_of(const struct graph *g, const struct node *n)
{
    int at = 0;
    while (at < g->nodes.n && g->nodes.at[at] != n)
        at++;
    return at;
}

/* All three products need the probabilities, so all operands are available before the first of them. */
static void fuse_gradient(struct graph *g, const struct gradient_match *x)
{
    struct node *all[3] = {x->dq, x->dk, x->dv}, *n = gradient_node(g, x);
    int at = g->nodes.n;
    for (int i = 0; i < 3; i++) {
        int own = all[i] ? position_of(g, all[i]) : at;
        at = own < at ? own : at;
        take_over(g, n, i, all[i]);
    }
    graph_insert(g, at, n);
}

void fuse_attention_gradients(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct gradient_search s = {.g = g, .uses = graph_uses(g, tmp), .nvalues = g->values.n};
    int made = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct gradient_match x;
        if (!match_gradient(&s, g->nodes.at[i], &x))
            continue;
        fuse_gradient(g, &x);
        made++;
        i++;
    }
    arena_free(tmp);
    graph_prune(g);
    if (made)
        explain("%s: gradients of %d attentions fused", graph_file(g), made);
}
