/* rotary: RotaryEmbedding: X [B, H, S, D] or [B, S, H*D] rotated by angles per position. With position ids the caches are tables over all
 * positions; without, they have a row per position of X, or (2-D) the row is the position itself. */
#include "ir/operands.h"
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

static const struct dim *length_of(const struct type *x)
{
    return x->dim[x->rank == 4 ? 2 : 1];
}

static void check_cache(struct graph *g, const struct node *node, int i, const struct type *x)
{
    bool table = node_operand(node, IN_RotaryEmbedding_position_ids);
    op_need_rank(g, node, i, 2, table ? 2 : 3);
    const struct type *cache = op_operand(g, node, i);
    if (cache->rank == 3) {
        op_broadcast_dim(g, node, x->dim[0], cache->dim[0], "the batch dimensions of X and the cache");
        op_same_dim(g, node, length_of(x), cache->dim[1], "the lengths of X and the cache");
    }
    const struct type *cosine = op_operand(g, node, IN_RotaryEmbedding_cos_cache);
    op_need_rank(g, node, i, cosine->rank, cosine->rank);
    op_same_dim(g, node, cosine->dim[cosine->rank - 1], cache->dim[cache->rank - 1], "the widths of the two caches");
}

void infer_rotary(struct graph *g, struct node *node)
{
    op_need_rank(g, node, IN_RotaryEmbedding_X, 3, 4);
    const struct type *x = op_operand(g, node, IN_RotaryEmbedding_X);
    if (x->rank == 3 && attr_int(node, "num_heads") < 0)
        fail("%s: attribute 'num_heads' must be given for a 3-D operand", node_where(g, node));
    check_cache(g, node, IN_RotaryEmbedding_cos_cache, x);
    check_cache(g, node, IN_RotaryEmbedding_sin_cache, x);
    if (node_operand(node, IN_RotaryEmbedding_position_ids)) {
        op_need_rank(g, node, IN_RotaryEmbedding_position_ids, 2, 2);
        op_broadcast_dim(g, node, x->dim[0], op_operand(g, node, IN_RotaryEmbedding_position_ids)->dim[0],
                         "the batch dimensions of X and position_ids");
        op_same_dim(g, node, length_of(x), op_operand(g, node, IN_RotaryEmbedding_position_ids)->dim[1],
                    "the lengths of X and position_ids");
    }
    op_result(g, node, 0, x->dtype, x->rank, x->dim);
}

/* ---- rule -------------------------------------------------------------------------------------------------------------------------- */

struct rotary_factors {
    int b, h, s, d;
}; /* h -1: heads are unknown */

static void put_x(struct graph *g, struct rule_operand *operand, const struct rotary_factors *f)
{
    bool flat = operand->rank == 3;
    rule_put(g, operand, 0, 0, f->b);
    rule_put(g, operand, flat ? 1 : 2, 0, f->s);
    rule_put(g, operand, flat ? 2 : 1, 0, f->h);
    rule_put(g, operand, flat ? 2 : 3, 0, f->d);
}

/* Batch and sequence of a cache or of the positions, broadcast over the batch. */
static void put_rotary_rows(struct graph *g, const struct rule *r, struct rule_operand *operand, const struct type *t,
                            const struct rotary_factors *f)
{
    if (!dim_equals(t->dim[0], 1) || dim_equals(r->factor[f->b].size, 1))
        rule_put(g, operand, 0, 0, f->b);
    rule_put(g, operand, 1, 0, f->s);
}

static void put_caches(struct graph *g, struct rule *r, const struct node *node, const struct rotary_factors *f)
{
    for (int i = IN_RotaryEmbedding_cos_cache; i <= IN_RotaryEmbedding_sin_cache; i++) {
        const struct type *t = &node->in[i]->type;
        if (t->rank == 3)
            put_rotary_rows(g, r, &r->in[i], t, f);
        else
            rule_put(g, &r->in[i], 0, 0, rule_factor(g, r, "v", t->dim[0], FACTOR_REPLICATED));
        rule_put(g, &r->in[i], t->rank - 1, 0, rule_factor(g, r, "r", t->dim[t->rank - 1], FACTOR_REPLICATED));
    }
}

/* Heads and head size of X; false if unknown. */
static bool head_sizes(struct graph *g, const struct node *node, const struct dim **heads, const struct dim **size)
{
    const struct type *x = &node->in[IN_RotaryEmbedding_X]->type;
    if (x->rank == 4) {
        *heads = x->dim[1];
        *size = x->dim[3];
        return true;
    }
    int64_t n = attr_int(node, "num_heads");
    *heads = dim_int(g->alg, n);
    *size = n > 0 ? dim_quotient(g->alg, x->dim[2], *heads) : NULL;
    return *size != NULL;
}

struct rule *rule_rotary(struct graph *g, const struct node *node)
{
    const struct dim *heads, *size;
    if (!head_sizes(g, node, &heads, &size))
        return NULL;
    struct rule *r = rule_new(g, node);
    const struct type *x = &node->in[IN_RotaryEmbedding_X]->type;
    struct rotary_factors f = {
        .b = rule_factor(g, r, "b", x->dim[0], 0),
        .h = rule_factor(g, r, "h", heads, 0),
        .s = rule_factor(g, r, "s", length_of(x), 0),
        .d = rule_factor(g, r, "d", size, FACTOR_REPLICATED),
    };
    put_x(g, &r->in[IN_RotaryEmbedding_X], &f);
    put_x(g, &r->out[0], &f);
    put_caches(g, r, node, &f);
    if (node_operand(node, IN_RotaryEmbedding_position_ids))
        put_rotary_rows(g, r, &r->in[IN_RotaryEmbedding_position_ids], &node->in[IN_RotaryEmbedding_position_ids]->type, &f);
    if (attr_int(node, "num_heads") > 0 && dim_is_int(heads, NULL))
        r->size[r->nsize++] = (struct rule_size){.attr = "num_heads", .part = {.n = 1, .factor = {f.h}}};
    rule_linear(r, 1);
    if (attr_int(node, "rotary_embedding_dim") == 0) /* else the rest of a head is not rotated */
        rule_linear(r, 2 | 4);
    return r;
}
