/* verify: the invariants of a graph between passes. A violation is a bug in tpc; the message names the pass, node and value.
 *
 * Nodes are in topological order; every operand is an input, a constant or a result of an earlier node; links between results and
 * producers agree; names are unique; operands and attributes fit the op's row; types are set once they were inferred, constants agree
 * with theirs, and placements are legal for the type. One walk, with one byte per value. */
#include "ir/ir.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/* A hash table; its size is a power of 2 that leaves half the slots free. */
struct seen_name {
    const char *name; /* NULL: free */
    uint64_t hash;
};
struct seen_names {
    size_t slots;
    struct seen_name *at;
};
struct verifier {
    const struct graph *g;
    const char *after;
    struct arena *tmp;
    bool *defined;
    struct seen_names values, nodes;
};

#define broken(c, format, ...) bug("after %s: " format, (c)->after, __VA_ARGS__)

static struct seen_names room_for(struct arena *tmp, int names)
{
    struct seen_names s = {.slots = 2};
    while (s.slots < 2 * (size_t)names)
        s.slots *= 2;
    s.at = NEWN(tmp, struct seen_name, s.slots);
    return s;
}

static void check_unique(const struct verifier *c, const struct seen_names *seen, const char *name, const char *what)
{
    if (!name || !*name)
        broken(c, "a %s has no name", what);
    uint64_t hash = XXH3_64bits(name, strlen(name));
    size_t slot = hash & (seen->slots - 1);
    for (; seen->at[slot].name; slot = (slot + 1) & (seen->slots - 1))
        if (seen->at[slot].hash == hash && strcmp(seen->at[slot].name, name) == 0)
            broken(c, "two %ss are named '%s'", what, name);
    seen->at[slot] = (struct seen_name){name, hash};
}

static void check_registered(struct verifier *c, const struct value *v)
{
    if (v->id < 0 || v->id >= c->g->values.n || c->g->values.at[v->id] != v)
        broken(c, "value '%s' is not of this graph", v->name);
}

/* ---- types and placements ---------------------------------------------------------------------------------------------- */

static void verify_type(struct verifier *c, const struct value *v)
{
    if (v->type.rank < 0 || v->type.rank > MAX_RANK)
        broken(c, "value '%s' has rank %d", v->name, v->type.rank);
    for (int d = 0; d < v->type.rank; d++)
        if (!v->type.dim[d])
            broken(c, "value '%s' has no dimension %d", v->name, d);
    if (v->dims && v->dims->n < 0)
        broken(c, "value '%s' has shape information of %d entries", v->name, v->dims->n);
    for (int i = 0; v->dims && i < v->dims->n; i++)
        if (!v->dims->at[i])
            broken(c, "value '%s' lacks entry %d of its shape information", v->name, i);
}

static void check_split(struct verifier *c, const struct value *v)
{
    const struct placement *p = &v->place;
    if (p->dim < 0 || p->dim >= v->type.rank || !p->split)
        broken(c, "value '%s' is split along dimension %d of %d", v->name, p->dim, v->type.rank);
    if (c->g->ranks && p->split->ranks != c->g->ranks)
        broken(c, "value '%s' is split over %d ranks of %d", v->name, p->split->ranks, c->g->ranks);
    if (!p->split->partition && !p->split->cover)
        broken(c, "value '%s': no rank holds some index of dimension %d", v->name, p->dim);
    const struct dim *size = dim_rewrite(c->g->alg, v->type.dim[p->dim]);
    if (c->g->rank < 0 && dim_rewrite(c->g->alg, split_size(c->g->alg, p->split)) != size)
        broken(c, "value '%s': the split %s is not one of dimension %s", v->name, split_str(c->tmp, p->split), dim_str(c->tmp, size));
}

/* Partial sums are of floats or integers; booleans have only max and min. */
static void check_partial(struct verifier *c, const struct value *v)
{
    enum redop op = v->place.op;
    bool ordered = op == RED_MAX || op == RED_MIN;
    if (op == RED_NONE || !dtype_size(v->type.dtype) || v->type.dtype == DT_STRING || (v->type.dtype == DT_BOOL && !ordered))
        broken(c, "value '%s' of type %s is partial by %s", v->name, dtype_name(v->type.dtype), redop_name(op));
}

static void check_placement(struct verifier *c, const struct value *v)
{
    if (v->place.kind != PLACE_R && v->type.dtype == DT_STRING)
        broken(c, "value '%s' of strings is not replicated", v->name);
    if (v->place.kind == PLACE_S)
        check_split(c, v);
    else if (v->place.kind == PLACE_P)
        check_partial(c, v);
}

static void check_constant(struct verifier *c, const struct value *v)
{
    const struct constant *k = v->constant;
    int64_t n, bytes;
    if (v->producer)
        broken(c, "constant '%s' is also a result of node '%s'", v->name, v->producer->name);
    if (k->rank < 0 || k->rank > MAX_RANK || !type_sizes_product(k->dim, k->rank, &n))
        broken(c, "constant '%s' has an impossible size", v->name);
    if (!dtype_packed_bytes(k->dtype, n, &bytes) || bytes != k->bytes)
        broken(c, "constant '%s' of %" PRId64 " elements has %" PRId64 " bytes", v->name, n, k->bytes);
    if (c->g->rank >= 0)
        return; /* a rank's part of a weight: cut_weights checks it */
    bool same = k->dtype == v->type.dtype && k->rank == v->type.rank;
    for (int d = 0; same && d < k->rank; d++)
        same = dim_equals(v->type.dim[d], k->dim[d]);
    if (!same)
        broken(c, "constant '%s' differs from its type %s", v->name, type_str(c->tmp, &v->type));
}

static void check_value(struct verifier *c, const struct value *v)
{
    check_registered(c, v);
    check_unique(c, &c->values, v->name, "value");
    verify_type(c, v);
    if (v->constant)
        check_constant(c, v);
    if (v->placed)
        check_placement(c, v);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

static void check_attr(struct verifier *c, const struct node *n, int i)
{
    const struct attr *a = &n->attr[i];
    const struct op_attr *row = &n->op->attr[i];
    if (strcmp(a->name, row->name) || a->kind != row->kind)
        broken(c, "node '%s' (%s): attribute %d is '%s' of kind %s, not '%s'", n->name, n->optype, i, a->name,
               a->kind == row->kind ? "the row" : "another", row->name);
    if (a->kind == ATTR_GRAPH && a->graph)
        graph_verify(a->graph, c->after);
    if (row->has_default && !a->set)
        broken(c, "node '%s' (%s): attribute '%s' lacks its default", n->name, n->optype, a->name);
    if (a->set && a->n < 0)
        broken(c, "node '%s' (%s): attribute '%s' has %d entries", n->name, n->optype, a->name, a->n);
    for (int k = 0; a->set && a->kind == ATTR_DIMS && k < a->n; k++)
        if (!a->dims[k])
            broken(c, "node '%s' (%s): attribute '%s' lacks entry %d", n->name, n->optype, a->name, k);
}

static void check_attrs(struct verifier *c, const struct node *n)
{
    if (n->nattr != n->op->nattr)
        broken(c, "node '%s' (%s) has %d attributes, its row %d", n->name, n->optype, n->nattr, n->op->nattr);
    for (int i = 0; i < n->nattr; i++)
        check_attr(c, n, i);
}

/* Operands that only give sizes may be absent; required data operands may not. */
static void verify_operands(struct verifier *c, const struct node *n)
{
    const struct op *op = n->op;
    if ((op->max_in >= 0 && n->nin > op->max_in) || (op->max_out >= 0 && n->nout > op->max_out) || n->nout < op->min_out)
        broken(c, "node '%s' (%s) has %d operands and %d results", n->name, n->optype, n->nin, n->nout);
    for (int i = 0; i < op->nin; i++) {
        bool absent = i >= n->nin || !n->in[i];
        if (absent && !op->in[i].optional && !op->in[i].size)
            broken(c, "node '%s' (%s) lacks operand %s", n->name, n->optype, op->in[i].name);
    }
    for (int i = op->nin; i < n->nin; i++)
        if (!n->in[i])
            broken(c, "node '%s' (%s) lacks operand %d", n->name, n->optype, i);
}

static void verify_inputs(struct verifier *c, const struct node *n)
{
    for (int i = 0; i < n->nin; i++) {
        const struct value *v = n->in[i];
        if (!v)
            continue;
        check_registered(c, v);
        if (v->constant && !c->defined[v->id])
            check_value(c, v);
        else if (!c->defined[v->id])
            broken(c, "node '%s' (%s) uses '%s' before it is made", n->name, n->optype, v->name);
        c->defined[v->id] = true;
    }
}

static void verify_outputs(struct verifier *c, const struct node *n)
{
    for (int i = 0; i < n->nout; i++) {
        const struct value *v = n->out[i];
        if (!v)
            continue;
        if (v->producer != n || v->index != i)
            broken(c, "result %d of node '%s' (%s), '%s', has another producer", i, n->name, n->optype, v->name);
        check_value(c, v);
        if (n->op && (c->g->properties & PROP_TYPED) && v->type.dtype == DT_NONE)
            broken(c, "result '%s' of node '%s' (%s) has no type", v->name, n->name, n->optype);
        c->defined[v->id] = true;
    }
}

static void verify_node(struct verifier *c, const struct node *n)
{
    check_unique(c, &c->nodes, n->name, "node");
    if (n->op && (strcmp(n->optype, n->op->name) || strcmp(n->domain, n->op->domain)))
        broken(c, "node '%s' (%s) has the row of %s", n->name, n->optype, n->op->name);
    if (n->op) {
        verify_operands(c, n);
        if (node_bodies_fault(n))
            broken(c, "node '%s' (%s) %s", n->name, n->optype, node_bodies_fault(n));
        check_attrs(c, n);
    }
    verify_inputs(c, n);
    verify_outputs(c, n);
}

/* ---- the graph --------------------------------------------------------------------------------------------------------- */

static void check_graph_inputs(struct verifier *c)
{
    for (int i = 0; i < c->g->inputs.n; i++) {
        const struct value *v = c->g->inputs.at[i];
        if (v->producer)
            broken(c, "input '%s' is a result of node '%s'", v->name, v->producer->name);
        check_value(c, v);
        c->defined[v->id] = true;
    }
}

static void check_graph_outputs(struct verifier *c)
{
    for (int i = 0; i < c->g->outputs.n; i++) {
        const struct value *v = c->g->outputs.at[i];
        check_registered(c, v);
        if (!v->constant && !c->defined[v->id])
            broken(c, "output '%s' is made by no node", v->name);
        if (graph_output_number(c->g, v) != i)
            broken(c, "output %d, '%s', is known as number %d", i, v->name, graph_output_number(c->g, v));
    }
}

static void check_states(struct verifier *c)
{
    for (int i = 0; i < c->g->states.n; i++) {
        const struct state *s = &c->g->states.at[i];
        if (s->past)
            check_registered(c, s->past);
        if (s->present)
            check_registered(c, s->present);
        if (!s->past && !s->present)
            broken(c, "state %d has neither past nor present", i);
        if (!graph_state(c->g, s->past ? s->past : s->present))
            broken(c, "state %d is not known at its ends", i);
    }
}

void graph_verify(const struct graph *g, const char *after)
{
    struct verifier c = {.g = g, .after = after, .tmp = arena_new()};
    c.defined = NEWN(c.tmp, bool, g->values.n + 1);
    c.values = room_for(c.tmp, g->values.n + 1);
    c.nodes = room_for(c.tmp, g->nodes.n + 1);
    check_graph_inputs(&c);
    for (int i = 0; i < g->nodes.n; i++)
        verify_node(&c, g->nodes.at[i]);
    check_graph_outputs(&c);
    check_states(&c);
    arena_free(c.tmp);
}
