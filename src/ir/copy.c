/* copy: copies a graph with the same nodes, values, names and order: a rank's local graph, the source graph kept while the plan is
 * inserted. Value i of the copy is value i of the source. Constants, strategies and attribute contents are shared, because they are never
 * changed in place; attribute slots and types are copied. */
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
    struct value *copy = graph_twin(to, v);
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
    copy->forward = twin(to, n->forward);
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
        graph_add_output(to, twin(to, from->outputs.at[i]));
    EACH (const struct state, s, from->states) {
        struct state copy = {twin(to, s->past), twin(to, s->present), s->dim, s->from};
        graph_add_state(to, copy);
    }
}

static void copy_trained(struct graph *to, const struct graph *from)
{
    for (int i = 0; i < from->trained.n; i++) {
        struct trained t = from->trained.at[i];
        t.weight = twin(to, t.weight);
        VEC_PUSH(to->arena, &to->trained, t);
    }
    for (int i = 0; i < from->followed.n; i++) {
        struct followed f = from->followed.at[i];
        f.weight = twin(to, f.weight);
        VEC_PUSH(to->arena, &to->followed, f);
    }
}

static void copy_header(struct graph *to, const struct graph *from)
{
    to->path = from->path;
    to->ir_version = from->ir_version;
    to->opset = from->opset;
    to->captures = from->captures;
    to->keeps_sums = from->keeps_sums;
    to->in_flight = from->in_flight;
    to->late = from->late;
    to->ranks = from->ranks;
    to->rank = from->rank;
    to->rank_meta = from->rank_meta;
    to->properties = from->properties;
    to->modules = from->modules;
    for (int i = 0; i < from->meta.n; i++)
        graph_set_meta(to, from->meta.at[i].key, from->meta.at[i].text);
    for (int i = 0; i < from->opsets.n; i++)
        VEC_PUSH(to->arena, &to->opsets, from->opsets.at[i]);
}

static struct graph *copy_graph(struct arena *arena, struct alg *alg, const struct graph *from)
{
    struct graph *to = graph_new(arena, alg, from->name);
    copy_header(to, from);
    for (int i = 0; i < from->values.n; i++)
        copy_value(to, from->values.at[i]);
    for (int i = 0; i < from->nodes.n; i++)
        copy_node(to, from->nodes.at[i]);
    copy_ends(to, from);
    copy_trained(to, from);
    return to;
}

struct graph *graph_copy(struct arena *arena, const struct graph *from)
{
    return copy_graph(arena, from->alg, from);
}

/* ---- between interners ---------------------------------------------------------------------------------------- */

static const struct dim **dims_again(struct graph *to, int n, const struct dim *const *at)
{
    const struct dim **out = NEWN(to->arena, const struct dim *, n + 1);
    for (int i = 0; i < n; i++)
        out[i] = dim_copy(to->alg, at[i]);
    return out;
}

static void move_value(struct graph *to, struct value *v)
{
    for (int d = 0; d < v->type.rank; d++)
        v->type.dim[d] = dim_copy(to->alg, v->type.dim[d]);
    if (!v->dims)
        return;
    struct dims_value *dims = NEW(to->arena, struct dims_value);
    dims->n = v->dims->n;
    dims->at = dims_again(to, v->dims->n, v->dims->at);
    v->dims = dims;
}

static void move_attrs(struct graph *to, struct node *n)
{
    for (int i = 0; i < n->nattr; i++)
        if (n->attr[i].kind == ATTR_DIMS && n->attr[i].set) {
            n->attr[i].dims = dims_again(to, n->attr[i].n, n->attr[i].dims);
            n->attr[i].ints = NULL;
        }
}

struct graph *graph_copy_to(struct arena *arena, struct alg *alg, const struct graph *from)
{
    struct graph *to = copy_graph(arena, alg, from);
    for (int i = 0; i < to->values.n; i++)
        move_value(to, to->values.at[i]);
    for (int i = 0; i < to->nodes.n; i++)
        move_attrs(to, to->nodes.at[i]);
    return to;
}

/* ---- a body into its enclosing graph --------------------------------------------------------------------------------------- */

/* The values that replace the body's: operands, results of the node, or new ones. */
static struct value **unfolded_values(struct graph *g, const struct node *node, int k, const char *prefix)
{
    const struct graph *body = node_body(node, k)->graph;
    struct value **to = NEWN(g->arena, struct value *, body->values.n + 1);
    int own = body->inputs.n - body->captures;
    for (int i = 0; i < body->captures; i++)
        to[body->inputs.at[own + i]->id] = node->in[node_captured(node, k) + i];
    for (int i = 0; i < node->nout && i < body->outputs.n; i++)
        to[body->outputs.at[i]->id] = node->out[i];
    for (int i = 0; i < body->values.n; i++) {
        const struct value *v = body->values.at[i];
        if (to[i])
            continue;
        to[i] = graph_value(g, arena_printf(g->arena, "%s%s", prefix, v->name), &v->type);
        to[i]->constant = v->constant;
        to[i]->dims = v->dims;
        move_value(g, to[i]);
    }
    return to;
}

static struct value **mapped_values(struct graph *g, int n, struct value *const *at, struct value *const *to)
{
    struct value **out = NEWN(g->arena, struct value *, n + 1);
    for (int i = 0; i < n; i++)
        out[i] = at[i] ? to[at[i]->id] : NULL;
    return out;
}

void graph_unfold(struct graph *g, const struct node *node, int k, struct nodes *out)
{
    const struct attr *attr = node_body(node, k);
    const char *prefix = arena_printf(g->arena, "%s/%s/", node->name, attr->name);
    struct value **to = unfolded_values(g, node, k, prefix);
    for (int i = 0; i < attr->graph->nodes.n; i++) {
        const struct node *from = attr->graph->nodes.at[i];
        struct node *copy = NEW(g->arena, struct node);
        *copy = *from;
        copy->name = arena_printf(g->arena, "%s%s", prefix, from->name);
        copy->in = mapped_values(g, from->nin, from->in, to);
        copy->out = mapped_values(g, from->nout, from->out, to);
        copy->attr = NEWN(g->arena, struct attr, from->nattr);
        if (from->nattr > 0)
            memcpy(copy->attr, from->attr, (size_t)from->nattr * sizeof *from->attr);
        move_attrs(g, copy);
        for (int j = 0; j < copy->nout; j++)
            if (copy->out[j])
                node_output(g, copy, j, copy->out[j]);
        VEC_PUSH(g->arena, &out->list, copy);
    }
}
