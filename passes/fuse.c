/* fuse: collectives that are cheaper together.
 *
 * Small AllReduces whose operands are there at the same time become one, over the operands laid end to end. AllReduce read only through one and the same local slice becomes ReduceScatter; a slice that takes back what an AllGather has just put
 * together is the gathered value itself. Then the plan's list of collectives is taken, in file order. */
#include "passes/pass.h"
#include "plan/plan.h"

#include <string.h>

static bool is(const struct node *n, const char *op)
{
    return n && n->op && !strcmp(n->domain, "tpc") && !strcmp(n->optype, op);
}

static bool same_slice(const struct node *a, const struct node *b)
{
    return attr_int(a, "axis") == attr_int(b, "axis") && !strcmp(attr_string(a, "to"), attr_string(b, "to"));
}

/* The slice that every use of v is, or NULL. */
static const struct node *only_slice(const struct uses *u)
{
    for (int i = 0; i < u->n; i++)
        if (!is(u->at[i].node, "Shard") || !same_slice(u->at[i].node, u->at[0].node))
            return NULL;
    return u->n ? u->at[0].node : NULL;
}

static struct node *reduce_scatter(struct graph *g, const struct node *reduce, const struct node *slice)
{
    int axis = (int)attr_int(slice, "axis");
    struct node *n = graph_node(g, op_find("tpc", "ReduceScatter"), arena_printf(g->arena, "%s/ReduceScatter", reduce->in[0]->name), 1, reduce->in, 1);
    attr_set_int(n, "axis", axis);
    attr_set_string(n, "op", attr_string(reduce, "op"));
    attr_set_string(n, "to", attr_string(slice, "to"));
    attr_set_dims(g, n, "extent", 1, &reduce->in[0]->type.dim[axis]);
    struct value *v = graph_value(g, n->name, &slice->out[0]->type);
    v->place = slice->out[0]->place;
    v->placed = true;
    node_output(g, n, 0, v);
    return n;
}

static bool fuse_reduce(struct graph *g, const struct uses *uses, int at)
{
    const struct node *reduce = g->nodes.at[at];
    const struct node *slice = is(reduce, "AllReduce") ? only_slice(&uses[reduce->out[0]->id]) : NULL;
    if (!slice || !slice->out[0]->place.split->partition)
        return false;
    struct node *n = reduce_scatter(g, reduce, slice);
    const struct uses *slices = &uses[reduce->out[0]->id];
    g->nodes.at[at] = n;
    for (int i = 0; i < slices->n; i++)
        graph_replace(g, slices->at[i].node->out[0], n->out[0], true);
    return true;
}

static void undo_gather(struct graph *g, const struct node *slice)
{
    const struct node *gather = is(slice, "Shard") ? slice->in[0]->producer : NULL;
    if (is(gather, "AllGather") && attr_int(gather, "axis") == attr_int(slice, "axis") && !strcmp(attr_string(gather, "from"), attr_string(slice, "to")))
        graph_replace(g, slice->out[0], gather->in[0], false);
}

/* ---- small neighbours in one message ------------------------------------------------------------------------------------- */

static struct node *make(struct graph *g, const char *op, const char *name, int nin, struct value *const *in, int nout)
{
    const struct op *row = op_find("", op);
    return graph_node(g, row ? row : op_find("tpc", op), name, nin, in, nout);
}

static struct value *result(struct graph *g, struct node *n, int i, enum dtype dtype, const struct dim *size, struct placement place)
{
    struct value *v = graph_value(g, n->name, &(struct type){ .dtype = dtype, .rank = 1, .dim = { size } });
    v->place = place;
    v->placed = true;
    node_output(g, n, i, v);
    return v;
}

/* The nodes that replace reductions a and b: both operands flat, laid end to end, reduced, taken apart again. */
static int merged_nodes(struct graph *g, struct node *a, struct node *b, struct node **out)
{
    struct value *x[2] = { a->in[0], b->in[0] }, *flat[2];
    const struct dim *size[2], *both;
    enum dtype dtype = x[0]->type.dtype;
    for (int i = 0; i < 2; i++) {
        size[i] = type_elements(g->alg, &x[i]->type);
        out[i] = make(g, "Reshape", arena_printf(g->arena, "%s/flat", x[i]->name), 1, &x[i], 1);
        flat[i] = result(g, out[i], 0, dtype, size[i], x[i]->place);
    }
    both = dim_add(g->alg, size[0], size[1]);
    out[2] = make(g, "Concat", arena_printf(g->arena, "%s/both", a->name), 2, flat, 1);
    attr_set_int(out[2], "axis", 0);
    struct value *joined = result(g, out[2], 0, dtype, both, x[0]->place);
    out[3] = make(g, "AllReduce", arena_printf(g->arena, "%s/merged", a->name), 1, &joined, 1);
    attr_set_string(out[3], "op", attr_string(a, "op"));
    struct value *sum = result(g, out[3], 0, dtype, both, placement_whole);
    out[4] = make(g, "Split", arena_printf(g->arena, "%s/apart", a->name), 1, &sum, 2);
    attr_set_dims(g, out[4], "split", 2, size);
    for (int i = 0; i < 2; i++) {
        struct value *part = result(g, out[4], i, dtype, size[i], placement_whole);
        out[5 + i] = make(g, "Reshape", (i ? b : a)->name, 1, &part, 1);
        node_output(g, out[5 + i], 0, (i ? b : a)->out[0]);
    }
    return 7;
}

/* Small: the fixed price of a collective is more than that of copying its bytes four times. */
static bool is_small(const struct compile *c, const struct node *n)
{
    const struct machine *m = &c->options->machine;
    for (int w = 0; w < c->plan->workloads.n; w++)
        if ((double)cost_payload(c->graph->alg, n, &c->plan->workloads.at[w].dims, c->graph->ranks) * 4 > m->collective_overhead * m->memory_bandwidth)
            return false;
    return true;
}

static int position(const struct graph *g, const struct node *n)
{
    for (int i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i] == n)
            return i;
    return -1;
}

static bool can_merge(const struct compile *c, int first, const struct node *b)
{
    const struct node *a = c->graph->nodes.at[first];
    return is(b, "AllReduce") && !strcmp(attr_string(a, "op"), attr_string(b, "op")) && a->in[0]->type.dtype == b->in[0]->type.dtype &&
           position(c->graph, b->in[0]->producer) < first && is_small(c, b);
}

/* Reductions that can move up to the first one join it. */
static bool merge_into(struct compile *c, int first)
{
    struct graph *g = c->graph;
    if (!is(g->nodes.at[first], "AllReduce") || !is_small(c, g->nodes.at[first]))
        return false;
    for (int k = first + 1; k < g->nodes.n; k++) {
        if (!can_merge(c, first, g->nodes.at[k]))
            continue;
        struct node *made[7], **old = g->nodes.at;
        int n = merged_nodes(g, old[first], old[k], made), count = g->nodes.n;
        g->nodes.at = NULL;
        g->nodes.n = g->nodes.cap = 0;
        for (int i = 0; i < count; i++)
            if (i == first)
                for (int j = 0; j < n; j++)
                    VEC_PUSH(g->arena, &g->nodes, made[j]);
            else if (i != k)
                VEC_PUSH(g->arena, &g->nodes, old[i]);
        return true;
    }
    return false;
}

static int collective_axis(const struct node *n)
{
    for (int i = 0; i < n->op->nattr; i++)
        if (!strcmp(n->op->attr[i].name, "axis"))
            return (int)attr_int(n, "axis");
    return -1;
}

static void list_collectives(struct compile *c)
{
    for (int i = 0; i < c->graph->nodes.n; i++) {
        const struct node *n = c->graph->nodes.at[i];
        if (!n->op || !(n->op->flags & OP_COLLECTIVE))
            continue;
        struct collective k = { .op = n->optype, .value = n->in[0], .axis = collective_axis(n), .node = n };
        k.reason = arena_printf(c->arena, "%s to %s", placement_str(c->arena, n->in[0]->place), placement_str(c->arena, n->out[0]->place));
        VEC_PUSH(c->arena, &c->plan->collectives, k);
    }
}

void pass_fuse(struct compile *c)
{
    struct graph *g = c->graph;
    struct arena *scratch = arena_new();
    struct uses *uses = graph_uses(g, scratch);
    int nodes = g->nodes.n;
    for (int i = 0; i < nodes; i++)
        fuse_reduce(g, uses, i);
    for (int i = 0; i < nodes; i++)
        undo_gather(g, g->nodes.at[i]);
    arena_free(scratch);
    graph_prune(g);
    for (int i = 0; i < g->nodes.n; i++)
        if (merge_into(c, i))
            i--;
    list_collectives(c);
}
