/* Gradients that are made in place, where a few nodes would each write something large:
 *
 *   Add(x, ScatterND(zeros, at, y))                         x, with y added at the places: a table that is also a weight of a product
 *   Mul(Sub(Exp(log_prob), one at the label), share)        log_prob becomes the gradient of the scores
 *
 * One at the label: OneHot, or as its lowering writes it, Where(label = position, 1, 0) with the positions of this rank's classes. Only
 * what nothing else reads is changed. */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "run/fuse/fuse.h"

#include <math.h>
#include <string.h>

struct place_search {
    struct graph *g;
    const struct uses *uses;
    int nvalues;
};

static bool is_element(const struct value *v, int i, double want)
{
    struct constant *c = v->constant;
    double x = c && c->dtype == DT_F32 && constant_elements(c) > i ? constant_float(c, v->name, i) : want + 1;
    return !(x < want || x > want);
}

/* One number, also split off from a constant. */
static bool is_number(const struct value *v, double want)
{
    struct node *split = op_made_by(v, "Split");
    int i = 0;
    double x;
    if (!split)
        return op_number(v, &x) && !(x < want || x > want);
    while (split->out[i] != v)
        i++;
    return split->nout == 2 && dim_equals(split->in[0]->type.dim[0], 2) && dim_equals(v->type.dim[0], 1) &&
        is_element(split->in[0], i, want);
}

/* Nothing else will want these bytes: a node makes them, and only one reads them. */
static bool is_free(const struct place_search *s, const struct value *v)
{
    const struct node *n = v->producer;
    return v->id < s->nvalues && s->uses[v->id].n == 1 && s->uses[v->id].at[0].node && n && n->op && n->op->kernel &&
        !(n->op->flags & (OP_VIEW | OP_IN_PLACE | OP_CONTROL)) && v->type.dtype == DT_F32;
}

static struct node *in_place(struct graph *g, struct node *old, const char *op, int nin, struct value *const *in)
{
    struct node *n = graph_node(g, op_find("tpc", op), old->name, nin, in, 1);
    node_output(g, n, 0, old->out[0]);
    return n;
}

/* ---- Add(x, ScatterND(zeros, at, y)) ----------------------------------------------------------------------------------------------- */

static bool is_zeros(const struct value *v)
{
    struct node *expand = op_made_by(v, "Expand");
    int64_t n = v->constant && v->constant->dtype == DT_F32 ? constant_elements(v->constant) : -1;
    const float *at = n > 0 ? constant_data(v->constant, v->name) : NULL;
    for (int64_t i = 0; i < n; i++)
        if (fpclassify(at[i]) != FP_ZERO)
            return false;
    return n >= 0 || (expand && is_number(expand->in[0], 0));
}

static struct node *match_scatter(const struct place_search *s, struct node *n)
{
    for (int side = 0; side < 2 && op_is_onnx(n, "Add"); side++) {
        struct node *scatter = op_made_by(n->in[side], "ScatterND");
        struct value *x = n->in[1 - side];
        if (!scatter || !is_zeros(scatter->in[0]) || strcmp(attr_string(scatter, "reduction"), "add") != 0)
            continue;
        if (!is_free(s, x) || !type_eq(&x->type, &n->out[0]->type) || !type_eq(&x->type, &scatter->out[0]->type))
            continue;
        struct node *into = in_place(s->g, n, "ScatterInto", 3, (struct value *[]){x, scatter->in[1], scatter->in[2]});
        attr_set_string(into, "reduction", "add");
        return into;
    }
    return NULL;
}

/* ---- the gradient of cross entropy --------------------------------------------------------------------------------------------------- */

static bool is_row(const struct value *v, const struct dim *n)
{
    return v->type.rank == 1 && v->type.dtype == DT_I64 && v->type.dim[0] == n;
}

/* One at the label, else zero: the labels, and the positions of the columns (NULL: from 0). */
static bool match_hot(const struct value *v, struct value **at, struct value **position)
{
    struct node *hot = op_made_by(v, "OneHot"), *choice = op_made_by(v, "Where"),
                *equal = choice ? op_made_by(choice->in[0], "Equal") : NULL;
    if (hot) {
        *at = hot->in[0];
        *position = NULL;
        return is_element(hot->in[2], 0, 0) && is_element(hot->in[2], 1, 1) && (attr_int(hot, "axis") == 1 || attr_int(hot, "axis") == -1);
    }
    struct node *column = equal ? op_made_by(equal->in[0], "Unsqueeze") : NULL;
    if (!column || !is_row(equal->in[1], v->type.dim[1]) || !is_number(choice->in[1], 1) || !is_number(choice->in[2], 0))
        return false;
    *at = column->in[0];
    *position = equal->in[1];
    return true;
}

static struct node *match_entropy(const struct place_search *s, struct node *n)
{
    for (int side = 0; side < 2 && op_is_onnx(n, "Mul") && n->out[0]->type.rank == 2; side++) {
        struct node *sub = op_made_by(n->in[side], "Sub"), *exp = sub ? op_made_by(sub->in[0], "Exp") : NULL;
        struct value *at, *position, *share = n->in[1 - side];
        if (!exp || !is_free(s, exp->in[0]) || !type_eq(&exp->in[0]->type, &n->out[0]->type) || !match_hot(sub->in[1], &at, &position))
            continue;
        bool row = at->type.rank == 1 && at->type.dtype == DT_I64 && at->type.dim[0] == n->out[0]->type.dim[0];
        bool each = share->type.rank == 2 && dim_equals(share->type.dim[1], 1);
        if (row && share->type.dtype == DT_F32 && (share->type.rank == 0 || each))
            return in_place(s->g, n, "EntropyGradient", position ? 4 : 3, (struct value *[]){exp->in[0], at, share, position});
    }
    return NULL;
}

void fuse_in_place(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct place_search s = {.g = g, .uses = graph_uses(g, tmp), .nvalues = g->values.n};
    int made = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i], *instead = match_scatter(&s, n);
        if (!instead)
            instead = match_entropy(&s, n);
        if (instead)
            g->nodes.at[i] = instead;
        made += instead != NULL;
    }
    arena_free(tmp);
    graph_prune(g);
    if (made)
        explain("%s: %d gradients made in place", graph_file(g), made);
}
