/* Fused attention and rotary embedding. One description serves Attention (3-D and 4-D) and GroupQueryAttention (separate and packed
 * Q, K, V): the sizes of batch, heads, queries, keys and past are found once, then both inference and rule are written in them.
 *
 * Query heads are a product (hk g): group g of query heads shares key head hk. Head size comes from past, the rotary cache or the
 * attribute head_size before it is divided from a width: on a rank without heads the width says nothing. */
#include "op/op.h"
#include "op/table.h"

#include <math.h>

struct heads {
    const struct dim *batch, *query, *key;       /* sequence lengths of Q and of the new K */
    const struct dim *past, *total;              /* past NULL: none */
    const struct dim *q_heads, *kv_heads;
    const struct dim *size, *value_size;         /* of one head of Q and K, of V; NULL: not known (no heads here) */
    bool flat, packed;                           /* [B, S, H*D] rather than [B, H, S, D]; K and V laid behind Q in operand 0 */
};

static const struct type *operand_type(const struct node *node, int i)
{
    return i < node->nin && node->in[i] ? &node->in[i]->type : NULL;
}

static const struct value *result(const struct node *node, int i)
{
    return i < node->nout ? node->out[i] : NULL;
}

/* ---- sizes ---------------------------------------------------------------------------------------------------------------------- */

/* Width of n heads of one size as that size; NULL when there are none to tell. */
static const struct dim *head_size(struct graph *g, const struct node *node, const struct dim *width, const struct dim *heads)
{
    if (dim_equals(heads, 0))
        return NULL;
    const struct dim *size = dim_quotient(g->alg, dim_rewrite(g->alg, width), heads);
    if (!size)
        fail("%s: a width of %s does not divide into %s heads", node_where(g, node), dim_str(g->arena, width), dim_str(g->arena, heads));
    return size;
}

/* The size recorded in a cache operand or an earlier result, dimension 3. */
static const struct dim *cached_size(const struct node *node, int past, int present)
{
    const struct type *t = operand_type(node, past);
    if (t && t->rank == 4)
        return t->dim[3];
    const struct value *v = result(node, present);
    return v && v->type.rank == 4 ? v->type.dim[3] : NULL;
}

static const struct dim *attr_heads(struct graph *g, const struct node *node, const char *name)
{
    int64_t n = attr_is_set(node, name) ? attr_int(node, name) : -1;
    if (n < 0)
        fail("%s: attribute '%s' must say how many heads there are", node_where(g, node), name);
    return dim_int(g->alg, n);
}

static void check_groups(const struct graph *g, const struct node *node, const struct heads *h)
{
    int64_t q, kv;
    if (dim_is_int(h->q_heads, &q) && dim_is_int(h->kv_heads, &kv) && (kv == 0 ? q != 0 : q % kv != 0))
        fail("%s: %lld query heads do not divide among %lld key heads", node_where(g, node), (long long)q, (long long)kv);
}

/* ---- Attention: 4-D operands, or 3-D with the number of heads in attributes ------------------------------------------------------- */

enum { Q = 0, K = 1, V = 2, MASK = 3, PAST_K = 4, PAST_V = 5, LENGTHS = 6 };

static void attention_flat(struct graph *g, const struct node *node, struct heads *h)
{
    const struct type *q = operand_type(node, Q), *k = operand_type(node, K), *v = operand_type(node, V);
    h->q_heads = attr_heads(g, node, "q_num_heads");
    h->kv_heads = attr_heads(g, node, "kv_num_heads");
    h->query = q->dim[1];
    h->key = k->dim[1];
    h->size = head_size(g, node, q->dim[2], h->q_heads);
    h->value_size = head_size(g, node, v->dim[2], h->kv_heads);
    if (!h->size)
        h->size = cached_size(node, PAST_K, 1);
    if (!h->value_size)
        h->value_size = cached_size(node, PAST_V, 2);
}

static void attention_spread(const struct node *node, struct heads *h)
{
    const struct type *q = operand_type(node, Q), *k = operand_type(node, K), *v = operand_type(node, V);
    h->q_heads = q->dim[1];
    h->kv_heads = k->dim[1];
    h->query = q->dim[2];
    h->key = k->dim[2];
    h->size = q->dim[3];
    h->value_size = v->dim[3];
}

static struct heads attention_heads(struct graph *g, const struct node *node)
{
    struct heads h = {.batch = op_operand(g, node, Q)->dim[0]};
    const struct type *past = operand_type(node, PAST_K);
    h.flat = operand_type(node, Q)->rank == 3;
    if (h.flat)
        attention_flat(g, node, &h);
    else
        attention_spread(node, &h);
    h.past = past ? past->dim[2] : NULL;
    h.total = past ? dim_add(g->alg, h.past, h.key) : h.key;
    check_groups(g, node, &h);
    return h;
}

/* K or V (operand i) and its past against the sizes found. */
static void check_keys(struct graph *g, const struct node *node, const struct heads *h, int i, int past, const struct dim *size)
{
    const struct type *t = operand_type(node, i), *p = operand_type(node, past);
    op_same_dim(g, node, h->batch, t->dim[0], "the batch dimensions of Q, K and V");
    op_same_dim(g, node, h->key, t->dim[h->flat ? 1 : 2], "the lengths of K and V");
    if (h->flat && size)
        op_same_dim(g, node, dim_mul(g->alg, h->kv_heads, size), t->dim[2], "heads times head size and the width of K or V");
    if (!h->flat) {
        op_same_dim(g, node, h->kv_heads, t->dim[1], "the heads of K and V");
        op_same_dim(g, node, size, t->dim[3], "the head sizes");
    }
    if (!p)
        return;
    op_need_rank(g, node, past, 4, 4);
    op_same_dim(g, node, h->batch, p->dim[0], "the batch dimensions of past and K");
    op_same_dim(g, node, h->kv_heads, p->dim[1], "the heads of past and K");
    op_same_dim(g, node, h->past, p->dim[2], "the lengths of past key and past value");
    if (size)
        op_same_dim(g, node, size, p->dim[3], "the head sizes of past and K");
}

/* A mask may say less keys than there are only where both are numbers; the kernel masks the rest. */
static bool mask_is_short(const struct dim *mask, const struct dim *total)
{
    int64_t m, t;
    return dim_is_int(mask, &m) && dim_is_int(total, &t) && m != 1 && m < t;
}

/* A mask or bias, right-aligned with [B, H, S, T]. */
static void check_mask(struct graph *g, const struct node *node, const struct heads *h, int i, bool may_be_short)
{
    const struct type *t = operand_type(node, i);
    if (!t)
        return;
    op_need_rank(g, node, i, 1, 4);
    const struct dim *want[4] = {h->batch, h->q_heads, h->query, h->total};
    for (int d = 0; d < t->rank; d++) {
        int at = 4 - t->rank + d;
        if (dim_equals(t->dim[d], 1) || (at == 3 && may_be_short && mask_is_short(t->dim[d], h->total)))
            continue;
        op_same_dim(g, node, want[at], t->dim[d], "the mask and [batch, heads, queries, keys]");
    }
}

static const struct dim *or_zero(struct graph *g, const struct dim *size)
{
    return size ? size : dim_int(g->alg, 0);
}

static void present_results(struct graph *g, struct node *node, const struct heads *h, enum dtype k, enum dtype v)
{
    const struct dim *key[4] = {h->batch, h->kv_heads, h->total, or_zero(g, h->size)};
    const struct dim *value[4] = {h->batch, h->kv_heads, h->total, or_zero(g, h->value_size)};
    const struct dim *score[4] = {h->batch, h->q_heads, h->query, h->total};
    op_result(g, node, 1, k, 4, key);
    op_result(g, node, 2, v, 4, value);
    op_result(g, node, 3, op_operand(g, node, Q)->dtype, 4, score);
}

void infer_attention(struct graph *g, struct node *node)
{
    for (int i = Q; i <= V; i++)
        op_need_rank(g, node, i, 3, 4);
    op_same_dtype(g, node, Q, K);
    if (op_operand(g, node, Q)->rank != op_operand(g, node, K)->rank || op_operand(g, node, Q)->rank != op_operand(g, node, V)->rank)
        fail("%s: Q, K and V must all have 3 or all have 4 dimensions", node_where(g, node));
    if (!operand_type(node, PAST_K) != !operand_type(node, PAST_V))
        fail("%s: past_key and past_value must be given together", node_where(g, node));
    if (operand_type(node, PAST_K))
        op_need_rank(g, node, PAST_K, 4, 4);
    struct heads h = attention_heads(g, node);
    check_keys(g, node, &h, K, PAST_K, h.size);
    check_keys(g, node, &h, V, PAST_V, h.value_size);
    h = attention_heads(g, node);               /* again: the checks may have added equations */
    check_mask(g, node, &h, MASK, true);
    if (operand_type(node, LENGTHS)) {
        op_need_rank(g, node, LENGTHS, 1, 1);
        op_same_dim(g, node, h.batch, operand_type(node, LENGTHS)->dim[0], "the batch and nonpad_kv_seqlen");
    }
    const struct dim *width = dim_mul(g->alg, h.q_heads, or_zero(g, h.value_size));
    const struct dim *spread[4] = {h.batch, h.q_heads, h.query, or_zero(g, h.value_size)}, *flat[3] = {h.batch, h.query, width};
    op_result(g, node, 0, op_operand(g, node, Q)->dtype, h.flat ? 3 : 4, h.flat ? flat : spread);
    present_results(g, node, &h, op_operand(g, node, K)->dtype, op_operand(g, node, V)->dtype);
}

/* ---- GroupQueryAttention ------------------------------------------------------------------------------------------------------------- */

enum { G_PAST_K = 3, G_PAST_V = 4, G_LENGTHS = 5, G_TOTAL = 6, G_COS = 7, G_SIN = 8, G_POSITIONS = 9, G_BIAS = 10, G_SINK = 11 };

/* Head size where the operands say it without division; NULL: they don't. */
static const struct dim *gqa_known_size(struct graph *g, const struct node *node)
{
    const struct type *past = operand_type(node, G_PAST_K);
    if (past && past->rank == 4)
        return past->dim[3];
    if (attr_int(node, "head_size") > 0)
        return dim_int(g->alg, attr_int(node, "head_size"));
    return NULL;
}

static const struct dim *gqa_size(struct graph *g, const struct node *node, const struct heads *h)
{
    const struct dim *known = gqa_known_size(g, node);
    if (known)
        return known;
    const struct dim *heads = h->q_heads;
    if (h->packed)
        heads = dim_add(g->alg, heads, dim_mul(g->alg, dim_int(g->alg, 2), h->kv_heads));
    return head_size(g, node, operand_type(node, Q)->dim[2], heads);
}

static struct heads gqa_heads(struct graph *g, const struct node *node)
{
    const struct type *q = op_operand(g, node, Q), *past = operand_type(node, G_PAST_K);
    struct heads h = {.batch = q->dim[0], .query = q->dim[1], .flat = true, .packed = !operand_type(node, K)};
    h.q_heads = attr_heads(g, node, "num_heads");
    h.kv_heads = attr_heads(g, node, "kv_num_heads");
    h.key = h.packed ? h.query : operand_type(node, K)->dim[1];
    h.past = past ? past->dim[2] : NULL;
    h.total = past ? dim_add(g->alg, h.past, h.key) : h.key;
    h.size = h.value_size = gqa_size(g, node, &h);
    check_groups(g, node, &h);
    return h;
}

static void check_gqa_widths(struct graph *g, const struct node *node, const struct heads *h)
{
    if (!h->size)
        return;
    const struct dim *q = dim_mul(g->alg, h->q_heads, h->size), *kv = dim_mul(g->alg, h->kv_heads, h->size);
    if (h->packed) {
        const struct dim *width = dim_add(g->alg, q, dim_mul(g->alg, dim_int(g->alg, 2), kv));
        op_same_dim(g, node, width, op_operand(g, node, Q)->dim[2], "heads times head size and the packed width");
        return;
    }
    op_same_dim(g, node, q, op_operand(g, node, Q)->dim[2], "heads times head size and the width of the query");
    for (int i = K; i <= V; i++) {
        const struct type *t = op_operand(g, node, i);
        op_same_dim(g, node, h->batch, t->dim[0], "the batch dimensions of query, key and value");
        op_same_dim(g, node, h->key, t->dim[1], "the lengths of key and value");
        op_same_dim(g, node, kv, t->dim[2], "heads times head size and the width of key or value");
    }
}

static void check_gqa_past(struct graph *g, const struct node *node, const struct heads *h)
{
    for (int i = G_PAST_K; i <= G_PAST_V; i++) {
        const struct type *t = operand_type(node, i);
        if (!t)
            continue;
        op_same_dim(g, node, h->batch, t->dim[0], "the batch dimensions of past and query");
        op_same_dim(g, node, h->kv_heads, t->dim[1], "the heads of past and of attribute kv_num_heads");
        op_same_dim(g, node, h->past, t->dim[2], "the lengths of past key and past value");
        op_same_dim(g, node, h->size, t->dim[3], "the head sizes of past key and past value");
    }
}

/* The total length operand states what past and sequence add up to. */
static void equate_total(struct graph *g, const struct node *node, const struct heads *h)
{
    const struct dims_value *total = G_TOTAL < node->nin ? op_dims(g, node->in[G_TOTAL]) : NULL;
    if (total && total->n == 1)
        op_same_dim(g, node, total->at[0], h->total, "the total length and past plus sequence");
}

static void check_gqa_ranks(struct graph *g, const struct node *node)
{
    for (int i = Q; i <= V; i++)
        if (operand_type(node, i))
            op_need_rank(g, node, i, 3, 3);
    for (int i = G_PAST_K; i <= G_PAST_V; i++)
        if (operand_type(node, i))
            op_need_rank(g, node, i, 4, 4);
    for (int i = G_COS; i <= G_SIN; i++)
        if (operand_type(node, i))
            op_need_rank(g, node, i, 2, 2);
    if (!operand_type(node, K) != !operand_type(node, V) || !operand_type(node, G_PAST_K) != !operand_type(node, G_PAST_V))
        fail("%s: key and value, and past key and past value, must be given together", node_where(g, node));
}

/* Keeps the head size where nothing else on a rank without heads would say it. */
static void keep_head_size(struct graph *g, struct node *node, const struct heads *h)
{
    int64_t size;
    if (!gqa_known_size(g, node) && h->size && dim_is_int(h->size, &size))
        attr_set_int(node, "head_size", size);
}

void infer_gqa(struct graph *g, struct node *node)
{
    check_gqa_ranks(g, node);
    struct heads h = gqa_heads(g, node);
    check_gqa_widths(g, node, &h);
    check_gqa_past(g, node, &h);
    equate_total(g, node, &h);
    h = gqa_heads(g, node);
    check_mask(g, node, &h, G_BIAS, false);
    keep_head_size(g, node, &h);
    const struct dim *out[3] = {h.batch, h.query, dim_mul(g->alg, h.q_heads, or_zero(g, h.size))};
    enum dtype dtype = op_operand(g, node, Q)->dtype, k = dtype, v = dtype;
    if (operand_type(node, G_PAST_K)) {
        k = operand_type(node, G_PAST_K)->dtype;
        v = operand_type(node, G_PAST_V)->dtype;
    }
    op_result(g, node, 0, dtype, 3, out);
    present_results(g, node, &h, k, v);
}

/* ---- rules: the factors of attention --------------------------------------------------------------------------------------------------- */

struct attention_factors { int b, hk, g, s, d, e, p, n; };       /* -1: no such factor */

/* Query heads as (hk g); the caller knows that they divide. One key head is no factor: it is whole, and so is one query head per key head. */
static void head_factors(struct graph *g, struct rule *r, const struct heads *h, struct attention_factors *f)
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

static void put(struct graph *g, struct rule_operand *operand, int d, int part, int f)
{
    if (f >= 0)
        rule_put(g, operand, d, part, f);
}

static void put_query_heads(struct graph *g, struct rule_operand *operand, int d, int part, const struct attention_factors *f)
{
    put(g, operand, d, part, f->hk);
    put(g, operand, d, part, f->g);
}

/* Operand of query heads, [B, S, H*D] or [B, H, S, D]. */
static void put_query(struct graph *g, struct rule_operand *operand, bool flat, const struct attention_factors *f, int size)
{
    put(g, operand, 0, 0, f->b);
    put(g, operand, flat ? 1 : 2, 0, f->s);
    put_query_heads(g, operand, flat ? 2 : 1, 0, f);
    put(g, operand, flat ? 2 : 3, 0, size);
}

static void put_keys(struct graph *g, struct rule_operand *operand, bool flat, const struct attention_factors *f, int size)
{
    put(g, operand, 0, 0, f->b);
    put(g, operand, flat ? 1 : 2, 0, f->n);
    put(g, operand, flat ? 2 : 1, 0, f->hk);
    put(g, operand, flat ? 2 : 3, 0, size);
}

/* All keys: past, then new, laid end to end. */
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
        put(g, cache, 0, 0, f->b);
        put(g, cache, 1, 0, f->hk);
        if (cache == in)
            put(g, cache, 2, 0, f->p);
        else
            put_total(g, cache, 2, f);
        put(g, cache, 3, 0, size);
    }
}

static int whole_factor(struct graph *g, struct rule *r, const char *name, const struct dim *size)
{
    return rule_factor(g, r, name, size, FACTOR_WHOLE);
}

/* A mask, bias or score, right-aligned with [B, (hk g), S, T]; extents of 1 are left empty. */
static void put_scores(struct graph *g, struct rule *r, struct rule_operand *operand, const struct type *t, const struct heads *h,
                       const struct attention_factors *f)
{
    for (int d = 0; d < t->rank; d++) {
        if (dim_equals(t->dim[d], 1))
            continue;
        switch (4 - t->rank + d) {
        case 0: put(g, operand, d, 0, f->b); break;
        case 1: put_query_heads(g, operand, d, 0, f); break;
        case 2: put(g, operand, d, 0, f->s); break;
        default:
            if (dim_rewrite(g->alg, t->dim[d]) == dim_rewrite(g->alg, h->total))
                put_total(g, operand, d, f);
            else
                rule_put(g, operand, d, 0, whole_factor(g, r, "mask", t->dim[d]));
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

static bool has_heads(const struct heads *h)
{
    return h->size && h->value_size && !dim_equals(h->kv_heads, 0) && !dim_equals(h->q_heads, 0);
}

struct rule *rule_attention(struct graph *g, const struct node *node)
{
    struct heads h = attention_heads(g, node);
    if (!has_heads(&h) || !dim_quotient(g->alg, h.q_heads, h.kv_heads))
        return NULL;
    struct rule *r = rule_new(g, node);
    struct attention_factors f = {.p = -1};
    f.b = rule_factor(g, r, "b", h.batch, 0);
    head_factors(g, r, &h, &f);
    f.s = rule_factor(g, r, "s", h.query, attr_int(node, "is_causal") ? FACTOR_POSITION | FACTOR_LOWERED : 0);
    f.d = whole_factor(g, r, "d", h.size);
    f.e = rule_factor(g, r, "e", h.value_size, FACTOR_DROPPED);
    f.n = rule_factor(g, r, "n", h.key, FACTOR_WHOLE | FACTOR_CONTRACTED);
    if (h.past)
        f.p = rule_factor(g, r, "p", h.past, FACTOR_WHOLE | FACTOR_CONTRACTED);
    r->factor[f.s].flags |= FACTOR_DROPPED;
    put_query(g, &r->in[Q], h.flat, &f, f.d);
    put_keys(g, &r->in[K], h.flat, &f, f.d);
    put_keys(g, &r->in[V], h.flat, &f, f.e);
    put_past(g, r, PAST_K, 1, &f, f.d);
    put_past(g, r, PAST_V, 2, &f, f.e);
    put_query(g, &r->out[0], h.flat, &f, f.e);
    if (operand_type(node, MASK))
        put_scores(g, r, &r->in[MASK], operand_type(node, MASK), &h, &f);
    if (operand_type(node, LENGTHS))
        rule_put(g, &r->in[LENGTHS], 0, 0, f.b);
    if (result(node, 3))
        put_scores(g, r, &r->out[3], &node->out[3]->type, &h, &f);
    if (h.flat)
        put_sizes(r, &f, "q_num_heads", "kv_num_heads");
    if (!h.past && !result(node, 1) && !result(node, 2) && !result(node, 3))
        rule_linear(r, 1u << V);                /* the weights do not depend on V; other results do not either, so they are no terms */
    return r;
}

/* ---- causal attention of some of the rows: the edge of each row is its place in the whole sequence, said by a mask ----------------- */

/* [S, 1], or [B, 1, S, 1] where every batch has its own length: the last key that each row may see. */
static struct value *last_keys(struct lowering *l, const struct heads *h, const struct split *rows)
{
    const struct node *node = l->node;
    struct value *last = lower_unsqueeze(l, "row", lower_positions(l, "rows", rows), 1, 1);
    if (operand_type(node, LENGTHS)) {
        struct value *length = lower_unsqueeze(l, "length.wide", lower_cast(l, "length", node->in[LENGTHS], DT_I64), 1, 3);
        struct type query = {.rank = 1, .dim = {h->query}};
        return lower_binary(l, "Add", "last", last, lower_binary(l, "Sub", "before", length, lower_extent(l, "queries", &query, 0, 1, DT_I64)));
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
    struct heads h = attention_heads(l->g, node);
    const struct type *given = operand_type(node, MASK);
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

/* Everything that every rank needs in full: lengths, rotary caches, positions, scales. */
static void put_whole(struct graph *g, struct rule *r, const struct node *node, int i)
{
    const struct type *t = operand_type(node, i);
    for (int d = 0; t && d < t->rank; d++)
        rule_put(g, &r->in[i], d, 0, whole_factor(g, r, "x", t->dim[d]));
}

static void put_packed(struct graph *g, struct rule_operand *operand, const struct attention_factors *f)
{
    put(g, operand, 0, 0, f->b);
    put(g, operand, 1, 0, f->s);
    for (int part = 0; part < 3; part++) {
        put(g, operand, 2, part, f->hk);
        put(g, operand, 2, part, part == 0 ? f->g : -1);
        put(g, operand, 2, part, f->d);
    }
}

/* A new key is a query position here: both lengths are one factor. */
static void gqa_factors(struct graph *g, struct rule *r, const struct heads *h, struct attention_factors *f)
{
    f->b = rule_factor(g, r, "b", h->batch, FACTOR_WHOLE);
    head_factors(g, r, h, f);
    f->s = rule_factor(g, r, "s", h->query, FACTOR_POSITION | FACTOR_CONTRACTED);
    f->n = dim_rewrite(g->alg, h->key) == dim_rewrite(g->alg, h->query) ? f->s
         : rule_factor(g, r, "n", h->key, FACTOR_WHOLE | FACTOR_CONTRACTED);
    f->d = f->e = whole_factor(g, r, "d", h->size);
    f->p = h->past ? rule_factor(g, r, "p", h->past, FACTOR_WHOLE | FACTOR_CONTRACTED) : -1;
}

static void put_gqa_operands(struct graph *g, struct rule *r, const struct node *node, const struct heads *h,
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
            put_whole(g, r, node, i);
    if (operand_type(node, G_BIAS))
        put_scores(g, r, &r->in[G_BIAS], operand_type(node, G_BIAS), h, f);
    if (operand_type(node, G_SINK))
        put_query_heads(g, &r->in[G_SINK], 0, 0, f);
}

/* Operands that follow the heads must have their number; scales of single channels would, too, and keep the op whole. */
static bool gqa_divides(struct graph *g, const struct node *node, const struct heads *h)
{
    const struct type *sink = operand_type(node, G_SINK);
    if (!has_heads(h) || !dim_quotient(g->alg, h->q_heads, h->kv_heads) || (sink && (sink->rank != 1 || sink->dim[0] != h->q_heads)))
        return false;
    for (int i = G_SINK + 1; i < node->nin; i++)
        if (operand_type(node, i) && !dim_equals(type_elements(g->alg, operand_type(node, i)), 1))
            return false;
    return true;
}

struct rule *rule_gqa(struct graph *g, const struct node *node)
{
    struct heads h = gqa_heads(g, node);
    if (!gqa_divides(g, node, &h))
        return NULL;
    struct rule *r = rule_new(g, node);
    struct attention_factors f;
    gqa_factors(g, r, &h, &f);
    put_gqa_operands(g, r, node, &h, &f);
    put_query(g, &r->out[0], true, &f, f.d);
    if (result(node, 3))
        put_scores(g, r, &r->out[3], &node->out[3]->type, &h, &f);
    put_sizes(r, &f, "num_heads", "kv_num_heads");
    return r;
}
