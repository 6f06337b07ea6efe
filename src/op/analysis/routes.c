/* routes: nodes that find the rows of one class, as an exported mixture of experts does for each expert. */
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

static const struct dim *value_elements(struct graph *g, const struct value *v)
{
    return type_elements(g->alg, &v->type);
}

/* ---- masks that route rows to classes ---------------------------------------------------------------------------------------------- */

/* Whether it compares every entry with every class, or with one: at most one per row is true. */
static bool makes_one_of(const struct node *n)
{
    return n->op && (n->op->infer == infer_onehot || n->op == op_find("", "Equal"));
}

static bool is_zero(const struct value *v)
{
    double number;
    return v && op_constant_number(v, &number) && number == 0;
}

/* For x > 0, or not x = 0: the mask x. NULL: neither. */
static const struct value *compared_with_zero(const struct node *n)
{
    const struct node *equal = n->op == op_find("", "Not") ? n->in[0]->producer : NULL;
    if (n->op == op_find("", "Greater") && is_zero(n->in[1]))
        return n->in[0];
    return equal && equal->op == op_find("", "Equal") && is_zero(equal->in[1]) ? equal->in[0] : NULL;
}

static bool moves(struct graph *g, const struct node *n)
{
    const struct rule *rule = rule_of(g, n);
    return rule && rule->moves;
}

/* True where any of several entries is. */
static bool unites(const struct node *n)
{
    return n->op == op_find("", "ReduceMax") || n->op == op_find("", "ReduceSum");
}

/* The mask that this node forwards; NULL: it makes another. */
static const struct value *mask_before(struct graph *g, const struct node *n)
{
    const struct value *compared = n->op && n->nin > 0 && n->in[0] ? compared_with_zero(n) : NULL;
    if (compared || !n->op || n->nin == 0 || !n->in[0])
        return compared;
    if (n->op == op_find("", "Not")) /* other entries are true */
        return NULL;
    bool alone = n->op->flags & OP_ELEMENTWISE ? n->nin == 1 : moves(g, n);
    return alone || unites(n) ? n->in[0] : NULL;
}

/* The producer of the mask, and how many of its entries are merged into one on the way. */
static const struct node *maker_of_mask(struct graph *g, const struct value *mask, const struct dim **united)
{
    const struct node *n = mask->producer;
    const struct value *before;
    *united = dim_int(g->alg, 1);
    while (n && !makes_one_of(n) && (before = mask_before(g, n))) {
        if (unites(n))
            *united = dim_mul(
                g->alg, *united,
                dim_div(g->alg, value_elements(g, before), dim_max(g->alg, value_elements(g, n->out[0]), dim_int(g->alg, 1))));
        n = before->producer;
    }
    return n && makes_one_of(n) ? n : NULL;
}

/* The value from which the elements were moved and converted. */
static const struct value *elements_of(struct graph *g, const struct value *v)
{
    const struct node *n = v->producer;
    while (n && n->op && n->nin > 0 && n->in[0] && (n->op->flags & OP_CONVERTS || moves(g, n)))
        v = n->in[0], n = v->producer;
    return v;
}

/* The size of the dimension that the integers index: as TopK and ArgMax find the best. NULL: unknown. */
static const struct dim *classes_of(struct graph *g, const struct value *index)
{
    const struct node *n = index->producer;
    bool best = n && n->op && (n->op->infer == infer_arg || (n->op->infer == infer_topk && n->nout == 2 && index == n->out[1]));
    return best ? n->in[0]->type.dim[op_axis(g, n, attr_int(n, "axis"), n->in[0]->type.rank)] : NULL;
}

/* Which comparison makes the mask, of what, and what fraction of it is true. */
static void share_of(struct graph *g, const struct node *made_by, struct routes *to)
{
    bool compares = made_by->op->infer != infer_onehot;
    const struct value *first = elements_of(g, made_by->in[0]), *second = compares ? elements_of(g, made_by->in[1]) : NULL;
    const struct dim *classes = compares ? classes_of(g, first) : NULL;
    to->choices = first;
    if (compares && !classes && (classes = classes_of(g, second)))
        to->choices = second;
    to->rows = classes ? dim_int(g->alg, 1) : value_elements(g, made_by->in[0]);
    if (compares && !classes)
        to->rows = dim_max(g->alg, to->rows, value_elements(g, made_by->in[1]));
    to->compared = dim_max(g->alg, classes ? classes : value_elements(g, made_by->out[0]), dim_int(g->alg, 1));
}

static bool routes_by_mask(struct graph *g, const struct node *nonzero, struct routes *to)
{
    const struct dim *united;
    const struct node *made_by = maker_of_mask(g, nonzero->in[0], &united);
    if (!made_by)
        return false;
    to->entries = value_elements(g, nonzero->in[0]);
    share_of(g, made_by, to);
    to->rows = dim_min(g->alg, dim_mul(g->alg, to->rows, united), to->compared);
    return true;
}

/* ---- rows sorted by class: a class has the rows between two running counts ----------------------------------------- */

/* The producer. */
static const struct node *maker_of(struct graph *g, const struct value *v)
{
    const struct node *n = v ? elements_of(g, v)->producer : NULL;
    return n && n->op && n->nin > 0 && n->in[0] ? n : NULL;
}

/* From one of the running counts, or from 0, to another: what is counted, and in how many classes. Counts are ones that are scattered to
 * class numbers, or sums of the truth values of all comparisons. */
static bool routes_by_counts(struct graph *g, const struct node *range, struct routes *to)
{
    const struct node *running = maker_of(g, range->in[1]);
    if (!running || running->op != op_find("", "CumSum") || !(is_zero(range->in[0]) || maker_of(g, range->in[0]) == running))
        return false;
    const struct node *counts = maker_of(g, running->in[0]);
    const struct dim *classes = counts ? value_elements(g, counts->out[0]) : NULL;
    if (counts && counts->op == op_find("", "ScatterElements") && strcmp(attr_string(counts, "reduction"), "add") == 0)
        *to = (struct routes){value_elements(g, counts->in[1]), dim_int(g->alg, 1), classes, running->out[0]};
    else if (counts && counts->op == op_find("", "ReduceSum"))
        *to = (struct routes){dim_div(g->alg, value_elements(g, counts->in[0]), dim_max(g->alg, classes, dim_int(g->alg, 1))),
                              dim_int(g->alg, 1), classes, running->out[0]};
    else
        return false;
    return true;
}

bool op_routes_rows(struct graph *g, const struct node *n, struct routes *to)
{
    if (!n->op || n->nin == 0 || !n->in[0])
        return false;
    if (n->op->infer == infer_nonzero)
        return routes_by_mask(g, n, to);
    return n->op->infer == infer_range && n->nin > 1 && routes_by_counts(g, n, to);
}
