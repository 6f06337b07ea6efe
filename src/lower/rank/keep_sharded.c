/* keep_sharded: leaves outputs sharded: removes an AllGather whose only result is an output; the metadata then has the output's placement,
 * as when a plan leaves an output sharded. session_gather returns the global tensor on demand. */
#include "ir/rank_meta.h"
#include "lower/lower.h"
#include "op/op.h"

#include <string.h>

/* The shard that is gathered to the output, and its placement; NULL: the output is not gathered, or its shard has other readers. */
static struct value *gathered(const struct graph *g, const struct uses *uses, const struct value *v, struct placement *place)
{
    const char *error = NULL;
    const struct node *n = v->producer;
    if (!op_is_tpc(n, "AllGather") || uses[v->id].n != 1 || graph_is_present(g, v) || !n->in[0]->producer)
        return NULL;
    for (int i = 0; i < uses[n->in[0]->id].n; i++)
        if (!uses[n->in[0]->id].at[i].node)
            return NULL;
    const struct split *split = split_parse(g->alg, attr_string(n, "from"), &error);
    int64_t axis = attr_int(n, "axis"), rank = v->type.rank;
    if (!split || axis < -rank || axis >= rank)
        return NULL;
    *place = placement_split((int)(axis < 0 ? axis + rank : axis), split);
    return n->in[0];
}

static void leave_split(struct graph *g, const struct uses *uses, int output)
{
    struct value *v = g->outputs.at[output];
    const char *name = v->name; /* the shard takes over the name */
    struct placement now, place;
    bool replicated = rank_meta_placement(g, RANK_OUTPUT, name, &now) && now.kind == PLACE_R;
    struct value *shard = replicated ? gathered(g, uses, v, &place) : NULL;
    if (!shard)
        return;
    graph_move_output(g, output, shard, "/replicated");
    rank_meta_set_placement(g, RANK_OUTPUT, name, place);
}

void keep_outputs_sharded(struct graph *g)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(g, tmp);
    for (int i = 0; i < g->outputs.n; i++)
        leave_split(g, uses, i);
    arena_free(tmp);
    graph_prune(g);
}
