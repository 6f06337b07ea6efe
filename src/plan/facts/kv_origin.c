/* kv_origin: the tensors that attention reads as keys and values, by dataflow.
 *
 * A fused attention op takes them as operands 1 and 2, and leaves them as results 1 and 2. Written out, attention is two products of
 * activations with a softmax in between: the weighted sum contracts a dimension of its weights and of the values. Rules carry that
 * dimension back from the weights, through a softmax over it, to the product that made the scores. The operand of this product that has the
 * dimension is the keys. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"

#include <string.h>

struct kv_step {
    const struct value *value;
    int dim;
    bool weighed;
}; /* weighed: a softmax follows */
struct kv_search {
    struct graph *g;
    struct arena *tmp, *arena;
    struct rule **rule; /* by value id of the node's first result, on demand */
    int *seen;          /* by step: the last walk that visited it */
    int walk;
    VEC(struct kv_step) open;
    struct kv_pairs *found;
};

/* ---- moves ----------------------------------------------------------------------------------------------------------------- */

static bool one_element(const struct value *v)
{
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_equals(v->type.dim[d], 1))
            return false;
    return true;
}

/* Whether the op is linear in operand i while the other operand is fixed. */
static bool is_linear(const struct rule *r, int i)
{
    for (int k = 0; r && k < r->nlinear; k++)
        if (r->linear[k] == 1u << i)
            return true;
    return false;
}

/* Of an op with two operands, the operand that a one-element operand scales; -1: none. */
static int scaled_operand(struct graph *g, const struct node *n)
{
    if (!(n->op->flags & OP_ELEMENTWISE) || n->nin != 2 || !n->in[1])
        return -1;
    for (int i = 0; i < 2; i++)
        if (one_element(n->in[1 - i]) && is_linear(rule_of(g, n), i))
            return i;
    return -1;
}

/* The operand whose elements a node keeps, moves, repeats or scales; -1: none. */
static int kept_operand(struct graph *g, const struct node *n)
{
    if (!n->op || n->nin < 1 || !n->in[0])
        return -1;
    return n->op->flags & (OP_MOVES | OP_CONVERTS | OP_REPEATS) ? 0 : scaled_operand(g, n);
}

static int dim_with(const struct rule_operand *o, int f)
{
    for (int d = 0; o->present && d < o->rank; d++)
        if (rule_factor_at(o, d) == f)
            return d;
    return -1;
}

/* Dimension d of the first result as a dimension of operand i; -1: it comes from several dimensions, or from none. */
static int dim_of_operand(const struct rule *r, int i, int d)
{
    require(!r || i < r->nin);
    int f = r && d >= 0 ? rule_factor_at(&r->out[0], d) : -1;
    return f < 0 ? -1 : dim_with(&r->in[i], f);
}

struct origin plan_kv_origin(struct graph *g, struct value *v, int d)
{
    int i;
    while (v->producer && (i = kept_operand(g, v->producer)) >= 0) {
        d = dim_of_operand(rule_of(g, v->producer), i, d);
        v = v->producer->in[i];
    }
    return (struct origin){v, d};
}

/* ---- products with a softmax between ------------------------------------------------------------------------------------------ */

static const struct rule *rule_at(struct kv_search *s, const struct node *n)
{
    if (!n->op || n->nout < 1 || !n->out[0])
        return NULL;
    struct rule **slot = &s->rule[n->out[0]->id];
    if (!*slot)
        *slot = rule_of(s->g, n);
    return *slot;
}

static void push_step(struct kv_search *s, const struct value *v, int d, bool weighed)
{
    int *seen = &s->seen[(v->id * MAX_RANK + d) * 2 + weighed];
    if (*seen == s->walk)
        return;
    *seen = s->walk;
    VEC_PUSH(s->tmp, &s->open, ((struct kv_step){v, d, weighed}));
}

static void add_pair(struct kv_search *s, struct origin key, struct origin value)
{
    VEC_PUSH(s->arena, &s->found->list, ((struct kv_pair){key, value}));
}

static void walk_back(struct kv_search *s, struct kv_step at, struct origin value)
{
    const struct node *n = at.value->producer;
    const struct rule *r = n ? rule_at(s, n) : NULL;
    int f = r ? rule_factor_at(&r->out[at.value->index], at.dim) : -1;
    if (f < 0)
        return;
    bool product = (n->op->flags & OP_PRODUCT) != 0;
    bool weighed = at.weighed || ((n->op->flags & OP_BARRIER) && (r->factor[f].flags & (FACTOR_REPLICATED | FACTOR_LOWERED)));
    for (int i = 0; i < n->nin; i++) {
        int d = n->in[i] ? dim_with(&r->in[i], f) : -1;
        if (d >= 0 && product && weighed)
            add_pair(s, plan_kv_origin(s->g, n->in[i], d), value);
        else if (d >= 0 && !product)
            push_step(s, n->in[i], d, weighed);
    }
}

/* Takes operand i of a product as attention weights, if dimension d of it comes from scores. */
static void follow_weights(struct kv_search *s, const struct node *n, int i, int d, struct origin value)
{
    s->walk++;
    s->open.n = 0;
    push_step(s, n->in[i], d, false);
    while (s->open.n > 0)
        walk_back(s, s->open.at[--s->open.n], value);
}

static void weighted_sum(struct kv_search *s, const struct node *n)
{
    const struct rule *r = n->nin == 2 && n->in[0] && n->in[1] && !n->in[0]->constant && !n->in[1]->constant ? rule_at(s, n) : NULL;
    for (int f = 0; r && f < r->nfactor; f++)
        for (int i = 0; (r->factor[f].flags & FACTOR_CONTRACTED) && i < 2; i++) {
            int weights = dim_with(&r->in[i], f), values = dim_with(&r->in[1 - i], f);
            if (weights >= 0 && values >= 0)
                follow_weights(s, n, i, weights, plan_kv_origin(s->g, n->in[1 - i], values));
        }
}

/* ---- fused ops ------------------------------------------------------------------------------------------------------------------ */

static bool has_past(const struct node *n)
{
    for (int i = 0; i < n->nin && i < n->op->nin; i++)
        if (n->in[i] && !n->in[i]->constant && strncmp(n->op->in[i].name, "past_", 5) == 0)
            return true;
    return false;
}

static int kv_dim(const struct rule *r, const struct rule_operand *o)
{
    for (int d = 0; o->present && d < o->rank; d++) {
        int f = rule_factor_at(o, d);
        if (f >= 0 && (r->factor[f].flags & FACTOR_CONTRACTED))
            return d;
    }
    return -1;
}

/* Keys and values appended to a past are skipped: state.c finds pairs. */
static void fused_attention(struct kv_search *s, const struct node *n)
{
    const struct rule *r = has_past(n) ? NULL : rule_at(s, n);
    if (r && n->nin > 2 && n->in[1] && n->in[2])
        add_pair(s, plan_kv_origin(s->g, n->in[1], kv_dim(r, &r->in[1])), plan_kv_origin(s->g, n->in[2], kv_dim(r, &r->in[2])));
    if (r && n->nout > 2 && n->out[1] && n->out[2])
        add_pair(s, (struct origin){n->out[1], n->out[1]->type.rank - 2}, (struct origin){n->out[2], n->out[2]->type.rank - 2});
}

struct kv_pairs plan_kv_pairs(struct graph *g, struct arena *arena)
{
    struct kv_pairs found = {{NULL, 0, 0}};
    struct arena *tmp = arena_new();
    struct kv_search s = {.g = g, .tmp = tmp, .arena = arena, .found = &found};
    s.rule = NEWN(tmp, struct rule *, g->values.n + 1);
    s.seen = arena_array(tmp, (size_t)g->values.n + 1, 2 * MAX_RANK * sizeof *s.seen);
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        unsigned flags = n->op ? n->op->flags & (OP_PRODUCT | OP_APPENDS) : 0;
        if (flags == OP_PRODUCT)
            weighted_sum(&s, n);
        else if (flags == (OP_PRODUCT | OP_APPENDS))
            fused_attention(&s, n);
    }
    arena_free(tmp);
    return found;
}
