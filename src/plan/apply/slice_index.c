/* slice_index: the positions in index-map ops, for one rank. Cut points of Slice and Split on a split axis become the extents that the rank
 * holds of each part; a Repeat whose local copies are not uniform (heads of one group, KV heads repeated) gets the local index of every
 * copy. The decision is common to all ranks, so that their nodes have one form. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "plan/apply/apply.h"

#include <string.h>

/* ---- cut points ----------------------------------------------------------------------------------------------------------------- */

static int axis_at(const struct node *node, int64_t axis)
{
    return (int)(axis < 0 ? axis + node->in[0]->type.rank : axis);
}

static bool is_split_along(const struct value *v, int axis)
{
    return v && v->place.kind == PLACE_S && v->place.dim == axis;
}

static void set_split_sizes(const struct node *node, struct graph *g, struct node *local, struct local_node *l)
{
    int axis = axis_at(node, attr_int(node, "axis"));
    (void)l;
    if (!is_split_along(node->in[0], axis))
        return;
    const struct dim **size = NEWN(g->arena, const struct dim *, node->nout);
    for (int i = 0; i < node->nout; i++) {
        require(local->out[i]);
        size[i] = local->out[i]->type.dim[axis];
    }
    attr_set_dims(g, local, "split", node->nout, size);
    node_attr(local, "num_outputs")->set = false;
}

/* The split of the slice [lo, hi) of a dimension that is split by s. */
static const struct split *slice_split(const struct graph *g, const struct node *local, const struct split *s, int64_t lo, int64_t hi)
{
    const struct split *part = split_restrict(g->alg, s, lo, hi);
    if (!part)
        bug("%s: the split axis cannot be cut at %lld and %lld", node_where(g, local), (long long)lo, (long long)hi);
    return part;
}

/* A bound in canonical or source form: negative bounds count from the end; clamped to the size. */
static int64_t bound(const struct dim *given, int64_t size)
{
    int64_t k;
    require(dim_is_int(given, &k));
    k = k < 0 ? k + size : k;
    return k < 0 ? 0 : k > size ? size : k;
}

/* The part of the axis before an entry's slice, and the slice. */
struct slice_parts {
    const struct split *before, *slice;
};

static struct slice_parts parts_of(const struct node *node, const struct graph *g, const struct node *local, int entry, int axis)
{
    const struct split *s = node->in[0]->place.split;
    const struct dim **from, **to;
    int64_t size;
    int n = attr_dims(node, "starts", &from);
    require(attr_dims(node, "ends", &to) == n && dim_is_int(node->in[0]->type.dim[axis], &size));
    int64_t lo = bound(from[entry], size), hi = bound(to[entry], size);
    return (struct slice_parts){slice_split(g, local, s, 0, lo), slice_split(g, local, s, lo, hi)};
}

static void cut_bounds(const struct slice_parts *part, const struct graph *g, struct node *local, int entry)
{
    const struct dim **from, **to;
    require(attr_dims(local, "starts", &from) == attr_dims(local, "ends", &to));
    from[entry] = split_extent(g->alg, part->before, g->rank);
    to[entry] = dim_add(g->alg, from[entry], split_extent(g->alg, part->slice, g->rank));
}

static void own_dims(struct graph *g, struct node *node, const char *name)
{
    const struct dim **dims;
    int n = attr_dims(node, name, &dims);
    const struct dim **own = NEWN(g->arena, const struct dim *, n);
    memcpy(own, dims, (size_t)n * sizeof *own);
    node_attr(node, name)->dims = own;
}

static void set_slice_bounds(const struct node *node, struct graph *g, struct node *local, struct local_node *l)
{
    const struct dim **axes = NULL, **starts;
    if (node->in[0]->place.kind != PLACE_S || !op_resolved(node))
        return;
    int n = attr_dims(node, "starts", &starts);
    l->slice = l->slice ? l->slice : NEWN(alg_arena(g->alg), struct slice_parts, n);
    if (attr_is_set(node, "axes"))
        require(attr_dims(node, "axes", &axes) == n);
    own_dims(g, local, "starts");
    own_dims(g, local, "ends");
    for (int i = 0; i < n; i++) {
        int64_t axis = i;
        require(!axes || dim_is_int(axes[i], &axis));
        int d = axis_at(node, axis);
        if (!is_split_along(node->in[0], d) || node->in[0]->type.dim[d] == node->out[0]->type.dim[d])
            continue;
        if (!l->slice[i].before)
            l->slice[i] = parts_of(node, g, local, i, d);
        cut_bounds(&l->slice[i], g, local, i);
    }
}

/* ---- Repeat ------------------------------------------------------------------------------------------------------------------------ */

struct rank_pieces {
    int n;
    struct interval *at;
};

static struct rank_pieces pieces_of(struct arena *a, const struct graph *g, const struct value *v, int axis, int rank)
{
    static const struct bindings none;
    struct rank_pieces p;
    const struct split *s = is_split_along(v, axis) ? v->place.split : split_replicated(g->alg, g->ranks, v->type.dim[axis]);
    p.n = split_pieces(a, s, rank, false, &none, &p.at);
    return p;
}

static int64_t local_position(const struct rank_pieces *p, int64_t global)
{
    int64_t before = 0;
    for (int i = 0; i < p->n; i++) {
        if (global >= p->at[i].lo && global < p->at[i].hi)
            return before + global - p->at[i].lo;
        before += p->at[i].hi - p->at[i].lo;
    }
    return -1;
}

static int64_t pieces_total(const struct rank_pieces *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n; i++)
        n += p->at[i].hi - p->at[i].lo;
    return n;
}

/* For each result index of a rank, the local index from which it is copied. Returns the count; -1: the splits are not listed. */
static int repeat_index(struct arena *a, const struct graph *g, const struct node *node, int rank, const struct dim ***out)
{
    int axis = axis_at(node, attr_int(node, "axis")), n = 0;
    struct rank_pieces in = pieces_of(a, g, node->in[0], axis, rank), to = pieces_of(a, g, node->out[0], axis, rank);
    int64_t copies = attr_int(node, "repeats");
    if (in.n < 0 || to.n < 0 || copies < 1)
        return -1;
    *out = NEWN(a, const struct dim *, pieces_total(&to));
    for (int i = 0; i < to.n; i++)
        for (int64_t k = to.at[i].lo; k < to.at[i].hi; k++) {
            int64_t from = local_position(&in, k / copies);
            if (from < 0)
                bug("%s: rank %d holds copy %lld and not its source", node_where(g, node), rank, (long long)k);
            (*out)[n++] = dim_int(g->alg, from);
        }
    return n;
}

static bool repeats_evenly(struct arena *a, const struct graph *g, const struct node *node, int rank)
{
    const struct dim **index;
    struct rank_pieces in = pieces_of(a, g, node->in[0], axis_at(node, attr_int(node, "axis")), rank);
    int64_t copies = attr_int(node, "repeats"), k;
    int n = repeat_index(a, g, node, rank, &index);
    if (n < 0)
        return true; /* multiples of a symbolic size: inference determines the extents */
    for (int i = 0; i < n; i++)
        if (!dim_is_int(index[i], &k) || k != i / copies)
            return false;
    return pieces_total(&in) * copies == n;
}

static void set_repeat(const struct node *node, struct graph *g, struct node *local, struct local_node *l)
{
    const struct dim **index;
    if (!l->uneven)
        return;
    int n = repeat_index(g->arena, g, node, g->rank, &index);
    attr_set_dims(g, local, "index", n, index);
}

bool slice_index_uneven(const struct graph *g, const struct node *node)
{
    bool uneven = false;
    if (!op_is_tpc(node, "Repeat") || attr_is_set(node, "index"))
        return false;
    struct arena *tmp = arena_new();
    for (int r = 0; !uneven && r < g->ranks; r++) {
        uneven = !repeats_evenly(tmp, g, node, r);
        arena_reset(tmp);
    }
    arena_free(tmp);
    return uneven;
}

/* ---- the ops ------------------------------------------------------------------------------------------------------------------------- */

static const struct index_map {
    const char *domain, *op;
    void (*run)(const struct node *, struct graph *, struct node *local, struct local_node *l);
} index_maps[] = {{"", "Split", set_split_sizes}, {"", "Slice", set_slice_bounds}, {"tpc", "Repeat", set_repeat}};

static const struct index_map *map_of(const struct node *n)
{
    for (size_t i = 0; n->op && i < sizeof index_maps / sizeof index_maps[0]; i++)
        if (strcmp(n->op->name, index_maps[i].op) == 0 && strcmp(n->op->domain, index_maps[i].domain) == 0)
            return &index_maps[i];
    return NULL;
}

bool slice_index_is_map(const struct node *n)
{
    return map_of(n);
}

void slice_index_localize(const struct node *node, struct graph *g, struct node *local, struct local_node *l)
{
    const struct index_map *map = map_of(node);
    if (map)
        map->run(node, g, local, l);
}
