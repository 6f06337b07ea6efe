/* infer_fixpoint: inference to a fixpoint. Nodes are inferred in order; an equation found on the way changes what comes after it, so
 * inference is repeated until none is new. An If with a known condition becomes its branch; small nodes on static values are run by their
 * kernel (a head size passes through Sqrt). */
#include "op/control/control.h"
#include "op/infer/infer.h"

enum { MOST_ROUNDS = 1000, SMALL_ELEMENTS = 1024 };

struct fixpoint {
    struct graph *g;
    const bool *is_output, *is_filter;
    int marked; /* number of values that both cover */
    struct nodes left;
};

static bool small_constant(const struct value *v)
{
    return v->constant && v->constant->bytes < WEIGHT_BYTES && !v->constant->trained;
}

bool op_dims_are_static(const struct value *v)
{
    for (int i = 0; v->dims && i < v->dims->n; i++)
        if (!dim_is_int(v->dims->at[i], NULL))
            return false;
    return v->dims != NULL;
}

static bool small_result(struct graph *g, const struct value *v)
{
    int64_t n;
    return dim_is_int(type_elements(g->alg, &v->type), &n) && n <= SMALL_ELEMENTS;
}

static bool is_output(const struct fixpoint *s, const struct value *v)
{
    return v->id < s->marked && s->is_output[v->id];
}

static bool is_filter(const struct fixpoint *s, const struct value *v)
{
    return v->id < s->marked && s->is_filter[v->id];
}

/* A node whose value may be needed and has no value function: static operands, a small result. */
static bool worth_running(const struct fixpoint *s, const struct node *node)
{
    if (!node->op || !node->op->kernel || node->nin == 0)
        return false;
    for (int i = 0; i < node->nin; i++)
        if (node->in[i] && !small_constant(node->in[i]) && !op_dims_are_static(node->in[i]))
            return false;
    for (int i = 0; i < node->nout; i++) {
        const struct value *v = node->out[i];
        if (v && (v->dims || is_output(s, v) || is_filter(s, v) || !small_result(s->g, v)))
            return false;
    }
    return true;
}

static void settle_node(struct fixpoint *s, struct node *node)
{
    struct nodes branch = {{NULL, 0, 0}};
    if (!s->g->undecided.what && control_take_branch(s->g, node, &branch)) {
        for (int i = 0; i < branch.list.n; i++)
            settle_node(s, branch.list.at[i]);
        return;
    }
    if (!s->g->undecided.what)
        op_try_infer(s->g, node);
    if (s->g->undecided.what || !worth_running(s, node) || !op_evaluate(s->g, node))
        VEC_PUSH(s->g->arena, &s->left.list, node);
}

static void settle_round(struct fixpoint *s)
{
    struct graph *g = s->g;
    for (int i = 0; i < g->inputs.n; i++) {
        struct type *type = &g->inputs.at[i]->type;
        for (int d = 0; d < type->rank; d++)
            type->dim[d] = dim_rewrite(g->alg, type->dim[d]);
    }
    s->left.list.n = 0;
    for (int i = 0; i < g->nodes.n; i++)
        settle_node(s, g->nodes.at[i]);
    g->nodes.n = 0;
    for (int i = 0; i < s->left.list.n; i++)
        VEC_PUSH(g->arena, &g->nodes, s->left.list.at[i]);
}

void op_infer_fixpoint(struct graph *g)
{
    const struct equation *list;
    bool *is_output = NEWN(g->arena, bool, g->values.n + 1);
    for (int i = 0; i < g->outputs.n; i++)
        is_output[g->outputs.at[i]->id] = true;
    struct fixpoint s = {.g = g, .is_output = is_output, .is_filter = op_decoded_filters(g->arena, g), .marked = g->values.n};
    int before, after = alg_equations(g->alg, &list), round = 0;
    g->undecided.what = NULL;
    do {
        if (round++ == MOST_ROUNDS)
            fail("%s: the sizes of the graph do not reach a fixpoint after %d equations", graph_file(g), after);
        before = after;
        settle_round(&s);
        after = alg_equations(g->alg, &list);
    } while (after != before && !g->undecided.what);
}
