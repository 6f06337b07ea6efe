/* attention: sizes and inference of fused attention. One description serves Attention (3-D and 4-D) and GroupQueryAttention (separate and
 * packed Q, K, V): the sizes of batch, heads, queries, keys and past are found once; inference and rule both use them.
 *
 * Query heads are a product (hk g): group g of query heads shares key head hk. On a rank without heads, the width does not determine the
 * head size: past does, or else the notes head_size and value_size. */
#include "op/attention/attention.h"

#include "op/infer/infer.h"
#include "op/table/table.h"

const struct type *attention_operand(const struct node *node, int i)
{
    return node_operand(node, i) ? &node->in[i]->type : NULL;
}

const struct value *attention_output(const struct node *node, int i)
{
    return i < node->nout ? node->out[i] : NULL;
}

/* ---- sizes ---------------------------------------------------------------------------------------------------------------------- */

/* The size of each of n heads in this width; NULL if there are none. */
static const struct dim *attention_head_size(struct graph *g, const struct node *node, const struct dim *width, const struct dim *heads)
{
    if (dim_equals(heads, 0))
        return NULL;
    const struct dim *size = dim_quotient(g->alg, dim_rewrite(g->alg, width), heads);
    if (!size)
        fail("%s: a width of %s does not divide into %s heads", node_where(g, node), dim_str(g->arena, width), dim_str(g->arena, heads));
    return size;
}

const struct dim *attention_idle_size(struct graph *g, const struct node *node, struct idle_size from)
{
    const struct type *past = attention_operand(node, from.past);
    const struct value *present = attention_output(node, from.present);
    if (past)
        return past->rank == 4 ? past->dim[from.dim] : NULL;
    if (attr_is_set(node, from.attr))
        return dim_int(g->alg, attr_int(node, from.attr));
    return present && present->type.rank == 4 ? present->type.dim[from.dim] : NULL;
}

void attention_keep_idle_size(struct graph *g, struct node *node, struct idle_size from)
{
    const struct dim *size = attention_operand(node, from.past) ? NULL : attention_idle_size(g, node, from);
    int64_t n;
    if (size && dim_is_int(size, &n))
        attr_set_int(node, from.attr, n);
}

static const struct dim *attr_heads(struct graph *g, const struct node *node, const char *name)
{
    int64_t n = attr_is_set(node, name) ? attr_int(node, name) : -1;
    if (n < 0)
        fail("%s: attribute '%s' must say how many heads there are", node_where(g, node), name);
    return dim_int(g->alg, n);
}

static void check_head_groups(const struct graph *g, const struct node *node, const struct attention_sizes *h)
{
    int64_t q, kv;
    if (dim_is_int(h->q_heads, &q) && dim_is_int(h->kv_heads, &kv) && (kv == 0 ? q != 0 : q % kv != 0))
        fail("%s: %lld query heads do not divide among %lld key heads", node_where(g, node), (long long)q, (long long)kv);
}

/* ---- Attention: 4-D operands, or 3-D with the number of heads in attributes ------------------------------------------------------- */

static const struct idle_size idle_key = {"head_size", PAST_K, 1, 3}, idle_value = {"value_size", PAST_V, 2, 3};

static void attention_flat(struct graph *g, const struct node *node, struct attention_sizes *h)
{
    const struct type *q = attention_operand(node, Q), *k = attention_operand(node, K), *v = attention_operand(node, V);
    h->q_heads = attr_heads(g, node, "q_num_heads");
    h->kv_heads = attr_heads(g, node, "kv_num_heads");
    h->query = q->dim[1];
    h->key = k->dim[1];
    h->size = attention_head_size(g, node, q->dim[2], h->q_heads);
    h->value_size = attention_head_size(g, node, v->dim[2], h->kv_heads);
    if (!h->size)
        h->size = attention_head_size(g, node, k->dim[2], h->kv_heads);
    if (!h->size)
        h->size = attention_idle_size(g, node, idle_key);
    if (!h->value_size)
        h->value_size = attention_idle_size(g, node, idle_value);
}

static void attention_spread(const struct node *node, struct attention_sizes *h)
{
    const struct type *q = attention_operand(node, Q), *k = attention_operand(node, K), *v = attention_operand(node, V);
    h->q_heads = q->dim[1];
    h->kv_heads = k->dim[1];
    h->query = q->dim[2];
    h->key = k->dim[2];
    h->size = q->dim[3];
    h->value_size = v->dim[3];
}

struct attention_sizes attention_sizes_of(struct graph *g, const struct node *node)
{
    struct attention_sizes h = {.batch = op_operand(g, node, Q)->dim[0]};
    const struct type *past = attention_operand(node, PAST_K);
    h.flat = attention_operand(node, Q)->rank == 3;
    if (h.flat)
        attention_flat(g, node, &h);
    else
        attention_spread(node, &h);
    h.past = past ? past->dim[2] : NULL;
    h.total = past ? dim_add(g->alg, h.past, h.key) : h.key;
    check_head_groups(g, node, &h);
    return h;
}

/* Checks K or V (operand i) and its past against the sizes found. */
static void check_keys(struct graph *g, const struct node *node, const struct attention_sizes *h, int i, int past, const struct dim *size)
{
    const struct type *t = attention_operand(node, i), *p = attention_operand(node, past);
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

/* Whether a mask covers fewer keys than there are; allowed only if both are numbers; the kernel masks the rest. */
static bool mask_is_short(const struct dim *mask, const struct dim *total)
{
    int64_t m, t;
    return dim_is_int(mask, &m) && dim_is_int(total, &t) && m != 1 && m < t;
}

/* Checks a mask or bias, right-aligned with [B, H, S, T]. */
static void check_mask(struct graph *g, const struct node *node, const struct attention_sizes *h, int i, bool may_be_short)
{
    const struct type *t = attention_operand(node, i);
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

static void present_results(struct graph *g, struct node *node, const struct attention_sizes *h, enum dtype k, enum dtype v)
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
    if (!attention_operand(node, PAST_K) != !attention_operand(node, PAST_V))
        fail("%s: past_key and past_value must be given together", node_where(g, node));
    if (attention_operand(node, PAST_K))
        op_need_rank(g, node, PAST_K, 4, 4);
    struct attention_sizes h = attention_sizes_of(g, node);
    check_keys(g, node, &h, K, PAST_K, h.size);
    check_keys(g, node, &h, V, PAST_V, h.value_size);
    h = attention_sizes_of(g, node); /* again, because the checks may have added equations */
    check_mask(g, node, &h, MASK, true);
    if (h.flat && dim_equals(h.kv_heads, 0)) {
        attention_keep_idle_size(g, node, idle_key);
        attention_keep_idle_size(g, node, idle_value);
    }
    if (attention_operand(node, LENGTHS)) {
        op_need_rank(g, node, LENGTHS, 1, 1);
        op_same_dim(g, node, h.batch, attention_operand(node, LENGTHS)->dim[0], "the batch and nonpad_kv_seqlen");
    }
    const struct dim *width = dim_mul(g->alg, h.q_heads, or_zero(g, h.value_size));
    const struct dim *spread[4] = {h.batch, h.q_heads, h.query, or_zero(g, h.value_size)}, *flat[3] = {h.batch, h.query, width};
    op_result(g, node, 0, op_operand(g, node, Q)->dtype, h.flat ? 3 : 4, h.flat ? flat : spread);
    present_results(g, node, &h, op_operand(g, node, K)->dtype, op_operand(g, node, V)->dtype);
}

/* ---- GroupQueryAttention ------------------------------------------------------------------------------------------------------------- */

static const struct idle_size idle_gqa = {"head_size", G_PAST_K, 1, 3};

/* The head size if operands give it without division; NULL: they do not. */
static const struct dim *gqa_known_size(struct graph *g, const struct node *node)
{
    const struct type *past = attention_operand(node, G_PAST_K);
    if (past && past->rank == 4)
        return past->dim[3];
    if (attr_is_set(node, "head_size"))
        return dim_int(g->alg, attr_int(node, "head_size"));
    return NULL;
}

static const struct dim *gqa_size(struct graph *g, const struct node *node, const struct attention_sizes *h)
{
    const struct dim *known = gqa_known_size(g, node);
    if (known)
        return known;
    const struct dim *heads = h->q_heads;
    if (h->packed)
        heads = dim_add(g->alg, heads, dim_mul(g->alg, dim_int(g->alg, 2), h->kv_heads));
    const struct dim *size = attention_head_size(g, node, attention_operand(node, Q)->dim[2], heads);
    if (!size && !h->packed)
        size = attention_head_size(g, node, attention_operand(node, K)->dim[2], h->kv_heads);
    return size ? size : attention_idle_size(g, node, idle_gqa);
}

struct attention_sizes attention_gqa_sizes(struct graph *g, const struct node *node)
{
    const struct type *q = op_operand(g, node, Q), *past = attention_operand(node, G_PAST_K);
    struct attention_sizes h = {.batch = q->dim[0], .query = q->dim[1], .flat = true, .packed = !attention_operand(node, K)};
    h.q_heads = attr_heads(g, node, "num_heads");
    h.kv_heads = attr_heads(g, node, "kv_num_heads");
    h.key = h.packed ? h.query : attention_operand(node, K)->dim[1];
    h.past = past ? past->dim[2] : NULL;
    h.total = past ? dim_add(g->alg, h.past, h.key) : h.key;
    h.size = h.value_size = gqa_size(g, node, &h);
    check_head_groups(g, node, &h);
    return h;
}

static void check_gqa_widths(struct graph *g, const struct node *node, const struct attention_sizes *h)
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

static void check_gqa_past(struct graph *g, const struct node *node, const struct attention_sizes *h)
{
    for (int i = G_PAST_K; i <= G_PAST_V; i++) {
        const struct type *t = attention_operand(node, i);
        if (!t)
            continue;
        op_same_dim(g, node, h->batch, t->dim[0], "the batch dimensions of past and query");
        op_same_dim(g, node, h->kv_heads, t->dim[1], "the heads of past and of attribute kv_num_heads");
        op_same_dim(g, node, h->past, t->dim[2], "the lengths of past key and past value");
        op_same_dim(g, node, h->size, t->dim[3], "the head sizes of past key and past value");
    }
}

/* The total length operand is the sum of past and sequence. */
static void equate_total(struct graph *g, const struct node *node, const struct attention_sizes *h)
{
    const struct dims_value *total = G_TOTAL < node->nin ? op_dims(g, node->in[G_TOTAL]) : NULL;
    if (total && total->n == 1)
        op_same_dim(g, node, total->at[0], h->total, "the total length and past plus sequence");
}

static void check_gqa_ranks(struct graph *g, const struct node *node)
{
    for (int i = Q; i <= V; i++)
        if (attention_operand(node, i))
            op_need_rank(g, node, i, 3, 3);
    for (int i = G_PAST_K; i <= G_PAST_V; i++)
        if (attention_operand(node, i))
            op_need_rank(g, node, i, 4, 4);
    for (int i = G_COS; i <= G_SIN; i++)
        if (attention_operand(node, i))
            op_need_rank(g, node, i, 2, 2);
    if (!attention_operand(node, K) != !attention_operand(node, V) ||
        !attention_operand(node, G_PAST_K) != !attention_operand(node, G_PAST_V))
        fail("%s: key and value, and past key and past value, must be given together", node_where(g, node));
}

void infer_gqa(struct graph *g, struct node *node)
{
    check_gqa_ranks(g, node);
    struct attention_sizes h = attention_gqa_sizes(g, node);
    check_gqa_widths(g, node, &h);
    check_gqa_past(g, node, &h);
    equate_total(g, node, &h);
    h = attention_gqa_sizes(g, node);
    check_mask(g, node, &h, G_BIAS, false);
    if (dim_equals(h.kv_heads, 0))
        attention_keep_idle_size(g, node, idle_gqa);
    const struct dim *out[3] = {h.batch, h.query, dim_mul(g->alg, h.q_heads, or_zero(g, h.size))};
    enum dtype dtype = op_operand(g, node, Q)->dtype, k = dtype, v = dtype;
    if (attention_operand(node, G_PAST_K)) {
        k = attention_operand(node, G_PAST_K)->dtype;
        v = attention_operand(node, G_PAST_V)->dtype;
    }
    op_result(g, node, 0, dtype, 3, out);
    present_results(g, node, &h, k, v);
}
