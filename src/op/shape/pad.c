/* pad: a padded or cropped dimension is never split, all others are free. Padding a partial value with zeros gives the partial padded
 * value. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

struct padding {
    bool padded[MAX_RANK];
    const struct dim *before[MAX_RANK], *after[MAX_RANK];
};

/* Every dimension's padding; false: it is data-dependent. */
static bool padding_of(struct graph *g, const struct node *node, int rank, struct padding *p)
{
    const struct dim *const *pads = NULL, *const *axes = NULL;
    int n = op_size_operand(g, node, 1, "pads", &pads), naxes = op_size_operand(g, node, 3, "axes", &axes);
    int expected = naxes >= 0 ? naxes : rank;
    if (n == -1 || naxes == -1)
        return false;
    if (n != 2 * expected || naxes > rank)
        fail("%s: there are %d pads for %d dimensions, expected two each", node_where(g, node), n < 0 ? 0 : n, expected);
    memset(p, 0, sizeof *p);
    for (int i = 0; i < expected; i++) {
        int64_t axis = i;
        if (naxes >= 0 && !dim_is_int(axes[i], &axis))
            return false;
        int d = op_axis(g, node, axis, rank);
        if (p->before[d])
            fail("%s: axis %d is padded twice", node_where(g, node), d);
        p->before[d] = pads[i];
        p->after[d] = pads[expected + i];
        p->padded[d] = !dim_equals(pads[i], 0) || !dim_equals(pads[expected + i], 0);
    }
    return true;
}

void infer_pad(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK];
    struct padding p;
    bool known = padding_of(g, node, x->rank, &p);
    const struct value *fill = node_operand(node, 2);
    int64_t size;
    for (int d = 0; fill && d < fill->type.rank; d++)
        if (dim_is_int(fill->type.dim[d], &size) && size != 1)
            fail("%s: '%s' is %s, expected one number to pad with", node_where(g, node), fill->name, type_str(g->arena, &fill->type));
    for (int d = 0; d < x->rank; d++) {
        dim[d] = known ? x->dim[d] : op_unknown_dim(g, node, 0, d);
        if (known && p.padded[d])
            dim[d] = dim_add(g->alg, x->dim[d], dim_add(g->alg, p.before[d], p.after[d]));
        if (dim_is_int(dim[d], &size) && size < 0)
            fail("%s: dimension %d of '%s' %s is cropped below 0", node_where(g, node), d, node->in[0]->name, type_str(g->arena, x));
    }
    op_result(g, node, 0, x->dtype, x->rank, dim);
}

static bool pads_with_zero(const struct node *node)
{
    struct value *v = node_operand(node, 2);
    if (!v)
        return true;
    double zero = v->constant && dtype_is_float(v->type.dtype) && constant_elements(v->constant) == 1
        ? constant_float(v->constant, v->name, 0)
        : 1;
    return zero >= 0 && zero <= 0;
}

struct rule *rule_pad(struct graph *g, const struct node *node)
{
    const struct type *x = &node->in[0]->type;
    struct padding p;
    uint32_t padded = 0;
    if (!padding_of(g, node, x->rank, &p))
        return NULL;
    for (int d = 0; d < x->rank; d++)
        padded |= (uint32_t)p.padded[d] << d;
    struct rule *r = rule_template(g, node, padded,
                                   "([!a a]...)(x..)* -> ([!p a]...)  a*: dropped  increasing 0, 2 if 2  increasing 0 if not 2");
    r->moves = strcmp(attr_string(node, "mode"), "constant") != 0;
    if (dtype_is_float(x->dtype) && (r->moves || pads_with_zero(node)))
        rule_linear(r, 1);
    return r;
}
