/* shapes: gives every value a type of dimension expressions and removes shape arithmetic.
 *
 * First it finds state pairs, because a past length may be 0. It states --dim and the assumptions of a rank file as equations. Then
 * inference runs to its fixpoint (src/op/control/infer_fixpoint.c). At the end size operands become attributes of their nodes. A size of
 * 0 that --dim gives is stated only then, for to a Reshape a 0 among its operand's sizes means another one. Shape arithmetic that is used
 * as data becomes a constant, or one Dims node per vector. */
#include "ir/rank_meta.h"
#include "op/backward/backward.h"
#include "op/canon/canon.h"
#include "op/control/control.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "passes/pass.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <string.h>
#include <uthash.h>

/* ---- what is given ----------------------------------------------------------------------------------------------------------- */

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

/* Those of size 0, or the others. Returns whether there were any. */
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

/* No input tells a symbol that none has. */
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

/* No gradient goes into a cache: a step of training has no past. */
static void forget_past(struct graph *g)
{
    for (int i = 0; i < g->states.n; i++) {
        const struct state *s = &g->states.at[i];
        if (!s->past || s->dim < 0)
            continue;
        if (alg_equate(g->alg, s->past->type.dim[s->dim], dim_int(g->alg, 0), "--train") == EQ_FALSE)
            fail("%s: --train: dimension %d of the state '%s' is %s, expected one that may be 0", graph_file(g), s->dim, s->past->name,
                 dim_str(g->arena, s->past->type.dim[s->dim]));
    }
}

/* ---- shape information used as data -------------------------------------------------------------------------------------------- */

struct data_value {
    char *key;
    struct value *value;
    UT_hash_handle hh;
};
struct data_uses {
    struct graph *g;
    struct data_value *table;
    VEC(struct node *) nodes;
    bool *needed;
};

static char *vector_key(struct graph *g, const struct value *v)
{
    char *key = arena_printf(g->arena, "%d:%d", (int)v->type.dtype, v->type.rank);
    for (int i = 0; i < v->dims->n; i++)
        key = arena_printf(g->arena, "%s,%d", key, v->dims->at[i]->id);
    return key;
}

static struct value *dims_as_constant(struct graph *g, const struct value *v)
{
    struct constant *c = op_dims_constant(g, v);
    require(c);
    struct value *made = graph_value(g, v->name, &v->type);
    made->constant = c;
    op_dims(g, made);
    return made;
}

static struct value *dims_as_node(struct data_uses *u, const struct value *v)
{
    struct graph *g = u->g;
    struct node *node = graph_node(g, op_find("tpc", "Dims"), v->name, 0, NULL, 1);
    attr_set_dims(g, node, "dims", v->dims->n, v->dims->at);
    attr_set_int(node, "to", v->type.dtype);
    attr_set_int(node, "scalar", v->type.rank == 0);
    node_output(g, node, 0, graph_value(g, v->name, &v->type));
    op_infer(g, node);
    VEC_PUSH(g->arena, &u->nodes, node);
    return node->out[0];
}

/* The value to read instead of shape information v. Equal vectors share one value. */
static struct value *as_data(struct data_uses *u, const struct value *v)
{
    struct data_value *m = NULL;
    char *key = vector_key(u->g, v);
    HASH_FIND_STR(u->table, key, m);
    if (!m) {
        m = NEW(u->g->arena, struct data_value);
        m->key = key;
        m->value = op_dims_are_static(v) ? dims_as_constant(u->g, v) : dims_as_node(u, v);
        HASH_ADD_KEYPTR(hh, u->table, m->key, strlen(m->key), m);
    }
    return m->value;
}

static bool *mark_outputs(const struct graph *g)
{
    bool *mark = NEWN(g->arena, bool, g->values.n + 1);
    for (int i = 0; i < g->outputs.n; i++)
        mark[g->outputs.at[i]->id] = true;
    return mark;
}

static bool is_shape_arithmetic(const struct value *v)
{
    return v->dims && v->type.rank <= 1 && v->producer && strcmp(v->producer->optype, "Dims") != 0;
}

/* A graph output gets a node of its own and keeps its name. */
static void replace_outputs(struct data_uses *u)
{
    struct graph *g = u->g;
    for (int i = 0; i < g->outputs.n; i++) {
        struct value *v = g->outputs.at[i];
        if (is_shape_arithmetic(v))
            graph_replace(g, v, dims_as_node(u, v), true);
    }
}

static bool is_live(const struct node *node, const bool *needed, int n)
{
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && node->out[i]->id < n && needed[node->out[i]->id])
            return true;
    return false;
}

/* Walks backwards from the outputs, but not through shape arithmetic: what only that reads is dead. */
static void replace_operands(struct data_uses *u, int nvalues)
{
    for (int i = u->g->nodes.n - 1; i >= 0; i--) {
        struct node *node = u->g->nodes.at[i];
        if (!is_live(node, u->needed, nvalues))
            continue;
        for (int k = 0; k < node->nin; k++) {
            if (node->in[k] && is_shape_arithmetic(node->in[k]))
                node->in[k] = as_data(u, node->in[k]);
            else if (node->in[k] && node->in[k]->id < nvalues)
                u->needed[node->in[k]->id] = true;
        }
    }
}

static void shape_data(struct graph *g)
{
    struct data_uses u = {.g = g, .table = NULL, .nodes = {NULL, 0, 0}};
    replace_outputs(&u);
    u.needed = mark_outputs(g);
    replace_operands(&u, g->values.n);
    graph_insert_before_use(g, u.nodes.n, u.nodes.at);
    HASH_CLEAR(hh, u.table);
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
        trained_mark(g, options, c->plan); /* what reads such a weight is computed in each step */
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
    shape_data(g);
    graph_prune(g);
}
