/* attention_backward: gradients of fused attention: the op is written out, softmax(q k' + mask) v, and differentiated. The scores are
 * recomputed, so nothing of the forward pass is kept. There is no past. Rotations are reversed. */
#include "op/attention/attention.h"
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

#include <math.h>

/* ---- parts ---------------------------------------------------------------------------------------------------------------------- */

/* [B, S, H*D] as [B, H, S, D]. */
static struct value *heads_of(struct lowering *l, const char *part, struct value *x, const struct dim *heads, const struct dim *size)
{
    const struct dim *apart[4] = {x->type.dim[0], x->type.dim[1], heads, size};
    return lower_transpose(l, part, lower_reshape(l, part, x, 4, apart), (const int64_t[]){0, 2, 1, 3});
}

static struct value *joined(struct lowering *l, struct value *x)
{
    struct value *rows = lower_transpose(l, "rows", x, (const int64_t[]){0, 2, 1, 3});
    const struct dim *flat[3] = {rows->type.dim[0], rows->type.dim[1], dim_mul(l->g->alg, rows->type.dim[2], rows->type.dim[3])};
    return lower_reshape(l, "joined", rows, 3, flat);
}

/* A key head for each query head. */
static struct value *repeated(struct lowering *l, const char *part, struct value *x, const struct attention_sizes *h)
{
    int64_t times;
    const struct dim *n = dim_quotient(l->g->alg, h->q_heads, h->kv_heads);
    if (!n || !dim_is_int(n, &times))
        fail("%s: no gradient passes this node: its numbers of heads are not known", node_where(l->g, l->node));
    if (times == 1)
        return x;
    struct node *node = lower_node(l, "tpc", "Repeat", part, 1, &x);
    attr_set_int(node, "axis", 1);
    attr_set_int(node, "repeats", times);
    op_infer(l->g, node);
    return node->out[0];
}

/* Positions 0 to n - 1 as a column, or as a row. */
static struct value *seen_keys(struct lowering *l, const struct attention_sizes *h, int64_t window)
{
    struct value *row = lower_unsqueeze(l, "query", lower_count(l, "queries", h->query), 1, 1), *key = lower_count(l, "keys", h->key);
    struct value *seen = lower_binary(l, "LessOrEqual", "seen", key, row);
    if (window <= 0)
        return seen;
    struct value *first = lower_binary(l, "Sub", "first", row, lower_scalar(l, "window", DT_I64, (double)window));
    return lower_binary(l, "And", "near", seen, lower_binary(l, "Greater", "within", key, first));
}

static struct value *hidden(struct lowering *l, const char *part, struct value *scores, struct value *seen)
{
    struct value *never = lower_cast(l, "never.narrow", lower_scalar(l, "never", DT_F32, -INFINITY), scores->type.dtype);
    return lower_where(l, part, seen, scores, never);
}

struct operands {
    struct value *q, *k, *v, *mask; /* q, k, v: [B, H, S, D]; mask NULL: none */
    double scale;                   /* 0: from the head size */
    bool causal;
    int64_t window;
};

static struct value *written_out(struct lowering *l, const struct attention_sizes *h, const struct operands *x)
{
    int64_t size;
    bool known = dim_is_int(h->size, &size) && size > 0;
    double scale = x->scale != 0 ? x->scale : known ? 1 / sqrt((double)size) : 1;
    struct value *number = lower_cast(l, "scale.narrow", lower_scalar(l, "scale", DT_F32, scale), x->q->type.dtype);
    struct value *k = lower_transpose(l, "k.turned", repeated(l, "k", x->k, h), (const int64_t[]){0, 1, 3, 2});
    struct value *scores = lower_binary(l, "MatMul", "scores", lower_binary(l, "Mul", "q.scaled", x->q, number), k);
    if (x->causal)
        scores = hidden(l, "causal", scores, seen_keys(l, h, x->window));
    if (x->mask)
        scores = x->mask->type.dtype == DT_BOOL ? hidden(l, "masked", scores, x->mask) : lower_binary(l, "Add", "masked", scores, x->mask);
    struct value *p = lower_unary(l, "Softmax", "p", scores), *nothing = lower_unary(l, "IsNaN", "p.nan", p);
    struct value *zero = lower_cast(l, "zero.narrow", lower_scalar(l, "zero", DT_F32, 0), p->type.dtype);
    return lower_binary(l, "MatMul", "y", lower_where(l, "p.guarded", nothing, zero, p), repeated(l, "v", x->v, h));
}

static void refuse(const struct backward *b, bool wrong, const char *what)
{
    if (wrong)
        fail("%s: no gradient passes this node: the gradient of %s is not supported", node_where(b->l.g, b->l.node), what);
}

static void refuse_states(const struct backward *b, const struct attention_sizes *h)
{
    refuse(b, h->past && !dim_equals(h->past, 0), "a past");
    for (int i = 1; i < b->l.node->nout; i++)
        refuse(b, b->dy[i] != NULL, "its further results");
    refuse(b, !h->size || !h->value_size, "heads of unknown size");
}

/* ---- Attention ------------------------------------------------------------------------------------------------------------------ */

static void write_attention(struct lowering *l)
{
    const struct node *node = l->node;
    struct attention_sizes h = attention_sizes_of(l->g, node);
    struct operands x = {node->in[Q], node->in[K], node->in[V], NULL, 0, attr_int(node, "is_causal") != 0, 0};
    x.scale = attr_is_set(node, "scale") ? attr_float(node, "scale") : 0;
    x.mask = attention_operand(node, MASK) ? node->in[MASK] : NULL;
    if (h.flat) {
        x.q = heads_of(l, "q", x.q, h.q_heads, h.size);
        x.k = heads_of(l, "k", x.k, h.kv_heads, h.size);
        x.v = heads_of(l, "v", x.v, h.kv_heads, h.value_size);
    }
    struct value *y = written_out(l, &h, &x);
    lower_result(l, 0, h.flat ? joined(l, y) : y);
}

void backward_attention(struct backward *b)
{
    const struct node *node = b->l.node;
    struct attention_sizes h = attention_sizes_of(b->l.g, node);
    refuse_states(b, &h);
    refuse(b, attention_operand(node, LENGTHS) != NULL, "nonpad_kv_seqlen");
    refuse(b, attr_float(node, "softcap") != 0, "softcap");
    back_through(b, write_attention);
}

/* ---- GroupQueryAttention --------------------------------------------------------------------------------------------------------- */

static struct value *rotated(struct lowering *l, const char *part, struct value *x)
{
    const struct node *node = l->node;
    struct value *at = attention_operand(node, G_POSITIONS) ? node->in[G_POSITIONS] : NULL;
    if (!at) {
        const struct dim *rows[2] = {x->type.dim[0], x->type.dim[2]};
        struct value *count = lower_unsqueeze(l, "places", lower_count(l, "place", rows[1]), 0, 1);
        struct node *all = lower_node(l, "", "Expand", "position", 1, &count);
        all->out[0]->type = (struct type){.dtype = DT_I64, .rank = 2, .dim = {rows[0], rows[1]}};
        op_infer(l->g, all);
        at = all->out[0];
    }
    struct value *in[4] = {x, node->in[G_COS], node->in[G_SIN], at};
    struct node *turn = lower_node(l, "", "RotaryEmbedding", part, 4, in);
    attr_set_int(turn, "interleaved", attr_int(node, "rotary_interleaved"));
    op_infer(l->g, turn);
    return turn->out[0];
}

static void write_gqa(struct lowering *l)
{
    const struct node *node = l->node;
    struct attention_sizes h = attention_gqa_sizes(l->g, node);
    struct value *part[3] = {node->in[Q], attention_operand(node, K) ? node->in[K] : NULL, attention_operand(node, V) ? node->in[V] : NULL};
    if (h.packed) {
        const struct dim *kv = dim_mul(l->g->alg, h.kv_heads, h.size), *size[3] = {dim_mul(l->g->alg, h.q_heads, h.size), kv, kv};
        struct node *split = lower_split(l, "packed", part[0], 2, 3, size);
        for (int i = 0; i < 3; i++)
            part[i] = split->out[i];
    }
    struct operands x = {.scale = attr_is_set(node, "scale") ? attr_float(node, "scale") : 0, .causal = attr_int(node, "causal") != 0};
    x.q = heads_of(l, "q", part[0], h.q_heads, h.size);
    x.k = heads_of(l, "k", part[1], h.kv_heads, h.size);
    x.v = heads_of(l, "v", part[2], h.kv_heads, h.value_size);
    if (attr_int(node, "do_rotary")) {
        x.q = rotated(l, "q.turned", x.q);
        x.k = rotated(l, "k.rotated", x.k);
    }
    x.window = attr_int(node, "local_window_size");
    x.mask = attention_operand(node, G_BIAS) ? node->in[G_BIAS] : NULL;
    lower_result(l, 0, joined(l, written_out(l, &h, &x)));
}

/* Rows are as long as the sequence, or end with ignored labels: no row that counts sees what is after it. */
void backward_gqa(struct backward *b)
{
    const struct node *node = b->l.node;
    struct attention_sizes h = attention_gqa_sizes(b->l.g, node);
    refuse_states(b, &h);
    refuse(b, attr_int(node, "causal") == 0, "attention that looks ahead");
    refuse(b, attr_float(node, "softcap") != 0 || attr_int(node, "smooth_softmax") > 0, "softcap and smooth_softmax");
    for (int i = G_SINK; i < node->nin; i++)
        refuse(b, attention_operand(node, i) != NULL, "sinks and quantised caches");
    back_through(b, write_gqa);
}

/* ---- RotaryEmbedding --------------------------------------------------------------------------------------------------------------- */

/* Rotates by the opposite angles. */
void backward_rotary(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value *in[4] = {back_dy(b), node->in[1], back_unary(b, "Neg", node->in[2]), back_operand(b, 3)};
    refuse(b, back_wants(b, 1) || back_wants(b, 2), "the angles");
    struct node *turn = back_node(b, "RotaryEmbedding", in[3] ? 4 : 3, in);
    attr_set_int(turn, "interleaved", attr_int(node, "interleaved"));
    attr_set_int(turn, "num_heads", attr_int(node, "num_heads"));
    attr_set_int(turn, "rotary_embedding_dim", attr_int(node, "rotary_embedding_dim"));
    back_to(b, 0, back_infer(b, turn));
}
