/* Loops over sequences of a known number of iterations, and choices between sequences by a known condition: their bodies are read at the
 * nodes' positions, so that the results are lists. */
#include "onnx/compose/compose.h"

#include <string.h>

enum { MOST_ITERATIONS = 4096 };

static bool truth_of(struct composer *c, const char *name, bool *is)
{
    struct value *v = name_scope_find(c->scope, name);
    if (v && !v->constant)
        (void)sequence_bind_input(c->im, v);
    bool denied = false;
    for (; v && !v->constant && v->producer; v = v->producer->in[0]) {
        bool negates = strcmp(v->producer->optype, "Not") == 0;
        if (!negates && strcmp(v->producer->optype, "Identity") != 0)
            break;
        denied ^= negates;
    }
    bool known = v && v->constant && v->constant->dtype == DT_BOOL && constant_elements(v->constant) == 1;
    *is = known && (constant_int(v->constant, v->name, 0) != 0) != denied;
    return known;
}

/* Results out[k] of the bodies become the node's. */
static void give_results(struct composer *c, char **out)
{
    for (size_t k = c->node->n_output; k-- > 0;) {
        const struct sequence *s = compose_gives(c->node, k) ? compose_sequence_find(c->im, name_scope_find(c->scope, out[k])) : NULL;
        if (s)
            compose_sequence_note(c->im, name_scope_read(c->im, c->scope, c->node->output[k], c->where), *s);
        else if (compose_gives(c->node, k))
            compose_also(c, k, "Identity", 1, &out[k]);
    }
    compose_become(c, "SequenceConstruct", 0, NULL);
}

/* ---- If --------------------------------------------------------------------------------------------------------------------------- */

void sequence_branch(struct composer *c)
{
    const Onnx__AttributeProto *then = proto_attribute(c->node, "then_branch");
    bool any = false, is;
    for (size_t k = 0; then && then->g && k < then->g->n_output; k++)
        any = any || sequence_is_type(then->g->output[k]->type);
    if (!any || !compose_has(c->node, 0) || !truth_of(c, c->node->input[0], &is))
        return;
    char **out = NEWN(c->im->tmp, char *, c->node->n_output + 1);
    compose_body(c, is ? "then_branch" : "else_branch", 0, NULL, c->node->n_output, out);
    give_results(c, out);
}

/* ---- Loop ------------------------------------------------------------------------------------------------------------------------- */

/* The result leaves the graph as a sequence. */
static bool is_declared(struct composer *c, size_t k)
{
    const Onnx__ValueInfoProto *info = compose_gives(c->node, k) ? text_table_find(c->im->declared, c->node->output[k]) : NULL;
    return info && sequence_is_type(info->type);
}

static bool is_filled(struct composer *c, const char *name)
{
    const struct sequence *s = compose_sequence_find(c->im, name_scope_find(c->scope, name));
    return s && (s->kind == SEQUENCE_ABSENT || (s->kind == SEQUENCE_LIST && s->n > 0));
}

static bool needs_lists(struct composer *c, const Onnx__GraphProto *body)
{
    bool any = false;
    for (size_t k = 2; k < c->node->n_input; k++)
        any = any || is_declared(c, k - 2) || is_filled(c, c->node->input[k]);
    for (size_t i = 0; i < body->n_node; i++)
        for (size_t k = 0; k < body->node[i]->n_input; k++)
            any = any || is_filled(c, body->node[i]->input[k]);
    return any;
}

/* The rows of the iterations, concatenated. */
static char *stacked(struct composer *c, size_t n, char **row)
{
    int64_t zero = 0;
    char *axes = name_scope_ints(c->im, c->scope, "axis", 1, &zero);
    Onnx__AttributeProto *along = compose_int(c, "axis", 0);
    for (size_t i = 0; i < n; i++)
        row[i] = compose_op(c, "Unsqueeze", row[i], axes);
    return compose_node_of(c, "Concat", n, row, 1, &along, 1, NULL);
}

struct unrolled {
    size_t n, states, nout;
    char **in, **out, ***row; /* a body's inputs and outputs; the rows of each scan output */
};

static void iterate(struct composer *c, struct unrolled *u, size_t i)
{
    bool goes_on;
    u->in[0] = name_scope_whole(c->im, c->scope, "iteration", DT_I64, (int64_t)i);
    u->in[1] = name_scope_whole(c->im, c->scope, "condition", DT_BOOL, 1);
    compose_body(c, "body", 2 + u->states, u->in, u->nout, u->out);
    if (!truth_of(c, u->out[0], &goes_on) || !goes_on)
        fail("%s: %s is a loop over sequences with a condition, which tpc does not handle", c->im->path, c->where);
    for (size_t k = 0; k < u->states; k++)
        u->in[2 + k] = u->out[1 + k];
    for (size_t k = 1 + u->states; k < u->nout; k++)
        u->row[k][i] = u->out[k];
}

static void unroll(struct composer *c, struct unrolled *u)
{
    for (size_t k = 0; k < u->nout; k++)
        u->row[k] = NEWN(c->im->tmp, char *, u->n + 1);
    for (size_t k = 0; k < u->states; k++)
        u->in[2 + k] = compose_input(c, 2 + k);
    for (size_t i = 0; i < u->n; i++)
        iterate(c, u, i);
    for (size_t k = 0; k + 1 < u->nout; k++)
        u->out[k] = k < u->states ? u->in[2 + k] : stacked(c, u->n, u->row[k + 1]);
    give_results(c, u->out);
}

bool sequence_unroll(struct composer *c)
{
    const Onnx__AttributeProto *a = proto_attribute(c->node, "body");
    struct value *count = compose_has(c->node, 0) ? name_scope_find(c->scope, c->node->input[0]) : NULL;
    bool goes = true;
    if (!a || !a->g || !count || c->node->n_input < 2 || a->g->n_output < c->node->n_input - 1 || !needs_lists(c, a->g))
        return false;
    if (!count->constant)
        (void)sequence_bind_input(c->im, count);
    if (!count->constant || count->constant->dtype != DT_I64 || constant_elements(count->constant) != 1)
        return false;
    if (compose_has(c->node, 1) && (!truth_of(c, c->node->input[1], &goes)))
        return false;
    int64_t n = goes ? constant_int(count->constant, count->name, 0) : 0;
    struct unrolled u = {.n = n > 0 ? (size_t)n : 0, .states = c->node->n_input - 2, .nout = a->g->n_output};
    if (n > MOST_ITERATIONS || c->node->n_output > u.nout - 1 || (!u.n && u.nout > 1 + u.states))
        return false;
    u.in = NEWN(c->im->tmp, char *, u.states + 3);
    u.out = NEWN(c->im->tmp, char *, u.nout + 1);
    u.row = NEWN(c->im->tmp, char **, u.nout + 1);
    unroll(c, &u);
    return true;
}
