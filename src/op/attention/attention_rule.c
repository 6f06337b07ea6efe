/* attention_rule: rules of the fused attention ops, and the lowering of causal rows. Query heads are a product (hk g): group g of query
 * heads shares key head hk; a rank holds all heads of some groups, or some heads of one group. */
#include "op/attention/attention.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <math.h>

/* ---- rules: the factors of attention ----------------------------------------------------------------------------------------- */

struct attention_factors {
    int b, hk, g, s, d, e, p, n;
}; /* -1: no such factor */

/* Query heads as (hk g); the caller checks that they divide. A single key head, or a single query head per key head, is no factor and is
 * never split. */
static void head_factors(struct graph *g, struct rule *r, const struct attention_sizes *h, struct attention_factors *f)
{
    f->hk = f->g = -1;
    const struct dim *group = dim_quotient(g->alg, h->q_heads, h->kv_heads);
    require(group);
    if (!dim_equals(h->kv_heads, 1))
        f->hk = rule_factor(g, r, "hk", h->kv_heads, FACTOR_HEADS);
    if (!dim_equals(group, 1))
        f->g = rule_factor(g, r, "g", group, f->hk < 0 ? FACTOR_HEADS | FACTOR_DROPPED : FACTOR_DROPPED);
    if (f->hk >= 0 && f->g >= 0) {
        r->query_outer = f->hk;
        r->query_inner = f->g;
    }
}

static void put_in_part(struct graph *g, struct rule_operand *operand, int d, int part, int f)
{
    if (f >= 0)
        rule_put(g, operand, d, part, f);
}

static void put_query_heads(struct graph *g, struct rule_operand *operand, int d, int part, const struct attention_factors *f)
{
    put_in_part(g, operand, d, part, f->hk);
    put_in_part(g, operand, d, part, f->g);
}

/* Operand of query heads, [B, S, H*D] or [B, H, S, D]. */
static void put_query(struct graph *g, struct rule_operand *operand, bool flat, const struct attention_factors *f, int size)
{
    put_in_part(g, operand, 0, 0, f->b);
    put_in_part(g, operand, flat ? 1 : 2, 0, f->s);
    put_query_heads(g, operand, flat ? 2 : 1, 0, f);
    put_in_part(g, operand, flat ? 2 : 3, 0, size);
}

static void put_keys(struct graph *g, struct rule_operand *operand, bool flat, const struct attention_factors *f, int size)
{
    put_in_part(g, operand, 0, 0, f->b);
    put_in_part(g, operand, flat ? 1 : 2, 0, f->n);
    put_in_part(g, operand, flat ? 2 : 1, 0, f->hk);
    put_in_part(g, operand, flat ? 2 : 3, 0, size);
}

/* All keys: past and new, concatenated. */
static void put_total(struct graph *g, struct rule_operand *operand, int d, const struct attention_factors *f)
{
    if (f->p >= 0)
        rule_put(g, operand, d, 0, f->p);
    rule_put(g, operand, d, f->p >= 0, f->n);
}

static void put_past(struct graph *g, struct rule *r, int past, int present, const struct attention_factors *f, int size)
{
    struct rule_operand *in = past < r->nin && r->in[past].present ? &r->in[past] : NULL;
    struct rule_operand *out = present < r->nout && r->out[present].present ? &r->out[present] : NULL;
    for (int i = 0; i < 2; i++) {
        struct rule_operand *cache = i ? out : in;
        if (!cache)
            continue;
        put_in_part(g, cache, 0, 0, f->b);
        put_in_part(g, cache, 1, 0, f->hk);
        if (cache == in)
            put_in_part(g, cache, 2, 0, f->p);
        else
            put_total(g, cache, 2, f);
        put_in_part(g, cache, 3, 0, size);
    }
}

static int replicated_factor(struct graph *g, struct rule *r, const char *name, const struct dim *size)
{
    return rule_factor(g, r, name, size, FACTOR_REPLICATED);
}

/* A mask, bias or score, right-aligned with [B, (hk g), S, T]; extents of 1 are left empty. */
static void put_scores(struct graph *g, struct rule *r, struct rule_operand *operand, const struct type *t, const struct attention_sizes *h,
                       const struct attention_factors *f)
{
    for (int d = 0; d < t->rank; d++) {
        if (dim_equals(t->dim[d], 1))
            continue;
        switch (4 - t->rank + d) {
        case 0: put_in_part(g, operand, d, 0, f->b); break;
        case 1: put_query_heads(g, operand, d, 0, f); break;
        case 2: put_in_part(g, operand, d, 0, f->s); break;
        default:
            if (dim_rewrite(g->alg, t->dim[d]) == dim_rewrite(g->alg, h->total))
                put_total(g, operand, d, f);
            else
                rule_put(g, operand, d, 0, replicated_factor(g, r, "mask", t->dim[d]));
        }
    }
}

static void put_sizes(struct rule *r, const struct attention_factors *f, const char *q_heads, const char *kv_heads)
{
    struct rule_size q = {.attr = q_heads}, kv = {.attr = kv_heads};
    if (f->hk >= 0)
        q.part.factor[q.part.n++] = kv.part.factor[kv.part.n++] = f->hk;
    if (f->g >= 0)
        q.part.factor[q.part.n++] = f->g;
    r->size[r->nsize++] = q;
    r->size[r->nsize++] = kv;
}

static bool has_heads(const struct attention_sizes *h)
{
    return h->size && h->value_size && !dim_equals(h->kv_heads, 0) && !dim_equals(h->q_heads, 0);
}

struct rule *rule_attention(struct graph *g, const struct node *node)
{
    struct attention_sizes h = attention_sizes_of(g, node);
    if (!has_heads(&h) || !dim_quotient(g->alg, h.q_heads, h.kv_heads))
        return NULL;
    struct rule *r = rule_new(g, node);
    struct attention_factors f = {.p = -1};
    f.b = rule_factor(g, r, "b", h.batch, 0);
    head_factors(g, r, &h, &f);
    f.s = rule_factor(g, r, "s", h.query, attr_int(node, "is_causal") ? FACTOR_POSITION | FACTOR_LOWERED : 0);
    f.d = replicated_factor(g, r, "d", h.size);
    f.e = rule_factor(g, r, "e", h.value_size, FACTOR_DROPPED);
    f.n = rule_factor(g, r, "n", h.key, FACTOR_REPLICATED | FACTOR_CONTRACTED);
    if (h.past)
        f.p = rule_factor(g, r, "p", h.past, FACTOR_REPLICATED | FACTOR_CONTRACTED);
    r->factor[f.s].flags |= FACTOR_DROPPED;
    put_query(g, &r->in[Q], h.flat, &f, f.d);
    put_keys(g, &r->in[K], h.flat, &f, f.d);
    put_keys(g, &r->in[V], h.flat, &f, f.e);
    put_past(g, r, PAST_K, 1, &f, f.d);
    put_past(g, r, PAST_V, 2, &f, f.e);
    put_query(g, &r->out[0], h.flat, &f, f.e);
    if (attention_operand(node, MASK))
        put_scores(g, r, &r->in[MASK], attention_operand(node, MASK), &h, &f);
    if (attention_operand(node, LENGTHS))
        rule_put(g, &r->in[LENGTHS], 0, 0, f.b);
    if (attention_output(node, 3))
        put_scores(g, r, &r->out[3], &node->out[3]->type, &h, &f);
    if (h.flat)
        put_sizes(r, &f, "q_num_heads", "kv_num_heads");
    if (!h.past && !attention_output(node, 1) && !attention_output(node, 2) && !attention_output(node, 3))
        rule_linear(r, 1u << V); /* the weights do not depend on V; other results do not either, so they are not partial */
    return r;
}

/* ---- causal attention of some of the rows: a mask gives each row's last visible key, its position in the global sequence ----- */

/* [S, 1], or [B, 1, S, 1] if lengths differ in the batch: the last key that each row may see. */
static struct value *last_keys(struct lowering *l, const struct attention_sizes *h, const struct split *rows)
{
    const struct node *node = l->node;
    struct value *last = lower_unsqueeze(l, "row", lower_positions(l, "rows", rows), 1, 1);
    if (attention_operand(node, LENGTHS)) {
        struct value *length = lower_unsqueeze(l, "length.wide", lower_cast(l, "length", node->in[LENGTHS], DT_I64), 1, 3);
        struct type query = {.rank = 1, .dim = {h->query}};
        return lower_binary(l, "Add", "last", last,
                            lower_binary(l, "Sub", "before", length, lower_extent(l, "queries", &query, 0, 1, DT_I64)));
    }
    struct type past = {.rank = 1, .dim = {h->past}};
    return h->past ? lower_binary(l, "Add", "last", last, lower_extent(l, "past", &past, 0, 1, DT_I64)) : last;
}

static struct value *masked(struct lowering *l, struct value *seen, struct value *mask)
{
    if (!mask)
        return seen;
    if (mask->type.dtype == DT_BOOL)
        return lower_binary(l, "And", "mask", seen, mask);
    struct value *never = lower_cast(l, "never.narrow", lower_scalar(l, "never", DT_F32, -INFINITY), mask->type.dtype);
    return lower_where(l, "mask", seen, mask, never);
}

void lower_attention(struct lowering *l)
{
    const struct node *node = l->node;
    struct attention_sizes h = attention_sizes_of(l->g, node);
    const struct type *given = attention_operand(node, MASK);
    struct value **in = NEWN(l->g->arena, struct value *, LENGTHS + 1);
    for (int i = 0; i < node->nin; i++)
        in[i] = node->in[i];
    struct value *keys = lower_count(l, "keys", given ? given->dim[given->rank - 1] : h.total);
    struct value *seen = lower_binary(l, "LessOrEqual", "seen", keys, last_keys(l, &h, node->in[Q]->place.split));
    in[MASK] = masked(l, seen, given ? node->in[MASK] : NULL);
    struct node *rows = lower_copy(l, "attention", node->nin > MASK ? node->nin : MASK + 1, in);
    attr_set_int(rows, "is_causal", 0);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            lower_result(l, i, rows->out[i]);
}

/* Operands that every rank needs in full: rotary caches, scales, and lengths and positions except their batch. */
static void put_replicated(struct graph *g, struct rule *r, const struct node *node, int i, const struct attention_sizes *h, int batch)
{
    const struct type *t = attention_operand(node, i);
    for (int d = 0; t && d < t->rank; d++) {
        bool rows = d == 0 && (i == G_LENGTHS || i == G_POSITIONS) && dim_rewrite(g->alg, t->dim[0]) == dim_rewrite(g->alg, h->batch);
        rule_put(g, &r->in[i], d, 0, rows ? batch : replicated_factor(g, r, "x", t->dim[d]));
    }
}

static void put_packed(struct graph *g, struct rule_operand *operand, const struct attention_factors *f)
{
    put_in_part(g, operand, 0, 0, f->b);
    put_in_part(g, operand, 1, 0, f->s);
    for (int part = 0; part < 3; part++) {
        put_in_part(g, operand, 2, part, f->hk);
        put_in_part(g, operand, 2, part, part == 0 ? f->g : -1);
        put_in_part(g, operand, 2, part, f->d);
    }
}

/* A new key is also a query position: both lengths are one factor. Its rows are not split (@ without a lowering): every rank appends all
 * keys to its past. */
static void gqa_factors(struct graph *g, struct rule *r, const struct attention_sizes *h, struct attention_factors *f)
{
    f->b = rule_factor(g, r, "b", h->batch, 0);
    head_factors(g, r, h, f);
    f->s = rule_factor(g, r, "s", h->query, FACTOR_POSITION | FACTOR_CONTRACTED);
    f->n = dim_rewrite(g->alg, h->key) == dim_rewrite(g->alg, h->query)
        ? f->s
        : rule_factor(g, r, "n", h->key, FACTOR_REPLICATED | FACTOR_CONTRACTED);
    f->d = f->e = replicated_factor(g, r, "d", h->size);
    f->p = h->past ? rule_factor(g, r, "p", h->past, FACTOR_REPLICATED | FACTOR_CONTRACTED) : -1;
}

static void put_gqa_operands(struct graph *g, struct rule *r, const struct node *node, const struct attention_sizes *h,
                             const struct attention_factors *f)
{
    if (h->packed) {
        put_packed(g, &r->in[Q], f);
    } else {
        put_query(g, &r->in[Q], true, f, f->d);
        put_keys(g, &r->in[K], true, f, f->d);
        put_keys(g, &r->in[V], true, f, f->d);
    }
    put_past(g, r, G_PAST_K, 1, f, f->d);
    put_past(g, r, G_PAST_V, 2, f, f->d);
    for (int i = G_LENGTHS; i < node->nin; i++)
        if (i != G_BIAS && i != G_SINK)
            put_replicated(g, r, node, i, h, f->b);
    if (attention_operand(node, G_BIAS))
        put_scores(g, r, &r->in[G_BIAS], attention_operand(node, G_BIAS), h, f);
    if (attention_operand(node, G_SINK))
        put_query_heads(g, &r->in[G_SINK], 0, 0, f);
}

/* Operands along the heads must have their number; so must per-channel scales, which keep the op replicated otherwise. */
static bool gqa_divides(struct graph *g, const struct node *node, const struct attention_sizes *h)
{
    const struct type *sink = attention_operand(node, G_SINK);
    if (!has_heads(h) || !dim_quotient(g->alg, h->q_heads, h->kv_heads) || (sink && (sink->rank != 1 || sink->dim[0] != h->q_heads)))
        return false;
    for (int i = G_SINK + 1; i < node->nin; i++)
        if (attention_operand(node, i) && !dim_equals(type_elements(g->alg, attention_operand(node, i)), 1))
            return false;
    return true;
}

struct rule *rule_gqa(struct graph *g, const struct node *node)
{
    struct attention_sizes h = attention_gqa_sizes(g, node);
    if (!gqa_divides(g, node, &h))
        return NULL;
    struct rule *r = rule_new(g, node);
    struct attention_factors f;
    gqa_factors(g, r, &h, &f);
    put_gqa_operands(g, r, node, &h, &f);
    put_query(g, &r->out[0], true, &f, f.d);
    if (attention_output(node, 3))
        put_scores(g, r, &r->out[3], &node->out[3]->type, &h, &f);
    put_sizes(r, &f, "num_heads", "kv_num_heads");
    return r;
}
