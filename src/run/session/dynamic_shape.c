/* dynamic_shape: results whose sizes depend on data (a size operand that no expression describes, NonZero). The node's inference runs on
 * the real operands: constants of known sizes, small integer ones with their values. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/runtime/runtime.h"
#include "run/session/session.h"

#include <string.h>

enum { KNOWN_VALUES = 64 };

static struct constant *as_constant(struct arena *a, const struct tensor *t)
{
    struct constant *c = NEW(a, struct constant);
    *c = (struct constant){.dtype = t->dtype, .rank = t->rank, .bytes = (int64_t)tensor_bytes(t), .data = t->data};
    memcpy(c->dim, t->dim, sizeof c->dim);
    if (!dtype_is_packed(t->dtype) || t->packed)
        return c;
    void *packed = arena_alloc(a, (size_t)c->bytes + 1);
    dtype_pack(t->dtype, t->data, tensor_elements(t), packed);
    require(dtype_packed_bytes(t->dtype, tensor_elements(t), &c->bytes));
    c->data = packed;
    return c;
}

static bool is_small_integer(const struct tensor *t)
{
    return (t->dtype == DT_I64 || t->dtype == DT_I32 || t->dtype == DT_BOOL) && t->rank <= 1 && tensor_elements(t) <= KNOWN_VALUES;
}

static struct value *as_value(struct graph *g, const struct value *v, const struct tensor *t)
{
    struct type type = {.dtype = t->dtype, .rank = t->rank};
    for (int k = 0; k < t->rank; k++)
        type.dim[k] = dim_int(g->alg, t->dim[k]);
    struct value *x = graph_value(g, v->name, &type);
    x->constant = as_constant(g->arena, t);
    if (!is_small_integer(t))
        return x;
    x->dims = NEW(g->arena, struct dims_value);
    x->dims->n = (int)tensor_elements(t);
    x->dims->at = NEWN(g->arena, const struct dim *, x->dims->n);
    for (int i = 0; i < x->dims->n; i++)
        x->dims->at[i] = dim_int(g->alg, constant_int(x->constant, v->name, i));
    return x;
}

static struct node *clone_node(struct graph *g, const struct node *node, const struct tensor *in)
{
    struct node *n = NEW(g->arena, struct node);
    *n = *node;
    n->in = NEWN(g->arena, struct value *, n->nin);
    n->out = NEWN(g->arena, struct value *, n->nout);
    for (int k = 0; k < n->nin; k++)
        if (node->in[k])
            n->in[k] = as_value(g, node->in[k], &in[k]);
    for (int k = 0; k < n->nout; k++) {
        struct type unknown = {.dtype = DT_NONE};
        if (node->out[k])
            node_output(g, n, k, graph_value(g, node->out[k]->name, &unknown));
    }
    return n;
}

void dynamic_types(struct arena *a, const struct graph *of, const struct node *node, const struct tensor *in, struct tensor *out)
{
    struct graph *g = graph_new(a, alg_new(a), "dynamic");
    g->path = of->path;
    g->opset = of->opset;
    g->ranks = of->ranks;
    g->rank = of->rank;
    struct node *n = clone_node(g, node, in);
    op_infer(g, n);
    for (int i = 0; i < n->nout; i++) {
        if (!n->out[i])
            continue;
        const struct type *type = &n->out[i]->type;
        out[i] = (struct tensor){.dtype = type->dtype, .rank = type->rank};
        for (int k = 0; k < type->rank; k++)
            if (!dim_is_int(type->dim[k], &out[i].dim[k]) || out[i].dim[k] < 0)
                fail("%s: the size of '%s' does not follow from the operands of its node", of->path, n->out[i]->name);
    }
}

/* Binds the sizes' names: later shapes and assumptions may use them. */
void dynamic_bind(struct session *s, const struct value *v)
{
    const struct tensor *t = &s->tensor[v->id];
    bool news = false;
    for (int k = 0; k < t->rank; k++) {
        const struct dim *d = v->type.dim[k];
        if (d->kind != DIM_SYM)
            continue;
        bindings_set(s->arena, &s->bind, d->name, t->dim[k]);
        news = true;
    }
    if (news)
        signature_check_assumptions(dynamic_arena(s), &s->sig, &s->bind);
}

/* Allocates a result. A view or a result computed in place has the memory of operand 0. */
static void alloc_result(struct session *s, const struct session_step *step, const struct value *v)
{
    struct tensor *t = &s->tensor[v->id];
    sizes_check(s, t, v->name);
    if (step->node->op->flags & OP_IN_PLACE)
        t->data = step->in[0].data;
    else if (step->kind != STEP_VIEW)
        t->data = dynamic_take(s, v, tensor_bytes(t) + 1);
}

/* Whether the size follows from earlier dynamic results. */
static bool size_follows(struct session *s, const struct session_step *step, const struct value *v)
{
    struct tensor *t = &s->tensor[v->id];
    *t = (struct tensor){.dtype = v->type.dtype, .rank = v->type.rank};
    for (int k = 0; k < t->rank; k++) {
        if (!dim_eval(v->type.dim[k], &s->bind, &t->dim[k]))
            return false;
        if (t->dim[k] < 0)
            fail("%s: '%s' (%s) has size %lld in dimension %d for these inputs", s->sig.path, v->name, type_str(s->arena, &v->type),
                 (long long)t->dim[k], k);
    }
    alloc_result(s, step, v);
    return true;
}

static bool sizes_follow(struct session *s, const struct session_step *step)
{
    const struct node *n = step->node;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && !size_follows(s, step, n->out[k]))
            return false;
    return true;
}

/* Checks sizes that were assumed at compile time. */
static void check_assumed(const struct session *s, const struct value *v, const struct tensor *t)
{
    if (t->rank != v->type.rank)
        fail("%s: '%s' has %d dimensions when it is computed, expected %d", s->sig.path, v->name, t->rank, v->type.rank);
    for (int d = 0; d < t->rank; d++) {
        int64_t assumed = sizes_of_dim(s, v->type.dim[d]);
        if (assumed >= 0 && t->dim[d] != assumed)
            fail("%s: '%s' has %lld in dimension %d when it is computed, and what reads it was compiled for %lld", s->sig.path, v->name,
                 (long long)t->dim[d], d, (long long)assumed);
    }
}

static void infer_results(struct session *s, struct session_step *step)
{
    const struct node *n = step->node;
    dynamic_types(dynamic_arena(s), s->graph, n, step->in, step->out);
    for (int k = 0; k < n->nout; k++) {
        if (!n->out[k])
            continue;
        check_assumed(s, n->out[k], &step->out[k]);
        struct tensor *t = &s->tensor[n->out[k]->id];
        *t = step->out[k];
        dynamic_bind(s, n->out[k]);
        alloc_result(s, step, n->out[k]);
    }
}

void dynamic_results(struct session *s, struct session_step *step)
{
    if (!op_resolved(step->node) || !sizes_follow(s, step))
        infer_results(s, step);
    if (step->kind == STEP_COLLECTIVE)
        step->route = collective_route(dynamic_arena(s), step->collective, s->comm, &step->in[0], &s->tensor[step->node->out[0]->id],
                                       &s->bind, STRIP_BYTES);
}
