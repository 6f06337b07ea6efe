/* grow_concats: Concats that each start with the whole previous one, as in the layers of a dense block, append to one buffer instead of
 * copying everything again.
 *
 * The buffer (Room) has the size of the last Concat. An Append writes the new part; its result is the buffer up to there. Only Chains may
 * read such a result, since they handle strides. The last result is dense, so any node may read it.
 *
 * Only for one image. Several images run through the layers in blocks (session/blocks/batch_blocks.c), which saves more and does not work
 * with buffers. */
#include "lower/lower.h"
#include "op/op.h"

#include <string.h>

struct growth {
    struct graph *g;
    const struct uses *uses;
    struct node **before, **next; /* by value id of a Concat's result: the Concat that it continues, and the one that continues it */
    struct nodes concats;         /* with static sizes */
    int nvalues;
};

static int axis_of(const struct node *n)
{
    int64_t axis = attr_int(n, "axis");
    return (int)(axis < 0 ? axis + n->out[0]->type.rank : axis);
}

/* Whether it is a Concat for one image with static sizes. */
static bool has_sizes(const struct growth *s, const struct node *n)
{
    int64_t size;
    bool known = op_is_onnx(n, "Concat") && op_resolved(n) && n->out[0]->id < s->nvalues && n->nin > 0 &&
        dtype_size(n->out[0]->type.dtype) > 0 && axis_of(n) > 0 && dim_equals(n->out[0]->type.dim[0], 1);
    for (int k = 0; known && k < n->nin; k++)
        known = dim_is_int(n->in[k]->type.dim[axis_of(n)], &size);
    return known;
}

/* The number of operands of n that the result of `first` replaces; 0: n does not start like it. */
static int operands_of_start(const struct node *first, const struct node *n)
{
    if (axis_of(first) != axis_of(n))
        return 0;
    if (n->in[0] == first->out[0])
        return 1;
    bool same = first->nin < n->nin;
    for (int k = 0; same && k < first->nin; k++)
        same = first->in[k] == n->in[k];
    return same ? first->nin : 0;
}

/* Whether only Chains read the result of `first`, apart from n. */
static bool may_grow(const struct growth *s, const struct node *first, const struct node *n)
{
    const struct uses *u = &s->uses[first->out[0]->id];
    for (int i = 0; i < u->n; i++) {
        const struct node *user = u->at[i].node;
        if (!user || (user == n ? u->at[i].index != 0 : user->op != op_find("tpc", "Chain")))
            return false;
    }
    return true;
}

/* Whether the value is an output, or a node overwrites it in place, while later parts of the buffer still need it. */
static bool leaves(const struct growth *s, const struct value *v)
{
    EACH (const struct use, u, s->uses[v->id]) {
        if (!u->node || (u->node->op && (u->node->op->flags & OP_IN_PLACE) && u->index == 0))
            return true;
    }
    return false;
}

/* Finds the longest start of Concat number i. */
static void find_start(struct growth *s, int i)
{
    struct node *n = s->concats.list.at[i], *best = NULL;
    if (leaves(s, n->out[0]))
        return;
    for (int k = 0; k < i; k++) {
        struct node *first = s->concats.list.at[k];
        if (!s->next[first->out[0]->id] && operands_of_start(first, n) > 0 && may_grow(s, first, n) &&
            (!best || operands_of_start(first, n) >= operands_of_start(best, n)))
            best = first;
    }
    if (!best)
        return;
    s->before[n->out[0]->id] = best;
    s->next[best->out[0]->id] = n;
}

static int64_t size_along(const struct value *v, int axis)
{
    int64_t size = 0;
    require(dim_is_int(v->type.dim[axis], &size));
    return size;
}

static struct node *append_node(struct growth *s, const struct node *n, struct value *buffer, const struct node *before)
{
    int known = before ? operands_of_start(before, n) : 0, nin = 1 + n->nin - known;
    struct value **in = NEWN(s->g->arena, struct value *, nin);
    in[0] = before ? before->out[0] : buffer;
    memcpy(in + 1, n->in + known, (size_t)(nin - 1) * sizeof *in);
    struct node *made = graph_node(s->g, op_find("tpc", "Append"), n->name, nin, in, 1);
    attr_set_int(made, "axis", axis_of(n));
    attr_set_int(made, "start", before ? size_along(before->out[0], axis_of(n)) : 0);
    node_output(s->g, made, 0, n->out[0]);
    return made;
}

/* The buffer for all that continue n, as the result of a node. */
static struct node *room_node(struct growth *s, const struct node *n)
{
    const struct node *last = n;
    while (s->next[last->out[0]->id])
        last = s->next[last->out[0]->id];
    const char *name = arena_printf(s->g->arena, "%s/room", last->out[0]->name);
    struct node *made = graph_node(s->g, op_find("tpc", "Room"), name, 0, NULL, 1);
    node_output(s->g, made, 0, graph_value(s->g, name, &last->out[0]->type));
    return made;
}

/* Appends node n, or its replacement, to the nodes. */
static void put_node(struct growth *s, struct nodes *to, struct node *n)
{
    int id = has_sizes(s, n) ? n->out[0]->id : -1;
    if (id < 0 || (!s->before[id] && !s->next[id])) {
        VEC_PUSH(s->g->arena, &to->list, n);
        return;
    }
    struct node *room = s->before[id] ? NULL : room_node(s, n);
    if (room)
        VEC_PUSH(s->g->arena, &to->list, room);
    VEC_PUSH(s->g->arena, &to->list, append_node(s, n, room ? room->out[0] : NULL, s->before[id]));
}

int grow_concats(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct growth s = {.g = g, .uses = graph_uses(g, tmp), .nvalues = g->values.n};
    struct nodes nodes = {0};
    int grown = 0;
    s.before = NEWN(tmp, struct node *, s.nvalues + 1);
    s.next = NEWN(tmp, struct node *, s.nvalues + 1);
    for (int i = 0; i < g->nodes.n; i++)
        if (has_sizes(&s, g->nodes.at[i]))
            VEC_PUSH(tmp, &s.concats.list, g->nodes.at[i]);
    for (int i = 0; i < s.concats.list.n; i++)
        find_start(&s, i);
    for (int i = 0; i < s.nvalues; i++)
        grown += s.before[i] != NULL;
    for (int i = 0; grown && i < g->nodes.n; i++)
        put_node(&s, &nodes, g->nodes.at[i]);
    if (grown) {
        g->nodes.n = 0;
        for (int i = 0; i < nodes.list.n; i++)
            graph_append(g, nodes.list.at[i]);
        graph_name_nodes(g);
        graph_prune(g);
    }
    arena_free(tmp);
    return grown;
}
