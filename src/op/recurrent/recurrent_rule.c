/* recurrent_rule: the splits of recurrent nets: by rows of the batch; by directions, which are independent up to their results; and by
 * hidden units, the same for all gates, which the ranks exchange in every step.
 *
 * A rank with one direction must know which, and a rank with some hidden units their split: the lowering writes a node of domain tpc that
 * has this as an operand or attribute. Rows of the quantised form share the range of their numbers. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/recurrent/recurrent.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

/* Whether both directions have the same functions, so that a rank needs only one list. */
static bool directions_are_alike(const struct node *node)
{
    const char *const *name;
    int n = attr_strings(node, "activations", &name), alphas = node_attr(node, "activation_alpha")->n,
        betas = node_attr(node, "activation_beta")->n;
    for (int i = 0; i < n / 2; i++)
        if (strcmp(name[i], name[i + n / 2]))
            return false;
    return alphas == 0 && betas == 0;
}

static unsigned direction_flags(const struct node *node, const struct recurrent_form *f)
{
    if (f->backwards >= 0)
        return 0;
    return dim_equals(node->in[RECUR_W]->type.dim[0], 2) && directions_are_alike(node) ? FACTOR_LOWERED : FACTOR_REPLICATED;
}

struct recurrent_factors {
    int t, b, d, g, h, k; /* g: gates; k: the hidden units that they read */
};

static void put(struct graph *g, struct rule_operand *o, int n, const int *factor)
{
    for (int d = 0; d < n; d++)
        rule_put(g, o, d, 0, factor[d]);
}

static int unsplit(struct graph *g, struct rule *r, const char *name, const struct dim *size)
{
    return rule_factor(g, r, name, size, FACTOR_REPLICATED);
}

/* Dimension d is the hidden units of each gate. */
static void put_gates(struct graph *g, struct rule_operand *o, int d, int gates, int h)
{
    rule_put(g, o, d, 0, gates);
    rule_put(g, o, d, 0, h);
}

static void put_scales(struct graph *g, struct rule *r, const struct node *node, const struct recurrent_factors *at)
{
    for (int k = RECUR_SCALES; k < RECUR_SCALES + 4; k++) {
        const struct type *t = &node->in[k]->type;
        rule_put(g, &r->in[k], 0, 0, at->d);
        if (t->rank == 2 && !dim_equals(t->dim[1], 1))
            put_gates(g, &r->in[k], 1, at->g, at->h);
    }
}

static void put_weights(struct graph *g, struct rule *r, const struct node *node, const struct recurrent_form *f,
                        const struct recurrent_factors *at, int i)
{
    const int columns[] = {[RECUR_W] = i, [RECUR_R] = at->k};
    for (int k = RECUR_W; k <= RECUR_R; k++) {
        rule_put(g, &r->in[k], 0, 0, at->d);
        rule_put(g, &r->in[k], f->quantized ? 1 : 2, 0, columns[k]);
        put_gates(g, &r->in[k], f->quantized ? 2 : 1, at->g, at->h);
    }
    if (node_operand(node, RECUR_B)) {
        rule_put(g, &r->in[RECUR_B], 0, 0, at->d);
        put_gates(g, &r->in[RECUR_B], 1, unsplit(g, r, "p", dim_int(g->alg, 2 * f->gates)), at->h);
    }
    if (f->lstm && node_operand(node, RECUR_P)) {
        rule_put(g, &r->in[RECUR_P], 0, 0, at->d);
        put_gates(g, &r->in[RECUR_P], 1, unsplit(g, r, "q", dim_int(g->alg, 3)), at->h);
    }
    if (f->quantized)
        put_scales(g, r, node, at);
    if (f->backwards >= 0)
        rule_put(g, &r->in[f->backwards], 0, 0, at->d);
}

/* The results have all hidden units, except the last state of a cell. */
static void put_states(struct graph *g, struct rule *r, const struct node *node, const struct recurrent_form *f,
                       const struct recurrent_factors *at)
{
    const int state[2][3] = {{at->d, at->b, at->k}, {at->b, at->d, at->k}}, cell[2][3] = {{at->d, at->b, at->h}, {at->b, at->d, at->h}};
    if (node_operand(node, RECUR_H))
        put(g, &r->in[RECUR_H], 3, state[f->batch_first]);
    if (f->lstm && node_operand(node, RECUR_C))
        put(g, &r->in[RECUR_C], 3, cell[f->batch_first]);
    if (node_result(node, 0))
        put(g, &r->out[0], 4, f->batch_first ? (int[]){at->b, at->t, at->d, at->k} : (int[]){at->t, at->d, at->b, at->k});
    if (node_result(node, 1))
        put(g, &r->out[1], 3, state[f->batch_first]);
    if (node_result(node, 2))
        put(g, &r->out[2], 3, cell[f->batch_first]);
}

struct rule *rule_recurrent(struct graph *g, const struct node *node)
{
    struct recurrent_form f = recurrent_form(node);
    if (f.units)
        return NULL; /* it is in the form that ranks run */
    struct rule *r = rule_new(g, node);
    const struct dim *const *x = node->in[RECUR_X]->type.dim, *h = node->in[RECUR_R]->type.dim[f.quantized ? 1 : 2];
    bool units = dim_is_int(h, NULL) && f.backwards < 0;
    struct recurrent_factors at = {.t = unsplit(g, r, "t", x[f.batch_first])};
    at.b = rule_factor(g, r, "b", x[!f.batch_first], f.quantized ? FACTOR_REPLICATED : 0);
    at.d = rule_factor(g, r, "d", node->in[RECUR_W]->type.dim[0], direction_flags(node, &f));
    at.h = rule_factor(g, r, "h", h, units ? FACTOR_LOWERED | FACTOR_DROPPED | FACTOR_HEADS : FACTOR_REPLICATED);
    at.g = unsplit(g, r, "g", dim_int(g->alg, f.gates));
    at.k = unsplit(g, r, "k", h);
    int i = unsplit(g, r, "i", x[2]);
    put(g, &r->in[RECUR_X], 3, f.batch_first ? (int[]){at.b, at.t, i} : (int[]){at.t, at.b, i});
    put_weights(g, r, node, &f, &at, i);
    if (node_operand(node, RECUR_LENS))
        rule_put(g, &r->in[RECUR_LENS], 0, 0, at.b);
    put_states(g, r, node, &f, &at);
    return r;
}

/* ---- one direction per rank, or a part of the hidden units ---------------------------------------------------------------------- */

static struct value *backwards(struct lowering *l)
{
    static const bool both[2] = {false, true};
    int64_t n = 2;
    struct value *v = graph_constant(l->g, arena_printf(l->g->arena, "%s/backwards", l->name), DT_BOOL, 1, &n, both);
    v->place = placement_replicated;
    v->placed = true;
    return v;
}

/* The split of the hidden units; NULL: not split. */
static const struct split *units_split(struct graph *g, const struct node *node)
{
    struct placement w = node->in[RECUR_W]->place;
    struct recurrent_form f = recurrent_form(node);
    if (w.kind != PLACE_S || w.dim == 0)
        return NULL;
    const struct split *s = split_divide(g->alg, w.split, dim_int(g->alg, f.gates), dim_int(g->alg, 1));
    require(s);
    return s;
}

static void place_on_ranks(struct lowering *l, struct node *node)
{
    struct placement *in = NEWN(l->g->arena, struct placement, node->nin + 1), *out = NEWN(l->g->arena, struct placement, node->nout + 1);
    for (int i = 0; i < node->nin; i++)
        in[i] = node->in[i] ? node->in[i]->place : placement_replicated;
    for (int i = 0; i < node->nout; i++)
        out[i] = node->out[i] ? node->out[i]->place : placement_replicated;
    lower_on_ranks(l, node, in, out);
}

void lower_recurrent(struct lowering *l)
{
    const struct node *from = l->node;
    const struct op *op = op_find("tpc", from->optype);
    const struct split *units = units_split(l->g, from);
    struct value **in = NEWN(l->g->arena, struct value *, op->nin);
    for (int i = 0; i < from->nin; i++)
        in[i] = from->in[i];
    in[op->nin - 1] = units ? NULL : backwards(l);
    const char *name = arena_printf(l->g->arena, "%s/%s", l->name, units ? "units" : "directions");
    struct node *node = graph_node(l->g, op, name, units ? from->nin : op->nin, in, from->nout);
    attr_copy(node, from);
    VEC_PUSH(l->g->arena, &l->nodes, node);
    for (int i = 0; i < from->nout; i++)
        if (from->out[i])
            node_output(l->g, node, i, from->out[i]);
    if (!units)
        return;
    attr_set_string(node, "units", split_str(l->g->arena, units));
    place_on_ranks(l, node);
}
