/* copy: a second graph with the same nodes, values, names and order, for what is done to one and not to the other: a rank's local
 * graph, the source graph kept aside while the plan is inserted. Value i of the copy is value i of the source. Constants,
 * strategies and attribute contents are shared, for they are never changed in place; attribute slots and types are the copy's own. */
#include "ir/ir.h"

#include <string.h>

static struct value *twin(const struct graph *to, const struct value *v)
{
    return v ? to->values.at[v->id] : NULL;
}

static struct value **twins(struct graph *to, int n, struct value *const *at)
{
    struct value **out = NEWN(to->arena, struct value *, n);
    for (int i = 0; i < n; i++)
        out[i] = twin(to, at[i]);
    return out;
}

static void copy_value(struct graph *to, const struct value *v)
{
    struct value *copy = graph_value(to, v->name, &v->type);
    require(copy->id == v->id);
    copy->constant = v->constant;
    copy->stored = v->stored;
    copy->dims = v->dims;
    copy->place = v->place;
    copy->placed = v->placed;
}

static void copy_node(struct graph *to, const struct node *n)
{
    struct node *copy = NEW(to->arena, struct node);
    *copy = *n;
    copy->in = twins(to, n->nin, n->in);
    copy->out = twins(to, n->nout, n->out);
    copy->attr = NEWN(to->arena, struct attr, n->nattr);
    if (n->nattr > 0)
        memcpy(copy->attr, n->attr, (size_t)n->nattr * sizeof *n->attr);
    for (int i = 0; i < n->nout; i++)
        if (copy->out[i]) {
            copy->out[i]->producer = copy;
            copy->out[i]->index = i;
        }
    VEC_PUSH(to->arena, &to->nodes, copy);
}

static void copy_ends(struct graph *to, const struct graph *from)
{
    for (int i = 0; i < from->inputs.n; i++)
        VEC_PUSH(to->arena, &to->inputs, twin(to, from->inputs.at[i]));
    for (int i = 0; i < from->outputs.n; i++)
        VEC_PUSH(to->arena, &to->outputs, twin(to, from->outputs.at[i]));
    for (int i = 0; i < from->states.n; i++) {
        const struct state *s = &from->states.at[i];
        struct state copy = {twin(to, s->past), twin(to, s->present), s->dim, s->from};
        VEC_PUSH(to->arena, &to->states, copy);
    }
}

static void copy_header(struct graph *to, const struct graph *from)
{
    to->path = from->path;
    to->ir_version = from->ir_version;
    to->opset = from->opset;
    to->ranks = from->ranks;
    to->rank = from->rank;
    to->properties = from->properties;
    for (int i = 0; i < from->meta.n; i++)
        VEC_PUSH(to->arena, &to->meta, from->meta.at[i]);
    for (int i = 0; i < from->opsets.n; i++)
        VEC_PUSH(to->arena, &to->opsets, from->opsets.at[i]);
}

struct graph *graph_copy(struct arena *arena, const struct graph *from)
{
    struct graph *to = graph_new(arena, from->alg, from->name);
    copy_header(to, from);
    for (int i = 0; i < from->values.n; i++)
        copy_value(to, from->values.at[i]);
    for (int i = 0; i < from->nodes.n; i++)
        copy_node(to, from->nodes.at[i]);
    copy_ends(to, from);
    return to;
}
