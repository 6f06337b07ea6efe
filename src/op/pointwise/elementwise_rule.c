/* Rules of elementwise ops: every result dimension is one factor, an operand extent of 1 has none. What differs between them is which
 * partial values pass: those of a sum where an op is linear, those of max and min where it is monotone. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <math.h>
#include <string.h>

struct rule *rule_pointwise(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *out = &node->out[0]->type;
    int factor[MAX_RANK];
    for (int d = 0; d < out->rank; d++) {
        factor[d] = dim_equals(out->dim[d], 1) ? -1 : rule_numbered(g, r, "a", d, out->dim[d], 0);
    }
    for (int i = 0; i < node->nin; i++)
        if (node->in[i])
            rule_broadcast(g, r, &r->in[i], &node->in[i]->type, out->rank, factor);
    rule_broadcast(g, r, &r->out[0], out, out->rank, factor);
    return r;
}

/* Every operand, of those that a mask can name. */
static uint32_t all_operands(const struct node *node)
{
    return node->nin < 32 ? (UINT32_C(1) << node->nin) - 1 : 0;
}

/* Of a slope of 0 the infinity of a rank that has nothing becomes NaN. */
static bool slopes_down(const struct node *node, const char *name)
{
    for (int i = 0; i < node->nattr; i++)
        if (strcmp(node->attr[i].name, name) == 0)
            return node->attr[i].f <= 0;
    return false;
}

/* Greater where an operand is: with slopes that are attributes, where all of them are positive. */
struct rule *rule_increasing(struct graph *g, const struct node *node)
{
    struct rule *r = rule_pointwise(g, node);
    r->increasing = slopes_down(node, "alpha") || slopes_down(node, "gamma") ? 0 : all_operands(node);
    return r;
}

struct rule *rule_decreasing(struct graph *g, const struct node *node)
{
    struct rule *r = rule_pointwise(g, node);
    r->decreasing = 1;
    return r;
}

/* The upper bound wins where the bounds cross. */
struct rule *rule_clip(struct graph *g, const struct node *node)
{
    struct rule *r = rule_increasing(g, node);
    bool upper = node->nin > 2 && node->in[2];
    r->extremal = upper ? 1 | 4 : 3 & all_operands(node);
    r->extremum = upper ? RED_MIN : RED_MAX;
    return r;
}

/* What is taken off beyond the threshold must not take a result past those before it. */
struct rule *rule_shrink(struct graph *g, const struct node *node)
{
    struct rule *r = rule_pointwise(g, node);
    r->increasing = attr_float(node, "lambd") >= 0 && attr_float(node, "bias") <= attr_float(node, "lambd");
    return r;
}

struct rule *rule_max(struct graph *g, const struct node *node)
{
    struct rule *r = rule_increasing(g, node);
    r->extremal = r->increasing;
    r->extremum = RED_MAX;
    return r;
}

struct rule *rule_min(struct graph *g, const struct node *node)
{
    struct rule *r = rule_increasing(g, node);
    r->extremal = r->increasing;
    r->extremum = RED_MIN;
    return r;
}

/* min(x, 0) times the slope is what depends on it. */
struct rule *rule_prelu(struct graph *g, const struct node *node)
{
    struct rule *r = rule_pointwise(g, node);
    r->decreasing = 2;
    return r;
}

static struct rule *pointwise_linear(struct graph *g, const struct node *node, int n, const uint32_t *set)
{
    struct rule *r = rule_pointwise(g, node);
    if (dtype_is_float(node->out[0]->type.dtype))
        for (int i = 0; i < n; i++)
            rule_linear(r, set[i]);
    return r;
}

struct rule *rule_neg(struct graph *g, const struct node *node)
{
    struct rule *r = pointwise_linear(g, node, 1, (const uint32_t[]){1});
    r->decreasing = dtype_is_float(node->out[0]->type.dtype);
    return r;
}

/* Numbers keep their order; integers that are cut off, and truth values, do not. No rank reduces small types. */
struct rule *rule_cast(struct graph *g, const struct node *node)
{
    bool from = dtype_is_float(node->in[0]->type.dtype), to = dtype_is_float(node->out[0]->type.dtype);
    struct rule *r = pointwise_linear(g, node, from && to, (const uint32_t[]){1});
    r->increasing = to || (from && node->out[0]->type.dtype != DT_BOOL && !dtype_is_small(node->out[0]->type.dtype));
    return r;
}

/* Linear in all operands together; increasing in each, except that integers wrap. */
struct rule *rule_sum(struct graph *g, const struct node *node)
{
    uint32_t all = all_operands(node);
    struct rule *r = pointwise_linear(g, node, all != 0, &all);
    r->increasing = dtype_is_float(node->out[0]->type.dtype) ? all : 0;
    return r;
}

struct rule *rule_sub(struct graph *g, const struct node *node)
{
    struct rule *r = pointwise_linear(g, node, 1, (const uint32_t[]){3});
    bool floats = dtype_is_float(node->out[0]->type.dtype);
    r->increasing = floats ? 1 : 0;
    r->decreasing = floats ? 2 : 0;
    return r;
}

/* The sign of a constant number: 1, -1, or 0 where it is not known. */
static int sign_of(struct value *v)
{
    if (!v->constant || !dtype_is_float(v->type.dtype) || constant_elements(v->constant) != 1 || !constant_present(v->constant))
        return 0;
    double k = constant_float(v->constant, v->name, 0);
    return k > 0 ? 1 : k < 0 ? -1 : 0;
}

/* Terms of max and min pass a factor or a divisor of known sign. */
static void pass_factor(struct rule *r, uint32_t operand, int sign)
{
    r->increasing |= sign > 0 ? operand : 0;
    r->decreasing |= sign < 0 ? operand : 0;
}

struct rule *rule_mul(struct graph *g, const struct node *node)
{
    struct rule *r = pointwise_linear(g, node, 2, (const uint32_t[]){1, 2});
    pass_factor(r, 1, sign_of(node->in[1]));
    pass_factor(r, 2, sign_of(node->in[0]));
    return r;
}

/* Linear in the dividend; but addends divided by zero are infinities of both signs, so the divisor must be known. */
struct rule *rule_div(struct graph *g, const struct node *node)
{
    struct constant *by = node->in[1]->constant;
    bool known = by && dtype_is_float(by->dtype) && op_constant_within(by, node->in[1]->name, 1e-30, INFINITY, false);
    struct rule *r = pointwise_linear(g, node, known, (const uint32_t[]){1});
    pass_factor(r, 1, sign_of(node->in[1]));
    return r;
}

/* Selects elements: partial values of any reduction pass if both sides are partial. */
struct rule *rule_where(struct graph *g, const struct node *node)
{
    struct rule *r = rule_pointwise(g, node);
    rule_linear(r, 6);
    r->moves = true;
    return r;
}

/* Free along every dimension; what it makes of partial values has no meaning. */
struct rule *rule_bitcast(struct graph *g, const struct node *node)
{
    return rule_parse(g, node, "(d..) -> (d..)");
}
