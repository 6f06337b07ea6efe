/* How recurrent nets split: by rows of the batch, and by directions, which don't meet before their results.
 *
 * A rank that holds one direction has to know which: the lowering writes the node of domain tpc, which has that as an operand. The hidden
 * units are not split, for each step needs all of those before it. Rows of the quantised form share the range of their numbers. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/recurrent/recurrent.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

/* Both directions have the same functions: a rank then needs no list but theirs. */
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
    int t, b, d, h;
};

static void put(struct graph *g, struct rule_operand *o, int n, const int *factor)
{
    for (int d = 0; d < n; d++)
        rule_put(g, o, d, 0, factor[d]);
}

static int whole(struct graph *g, struct rule *r, const char *name, const struct dim *size)
{
    return rule_factor(g, r, name, size, FACTOR_REPLICATED);
}

static void put_weights(struct graph *g, struct rule *r, const struct node *node, const struct recurrent_form *f,
                        const struct recurrent_factors *at, int i)
{
    static const char *const name[] = {[RECUR_B] = "p", [RECUR_P] = "q"};
    int rows = whole(g, r, "g", node->in[RECUR_W]->type.dim[f->quantized ? 2 : 1]);
    put(g, &r->in[RECUR_W], 3, f->quantized ? (int[]){at->d, i, rows} : (int[]){at->d, rows, i});
    put(g, &r->in[RECUR_R], 3, f->quantized ? (int[]){at->d, at->h, rows} : (int[]){at->d, rows, at->h});
    for (int k = RECUR_B; k <= (f->lstm ? RECUR_P : RECUR_B); k += RECUR_P - RECUR_B)
        if (recurrent_has(node, k))
            put(g, &r->in[k], 2, (int[]){at->d, whole(g, r, name[k], node->in[k]->type.dim[1])});
    for (int k = RECUR_SCALES; f->quantized && k < RECUR_SCALES + 4; k++) {
        const struct type *t = &node->in[k]->type;
        rule_put(g, &r->in[k], 0, 0, at->d);
        if (t->rank == 2 && !dim_equals(t->dim[1], 1))
            rule_put(g, &r->in[k], 1, 0, rows);
    }
    if (f->backwards >= 0)
        rule_put(g, &r->in[f->backwards], 0, 0, at->d);
}

struct rule *rule_recurrent(struct graph *g, const struct node *node)
{
    struct recurrent_form f = recurrent_form(node);
    struct rule *r = rule_new(g, node);
    const struct dim *const *x = node->in[RECUR_X]->type.dim, *h = node->in[RECUR_R]->type.dim[f.quantized ? 1 : 2];
    struct recurrent_factors at = {.t = whole(g, r, "t", x[f.batch_first])};
    at.b = rule_factor(g, r, "b", x[!f.batch_first], f.quantized ? FACTOR_REPLICATED : 0);
    at.d = rule_factor(g, r, "d", node->in[RECUR_W]->type.dim[0], direction_flags(node, &f));
    at.h = whole(g, r, "h", h);
    int i = whole(g, r, "i", x[2]);
    put(g, &r->in[RECUR_X], 3, f.batch_first ? (int[]){at.b, at.t, i} : (int[]){at.t, at.b, i});
    put_weights(g, r, node, &f, &at, i);
    if (recurrent_has(node, RECUR_LENS))
        rule_put(g, &r->in[RECUR_LENS], 0, 0, at.b);
    const int *state = f.batch_first ? (int[]){at.b, at.d, at.h} : (int[]){at.d, at.b, at.h};
    for (int k = RECUR_H; k <= (f.lstm ? RECUR_C : RECUR_H); k++)
        if (recurrent_has(node, k))
            put(g, &r->in[k], 3, state);
    for (int k = 0; k < node->nout; k++)
        if (node->out[k])
            put(g, &r->out[k], k ? 3 : 4, k ? state : f.batch_first ? (int[]){at.b, at.t, at.d, at.h} : (int[]){at.t, at.d, at.b, at.h});
    return r;
}

/* ---- one direction on each rank ------------------------------------------------------------------------------------------------------ */

static struct value *backwards(struct lowering *l)
{
    static const bool both[2] = {false, true};
    int64_t n = 2;
    struct value *v = graph_constant(l->g, arena_printf(l->g->arena, "%s/backwards", l->name), DT_BOOL, 1, &n, both);
    v->place = placement_replicated;
    v->placed = true;
    return v;
}

void lower_recurrent(struct lowering *l)
{
    const struct node *from = l->node;
    const struct op *op = op_find("tpc", from->optype);
    struct value **in = NEWN(l->g->arena, struct value *, op->nin);
    for (int i = 0; i < from->nin; i++)
        in[i] = from->in[i];
    in[op->nin - 1] = backwards(l);
    struct node *node = graph_node(l->g, op, arena_printf(l->g->arena, "%s/directions", l->name), op->nin, in, from->nout);
    memcpy(node->attr, from->attr, sizeof *node->attr * (size_t)node->nattr);
    VEC_PUSH(l->g->arena, &l->nodes, node);
    for (int i = 0; i < from->nout; i++)
        if (from->out[i])
            node_output(l->g, node, i, from->out[i]);
}
