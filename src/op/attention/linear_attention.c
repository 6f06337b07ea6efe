/* LinearAttention: batch b, heads h of keys and values with g query heads each; (b !t (h g !k))(b !t (h !k))(b !t (h !v))(b h !k !v)
 * (b !t (h !k))(b !t h) -> (b !t (h g !v))(b h !k !v). Tokens follow each other, so they are never split. */
#include "ir/operands.h"
#include "op/attention/attention.h"
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

struct linear_sizes {
    const struct dim *batch, *length, *heads, *group, *keys, *values;
};

static const struct idle_size idle_key = {"head_size", IN_LinearAttention_past_state, 1, 2},
                              idle_value = {"value_size", IN_LinearAttention_past_state, 1, 3};

/* On a rank without heads. */
static const struct dim *idle_size(struct graph *g, const struct node *node, struct idle_size from)
{
    const struct dim *size = attention_idle_size(g, node, from);
    return size ? size : dim_int(g->alg, 0);
}

/* The packed dimension of an operand, divided by its heads. */
static const struct dim *of_head(struct graph *g, const struct node *node, int i, int64_t heads)
{
    const struct type *t = op_operand(g, node, i);
    op_need_rank(g, node, i, 3, 3);
    if (heads == 0)
        return idle_size(g, node, i == IN_LinearAttention_value ? idle_value : idle_key);
    const struct dim *each = dim_quotient(g->alg, t->dim[2], dim_int(g->alg, heads));
    if (!each)
        fail("%s: the last dimension of '%s' %s is not divided by %lld heads", node_where(g, node), node->in[i]->name,
             type_str(g->arena, t), (long long)heads);
    return each;
}

static struct linear_sizes sizes_of(struct graph *g, const struct node *node)
{
    int64_t queries = attr_is_set(node, "q_num_heads") ? attr_int(node, "q_num_heads") : 0;
    int64_t heads = attr_is_set(node, "kv_num_heads") ? attr_int(node, "kv_num_heads") : 0;
    if (heads < 0 || queries < heads || (heads ? queries % heads : queries))
        fail("%s: %lld query heads do not share %lld heads of keys and values", node_where(g, node), (long long)queries, (long long)heads);
    const struct type *q = op_operand(g, node, IN_LinearAttention_query);
    struct linear_sizes s = {.batch = q->dim[0],
                             .length = q->dim[1],
                             .heads = dim_int(g->alg, heads),
                             .group = dim_int(g->alg, heads ? queries / heads : 1),
                             .keys = of_head(g, node, IN_LinearAttention_key, heads),
                             .values = of_head(g, node, IN_LinearAttention_value, heads)};
    return s;
}

static void check_rule(const struct graph *g, const struct node *node)
{
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    const char *rule = attr_string(node, "update_rule");
    for (int i = 0; i < 4; i++)
        if (strcmp(rule, rules[i]) == 0)
            return;
    fail("%s: attribute 'update_rule' is '%s', expected linear, gated, delta or gated_delta", node_where(g, node), rule);
}

/* Per head, or per head and key; beta also as one for all heads. */
static bool fits_gate(const struct linear_sizes *s, struct alg *alg, int i, const struct dim *last)
{
    return last == s->heads || (i == IN_LinearAttention_decay ? last == dim_mul(alg, s->heads, s->keys) : dim_equals(last, 1));
}

void infer_linearattention(struct graph *g, struct node *node)
{
    op_need_rank(g, node, IN_LinearAttention_query, 3, 3);
    const struct type *q = op_operand(g, node, IN_LinearAttention_query);
    check_rule(g, node);
    struct linear_sizes s = sizes_of(g, node);
    op_same_dim(g, node, of_head(g, node, IN_LinearAttention_query, attr_int(node, "q_num_heads")), s.keys,
                "the sizes of query and key heads");
    for (int i = IN_LinearAttention_key; i < node->nin; i++) {
        if (!node_operand(node, i) || i == IN_LinearAttention_past_state)
            continue;
        op_need_rank(g, node, i, 3, 3);
        op_same_dim(g, node, op_operand(g, node, i)->dim[0], s.batch, "the batch dimensions");
        op_same_dim(g, node, op_operand(g, node, i)->dim[1], s.length, "the lengths");
        if (i >= IN_LinearAttention_decay && !fits_gate(&s, g->alg, i, op_operand(g, node, i)->dim[2]))
            fail("%s: the last dimension of '%s' %s fits neither heads nor keys", node_where(g, node), node->in[i]->name,
                 type_str(g->arena, op_operand(g, node, i)));
    }
    const struct dim *state[4] = {s.batch, s.heads, s.keys, s.values};
    enum dtype held = q->dtype;
    if (node_operand(node, IN_LinearAttention_past_state)) {
        op_need_rank(g, node, IN_LinearAttention_past_state, 4, 4);
        held = op_operand(g, node, IN_LinearAttention_past_state)->dtype;
        for (int d = 0; d < 4; d++)
            op_same_dim(g, node, op_operand(g, node, IN_LinearAttention_past_state)->dim[d], state[d], "the dimensions of past_state");
    }
    const struct dim *last = dim_mul(g->alg, dim_mul(g->alg, s.heads, s.group), s.values);
    if (dim_equals(s.heads, 0)) {
        attention_keep_idle_size(g, node, idle_key);
        attention_keep_idle_size(g, node, idle_value);
    }
    op_result(g, node, 0, q->dtype, 3, (const struct dim *[]){s.batch, s.length, last});
    op_result(g, node, 1, held, 4, state);
}

struct linear_factors {
    int b, t, h, g, k, v;
};

static void put_token(struct graph *g, struct rule_operand *o, const struct linear_factors *f, bool group, int inner)
{
    rule_put(g, o, 0, 0, f->b);
    rule_put(g, o, 1, 0, f->t);
    rule_put(g, o, 2, 0, f->h);
    if (group && f->g >= 0)
        rule_put(g, o, 2, 0, f->g);
    if (inner >= 0)
        rule_put(g, o, 2, 0, inner);
}

static void put_state(struct graph *g, struct rule_operand *o, const struct linear_factors *f)
{
    const int factor[4] = {f->b, f->h, f->k, f->v};
    for (int d = 0; d < 4; d++)
        rule_put(g, o, d, 0, factor[d]);
}

/* beta as one number for all heads has a last dimension of its own. */
static void put_gates(struct graph *g, const struct node *node, struct rule *r, const struct linear_factors *f,
                      const struct linear_sizes *s)
{
    if (node_operand(node, IN_LinearAttention_decay))
        put_token(g, &r->in[IN_LinearAttention_decay], f, false, node->in[IN_LinearAttention_decay]->type.dim[2] == s->heads ? -1 : f->k);
    if (!node_operand(node, IN_LinearAttention_beta))
        return;
    if (node->in[IN_LinearAttention_beta]->type.dim[2] == s->heads) {
        put_token(g, &r->in[IN_LinearAttention_beta], f, false, -1);
        return;
    }
    rule_put(g, &r->in[IN_LinearAttention_beta], 0, 0, f->b);
    rule_put(g, &r->in[IN_LinearAttention_beta], 1, 0, f->t);
}

struct rule *rule_linearattention(struct graph *g, const struct node *node)
{
    struct linear_sizes s = sizes_of(g, node);
    struct rule *r = rule_new(g, node);
    bool grouped = !dim_equals(s.group, 1);
    struct linear_factors f = {.b = rule_factor(g, r, "b", s.batch, 0),
                               .t = rule_factor(g, r, "t", s.length, FACTOR_REPLICATED),
                               .h = rule_factor(g, r, "h", s.heads, FACTOR_HEADS),
                               .g = grouped ? rule_factor(g, r, "g", s.group, FACTOR_REPLICATED) : -1,
                               .k = rule_factor(g, r, "k", s.keys, FACTOR_REPLICATED),
                               .v = rule_factor(g, r, "v", s.values, FACTOR_REPLICATED)};
    put_token(g, &r->in[IN_LinearAttention_query], &f, true, f.k);
    put_token(g, &r->in[IN_LinearAttention_key], &f, false, f.k);
    put_token(g, &r->in[IN_LinearAttention_value], &f, false, f.v);
    if (node_operand(node, IN_LinearAttention_past_state))
        put_state(g, &r->in[IN_LinearAttention_past_state], &f);
    put_gates(g, node, r, &f, &s);
    if (r->out[0].present)
        put_token(g, &r->out[0], &f, true, f.v);
    if (node_result(node, 1))
        put_state(g, &r->out[1], &f);
    r->size[r->nsize++] = (struct rule_size){.attr = "kv_num_heads", .part = {.n = 1, .factor = {f.h}}};
    r->size[r->nsize++] = (struct rule_size){.attr = "q_num_heads", .part = {.n = grouped ? 2 : 1, .factor = {f.h, f.g}}};
    rule_linear(
        r, 1u << IN_LinearAttention_value | (node_operand(node, IN_LinearAttention_past_state) ? 1u << IN_LinearAttention_past_state : 0));
    if (!node_operand(node, IN_LinearAttention_past_state) && !strstr(attr_string(node, "update_rule"), "delta"))
        rule_linear(r, 1u << IN_LinearAttention_key);
    return r;
}
