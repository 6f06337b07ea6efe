/* style: what the styles of a plan file, named as in torch.distributed.tensor.parallel, require of a node, and the communication that they
 * request under --strict.
 *
 *     style          applies to                          the node's strategy                                     requests
 *     colwise        products and lookups of weights     weight and result split, other operands replicated      its operands
 *     rowwise        the same                            weight split, the result partial                        its result
 *     pairwise       products with weights               colwise and rowwise, alternating (style_pairwise.c)          as these
 *     vocab          products and lookups of weights     a table by rows (rowwise), a head by columns (colwise)  as these
 *     sequence       what has dimension `dim`            the result split along it                               its operands
 *     replicate      everything                          replicated                                              its operands
 *     loss-parallel  losses, Softmax and LogSoftmax      scores split over classes, lowered                      its operands
 *                    over classes
 *     prepare-...    sets of nodes                       anything: only the values around it (boundary.c)        these values
 *
 * The solver decides how a result is resharded, unless the constraint does. Style sequence ignores a node whose dimension `dim` is missing
 * or of size 1, as in shape arithmetic and statistics. A softmax is over classes if no product of activations contracts its dimension. The
 * softmax of attention is not; loss-parallel applies to it only if a constraint gives its full name. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/constrain/constrain.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/space/space.h"

#include <string.h>

/* ---- what they apply to ------------------------------------------------------------------------------------------------------ */

static const struct node *style_node(const struct space *s, int node)
{
    return s->g->nodes.at[node];
}

static bool is_matrix_product(const struct node *n)
{
    return n->op && (n->op->flags & OP_PRODUCT);
}

static int sequence_dim(const struct value *v, int dim)
{
    dim = dim < 0 ? dim + v->type.rank : dim;
    return dim < 0 || dim >= v->type.rank || dim_equals(v->type.dim[dim], 1) ? -1 : dim;
}

static bool has_sequence(const struct space *s, int dim, int node)
{
    const struct node *n = style_node(s, node);
    return node_result(n, 0) && !s->weight[n->out[0]->id] && sequence_dim(n->out[0], dim) >= 0;
}

/* The class dimension of scores; a loss has no axis attribute. */
static int class_dim(const struct graph *g, const struct node *n)
{
    return attr_find(n, "axis") ? op_axis(g, n, attr_int(n, "axis"), n->in[0]->type.rank) : 1;
}

static bool is_attended(const struct space *s, const struct node *n)
{
    return n->in[0] && dim_has_role(s->roles, n->in[0], class_dim(s->g, n), DIM_KV);
}

bool style_applies(const struct space *s, enum style style, const struct constraint *c, int node)
{
    const struct node *n = style_node(s, node);
    switch (style) {
    case STYLE_COLWISE:
    case STYLE_ROWWISE:
    case STYLE_VOCAB: return weight_is_used(s->weight, style_node(s, node));
    case STYLE_PAIRWISE:
        return weight_is_used(s->weight, style_node(s, node)) && is_matrix_product(n) && !dim_node_sums_nothing(s->roles, node);
    case STYLE_SEQUENCE: return has_sequence(s, c->dim, node);
    case STYLE_LOSS_PARALLEL: return n->op && (n->op->flags & OP_SCORES) && (!is_attended(s, n) || strcmp(c->glob, n->name) == 0);
    case STYLE_REPLICATE: return true;
    default: return false;
    }
}

const char *style_subject(enum style style)
{
    static const char *const subjects[STYLES] = {
        [STYLE_COLWISE] = "multiplies or looks up a weight",
        [STYLE_ROWWISE] = "multiplies or looks up a weight",
        [STYLE_PAIRWISE] = "multiplies a weight",
        [STYLE_VOCAB] = "multiplies or looks up a weight",
        [STYLE_SEQUENCE] = "has a dimension 'dim' to split",
        [STYLE_LOSS_PARALLEL] = "is a loss or a softmax over classes",
    };
    return subjects[style];
}

/* ---- what they require ------------------------------------------------------------------------------------------------------- */

static bool operands_are(const struct space *s, const struct node *n, const struct strategy *st, bool weights, bool all, enum place kind)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->weight[n->in[i]->id] == weights && (st->in[i].kind == kind) != all)
            return !all;
    return all;
}

static int unmet_by_weight(const struct space *s, const struct node *n, const struct strategy *st, bool column)
{
    return !operands_are(s, n, st, true, false, PLACE_S) + (column && !operands_are(s, n, st, false, true, PLACE_R)) +
        (st->out[0].kind != (column ? PLACE_S : PLACE_P));
}

static int unmet_by_sequence(const struct node *n, const struct strategy *st, int dim)
{
    return (st->out[0].kind != PLACE_S) + (st->out[0].kind != PLACE_S || st->out[0].dim != sequence_dim(n->out[0], dim));
}

int style_unmet(const struct space *s, enum style style, int dim, int node, const struct strategy *st)
{
    const struct node *n = style_node(s, node);
    switch (style) {
    case STYLE_COLWISE: return unmet_by_weight(s, n, st, true);
    case STYLE_ROWWISE: return unmet_by_weight(s, n, st, false);
    case STYLE_VOCAB: return unmet_by_weight(s, n, st, is_matrix_product(n));
    case STYLE_SEQUENCE: return unmet_by_sequence(n, st, dim);
    case STYLE_REPLICATE: return strategy_splits(n, st);
    case STYLE_LOSS_PARALLEL: return !(st->in[0].kind == PLACE_S && st->in[0].dim == class_dim(s->g, n));
    default: bug("style %d is none of a node", (int)style);
    }
}

unsigned style_requests(const struct space *s, enum style style, int node)
{
    bool row = style == STYLE_ROWWISE || (style == STYLE_VOCAB && !is_matrix_product(style_node(s, node)));
    return row ? REQUESTS_RESULTS : REQUESTS_OPERANDS;
}

/* ---- splits that nothing else suggests -------------------------------------------------------------------------------------------- */

/* Splits the scores over classes, which only a lowering does. */
static bool seed_classes(struct space *s, int node)
{
    const struct node *n = style_node(s, node);
    const struct rule *r = s->rule[node];
    int d = class_dim(s->g, n), f = r && n->in[0] ? rule_factor_at(&r->in[0], d) : -1;
    return f >= 0 && (r->factor[f].flags & FACTOR_LOWERED) && space_seed(s, n->in[0], d, NULL, false);
}

/* Seeds the weights of an outer product, which the solver does not split by itself. */
static bool seed_weights(struct space *s, int node)
{
    const struct node *n = style_node(s, node);
    bool changed = false;
    for (int i = 0; i < n->nin; i++)
        for (int d = 0; n->in[i] && s->weight[n->in[i]->id] && d < n->in[i]->type.rank; d++)
            changed |= space_seed(s, n->in[i], d, NULL, false);
    return changed;
}

bool style_seed(struct space *s, enum style style, int dim, int node)
{
    const struct node *n = style_node(s, node);
    switch (style) {
    case STYLE_SEQUENCE: return space_seed(s, n->out[0], sequence_dim(n->out[0], dim), NULL, true);
    case STYLE_LOSS_PARALLEL: return seed_classes(s, node);
    case STYLE_COLWISE:
    case STYLE_ROWWISE:
    case STYLE_VOCAB: return seed_weights(s, node);
    default: return false;
    }
}
