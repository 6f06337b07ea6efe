/* expand_local: expansions of the ops that make one rank's shard of a global value: slices, positions, indices and candidates are the
 * rank's; nodes and names are the same on every rank. */
#include "op/emit/emit.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

/* ---- Shard: a local slice ----------------------------------------------------------------------------------------------------- */

static const struct split *target_split(struct graph *g, const struct node *node)
{
    const char *error;
    const struct split *s = split_parse(g->alg, attr_string(node, "to"), &error);
    require(s && g->rank < s->ranks);
    return s;
}

/* Whether no rank holds more than one interval of a period, so that a slice suffices. */
static bool contiguous(const struct split *s)
{
    for (int r = 0; !s->balanced && r < s->ranks; r++)
        if (s->count[r] > 1)
            return false;
    return true;
}

static const struct dim *pattern_start(struct graph *g, const struct split *s, int rank)
{
    if (s->balanced)
        return split_start(g->alg, s, rank);
    return dim_int(g->alg, s->count[rank] > 0 ? s->list[rank][0].lo : 0);
}

/* The number of pattern indices that a rank holds. */
static const struct dim *pattern_count(struct graph *g, const struct split *s, int rank)
{
    int64_t n = 0;
    if (s->balanced)
        return dim_quotient(g->alg, split_extent(g->alg, s, rank), dim_mul(g->alg, s->outer, s->inner));
    for (int i = 0; i < s->count[rank]; i++)
        n += s->list[rank][i].hi - s->list[rank][i].lo;
    return dim_int(g->alg, n);
}

/* The pattern indices that a rank holds, as an i64 constant. */
static struct value *pattern_index(struct graph *g, const char *name, const struct split *s, int rank)
{
    int64_t total;
    require(dim_is_int(pattern_count(g, s, rank), &total));
    int64_t *at = NEWN(g->arena, int64_t, total), n = 0;
    for (int i = 0; i < s->count[rank]; i++)
        for (int64_t k = s->list[rank][i].lo; k < s->list[rank][i].hi; k++)
            at[n++] = k;
    struct value *v = graph_constant(g, name, DT_I64, 1, &n, at);
    v->placed = true;
    return v;
}

static struct value *slice_node(struct graph *g, const char *name, struct value *x, int axis, const struct split *s, struct value *out)
{
    const struct dim *start = pattern_start(g, s, g->rank), *count = pattern_count(g, s, g->rank);
    require(count);
    const struct dim *end = dim_add(g->alg, start, count), *at = dim_int(g->alg, axis);
    struct node *node = expand_append(g, "Slice", name, 1, &x, out, NULL);
    attr_set_dims(g, node, "starts", 1, &start);
    attr_set_dims(g, node, "ends", 1, &end);
    attr_set_dims(g, node, "axes", 1, &at);
    node->out[0]->type = x->type;
    node->out[0]->type.dim[axis] = count;
    return node->out[0];
}

static struct value *cut_off(struct graph *g, const struct node *node, const char *name, struct value *x, int axis, const struct split *s,
                             struct value *out)
{
    if (contiguous(s))
        return slice_node(g, name, x, axis, s, out);
    return expand_gather(g, name, x, pattern_index(g, expand_name(g, node, "index"), s, g->rank), axis, out);
}

/* Dimension axis as outer, pattern, inner (without ones). */
static struct type opened(struct graph *g, const struct type *t, int axis, const struct split *s, int *at)
{
    struct type wide = {.dtype = t->dtype};
    const struct dim *const middle[] = {s->outer, s->n, s->inner};
    for (int d = 0; d < axis; d++)
        wide.dim[wide.rank++] = t->dim[d];
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            *at = wide.rank;
        require(wide.rank < MAX_RANK);
        if (i == 1 || !dim_equals(middle[i], 1))
            wide.dim[wide.rank++] = middle[i];
    }
    for (int d = axis + 1; d < t->rank; d++) {
        if (wide.rank == MAX_RANK)
            fail("%s: a tensor of %d dimensions is too large to be cut here", graph_file(g), t->rank);
        wide.dim[wide.rank++] = t->dim[d];
    }
    return wide;
}

void expand_shard(struct graph *g, struct node *node)
{
    struct value *x = node->in[0], *y = node->out[0];
    int axis = op_axis(g, node, attr_int(node, "axis"), x->type.rank), at = axis;
    const struct split *s = target_split(g, node);
    if (dim_equals(s->outer, 1) && dim_equals(s->inner, 1)) {
        cut_off(g, node, node->name, x, axis, s, y);
        return;
    }
    struct type local = y->type, wide = opened(g, &x->type, axis, s, &at);
    struct value *v = expand_shaped(g, "Reshape", expand_name(g, node, "open"), x, NULL, &wide);
    v = cut_off(g, node, expand_name(g, node, "cut"), v, at, s, NULL);
    expand_shaped(g, "Reshape", node->name, v, y, &local);
}

/* ---- LocalIndex: global indices as local indices ------------------------------------------------------------- */

static struct value *rank_scalar(struct graph *g, const struct split *s, enum dtype dtype,
                                 const struct dim *(*of)(struct graph *, const struct split *, int))
{
    const struct dim **each = NEWN(g->arena, const struct dim *, s->ranks);
    const struct dim *const **row = NEWN(g->arena, const struct dim *const *, s->ranks);
    for (int r = 0; r < s->ranks; r++) {
        each[r] = of(g, s, r);
        row[r] = &each[r];
    }
    return shape_tensor_as(g, shape_tensor_of_rank(g, s->ranks, g->rank, 1, row), dtype, true);
}

static const struct dim *pattern_last(struct graph *g, const struct split *s, int rank)
{
    const struct dim *one = dim_int(g->alg, 1);
    return dim_max(g->alg, dim_sub(g->alg, pattern_count(g, s, rank), one), dim_int(g->alg, 0));
}

static struct value *whole_size(struct graph *g, const struct node *node, enum dtype dtype)
{
    const struct dim **extent;
    require(attr_dims(node, "extent", &extent) == 1);
    return shape_tensor_as(g, shape_tensor(g, 1, extent), dtype, true);
}

/* Zeros of the type of x, looked up in an empty table: as many rows as the dimension has, without columns. The lookup rejects an index that
 * is out of range, as the unsplit node would. */
static struct value *looked_up(struct graph *g, const struct node *node, struct value *x)
{
    const struct dim **extent, *last = dim_int(g->alg, x->type.rank);
    require(attr_dims(node, "extent", &extent) == 1);
    struct type empty = {.dtype = x->type.dtype, .rank = 2, .dim = {extent[0], dim_int(g->alg, 0)}};
    struct value *table = expand_shaped(g, "Expand", expand_name(g, node, "nothing"), expand_zero(g, empty.dtype), NULL, &empty);
    struct value *found = expand_gather(g, expand_name(g, node, "check"), table, x, 0, NULL);
    attr_set_string(found->producer, "lookup", attr_string(node, "lookup"));
    attr_set_int(found->producer, "dimension", attr_int(node, "dimension"));
    if (attr_is_set(node, "labels"))
        attr_set_int(found->producer, "labels", 1);
    struct node *sum = expand_append(g, "ReduceSum", expand_name(g, node, "zeros"), 1, &found, NULL, NULL);
    attr_set_int(sum, "keepdims", 0);
    attr_set_dims(g, sum, "axes", 1, &last);
    op_infer(g, sum);
    return sum->out[0];
}

/* x, with a check that rejects every index out of range. */
static struct value *checked(struct graph *g, const struct node *node, struct value *x)
{
    struct value *flat = x;
    if (!attr_is_set(node, "lookup"))
        return x;
    if (x->type.rank == MAX_RANK) { /* the lookup adds a dimension */
        struct type line = {.dtype = x->type.dtype, .rank = 1, .dim = {type_elements(g->alg, &x->type)}};
        flat = expand_shaped(g, "Reshape", expand_name(g, node, "flat"), x, NULL, &line);
    }
    struct value *zeros = looked_up(g, node, flat);
    if (flat != x)
        zeros = expand_shaped(g, "Reshape", expand_name(g, node, "spread"), zeros, NULL, &x->type);
    return expand_binary(g, "Add", expand_name(g, node, "checked"), x, zeros, NULL);
}

/* Negative indices count from the end. */
static struct value *counted_from_zero(struct graph *g, const struct node *node, struct value *x)
{
    enum dtype dtype = x->type.dtype;
    struct value *n = whole_size(g, node, dtype);
    struct value *below = expand_binary(g, "Less", expand_name(g, node, "below"), x, expand_zero(g, dtype), NULL);
    struct value *wrapped = expand_binary(g, "Add", expand_name(g, node, "wrapped"), x, n, NULL);
    return expand_where(g, expand_name(g, node, "index"), below, wrapped, x, NULL);
}

/* For what the rank does not hold: any element that it holds, or the spare one at the end. */
static struct value *where_held(struct graph *g, const struct node *node, const struct split *s, const char *name, struct value *at,
                                struct value *inside, struct value *out)
{
    enum dtype dtype = at->type.dtype;
    if (attr_int(node, "spare"))
        return expand_where(g, name, inside, at, rank_scalar(g, s, dtype, pattern_count), out);
    struct value *capped = expand_binary(g, "Min", expand_name(g, node, "capped"), at, rank_scalar(g, s, dtype, pattern_last), NULL);
    return expand_binary(g, "Max", name, capped, expand_zero(g, dtype), out);
}

static void index_in_range(struct graph *g, const struct node *node, const struct split *s, struct value *x)
{
    enum dtype dtype = x->type.dtype;
    struct value *at = expand_binary(g, "Sub", expand_name(g, node, "offset"), x, rank_scalar(g, s, dtype, pattern_start), NULL);
    struct value *low = expand_binary(g, "GreaterOrEqual", expand_name(g, node, "low"), at, expand_zero(g, dtype), NULL);
    struct value *high = expand_binary(g, "Less", expand_name(g, node, "high"), at, rank_scalar(g, s, dtype, pattern_count), NULL);
    struct value *inside = expand_binary(g, "And", expand_name(g, node, "inside"), low, high, node->nout > 1 ? node->out[1] : NULL);
    where_held(g, node, s, node->name, at, inside, node->out[0]);
}

/* The local position of every global index, -1 if the rank does not hold it. */
static struct value *position_table(struct graph *g, const struct node *node, const struct split *s)
{
    int64_t n, position = 0;
    require(dim_is_int(s->n, &n));
    int64_t *at = NEWN(g->arena, int64_t, n);
    for (int64_t i = 0; i < n; i++)
        at[i] = -1;
    for (int i = 0; i < s->count[g->rank]; i++)
        for (int64_t k = s->list[g->rank][i].lo; k < s->list[g->rank][i].hi; k++)
            at[k] = position++;
    struct value *v = graph_constant(g, expand_name(g, node, "table"), DT_I64, 1, &n, at);
    v->placed = true;
    return v;
}

static void index_by_table(struct graph *g, const struct node *node, const struct split *s, struct value *x)
{
    enum dtype dtype = x->type.dtype;
    struct value *at = expand_gather(g, expand_name(g, node, "position"), position_table(g, node, s), x, 0, NULL);
    struct value *inside = expand_binary(g, "GreaterOrEqual", expand_name(g, node, "inside"), at, expand_zero(g, DT_I64),
                                         node->nout > 1 ? node->out[1] : NULL);
    struct value *local = where_held(g, node, s, expand_name(g, node, "held"), at, inside, NULL);
    struct node *cast = expand_append(g, "Cast", node->name, 1, &local, node->out[0], NULL);
    attr_set_int(cast, "to", (int)dtype);
}

void expand_localindex(struct graph *g, struct node *node)
{
    const struct split *s = target_split(g, node);
    require(g->rank >= 0 && dim_equals(s->outer, 1) && dim_equals(s->inner, 1));
    struct value *x = counted_from_zero(g, node, checked(g, node, node->in[0]));
    if (contiguous(s))
        index_in_range(g, node, s, x);
    else
        index_by_table(g, node, s, x);
}

/* ---- Positions, LocalTopK ----------------------------------------------------------------------------------------------------- */

void expand_positions(struct graph *g, struct node *node)
{
    const struct split *s = target_split(g, node);
    require(g->rank >= 0 && dim_equals(s->outer, 1) && dim_equals(s->inner, 1));
    if (!contiguous(s)) {
        expand_unary(g, "Identity", node->name, pattern_index(g, expand_name(g, node, "index"), s, g->rank), node->out[0]);
        return;
    }
    const struct dim *start = pattern_start(g, s, g->rank), *limit = dim_add(g->alg, start, pattern_count(g, s, g->rank)),
                     *one = dim_int(g->alg, 1);
    struct node *range = expand_append(g, "Range", node->name, 0, NULL, node->out[0], NULL);
    attr_set_dims(g, range, "start", 1, &start);
    attr_set_dims(g, range, "limit", 1, &limit);
    attr_set_dims(g, range, "delta", 1, &one);
}

void expand_localtopk(struct graph *g, struct node *node)
{
    const struct split *s = target_split(g, node);
    struct value *x = node->in[0];
    int64_t axis = op_axis(g, node, attr_int(node, "axis"), x->type.rank);
    struct node *best = graph_node(g, op_find("", "TopK"), node->name, 1, &x, 2);
    require(g->rank >= 0 && contiguous(s));
    attr_set_int(best, "axis", axis);
    attr_set_int(best, "largest", attr_int(node, "largest"));
    attr_set_dims(g, best, "k", 1, &node->out[0]->type.dim[axis]);
    struct value *local = graph_value(g, expand_name(g, node, "local"), &node->out[1]->type);
    local->placed = true;
    node_output(g, best, 0, node->out[0]);
    node_output(g, best, 1, local);
    graph_append(g, best);
    expand_binary(g, "Add", expand_name(g, node, "index"), local, rank_scalar(g, s, DT_I64, pattern_start), node->out[1]);
}
