/* reshape: the target from its operand, and the factors that both shapes share.
 *
 * Inference: entry 0 copies a dimension (unless allowzero), -1 is the remaining size: the exact symbolic quotient, else floor division with
 * an equation. Rule: both shapes are read left to right; the smaller of two open dimensions divides the larger one, so the shapes fall into
 * a common refinement. [B, S, H*D] -> [B, S, H, D] gives (b s (h d)) -> (b s h d). Dimensions without a common refinement are never
 * split. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

/* ---- inference ------------------------------------------------------------------------------------------------------------ */

static const struct dim *dims_product_of(struct graph *g, int n, const struct dim *const *dim)
{
    const struct dim *p = dim_int(g->alg, 1);
    for (int i = 0; i < n; i++)
        if (dim[i])
            p = dim_mul(g->alg, p, dim[i]);
    return p;
}

/* Removes equal dims, usually not 0 (or 0 itself if there is a -1), from both lists (set to NULL). */
static void cancel_common(struct alg *alg, int n, const struct dim **a, int m, const struct dim **b, bool open)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m && a[i]; j++)
            if (a[i] == b[j] && ((open && dim_equals(a[i], 0)) || dim_usual_lo(alg, a[i]) >= 1))
                a[i] = b[j] = NULL;
}

static const char *why(struct graph *g, const struct node *node)
{
    return arena_printf(g->arena, "the sizes of node '%s' (%s)", node->name ? node->name : "", node->optype);
}

_Noreturn static void wrong_size(struct graph *g, const struct node *node, int n, const struct dim *const *shape)
{
    const char *text = "";
    for (int i = 0; i < n; i++)
        text = arena_printf(g->arena, "%s%s%s", text, i ? ", " : "", dim_str(g->arena, shape[i]));
    fail("%s: '%s' %s cannot take the shape [%s]", node_where(g, node), node->in[0]->name, type_str(g->arena, &node->in[0]->type), text);
}

/* The size for the entry `open`, which is -1, after equal dims were cancelled. */
static const struct dim *rest(struct graph *g, const struct node *node, int open, const struct dim *total, const struct dim *others)
{
    const struct dim *q = dim_equals(others, 0) ? NULL : dim_quotient(g->alg, total, others);
    if (q)
        return q;
    if (!op_assume_ge(g, node, others, dim_int(g->alg, 1), "the sizes other than -1"))
        return op_unknown_dim(g, node, 0, open);
    q = dim_div(g->alg, total, others);
    if (alg_equate(g->alg, total, dim_mul(g->alg, q, others), why(g, node)) == EQ_FALSE)
        return NULL;
    return dim_rewrite(g->alg, q);
}

/* Resolves entries 0; returns the index of the entry -1, or -1 if there is none. */
static int copy_zeros(struct graph *g, const struct node *node, const struct type *data, int n, const struct dim *const *shape,
                      const struct dim **dim)
{
    int open = -1;
    bool allowzero = attr_int(node, "allowzero") != 0;
    for (int i = 0; i < n; i++) {
        dim[i] = shape[i];
        if (dim_equals(shape[i], 0) && !allowzero) {
            if (i >= data->rank)
                wrong_size(g, node, n, shape);
            dim[i] = data->dim[i];
        } else if (dim_equals(shape[i], -1)) {
            if (open >= 0)
                wrong_size(g, node, n, shape);
            open = i;
        } else if (shape[i]->hi < 0) {
            wrong_size(g, node, n, shape);
        }
    }
    return open;
}

static void resolve_target(struct graph *g, struct node *node, const struct type *data, int n, const struct dim *const *shape)
{
    const struct dim *dim[MAX_RANK], *left[MAX_RANK], *right[MAX_RANK];
    int open = copy_zeros(g, node, data, n, shape, dim);
    for (int i = 0; i < data->rank; i++)
        left[i] = dim_rewrite(g->alg, data->dim[i]);
    for (int i = 0; i < n; i++)
        right[i] = i == open ? NULL : dim_rewrite(g->alg, dim[i]);
    cancel_common(g->alg, data->rank, left, n, right, open >= 0);
    const struct dim *a = dims_product_of(g, data->rank, left), *b = dims_product_of(g, n, right);
    if (open >= 0 && !(dim[open] = rest(g, node, open, a, b)))
        wrong_size(g, node, n, shape);
    if (open < 0 && a != b && alg_equate(g->alg, a, b, why(g, node)) == EQ_FALSE)
        wrong_size(g, node, n, shape);
    op_result(g, node, 0, data->dtype, n, dim);
}

/* Canonical form: the recorded type is the target; its size must not contradict the operand's. */
static void recheck(struct graph *g, struct node *node, const struct type *data)
{
    struct type out = node->out[0]->type;
    const struct dim *a = type_elements(g->alg, data), *b = type_elements(g->alg, &out);
    if (a != b && dim_is_int(a, NULL) && dim_is_int(b, NULL))
        wrong_size(g, node, out.rank, out.dim);
    op_result(g, node, 0, data->dtype, out.rank, out.dim);
}

/* The length of the shape operand gives the rank of a result of unknown sizes. */
static void unknown_target(struct graph *g, struct node *node, const struct type *data)
{
    const struct type *shape = op_operand(g, node, 1);
    const struct dim *dim[MAX_RANK];
    int64_t n;
    if (shape->rank != 1 || !dim_is_int(shape->dim[0], &n) || n > MAX_RANK)
        fail("%s: '%s' must be a shape of known length, at most %d, but is %s", node_where(g, node), node->in[1]->name, MAX_RANK,
             type_str(g->arena, shape));
    for (int d = 0; d < n; d++)
        dim[d] = op_unknown_dim(g, node, 0, d);
    op_result(g, node, 0, data->dtype, (int)n, dim);
}

void infer_reshape(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0);
    if (node->nin < 2 || !node->in[1]) {
        recheck(g, node, data);
        return;
    }
    const struct dims_value *shape = op_dims(g, node->in[1]);
    if (!shape) {
        unknown_target(g, node, data);
        return;
    }
    if (shape->n > MAX_RANK)
        fail("%s: the result has %d dimensions, at most %d are handled", node_where(g, node), shape->n, MAX_RANK);
    resolve_target(g, node, data, shape->n, shape->at);
}

/* Squeeze and Unsqueeze too: the same entries. */
void value_reshape(struct graph *g, struct node *node)
{
    value_identity(g, node);
}

/* ---- rule ------------------------------------------------------------------------------------------------------------------ */

/* One of the two shapes while it is read: the dimension at, whose size `open` is not matched yet. */
struct reshape_side {
    const struct type *type;
    struct rule_operand *operand;
    int at;
    const struct dim *open;
};

static void enter(struct reshape_side *s)
{
    while (s->at < s->type->rank && dim_equals(s->type->dim[s->at], 1))
        s->at++;
    s->open = s->at < s->type->rank ? s->type->dim[s->at] : NULL;
}

static void advance_side(struct reshape_side *s)
{
    s->at++;
    enter(s);
}

static int next_factor(struct graph *g, struct rule *rule, const struct dim *size, unsigned flags)
{
    return rule_numbered(g, rule, "f", rule->nfactor, size, flags);
}

/* Replicates everything that is not matched yet, dimension by dimension. */
static void close_side(struct graph *g, struct rule *rule, struct reshape_side *s, unsigned flags)
{
    while (s->open) {
        rule_put(g, s->operand, s->at, 0, next_factor(g, rule, s->open, FACTOR_REPLICATED | flags));
        advance_side(s);
    }
}

/* Matches the next factor of both sides; false if neither open dimension divides the other. */
static bool match_sides(struct graph *g, struct rule *rule, struct reshape_side *a, struct reshape_side *b)
{
    const struct dim *qa = a->open == b->open ? NULL : dim_quotient(g->alg, a->open, b->open);
    const struct dim *qb = a->open == b->open || qa ? NULL : dim_quotient(g->alg, b->open, a->open);
    if (a->open != b->open && !qa && !qb)
        return false;
    int f = next_factor(g, rule, qa ? b->open : a->open, 0);
    rule_put(g, a->operand, a->at, 0, f);
    rule_put(g, b->operand, b->at, 0, f);
    if (qa)
        a->open = qa;
    else
        advance_side(a);
    if (qb)
        b->open = qb;
    else
        advance_side(b);
    return true;
}

/* Skips dimensions until both products agree; if they never do, the rest of both shapes. */
static void skip_unmatched(struct graph *g, struct rule *rule, struct reshape_side *a, struct reshape_side *b)
{
    const struct dim *pa = dim_int(g->alg, 1), *pb = pa;
    do {
        struct reshape_side *s = !b->open || (a->open && dim_ge(g->alg, pb, pa)) ? a : b;
        const struct dim **p = s == a ? &pa : &pb;
        *p = dim_mul(g->alg, *p, s->open);
        rule_put(g, s->operand, s->at, 0, next_factor(g, rule, s->open, FACTOR_REPLICATED | (s == a ? FACTOR_DROPPED : 0u)));
        advance_side(s);
    } while (pa != pb && (a->open || b->open));
}

/* Split or merged dimensions: all factors but the innermost are head-like and are seeded. */
static void mark_heads(struct rule *rule, const struct rule_operand *operand)
{
    for (int d = 0; d < operand->rank; d++) {
        const struct rule_part *part = operand->dim[d].n == 1 ? &operand->dim[d].part[0] : NULL;
        for (int i = 0; part && i < part->n - 1; i++) {
            struct factor *f = &rule->factor[part->factor[i]];
            if (dim_is_int(f->size, NULL) && f->size->k >= 2 && !(f->flags & FACTOR_REPLICATED))
                f->flags |= FACTOR_HEADS;
        }
    }
}

static bool has_zero(const struct type *type)
{
    for (int d = 0; d < type->rank; d++)
        if (dim_equals(type->dim[d], 0))
            return true;
    return false;
}

struct rule *rule_reshape(struct graph *g, const struct node *node)
{
    struct rule *rule = rule_new(g, node);
    struct reshape_side a = {.type = &node->in[0]->type, .operand = &rule->in[0]};
    struct reshape_side b = {.type = &node->out[0]->type, .operand = &rule->out[0]};
    enter(&a);
    enter(&b);
    bool empty = has_zero(a.type) || has_zero(b.type);
    while (!empty && a.open && b.open)
        if (!match_sides(g, rule, &a, &b))
            skip_unmatched(g, rule, &a, &b);
    close_side(g, rule, &a, FACTOR_DROPPED);
    close_side(g, rule, &b, 0);
    mark_heads(rule, &rule->in[0]);
    mark_heads(rule, &rule->out[0]);
    rule_linear(rule, 1);
    rule->moves = true;
    return rule;
}
