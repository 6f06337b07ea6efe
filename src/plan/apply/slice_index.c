/* slice_index: the positions that index-map ops state, for one rank. Cut points of Slice and Split on a split axis become the extents that
 * the rank holds of each part; a Repeat whose local copies are not uniform (heads of one group, KV heads repeated) gets the local index
 * of every copy. Decided for all ranks together, so that their nodes keep one form. */
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

static void set_split_sizes(struct locality *l, int at)
{
    const struct node *node = l->global->nodes.at[at];
    int axis = axis_at(node, attr_int(node, "axis"));
    if (!is_split_along(node->in[0], axis))
        return;
    for (int r = 0; r < l->ranks; r++) {
        struct node *local = l->local[r]->nodes.at[at];
        const struct dim **size = NEWN(l->local[r]->arena, const struct dim *, node->nout);
        for (int i = 0; i < node->nout; i++) {
            require(local->out[i]);
            size[i] = local->out[i]->type.dim[axis];
        }
        attr_set_dims(l->local[r], local, "split", node->nout, size);
        node_attr(local, "num_outputs")->set = false;
    }
}

/* What rank r holds of [lo, hi) of a dimension split by s. */
static const struct dim *slice_held_extent(const struct locality *l, const struct node *node, const struct split *s, int64_t lo, int64_t hi,
                                           int rank)
{
    const struct split *part = split_restrict(l->global->alg, s, lo, hi);
    if (!part)
        bug("%s: the split axis cannot be cut at %lld and %lld", node_where(l->global, node), (long long)lo, (long long)hi);
    return split_extent(l->global->alg, part, rank);
}

/* A bound in canonical or source form: from the end when negative, clamped to the size. */
static int64_t bound(const struct dim *given, int64_t size)
{
    int64_t k;
    require(dim_is_int(given, &k));
    k = k < 0 ? k + size : k;
    return k < 0 ? 0 : k > size ? size : k;
}

static void cut_bounds(const struct locality *l, int at, int entry, int axis)
{
    const struct node *node = l->global->nodes.at[at];
    const struct dim **starts, **ends;
    int n = attr_dims(node, "starts", &starts);
    require(attr_dims(node, "ends", &ends) == n);
    int64_t size;
    require(dim_is_int(node->in[0]->type.dim[axis], &size));
    int64_t lo = bound(starts[entry], size), hi = bound(ends[entry], size);
    for (int r = 0; r < l->ranks; r++) {
        struct graph *g = l->local[r];
        const struct dim **from, **to;
        attr_dims(g->nodes.at[at], "starts", &from);
        attr_dims(g->nodes.at[at], "ends", &to);
        from[entry] = slice_held_extent(l, node, node->in[0]->place.split, 0, lo, r);
        to[entry] = dim_add(g->alg, from[entry], slice_held_extent(l, node, node->in[0]->place.split, lo, hi, r));
    }
}

static void own_dims(struct graph *g, struct node *node, const char *name)
{
    const struct dim **dims;
    int n = attr_dims(node, name, &dims);
    const struct dim **own = NEWN(g->arena, const struct dim *, n);
    memcpy(own, dims, (size_t)n * sizeof *own);
    node_attr(node, name)->dims = own;
}

static void set_slice_bounds(struct locality *l, int at)
{
    const struct node *node = l->global->nodes.at[at];
    const struct dim **axes = NULL, **starts;
    if (node->in[0]->place.kind != PLACE_S || !op_resolved(node))
        return;
    int n = attr_dims(node, "starts", &starts);
    if (attr_is_set(node, "axes"))
        require(attr_dims(node, "axes", &axes) == n);
    for (int r = 0; r < l->ranks; r++) {
        own_dims(l->local[r], l->local[r]->nodes.at[at], "starts");
        own_dims(l->local[r], l->local[r]->nodes.at[at], "ends");
    }
    for (int i = 0; i < n; i++) {
        int64_t axis = i;
        require(!axes || dim_is_int(axes[i], &axis));
        if (is_split_along(node->in[0], axis_at(node, axis)) &&
            node->in[0]->type.dim[axis_at(node, axis)] != node->out[0]->type.dim[axis_at(node, axis)])
            cut_bounds(l, at, i, axis_at(node, axis));
    }
}

/* ---- Repeat ------------------------------------------------------------------------------------------------------------------------ */

struct rank_pieces {
    int n;
    struct interval *at;
};

static struct rank_pieces pieces_of(const struct locality *l, const struct value *v, int axis, int rank)
{
    static const struct bindings none;
    struct rank_pieces p;
    const struct split *s = is_split_along(v, axis) ? v->place.split : split_replicated(l->global->alg, l->ranks, v->type.dim[axis]);
    p.n = split_pieces(l->global->arena, s, rank, false, &none, &p.at);
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

/* For each index of the result that a rank holds, where it holds the index that is copied there. Returns the count, -1: not listed. */
static int repeat_index(const struct locality *l, const struct node *node, int axis, int rank, const struct dim ***out)
{
    struct rank_pieces in = pieces_of(l, node->in[0], axis, rank), to = pieces_of(l, node->out[0], axis, rank);
    int64_t copies = attr_int(node, "repeats");
    int n = 0;
    if (in.n < 0 || to.n < 0 || copies < 1)
        return -1;
    *out = NEWN(l->global->arena, const struct dim *, pieces_total(&to));
    for (int i = 0; i < to.n; i++)
        for (int64_t k = to.at[i].lo; k < to.at[i].hi; k++) {
            int64_t from = local_position(&in, k / copies);
            if (from < 0)
                bug("%s: rank %d holds copy %lld and not its source", node_where(l->global, node), rank, (long long)k);
            (*out)[n++] = dim_int(l->global->alg, from);
        }
    return n;
}

static bool repeats_evenly(const struct locality *l, const struct node *node, int axis, int rank)
{
    const struct dim **index;
    struct rank_pieces in = pieces_of(l, node->in[0], axis, rank);
    int64_t copies = attr_int(node, "repeats"), k;
    int n = repeat_index(l, node, axis, rank, &index);
    if (n < 0)
        return true; /* split in multiples of a symbolic size: inference has them */
    for (int i = 0; i < n; i++)
        if (!dim_is_int(index[i], &k) || k != i / copies)
            return false;
    return pieces_total(&in) * copies == n;
}

static void set_repeat(struct locality *l, int at)
{
    const struct node *node = l->global->nodes.at[at];
    int axis = axis_at(node, attr_int(node, "axis"));
    bool even = attr_is_set(node, "index");
    for (int r = 0; r < l->ranks && !attr_is_set(node, "index"); r++)
        even = r == 0 ? repeats_evenly(l, node, axis, r) : even && repeats_evenly(l, node, axis, r);
    for (int r = 0; r < l->ranks && !even; r++) {
        const struct dim **index;
        int n = repeat_index(l, node, axis, r, &index);
        attr_set_dims(l->local[r], l->local[r]->nodes.at[at], "index", n, index);
    }
}

/* ---- the ops ------------------------------------------------------------------------------------------------------------------------- */

void slice_index_localize(struct locality *l, int at)
{
    static const struct {
        const char *domain, *op;
        void (*run)(struct locality *, int);
    } index_maps[] = {{"", "Split", set_split_sizes}, {"", "Slice", set_slice_bounds}, {"tpc", "Repeat", set_repeat}};
    const struct node *node = l->global->nodes.at[at];
    for (size_t i = 0; node->op && i < sizeof index_maps / sizeof index_maps[0]; i++)
        if (strcmp(node->op->name, index_maps[i].op) == 0 && strcmp(node->op->domain, index_maps[i].domain) == 0)
            index_maps[i].run(l, at);
}
