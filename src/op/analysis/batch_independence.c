/* batch_independence: the symbols that count independent rows, which can be computed separately (a batch).
 *
 * A symbol is treated as if its dimension were split over two ranks that exchange nothing. The nodes' rules (rule.c, rule_project.c) carry
 * that placement from the inputs to the outputs. A node that would need a replicated value, leave a partial one, or compare positions mixes
 * rows; a node that reads the symbol as a number depends on the number of rows. Otherwise a rank with some of the rows can run the same
 * graph on them, with their number as the symbol's value, and gets these rows of the results.
 *
 * Row numbers (Range, and values computed from it: affine.c) differ from those of a rank, which counts from 0. They may only be used to
 * look up each row in its own shard, as exporters write masks. */
#include "ir/rank_meta.h"
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"

#include <string.h>

struct row_walk {
    struct graph *g;
    const struct dim *size;    /* the symbol */
    const struct split *split; /* an even one */
    struct placement *at;      /* by value id */
    struct affines *affine;    /* by value id */
    const char *why;           /* rows are not independent; NULL: no reason so far */
};

static void check_row_end(struct row_walk *w, const char *kind, const struct value *v)
{
    int d;
    if (!w->why && symbol_in_type(w->g, w->size, v) && !symbol_is_dim(w->g, w->size, v, &d))
        w->why = arena_printf(w->g->arena, "%s '%s' (%s) has no dimension that is just it", kind, v->name, type_str(w->g->arena, &v->type));
}

static void start_walk(struct row_walk *w)
{
    int d;
    for (int i = 0; i < w->g->inputs.n; i++) {
        const struct value *v = w->g->inputs.at[i];
        check_row_end(w, "input", v);
        if (symbol_in_type(w->g, w->size, v) && symbol_is_dim(w->g, w->size, v, &d))
            w->at[v->id] = placement_split(d, w->split);
    }
}

/* ---- rows in operands --------------------------------------------------------------------------------------------------- */

static bool is_row_split(const struct row_walk *w, const struct value *v)
{
    return v && w->at[v->id].kind == PLACE_S;
}

static bool concerned(const struct row_walk *w, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (is_row_split(w, n->in[i]))
            return true;
    for (int i = 0; i < n->nout; i++)
        if (symbol_in_type(w->g, w->size, n->out[i]))
            return true;
    return false;
}

/* ---- numbers of rows --------------------------------------------------------------------------------------------------------- */

static const struct dim *row_step(const struct row_walk *w, const struct value *v, int entry)
{
    const struct affine *a = w->affine[v->id].at[entry];
    return a ? a->step[w->at[v->id].dim] : dim_int(w->g->alg, 0);
}

/* Whether its elements differ from those that a rank counts from 0. */
static bool is_numbered(const struct row_walk *w, const struct value *v)
{
    for (int i = 0; is_row_split(w, v) && i < w->affine[v->id].n; i++)
        if (!dim_equals(row_step(w, v, i), 0))
            return true;
    return false;
}

static bool reads_numbers(const struct row_walk *w, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (is_numbered(w, n->in[i]))
            return true;
    return false;
}

/* Whether row b has b * k + r, with r an index of [0, k): the index stays in row b of a tensor with k indices per row. */
static bool within_row(const struct row_walk *w, const struct value *index, int entry, const struct dim *k)
{
    const struct affine *a = w->affine[index->id].at[entry];
    const struct placement at = w->at[index->id];
    return a && at.split == w->split && a->step[at.dim] == k && affine_within(w->g, a, &index->type, at.dim, k);
}

/* The k for which the split is one of all rows with k indices each; NULL: none. */
static const struct dim *indices_per_row(const struct row_walk *w, const struct split *s)
{
    return dim_equals(s->outer, 1) && s->n == w->size && s->balanced && !s->reads ? s->inner : NULL;
}

/* Whether a lookup along axis stays in its own rows. */
static bool gathers_own(struct row_walk *w, const struct node *n)
{
    const struct value *data = n->in[0], *index = n->in[1];
    const struct placement at = w->at[data->id];
    int axis = op_axis(w->g, n, attr_int(n, "axis"), data->type.rank);
    const struct dim *k = at.kind == PLACE_S && at.dim == axis ? indices_per_row(w, at.split) : NULL;
    if (!k || w->affine[index->id].n != 1 || !within_row(w, index, 0, k))
        return false;
    w->at[n->out[0]->id] = placement_split(axis + w->at[index->id].dim, w->split);
    return true;
}

/* Whether the tuples' entry for the split dimension is the number of their own row, and no other entry is. */
static bool points_to_own(const struct row_walk *w, const struct value *data, const struct value *index)
{
    const struct placement at = w->at[data->id];
    int n = w->affine[index->id].n;
    if (at.kind != PLACE_S || at.split != w->split || at.dim >= n || !within_row(w, index, at.dim, dim_int(w->g->alg, 1)))
        return false;
    for (int i = 0; i < n; i++)
        if (i != at.dim && !dim_equals(row_step(w, index, i), 0))
            return false;
    return true;
}

static bool gathers_own_tuples(struct row_walk *w, const struct node *n)
{
    if (attr_int(n, "batch_dims") != 0 || !points_to_own(w, n->in[0], n->in[1]))
        return false;
    w->at[n->out[0]->id] = w->at[n->in[1]->id];
    return true;
}

static bool scatters_to_own(struct row_walk *w, const struct node *n)
{
    if (!points_to_own(w, n->in[0], n->in[1]) || !placement_eq(w->at[n->in[2]->id], w->at[n->in[1]->id]))
        return false;
    w->at[n->out[0]->id] = w->at[n->in[0]->id];
    return true;
}

/* Whether the node uses row numbers only as indices into its own rows. */
static bool uses_own(struct row_walk *w, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (i != 1 && is_numbered(w, n->in[i]))
            return false;
    return op_is_onnx(n, "Gather")  ? gathers_own(w, n)
        : op_is_onnx(n, "GatherND") ? gathers_own_tuples(w, n)
                                    : op_is_onnx(n, "ScatterND") && scatters_to_own(w, n);
}

/* Whether the node makes the numbers of all rows, in order. */
static bool numbers_rows(struct row_walk *w, const struct node *n)
{
    int d;
    if (n->nin > 0 || n->nout != 1 || !w->affine[n->out[0]->id].n || !symbol_is_dim(w->g, w->size, n->out[0], &d))
        return false;
    const struct affine *a = w->affine[n->out[0]->id].at[0];
    if (dim_uses(a->base, w->size->name) || dim_uses(a->step[d], w->size->name))
        return false;
    w->at[n->out[0]->id] = placement_split(d, w->split);
    return true;
}

/* ---- nodes that read no row numbers --------------------------------------------------------------------------------------- */

/* Rows that the node creates (Expand) have a factor that counts them. */
static void give_new(const struct row_walk *w, const struct rule *r, struct assignment *c)
{
    for (int f = 0; f < r->nfactor; f++)
        if (r->factor[f].size == w->size)
            c->factor[f] = w->split;
}

static bool assign_rows(const struct row_walk *w, const struct node *n, const struct rule *r, struct assignment *c)
{
    bool given = false;
    for (int i = 0; i < n->nin; i++) {
        if (!is_row_split(w, n->in[i]))
            continue;
        const struct placement at = w->at[n->in[i]->id];
        if (!symbol_assign(w->g, r, &r->in[i].dim[at.dim], at.split, c))
            return false;
        given = true;
    }
    if (!given)
        give_new(w, r, c);
    return true;
}

/* Whether a result is split along the dimension with the symbol, or has no such dimension. */
static bool result_fits(const struct row_walk *w, const struct value *v, struct placement out)
{
    int d = -1, n = symbol_dims(w->g, w->size, v, &d);
    return n == 0 ? out.kind == PLACE_R : n == 1 && out.kind == PLACE_S && out.dim == d;
}

static bool keeps_rows(struct row_walk *w, const struct node *n)
{
    struct rule *r = rule_of(w->g, n);
    if (!r)
        return false;
    struct assignment c = {.factor = NEWN(w->g->arena, const struct split *, r->nfactor + 1)};
    struct placement *in = NEWN(w->g->arena, struct placement, n->nin + 1), *out = NEWN(w->g->arena, struct placement, n->nout + 1);
    if (!assign_rows(w, n, r, &c) || !rule_project(w->g, r, SYMBOL_PARTS, &c, in, out, NULL))
        return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !placement_eq(in[i], w->at[n->in[i]->id]))
            return false;
    for (int i = 0; i < n->nout; i++) {
        if (!n->out[i])
            continue;
        if (!result_fits(w, n->out[i], out[i]))
            return false;
        w->at[n->out[i]->id] = out[i];
    }
    return true;
}

static bool note_affine(struct row_walk *w, const struct node *n)
{
    if (n->nout != 1 || !n->out[0])
        return false;
    w->affine[n->out[0]->id] = affine_of(w->g, n, w->affine);
    return w->affine[n->out[0]->id].n > 0;
}

static void visit_node(struct row_walk *w, const struct node *n)
{
    bool affine = note_affine(w, n);
    if (numbers_rows(w, n) || (!affine && reads_numbers(w, n) && uses_own(w, n)))
        return;
    if (symbol_in_sizes(w->g, w->size, n))
        w->why = arena_printf(w->g->arena, "node '%s' (%s) depends on how many rows there are", n->name, n->optype);
    else if ((!affine && reads_numbers(w, n)) || (concerned(w, n) && !keeps_rows(w, n)))
        w->why = arena_printf(w->g->arena, "node '%s' (%s) mixes its rows", n->name, n->optype);
}

/* ---- all nodes ----------------------------------------------------------------------------------------------------------------------- */

static const char *mixed(struct graph *g, const struct dim *symbol)
{
    struct row_walk w = {.g = g,
                         .size = symbol,
                         .split = split_even(g->alg, SYMBOL_PARTS, symbol),
                         .at = NEWN(g->arena, struct placement, g->values.n + 1),
                         .affine = NEWN(g->arena, struct affines, g->values.n + 1)};
    bool any = false;
    start_walk(&w);
    for (int i = 0; i < g->nodes.n && !w.why; i++)
        visit_node(&w, g->nodes.at[i]);
    for (int i = 0; i < g->outputs.n && !w.why; i++) {
        check_row_end(&w, "output", g->outputs.at[i]);
        if (is_numbered(&w, g->outputs.at[i]))
            w.why = arena_printf(g->arena, "output '%s' holds numbers of rows", g->outputs.at[i]->name);
        any |= symbol_in_type(w.g, w.size, g->outputs.at[i]);
    }
    return w.why || any ? w.why : "no output has it";
}

struct symbols {
    VEC(const struct dim *) list;
};

static bool is_listed(const struct symbols *s, const struct dim *symbol)
{
    for (int i = 0; i < s->list.n; i++)
        if (s->list.at[i] == symbol)
            return true;
    return false;
}

void op_note_rows(struct graph *g)
{
    struct symbols seen = {{NULL, 0, 0}};
    for (int i = 0; i < g->inputs.n; i++)
        for (int d = 0; d < g->inputs.at[i]->type.rank; d++) {
            const struct dim *size = dim_rewrite(g->alg, g->inputs.at[i]->type.dim[d]);
            if (size->kind != DIM_SYM || is_listed(&seen, size))
                continue;
            VEC_PUSH(g->arena, &seen.list, size);
            const char *why = mixed(g, size);
            rank_meta_set_rows(g, size->name, why);
        }
}
