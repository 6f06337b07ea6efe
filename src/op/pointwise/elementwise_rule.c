/* Rules of elementwise ops: every result dimension is one factor, an operand extent of 1 has none. What differs between them is which
 * partial values pass: those of a sum where an op is linear, those of max and min where it is monotone. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <math.h>
#include <string.h>

RULE_TEXT(pointwise, 0, "(a..)* -> (a..)")
RULE_TEXT(decreasing, 0, "(a..)* -> (a..)  decreasing 0")
RULE_TEXT(max, 0, "(a..)* -> (a..)  increasing *  max-linear *")
RULE_TEXT(min, 0, "(a..)* -> (a..)  increasing *  min-linear *")
RULE_TEXT(neg, 0, "(a..) -> (a..)  linear 0 if float  decreasing 0 if float")
/* Linear in all operands together; increasing in each, except that integers wrap. */
RULE_TEXT(sum, 0, "(a..)* -> (a..)  linear * if float  increasing * if float")
RULE_TEXT(sub, 0, "(a..)(a..) -> (a..)  linear 0+1 if float  increasing 0 if float  decreasing 1 if float")
/* min(x, 0) times the slope is what depends on it. */
RULE_TEXT(prelu, 0, "(a..)(a..) -> (a..)  decreasing 1")
/* The upper bound wins where the bounds cross. */
RULE_TEXT(clip, 0, "(a..)* -> (a..)  increasing *  min-linear 0+2 if 2  max-linear * if not 2")
/* Selects elements: partial values of any reduction pass if both sides are partial. */
RULE_TEXT(where, 0, "(a..)(a..)(a..) -> (a..)  linear 1+2  moves")
/* Free along every dimension; what it makes of partial values has no meaning. */
RULE_TEXT(bitcast, 0, "(d..) -> (d..)")

/* Of a slope of 0 the infinity of a rank that has nothing becomes NaN. */
static bool slopes_down(const struct node *node, const char *name)
{
    const struct attr *slope = attr_find(node, name);
    return slope && slope->f <= 0;
}

/* Greater where an operand is: with slopes that are attributes, where all of them are positive. */
struct rule *rule_increasing(struct graph *g, const struct node *node)
{
    bool down = slopes_down(node, "alpha") || slopes_down(node, "gamma");
    return rule_template(g, node, 0, down ? "(a..)* -> (a..)" : "(a..)* -> (a..)  increasing *");
}

/* What is taken off beyond the threshold must not take a result past those before it. */
struct rule *rule_shrink(struct graph *g, const struct node *node)
{
    struct rule *r = rule_pointwise(g, node);
    r->increasing = attr_float(node, "lambd") >= 0 && attr_float(node, "bias") <= attr_float(node, "lambd");
    return r;
}

/* Numbers keep their order; integers that are cut off, and truth values, do not. No rank reduces small types. */
struct rule *rule_cast(struct graph *g, const struct node *node)
{
    bool from = dtype_is_float(node->in[0]->type.dtype), to = dtype_is_float(node->out[0]->type.dtype);
    struct rule *r = rule_template(g, node, 0, from && to ? "(a..) -> (a..)  linear 0" : "(a..) -> (a..)");
    r->increasing = to || (from && node->out[0]->type.dtype != DT_BOOL && !dtype_is_small(node->out[0]->type.dtype));
    return r;
}

/* The sign of a constant number: 1, -1, or 0 where it is not known. */
static int sign_of(struct value *v)
{
    double k;
    return !op_constant_real(v, &k) ? 0 : k > 0 ? 1 : k < 0 ? -1 : 0;
}

/* Terms of max and min pass a factor or a divisor of known sign. */
static void pass_factor(struct rule *r, uint32_t operand, int sign)
{
    r->increasing |= sign > 0 ? operand : 0;
    r->decreasing |= sign < 0 ? operand : 0;
}

struct rule *rule_mul(struct graph *g, const struct node *node)
{
    struct rule *r = rule_template(g, node, 0, "(a..)(a..) -> (a..)  linear 0, 1 if float");
    pass_factor(r, 1, sign_of(node->in[1]));
    pass_factor(r, 2, sign_of(node->in[0]));
    return r;
}

/* Linear in the dividend; but addends divided by zero are infinities of both signs, so the divisor must be known. */
struct rule *rule_div(struct graph *g, const struct node *node)
{
    struct constant *by = node->in[1]->constant;
    bool known = by && dtype_is_float(by->dtype) && op_constant_within(by, node->in[1]->name, 1e-30, INFINITY, false);
    struct rule *r = rule_template(g, node, 0, known ? "(a..)(a..) -> (a..)  linear 0 if float" : "(a..)(a..) -> (a..)");
    pass_factor(r, 1, sign_of(node->in[1]));
    return r;
}
