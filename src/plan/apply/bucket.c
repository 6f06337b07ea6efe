/* bucket: merges small collectives of one kind into one collective of their concatenated operands.
 *
 *     reductions     [n] of each operand, concatenated: [sum of n]
 *     gathers        of dimension 0 in as many equal shards as there are ranks: [ranks, n / ranks] of each, concatenated along 1
 *
 * Operands are added to the one Concat, so none is copied twice. */
#include "op/op.h"
#include "plan/apply/apply.h"

#include <string.h>

static struct value *placed(struct graph *g, struct node *n, int i, const struct type *type, struct placement place)
{
    struct value *v = graph_value(g, n->name, type);
    v->place = place;
    v->placed = true;
    node_output(g, n, i, v);
    return v;
}

static struct node *make_node(struct graph *g, const char *op, const char *name, int nin, struct value *const *in)
{
    return graph_node(g, op_find("", op), name, nin, in, 1);
}

static bool reduces(const struct value *operand)
{
    return operand->place.kind == PLACE_P;
}

bool bucket_takes(struct graph *g, const struct node *n)
{
    if (op_is_tpc(n, "AllReduce"))
        return true;
    if (!op_is_tpc(n, "AllGather"))
        return false;
    const struct value *x = n->in[0];
    int64_t size;
    return x->place.kind == PLACE_S && x->place.dim == 0 && dim_is_int(x->type.dim[0], &size) && size % g->ranks == 0 &&
        x->place.split == split_even(g->alg, g->ranks, x->type.dim[0]);
}

bool bucket_alike(const struct node *a, const struct node *b)
{
    if (strcmp(a->optype, b->optype) != 0 || a->in[0]->type.dtype != b->in[0]->type.dtype)
        return false;
    return !op_is_tpc(a, "AllReduce") || strcmp(attr_string(a, "op"), attr_string(b, "op")) == 0;
}

/* The type of an operand in its bucket. */
static struct type flat_type(struct graph *g, const struct value *x)
{
    const struct dim *all = type_elements(g->alg, &x->type);
    struct type t = {.dtype = x->type.dtype, .rank = 1, .dim = {all}};
    if (!reduces(x)) {
        t.rank = 2;
        t.dim[0] = dim_int(g->alg, g->ranks);
        t.dim[1] = dim_div(g->alg, all, t.dim[0]);
    }
    return t;
}

static struct placement flat_place(struct graph *g, const struct value *x)
{
    return reduces(x) ? x->place : placement_split(0, split_even(g->alg, g->ranks, dim_int(g->alg, g->ranks)));
}

static struct value **one_more(struct graph *g, struct value **list, int n, struct value *v)
{
    struct value **more = NEWN(g->arena, struct value *, n + 1);
    if (n)
        memcpy(more, list, sizeof *list * (size_t)n);
    more[n] = v;
    return more;
}

static void set_sizes(struct graph *g, struct node *split, int axis)
{
    const struct dim **size = NEWN(g->arena, const struct dim *, split->nout);
    for (int i = 0; i < split->nout; i++)
        size[i] = split->out[i]->type.dim[axis];
    attr_set_dims(g, split, "split", split->nout, size);
}

/* Adds collective x to the bucket; appends the nodes that x needs. */
static void add(struct graph *g, struct bucket *q, const struct node *x, struct nodes *made)
{
    struct type type = flat_type(g, x->in[0]);
    int axis = type.rank - 1;
    struct value *operand = x->in[0];
    struct node *flat = make_node(g, "Reshape", arena_printf(g->arena, "%s/flat", operand->name), 1, &operand);
    struct value *in = placed(g, flat, 0, &type, flat_place(g, operand)), *joined = q->join->in[0], *all = q->join->out[0];
    q->concat->in = one_more(g, q->concat->in, q->concat->nin, in);
    q->concat->nin++;
    all->type.dim[axis] = joined->type.dim[axis] = dim_add(g->alg, joined->type.dim[axis], type.dim[axis]);
    q->split->out = one_more(g, q->split->out, q->split->nout, NULL);
    struct value *part = placed(g, q->split, q->split->nout++, &type, placement_replicated);
    set_sizes(g, q->split, axis);
    struct node *back = make_node(g, "Reshape", x->name, 1, &part);
    node_output(g, back, 0, x->out[0]);
    require(q->concat->nin == q->split->nout);
    VEC_PUSH(g->arena, &made->list, flat);
    VEC_PUSH(g->arena, &made->list, back);
}

static struct node *join_node(struct graph *g, const struct node *a, struct value *joined)
{
    struct node *n = graph_node(g, a->op, arena_printf(g->arena, "%s/merged", a->name), 1, &joined, 1);
    if (reduces(joined)) {
        attr_set_string(n, "op", attr_string(a, "op"));
    } else {
        attr_set_int(n, "axis", 0);
        attr_set_string(n, "from", split_str(g->arena, joined->place.split));
        attr_set_dims(g, n, "extent", 1, &joined->type.dim[0]);
    }
    placed(g, n, 0, &joined->type, placement_replicated);
    return n;
}

/* An empty bucket for collectives like a. */
static struct bucket *new_bucket(struct graph *g, struct buckets *all, const struct node *a, struct nodes *made)
{
    struct type type = flat_type(g, a->in[0]);
    struct bucket q;
    int axis = type.rank - 1;
    type.dim[axis] = dim_int(g->alg, 0);
    q.concat = make_node(g, "Concat", arena_printf(g->arena, "%s/both", a->name), 0, NULL);
    attr_set_int(q.concat, "axis", axis);
    q.join = join_node(g, a, placed(g, q.concat, 0, &type, flat_place(g, a->in[0])));
    q.split = make_node(g, "Split", arena_printf(g->arena, "%s/apart", a->name), 1, &q.join->out[0]);
    q.split->nout = 0;
    attr_set_int(q.split, "axis", axis);
    VEC_PUSH(g->arena, &made->list, q.concat);
    VEC_PUSH(g->arena, &made->list, q.join);
    VEC_PUSH(g->arena, &made->list, q.split);
    VEC_PUSH(g->arena, &all->list, q);
    return &all->list.at[all->list.n - 1];
}

const struct bucket *bucket_of(const struct buckets *all, const struct node *n)
{
    for (int i = 0; i < all->list.n; i++)
        if (all->list.at[i].join == n)
            return &all->list.at[i];
    return NULL;
}

void bucket_merge(struct graph *g, struct buckets *all, int first, int second)
{
    struct node **old = g->nodes.at, *a = old[first];
    struct bucket *q = (struct bucket *)(uintptr_t)bucket_of(all, a);
    struct nodes made = {0};
    int count = g->nodes.n;
    bool fresh = !q;
    require(first < second && second < count);
    require(bucket_alike(a, old[second]) && bucket_takes(g, old[second]));
    if (fresh) {
        q = new_bucket(g, all, a, &made);
        add(g, q, a, &made);
    }
    add(g, q, old[second], &made);
    g->nodes.at = NULL;
    g->nodes.n = g->nodes.cap = 0;
    for (int i = 0; i < count; i++) {
        if (i != second && !(fresh && i == first))
            VEC_PUSH(g->arena, &g->nodes, old[i]);
        for (int j = 0; i == first && j < made.list.n; j++)
            VEC_PUSH(g->arena, &g->nodes, made.list.at[j]);
    }
    graph_sort(g);
}
