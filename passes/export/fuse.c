/* fuse: combines collectives that are cheaper together.
 *
 * An all-reduce that is read only through one local slice becomes a reduce-scatter. A slice that undoes an all-gather becomes the gathered
 * value. Small ones are merged (src/plan/apply/merge_small.c). Finally it lists the plan's collectives in file order. */
#include "op/op.h"
#include "op/recurrent/recurrent.h"
#include "passes/pass.h"
#include "plan/apply/apply.h"
#include "plan/plan.h"

#include <string.h>

static bool same_slice(const struct node *a, const struct node *b)
{
    return attr_int(a, "axis") == attr_int(b, "axis") && strcmp(attr_string(a, "to"), attr_string(b, "to")) == 0;
}

/* The slice that all uses of a value make; NULL if they differ. */
static const struct node *only_slice(const struct uses *u)
{
    for (int i = 0; i < u->n; i++)
        if (!op_is_tpc(u->at[i].node, "Shard") || !same_slice(u->at[i].node, u->at[0].node))
            return NULL;
    return u->n ? u->at[0].node : NULL;
}

static struct node *new_reduce_scatter(struct graph *g, const struct node *reduce, const struct node *slice)
{
    int axis = (int)attr_int(slice, "axis");
    struct node *n = graph_node(g, op_find("tpc", "ReduceScatter"), arena_printf(g->arena, "%s/ReduceScatter", reduce->in[0]->name), 1,
                                reduce->in, 1);
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
    const struct node *slice = op_is_tpc(reduce, "AllReduce") ? only_slice(&uses[reduce->out[0]->id]) : NULL;
    if (!slice || !slice->out[0]->place.split->partition)
        return false;
    struct node *n = new_reduce_scatter(g, reduce, slice);
    const struct uses *slices = &uses[reduce->out[0]->id];
    g->nodes.at[at] = n;
    for (int i = 0; i < slices->n; i++)
        graph_replace(g, slices->at[i].node->out[0], n->out[0], true);
    return true;
}

static void undo_gather(struct graph *g, const struct node *slice)
{
    const struct node *gather = op_is_tpc(slice, "Shard") ? slice->in[0]->producer : NULL;
    if (op_is_tpc(gather, "AllGather") && attr_int(gather, "axis") == attr_int(slice, "axis") &&
        strcmp(attr_string(gather, "from"), attr_string(slice, "to")) == 0)
        graph_replace(g, slice->out[0], gather->in[0], false);
}

static void list_exchange(struct compile *c, const struct node *n)
{
    struct recurrent_exchange x;
    if (!recurrent_exchanges(c->graph, n, &x))
        return;
    const struct value *y = NULL;
    for (int i = 0; i < n->nout && !y; i++)
        y = n->out[i];
    require(y);
    struct planned_collective k = {.kind = COLL_ALLGATHER, .value = y, .axis = y->type.rank - 1, .node = n};
    k.reason = "the hidden units, at every step";
    VEC_PUSH(c->arena, &c->plan->collectives, k);
}

static void list_collectives(struct compile *c)
{
    for (int i = 0; i < c->graph->nodes.n; i++) {
        const struct node *n = c->graph->nodes.at[i];
        list_exchange(c, n);
        if (!n->op || !(n->op->flags & OP_COLLECTIVE))
            continue;
        struct planned_collective k = {.kind = collective_parse(n->optype),
                                       .value = n->in[0],
                                       .axis = attr_find(n, "axis") ? (int)attr_int(n, "axis") : -1,
                                       .node = n};
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
    plan_merge_small(g, &c->options->machine, c->plan);
    list_collectives(c);
}
