/* fuse_in_place: computes results in place where several nodes would each write a large one:
 *
 *   ScatterND(x, at, y), ScatterElements(x, at, y)          x with y at these indices
 *   Add(x, ScatterND(zeros, at, y)), ScatterElements        x with y added at these indices: rows of an expert, the gradient of a table
 *   Mul(Sub(Exp(log_prob), one at the label), share)        log_prob becomes the gradient of the scores
 *
 * One at the label: OneHot, or its lowering, Where(label = position, 1, 0) with the positions of this rank's classes. Only values without
 * other readers are overwritten. */
#include "lower/lower.h"
#include "op/analysis/analysis.h"
#include "op/op.h"

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

/* One number, maybe sliced from a constant. */
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

static bool read_once(const struct place_search *s, const struct value *v)
{
    return graph_reads_once(s->uses, s->nvalues, v) && s->uses[v->id].at[0].node;
}

/* Whether the bytes of v may be overwritten: a node makes them, and one node reads them. If that node works in place itself, its operand
 * must have had no other reader. */
static bool is_free(const struct place_search *s, const struct value *v)
{
    const struct node *n = v->producer;
    return read_once(s, v) && n && n->op && n->op->kernel && !(n->op->flags & (OP_VIEW | OP_CONTROL)) && v->type.dtype != DT_STRING;
}

static struct node *in_place(struct graph *g, struct node *old, const char *op, int nin, struct value *const *in)
{
    struct node *n = graph_node(g, op_find("tpc", op), old->name, nin, in, 1);
    node_output(g, n, 0, old->out[0]);
    return n;
}

/* ---- Add(x, scatter(zeros, at, y)) ------------------------------------------------------------------------------------------------- */

static bool all_zero(struct constant *c, const char *name)
{
    int64_t n = c->dtype == DT_F32 ? constant_elements(c) : 0;
    const float *at = n ? constant_data(c, name) : NULL;
    for (int64_t i = 0; i < n; i++)
        if (fpclassify(at[i]) != FP_ZERO)
            return false;
    return n > 0;
}

static bool is_zeros(const struct value *v)
{
    const struct node *expand = op_made_by(v, "Expand"), *shape = op_made_by(v, "ConstantOfShape");
    struct attr *value = shape ? node_attr(shape, "value") : NULL;
    if (value && value->set)
        return all_zero(value->tensor, shape->name);
    return value || (v->constant && all_zero(v->constant, v->name)) || (expand && is_number(expand->in[0], 0));
}

/* Without a reduction no index may occur twice, so every target element is zero. */
static bool adds(const struct node *scatter)
{
    const char *how = attr_string(scatter, "reduction");
    return is_zeros(scatter->in[0]) && (strcmp(how, "add") == 0 || strcmp(how, "none") == 0);
}

/* The indices of whole rows of x, [n, 1], if an exporter repeats them for each column; NULL: they are no rows. */
static struct value *row_places(const struct node *scatter, const struct value *x)
{
    const struct type *index = &scatter->in[1]->type, *places;
    struct node *expand = op_made_by(scatter->in[1], "Expand");
    int64_t axis = op_is_onnx(scatter, "ScatterElements") ? attr_int(scatter, "axis") : 1;
    if (!expand || (axis != 0 && axis != -2) || x->type.rank != 2 || index->rank != 2)
        return NULL;
    places = &expand->in[0]->type;
    bool rows = places->rank == 2 && places->dim[0] == index->dim[0] && dim_equals(places->dim[1], 1) && index->dim[1] == x->type.dim[1];
    return rows && places->dtype == DT_I64 ? expand->in[0] : NULL;
}

static struct node *scatter_into(struct graph *g, struct node *n, const struct node *scatter, struct value *x, const char *reduction)
{
    struct value *places = row_places(scatter, x), *in[] = {x, places ? places : scatter->in[1], scatter->in[2]};
    bool elements = op_is_onnx(scatter, "ScatterElements") && !places;
    struct node *into = in_place(g, n, elements ? "ScatterElementsInto" : "ScatterInto", 3, in);
    attr_set_string(into, "reduction", reduction);
    attr_set_string(into, "lookup", node_lookup(g, scatter, 1));
    if (elements)
        attr_set_int(into, "axis", attr_int(scatter, "axis"));
    return into;
}

static struct node *made_by_scatter(const struct value *v)
{
    struct node *n = op_made_by(v, "ScatterND");
    return n ? n : op_made_by(v, "ScatterElements");
}

static struct node *match_sum(const struct place_search *s, struct node *n)
{
    for (int side = 0; side < 2 && op_is_onnx(n, "Add"); side++) {
        struct node *scatter = made_by_scatter(n->in[side]);
        struct value *x = n->in[1 - side];
        if (scatter && adds(scatter) && is_free(s, x) && x->type.dtype == DT_F32 && type_eq(&x->type, &scatter->out[0]->type))
            return scatter_into(s->g, n, scatter, x, "add");
    }
    return NULL;
}

/* ---- a scatter of x ----------------------------------------------------------------------------------------------------------------- */

static struct node *match_scatter(const struct place_search *s, struct node *n)
{
    bool scatters = op_is_onnx(n, "ScatterND") || op_is_onnx(n, "ScatterElements");
    return scatters && is_free(s, n->in[0]) ? scatter_into(s->g, n, n, n->in[0], attr_string(n, "reduction")) : NULL;
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
        if (!exp || !is_free(s, exp->in[0]) || !read_once(s, n->in[side]) || !read_once(s, sub->in[0]) ||
            !type_eq(&exp->in[0]->type, &n->out[0]->type) || !type_eq(&sub->in[1]->type, &n->out[0]->type) ||
            !match_hot(sub->in[1], &at, &position))
            continue;
        bool row = at->type.rank == 1 && at->type.dtype == DT_I64 && at->type.dim[0] == n->out[0]->type.dim[0];
        bool each = share->type.rank == 2 && dim_equals(share->type.dim[1], 1);
        if (row && share->type.dtype == DT_F32 && (share->type.rank == 0 || each))
            return in_place(s->g, n, "EntropyGradient", position ? 4 : 3, (struct value *[]){exp->in[0], at, share, position});
    }
    return NULL;
}

static int replace(struct graph *g, struct node *(*match)(const struct place_search *, struct node *))
{
    struct arena *tmp = arena_new();
    struct place_search s = {.g = g, .uses = graph_uses(g, tmp), .nvalues = g->values.n};
    int made = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *instead = match(&s, g->nodes.at[i]);
        if (instead)
            g->nodes.at[i] = instead;
        made += instead != NULL;
    }
    arena_free(tmp);
    graph_prune(g);
    return made;
}

void fuse_in_place(struct graph *g)
{
    int made = replace(g, match_sum) + replace(g, match_entropy);
    made += replace(g, match_scatter); /* those that are not part of a sum */
    if (made)
        explain("%s: %d results made in place", graph_file(g), made);
}
