/* state: finds what a decode loop carries from step to step, by dataflow and not by name.
 *
 * Pairs are found before types are known: ranks and sizes come from the graph inputs. A pair (past, present): a graph input that an op of
 * flag OP_APPENDS appends to, whose result is a graph output; on both sides only ops that keep every element and permute dimensions
 * (OP_CONVERTS, OP_MOVES) may come between. Concat appends along its axis; a fused attention op names its operands past_X and its results
 * present_X and appends along the second last dimension. The growing dimension may be 0: the first step has no past. An If makes a pair if
 * one of its branches does.
 *
 * In a canonical graph the rest follows from the keys and values that attention reads. If both are graph inputs, in a graph that has a
 * pair, they are input-only state, as the keys and values of an encoder are in its decoder's steps. Without a pair there is no evidence of
 * a loop. If the graph makes both and outputs them, they are output-only state, which the prefill passes to the decode steps. */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "plan/facts/facts.h"

#include <string.h>

/* Whether a node keeps every element and only permutes dimensions. Before types are known, a Reshape is not known to. */
static bool permutes(const struct node *node)
{
    unsigned flags = node->op ? node->op->flags : 0;
    return (flags & OP_CONVERTS) || ((flags & OP_MOVES) && (attr_find(node, "perm") || node->op->nattr == 0));
}

static const int64_t *perm_of(const struct graph *g, const struct node *node, int rank)
{
    const int64_t *perm = NULL;
    if (!attr_is_set(node, "perm"))
        return NULL;
    return attr_ints(g, node, "perm", &perm) == rank ? perm : NULL;
}

/* Dimension d of a node's result as a dimension of its operand. */
static int dim_before(const struct graph *g, const struct node *node, int d, int rank)
{
    if (!attr_find(node, "perm"))
        return d;
    const int64_t *perm = perm_of(g, node, rank);
    int from = perm ? (int)perm[d] : rank - 1 - d;
    from = from < 0 ? from + rank : from;
    return from >= 0 && from < rank ? from : -1;
}

/* The rank of a value, from its graph input; -1 if ops other than moves made it. */
static int known_rank(const struct value *v)
{
    while (v->producer && permutes(v->producer) && v->producer->in[0])
        v = v->producer->in[0];
    return v->producer || v->constant ? -1 : v->type.rank;
}

/* Follows moves back from dimension d of v to a graph input; NULL if there is none. */
static struct value *input_behind(const struct graph *g, struct value *v, int *d)
{
    int rank = known_rank(v);
    if (rank < 1)
        return NULL;
    *d = *d < 0 ? *d + rank : *d;
    while (v->producer && *d >= 0 && *d < rank) {
        *d = dim_before(g, v->producer, *d, rank);
        v = v->producer->in[0];
    }
    return *d >= 0 && *d < rank ? v : NULL;
}

static void add_state(struct graph *g, struct value *past, struct value *present, int d)
{
    if (graph_state(g, past) || graph_state(g, present))
        return;
    struct state state = {.past = past, .present = present, .dim = d};
    graph_add_state(g, state);
    const struct dim *size = d < 0 ? NULL : past->type.dim[d];
    if (size && size->kind == DIM_SYM)
        dim_sym(g->alg, size->name, 0);
}

/* Adds the state of a recurrence: no dimension grows. */
static void add_recurrent(struct graph *g, struct value *present)
{
    const struct value *past = op_recurrent_past(present);
    for (int i = 0; past && i < g->inputs.n; i++)
        if (g->inputs.at[i] == past)
            add_state(g, g->inputs.at[i], present, -1);
}

static struct value *concat_past(const struct graph *g, const struct node *node, int *d)
{
    for (int i = 0; i < node->nin; i++) {
        *d = (int)attr_int(node, "axis");
        struct value *past = node->in[i] ? input_behind(g, node->in[i], d) : NULL;
        if (past)
            return past;
    }
    return NULL;
}

/* The operand past_X for result present_X. */
static struct value *fused_past(const struct graph *g, const struct node *node, const struct value *result, int *d)
{
    int operand = op_past_operand(node, result->index);
    *d = -2;
    return operand >= 0 && node->in[operand] ? input_behind(g, node->in[operand], d) : NULL;
}

static struct value *past_behind(const struct graph *, struct value *, int *d);

/* The past in the first branch that appends to a captured value. */
static struct value *branch_past(const struct graph *g, const struct node *node, const struct value *result, int *d)
{
    for (int k = 0; k < node_bodies(node); k++) {
        const struct graph *body = node_body(node, k)->graph;
        struct value *past = result->index < body->outputs.n ? past_behind(body, body->outputs.at[result->index], d) : NULL;
        for (int i = 0; past && i < body->captures; i++)
            if (body->inputs.at[body->inputs.n - body->captures + i] == past)
                return input_behind(g, node->in[node_captured(node, k) + i], d);
    }
    return NULL;
}

/* The graph input, with its dimension, to which an op appends to make this value, maybe moved; NULL: none. */
static struct value *past_behind(const struct graph *g, struct value *v, int *d)
{
    while (v->producer && permutes(v->producer) && v->producer->in[0])
        v = v->producer->in[0];
    const struct node *node = v->producer;
    if (node && node->op && node_bodies(node) > 1) /* an If: one branch runs */
        return branch_past(g, node, v, d);
    if (!node || !node->op || !(node->op->flags & OP_APPENDS))
        return NULL;
    return node->op->flags & OP_PRODUCT ? fused_past(g, node, v, d) : concat_past(g, node, d);
}

static void find_state(struct graph *g, struct value *output)
{
    int d;
    struct value *past = past_behind(g, output, &d);
    if (past && d >= 0 && d < past->type.rank)
        add_state(g, past, output, d);
    else
        add_recurrent(g, output);
}

void plan_find_states(struct graph *g)
{
    graph_clear_states(g);
    for (int i = 0; i < g->outputs.n; i++)
        find_state(g, g->outputs.at[i]);
}

/* ---- in a canonical graph ------------------------------------------------------------------------------------------------------- */

static bool is_float_input(const struct graph *g, const struct value *v)
{
    for (int i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i] == v)
            return dtype_is_float(v->type.dtype);
    return false;
}

/* The dimension of a graph output that comes from dimension at.dim of its origin; -1: none. */
static int output_dim(struct graph *g, struct value *output, struct origin at)
{
    for (int d = 0; d < output->type.rank; d++) {
        struct origin from = plan_kv_origin(g, output, d);
        if (from.value != at.value)
            return -1;
        if (from.dim == at.dim)
            return d;
    }
    return -1;
}

/* Adds input-only state. An input that is also an output, unchanged, has two ends. */
static void add_input_only(struct graph *g, struct value *input)
{
    struct state state = {.past = input, .dim = -1};
    for (int i = 0; i < g->outputs.n && !state.present; i++)
        if (type_eq(&g->outputs.at[i]->type, &input->type) && plan_kv_origin(g, g->outputs.at[i], -1).value == input)
            state.present = g->outputs.at[i];
    if (!graph_state(g, input) && !(state.present && graph_state(g, state.present)))
        graph_add_state(g, state);
}

static bool appends_to_input(struct graph *g, const struct node *n)
{
    bool appends = n->op && (n->op->flags & (OP_APPENDS | OP_PRODUCT)) == OP_APPENDS;
    for (int i = 0; appends && i < n->nin; i++) {
        const struct value *from = n->in[i] ? plan_kv_origin(g, n->in[i], -1).value : NULL;
        if (from && !from->producer && !from->constant)
            return true;
    }
    return false;
}

/* Output-only state; not for a pair that the plan file denies. */
static struct state output_only_at(struct graph *g, struct origin at)
{
    struct state state = {.dim = -1};
    bool made = at.dim >= 0 && at.value->producer && !appends_to_input(g, at.value->producer) && dtype_is_float(at.value->type.dtype);
    for (int i = 0; made && i < g->outputs.n && state.dim < 0; i++) {
        state.present = g->outputs.at[i];
        state.dim = output_dim(g, state.present, at);
    }
    return state;
}

/* Adds output-only state; if the plan file names it, sets only its growing dimension. */
static void set_output_only(struct graph *g, struct state state)
{
    struct state *known = graph_state(g, state.present);
    if (!known)
        graph_add_state(g, state);
    else if (!known->past)
        known->dim = state.dim;
}

static void add_output_only(struct graph *g, struct kv_pair at)
{
    struct state key = output_only_at(g, at.key), value = output_only_at(g, at.value);
    if (key.dim < 0 || value.dim < 0)
        return;
    set_output_only(g, key);
    set_output_only(g, value);
}

/* Finds the growing dimension of a pair that the plan file names: where its ends differ. */
static void find_growing(const struct graph *g, struct state *s)
{
    const struct type *past = &s->past->type, *present = &s->present->type;
    int differ = past->dtype != present->dtype || past->rank != present->rank ? 2 : 0;
    for (int d = 0; differ < 2 && d < past->rank; d++)
        if (past->dim[d] != present->dim[d]) {
            differ++;
            s->dim = d;
        }
    require(differ != 1 || (s->dim >= 0 && s->dim < past->rank));
    if (differ > 1)
        fail("%s: state '%s' is %s before a step and '%s' is %s after it: expected one size to grow at most", graph_file(g), s->past->name,
             type_str(g->arena, past), s->present->name, type_str(g->arena, present));
}

static bool has_pair(const struct graph *g)
{
    for (int i = 0; i < g->states.n; i++)
        if (g->states.at[i].past && g->states.at[i].present)
            return true;
    return false;
}

void plan_find_unpaired_states(struct graph *g)
{
    if (g->ranks > 0)
        return;
    for (int i = 0; i < g->states.n; i++)
        if (g->states.at[i].past && g->states.at[i].present && g->states.at[i].dim < 0)
            find_growing(g, &g->states.at[i]);
    struct kv_pairs found = plan_kv_pairs(g, g->arena);
    bool loop = has_pair(g);
    for (int i = 0; i < found.list.n; i++) {
        struct kv_pair at = found.list.at[i];
        if (at.key.value == at.value.value)
            continue;
        if (loop && is_float_input(g, at.key.value) && is_float_input(g, at.value.value)) {
            add_input_only(g, at.key.value);
            add_input_only(g, at.value.value);
        } else {
            add_output_only(g, at);
        }
    }
}
