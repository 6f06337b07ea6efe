/* shapes: gives every value a type of dimension expressions and removes shape arithmetic.
 *
 * First it finds state pairs, because a past length may be 0. It states --dim and the assumptions of a rank file as equations. Then
 * inference runs to its fixpoint (src/op/control/infer_fixpoint.c). At the end size operands become attributes of their nodes. A size of 0
 * from --dim is stated only then, because a 0 among a Reshape's sizes means a copied size. Then shape arithmetic is removed
 * (src/op/canon/shape_data.c). */
#include "ir/rank_meta.h"
#include "op/backward/backward.h"
#include "op/canon/canon.h"
#include "op/control/control.h"
#include "op/infer/infer.h"
#include "passes/pass.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"

static bool input_uses(const struct graph *g, const char *symbol)
{
    for (int i = 0; i < g->inputs.n; i++)
        for (int d = 0; d < g->inputs.at[i]->type.rank; d++)
            if (dim_uses(g->inputs.at[i]->type.dim[d], symbol))
                return true;
    return false;
}

static void check_dims(const struct graph *g, const struct bindings *dims)
{
    for (int i = 0; i < dims->list.n; i++)
        if (!input_uses(g, dims->list.at[i].name))
            fail("%s: --dim '%s': the model has no dimension of this name; %s", graph_file(g), dims->list.at[i].name,
                 symbol_list_of_inputs(g->arena, g));
}

static void bind_dim(struct graph *g, const struct binding *b)
{
    const struct dim *symbol = dim_sym(g->alg, b->name, INT64_MAX), *size = dim_int(g->alg, b->value);
    if (b->value < symbol->lo || alg_equate(g->alg, symbol, size, "--dim") == EQ_FALSE)
        fail("%s: --dim sets '%s' to %lld, expected at least %lld and no conflict with the model", graph_file(g), b->name,
             (long long)b->value, (long long)symbol->lo);
}

/* Binds the sizes of 0, or the others. Returns whether there were any. */
static bool bind_dims(struct graph *g, const struct bindings *dims, bool zeros)
{
    bool any = false;
    for (int i = 0; i < dims->list.n; i++)
        if ((dims->list.at[i].value == 0) == zeros) {
            bind_dim(g, &dims->list.at[i]);
            any = true;
        }
    return any;
}

/* A symbol that no input has is data-dependent. */
static void note_data(void *graph, const struct dim *symbol)
{
    struct graph *g = graph;
    if (!input_uses(g, symbol->name))
        (void)dim_data_sym(g->alg, symbol->name);
}

static void state_assumption(struct graph *g, const struct rank_assumption *e)
{
    const char *error = NULL;
    const struct dim *a = dim_parse(g->alg, e->left, 0, &error), *b = a ? dim_parse(g->alg, e->right, 0, &error) : NULL;
    for (int i = 0; a && b && i < 2; i++)
        dim_each_symbol(i ? b : a, note_data, g);
    if (!a || !b || alg_equate(g->alg, a, b, e->why) == EQ_FALSE)
        fail("%s: the assumption '%s' can't be stated: %s", graph_file(g), e->text, error ? error : "it is false");
}

/* States the lower bounds of a rank file's symbols and the assumptions of its plan. */
static void state_rank_meta(struct graph *g)
{
    const struct rank_meta *m = g->ranks ? g->rank_meta : NULL;
    for (int i = 0; m && i < m->nbound; i++)
        dim_at_least(g->alg, dim_sym(g->alg, m->bound[i].symbol, m->bound[i].usual), m->bound[i].least);
    for (int i = 0; m && i < m->nassumption; i++)
        state_assumption(g, &m->assumption[i]);
}

/* A cache gets no gradient: a training step has no past. */
static void forget_past(struct graph *g)
{
    EACH (const struct state, s, g->states) {
        if (!s->past || s->dim < 0)
            continue;
        if (alg_equate(g->alg, s->past->type.dim[s->dim], dim_int(g->alg, 0), "--train") == EQ_FALSE)
            fail("%s: --train: dimension %d of the state '%s' is %s, expected one that may be 0", graph_file(g), s->dim, s->past->name,
                 dim_str(g->arena, s->past->type.dim[s->dim]));
    }
}

void pass_shapes(struct compile *c)
{
    struct graph *g = c->graph;
    const struct options *options = c->options;
    plan_find_states(g);
    if (options && options->plan_file)
        plan_name_states(g, options->plan_file);
    state_rank_meta(g);
    if (options) {
        check_dims(g, &options->dims);
        (void)bind_dims(g, &options->dims, false);
    }
    if (options && options->train) {
        trained_mark(g, options, c->plan); /* nodes that read such a weight are computed in each step */
        forget_past(g);
    }
    op_infer_fixpoint(g);
    if (g->undecided.what && c->sizes.state) {
        c->sizes.state(c->sizes.data, g);
        op_infer_fixpoint(g);
    }
    if (g->undecided.what)
        op_fail_undecided(g);
    for (int i = 0; i < g->nodes.n; i++)
        canon_node(g, g->nodes.at[i]);
    if (options && bind_dims(g, &options->dims, true)) {
        for (int i = 0; i < g->nodes.n; i++)
            attr_rewrite_dims(g, g->nodes.at[i]);
        op_infer_fixpoint(g);
    }
    canon_shape_data(g);
    graph_prune(g);
}
