/* expand: what a node becomes in a file. Ops that exist only inside turn into standard ops, the norms of one exporter into the standard
 * norm; then expand_operands gives every op its size operands back, made by dimtensor.c.
 *
 * Whatever is decided here is decided alike on every rank, from splits and from all ranks' types, never from one rank's extents:
 * rank files differ in constants, types and size attributes only. */
#include "op/op.h"
#include "op/table.h"

#include <string.h>

/* ---- making nodes --------------------------------------------------------------------------------------------------------- */

/* A node of one output, appended; typed, where type is given, before its inference runs. */
static struct node *append(struct graph *g, const char *op, const char *name, int nin, struct value *const *in, struct value *out,
                           const struct type *type)
{
    struct node *node = graph_node(g, op_find("", op), name, nin, in, 1);
    struct type untyped = {.dtype = DT_NONE};
    if (!out) {
        out = graph_value(g, name, type ? type : &untyped);
        out->placed = true;
    }
    node_output(g, node, 0, out);
    graph_append(g, node);
    return node;
}

static struct value *unary(struct graph *g, const char *op, const char *name, struct value *x, struct value *out)
{
    struct node *node = append(g, op, name, 1, &x, out, NULL);
    op_infer(g, node);
    return node->out[0];
}

static struct value *binary(struct graph *g, const char *op, const char *name, struct value *a, struct value *b, struct value *out)
{
    struct node *node = append(g, op, name, 2, (struct value *[]){a, b}, out, NULL);
    op_infer(g, node);
    return node->out[0];
}

static struct value *where(struct graph *g, const char *name, struct value *c, struct value *a, struct value *b, struct value *out)
{
    struct node *node = append(g, "Where", name, 3, (struct value *[]){c, a, b}, out, NULL);
    op_infer(g, node);
    return node->out[0];
}

/* Reshape and Expand: the output type says it all. */
static struct value *shaped(struct graph *g, const char *op, const char *name, struct value *x, struct value *out, const struct type *to)
{
    struct node *node = append(g, op, name, 1, &x, out, to);
    if (op_find("", op)->nin > 1)
        op_infer(g, node);
    return node->out[0];
}

static struct value *gather(struct graph *g, const char *name, struct value *x, struct value *index, int axis, struct value *out)
{
    struct node *node = append(g, "Gather", name, 2, (struct value *[]){x, index}, out, NULL);
    attr_set_int(node, "axis", axis);
    op_infer(g, node);
    return node->out[0];
}

static const char *named(struct graph *g, const struct node *node, const char *part)
{
    return arena_printf(g->arena, "%s/%s", node->name ? node->name : node->optype, part);
}

static struct value *scalar(struct graph *g, const char *name, enum dtype dtype, const void *bytes)
{
    struct value *v = graph_find(g, name);
    if (v && v->constant && v->type.rank == 0 && v->type.dtype == dtype
        && memcmp(constant_data(v->constant, name), bytes, dtype_size(dtype)) == 0)
        return v;
    v = graph_constant(g, name, dtype, 0, NULL, bytes);
    v->placed = true;
    return v;
}

static struct value *zero_of(struct graph *g, enum dtype dtype)
{
    void *bytes = arena_alloc(g->arena, sizeof(int64_t));
    return scalar(g, arena_printf(g->arena, "tpc/zero/%s", dtype_name(dtype)), dtype, bytes);
}

/* ---- Dims, Repeat, Term ------------------------------------------------------------------------------------------------------- */

void expand_dims(struct graph *g, struct node *node)
{
    const struct dim **dims;
    int n = attr_dims(node, "dims", &dims);
    bool as_scalar = attr_int(node, "scalar") != 0;
    require(!as_scalar || n == 1);
    struct value *v = dims_tensor_as(g, dims_tensor(g, n, dims), (enum dtype)attr_int(node, "to"), as_scalar);
    unary(g, "Identity", node->name, v, node->out[0]);
}

/* Each rank has its own index under one name. */
static void repeat_by_index(struct graph *g, struct node *node, int axis)
{
    const int64_t *index;
    int n = attr_ints(g, node, "index", &index);
    struct value *at = graph_ints(g, named(g, node, "index"), n, index);
    at->placed = true;
    gather(g, node->name, node->in[0], at, axis, node->out[0]);
}

/* [.., n, ..] -> [.., n, 1, ..] -> [.., n, repeats, ..] -> [.., n * repeats, ..] */
static void repeat_evenly(struct graph *g, struct node *node, int axis)
{
    struct type wide = node->in[0]->type;
    require(wide.rank < MAX_RANK);
    memmove(&wide.dim[axis + 2], &wide.dim[axis + 1], (size_t)(wide.rank - axis - 1) * sizeof wide.dim[0]);
    wide.rank++;
    wide.dim[axis + 1] = dim_int(g->alg, 1);
    struct value *v = shaped(g, "Reshape", named(g, node, "unsqueeze"), node->in[0], NULL, &wide);
    wide.dim[axis + 1] = dim_int(g->alg, attr_int(node, "repeats"));
    v = shaped(g, "Expand", named(g, node, "expand"), v, NULL, &wide);
    shaped(g, "Reshape", node->name, v, node->out[0], &node->out[0]->type);
}

void expand_repeat(struct graph *g, struct node *node)
{
    int axis = op_axis(g, node, attr_int(node, "axis"), node->in[0]->type.rank);
    if (attr_is_set(node, "index"))
        repeat_by_index(g, node, axis);
    else
        repeat_evenly(g, node, axis);
}

/* A whole value as a term of a sum: rank 0 keeps it, the others take zero. */
void expand_term(struct graph *g, struct node *node)
{
    uint8_t *first = NEW(g->arena, uint8_t);
    *first = g->rank <= 0;
    struct value *keep = scalar(g, "tpc/first", DT_BOOL, first);
    where(g, node->name, keep, node->in[0], zero_of(g, node->in[0]->type.dtype), node->out[0]);
}

/* ---- Shard: a local slice ----------------------------------------------------------------------------------------------------- */

static const struct split *target(struct graph *g, const struct node *node)
{
    const char *error;
    const struct split *s = split_parse(g->alg, attr_string(node, "to"), &error);
    require(s && g->rank < s->ranks);
    return s;
}

/* No rank holds more than one interval of a period: a slice will do. */
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

/* Pattern indices that a rank holds. */
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

static struct value *slice(struct graph *g, const char *name, struct value *x, int axis, const struct split *s, struct value *out)
{
    const struct dim *start = pattern_start(g, s, g->rank), *count = pattern_count(g, s, g->rank);
    require(count);
    const struct dim *end = dim_add(g->alg, start, count), *at = dim_int(g->alg, axis);
    struct node *node = append(g, "Slice", name, 1, &x, out, NULL);
    attr_set_dims(g, node, "starts", 1, &start);
    attr_set_dims(g, node, "ends", 1, &end);
    attr_set_dims(g, node, "axes", 1, &at);
    node->out[0]->type = x->type;
    node->out[0]->type.dim[axis] = count;
    return node->out[0];
}

static struct value *cut(struct graph *g, const struct node *node, const char *name, struct value *x, int axis, const struct split *s,
                         struct value *out)
{
    if (contiguous(s))
        return slice(g, name, x, axis, s, out);
    return gather(g, name, x, pattern_index(g, named(g, node, "index"), s, g->rank), axis, out);
}

/* Dimension axis seen as outer, pattern, inner (those that are not 1). */
static struct type opened(struct graph *g, const struct type *t, int axis, const struct split *s, int *at)
{
    struct type wide = {.dtype = t->dtype};
    const struct dim *const middle[] = {s->outer, s->balanced ? s->n : s->n, s->inner};
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
            fail("%s: a tensor of %d dimensions is too large to be cut here", g->path ? g->path : g->name, t->rank);
        wide.dim[wide.rank++] = t->dim[d];
    }
    return wide;
}

void expand_shard(struct graph *g, struct node *node)
{
    struct value *x = node->in[0], *y = node->out[0];
    int axis = op_axis(g, node, attr_int(node, "axis"), x->type.rank), at = axis;
    const struct split *s = target(g, node);
    if (dim_equals(s->outer, 1) && dim_equals(s->inner, 1)) {
        cut(g, node, node->name, x, axis, s, y);
        return;
    }
    struct type local = y->type, wide = opened(g, &x->type, axis, s, &at);
    struct value *v = shaped(g, "Reshape", named(g, node, "open"), x, NULL, &wide);
    v = cut(g, node, named(g, node, "cut"), v, at, s, NULL);
    shaped(g, "Reshape", node->name, v, y, &local);
}

/* ---- LocalIndex: global indices as indices of what the rank holds ------------------------------------------------------------- */

static struct value *rank_scalar(struct graph *g, const struct split *s, enum dtype dtype,
                                 const struct dim *(*of)(struct graph *, const struct split *, int))
{
    const struct dim **each = NEWN(g->arena, const struct dim *, s->ranks);
    const struct dim *const **row = NEWN(g->arena, const struct dim *const *, s->ranks);
    for (int r = 0; r < s->ranks; r++) {
        each[r] = of(g, s, r);
        row[r] = &each[r];
    }
    return dims_tensor_as(g, dims_tensor_of_rank(g, s->ranks, g->rank, 1, row), dtype, true);
}

static const struct dim *pattern_last(struct graph *g, const struct split *s, int rank)
{
    const struct dim *one = dim_int(g->alg, 1);
    return dim_max(g->alg, dim_sub(g->alg, pattern_count(g, s, rank), one), dim_int(g->alg, 0));
}

/* Indices below zero count from the end. */
static struct value *whole_size(struct graph *g, const struct node *node, enum dtype dtype)
{
    const struct dim **extent;
    require(attr_dims(node, "extent", &extent) == 1);
    return dims_tensor_as(g, dims_tensor(g, 1, extent), dtype, true);
}

static struct value *from_zero(struct graph *g, const struct node *node, enum dtype dtype)
{
    struct value *n = whole_size(g, node, dtype), *x = node->in[0];
    struct value *below = binary(g, "Less", named(g, node, "below"), x, zero_of(g, dtype), NULL);
    struct value *wrapped = binary(g, "Add", named(g, node, "wrapped"), x, n, NULL);
    return where(g, named(g, node, "index"), below, wrapped, x, NULL);
}

/* An index that no rank holds stays out of range on every rank, so that the lookup refuses it as the whole one would. */
static void index_in_range(struct graph *g, const struct node *node, const struct split *s, struct value *x)
{
    enum dtype dtype = x->type.dtype;
    struct value *zero = zero_of(g, dtype);
    struct value *at = binary(g, "Sub", named(g, node, "offset"), x, rank_scalar(g, s, dtype, pattern_start), NULL);
    struct value *low = binary(g, "GreaterOrEqual", named(g, node, "low"), at, zero, NULL);
    struct value *high = binary(g, "Less", named(g, node, "high"), at, rank_scalar(g, s, dtype, pattern_count), NULL);
    binary(g, "And", named(g, node, "inside"), low, high, node->nout > 1 ? node->out[1] : NULL);
    struct value *capped = binary(g, "Min", named(g, node, "capped"), at, rank_scalar(g, s, dtype, pattern_last), NULL);
    struct value *clamped = binary(g, "Max", named(g, node, "clamped"), capped, zero, NULL);
    struct value *from = binary(g, "GreaterOrEqual", named(g, node, "from"), x, zero, NULL);
    struct value *to = binary(g, "Less", named(g, node, "to"), x, whole_size(g, node, dtype), NULL);
    struct value *known = binary(g, "And", named(g, node, "known"), from, to, NULL);
    where(g, node->name, known, clamped, rank_scalar(g, s, dtype, pattern_count), node->out[0]);
}

/* The local position of every global index, -1 where the rank does not hold it. */
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
    struct value *v = graph_constant(g, named(g, node, "table"), DT_I64, 1, &n, at);
    v->placed = true;
    return v;
}

static void index_by_table(struct graph *g, const struct node *node, const struct split *s, struct value *x)
{
    enum dtype dtype = x->type.dtype;
    struct value *at = gather(g, named(g, node, "position"), position_table(g, node, s), x, 0, NULL);
    struct value *zero = zero_of(g, DT_I64);
    binary(g, "GreaterOrEqual", named(g, node, "inside"), at, zero, node->nout > 1 ? node->out[1] : NULL);
    struct value *local = binary(g, "Max", named(g, node, "local"), at, zero, NULL);
    struct node *cast = append(g, "Cast", node->name, 1, &local, node->out[0], NULL);
    attr_set_int(cast, "to", (int)dtype);
}

void expand_localindex(struct graph *g, struct node *node)
{
    const struct split *s = target(g, node);
    require(g->rank >= 0 && dim_equals(s->outer, 1) && dim_equals(s->inner, 1));
    struct value *x = from_zero(g, node, node->in[0]->type.dtype);
    if (contiguous(s))
        index_in_range(g, node, s, x);
    else
        index_by_table(g, node, s, x);
}

/* ---- norms of one exporter ------------------------------------------------------------------------------------------------------ */

static bool absent(const struct node *node, int output)
{
    return output >= node->nout || !node->out[output];
}

static void rms_norm(struct graph *g, const struct node *node, struct value *x, struct value *scale)
{
    struct node *norm = append(g, "RMSNormalization", node->name, 2, (struct value *[]){x, scale}, node->out[0], NULL);
    node_attr(norm, "epsilon")->f = attr_float(node, "epsilon");
    op_infer(g, norm);
}

void expand_simplified(struct graph *g, struct node *node)
{
    int rank = node->in[0]->type.rank;
    if (op_axis(g, node, attr_int(node, "axis"), rank) == rank - 1 && attr_int(node, "stash_type") == 1 && absent(node, 1))
        rms_norm(g, node, node->in[0], node->in[1]);
    else
        graph_append(g, node);
}

void expand_skipsimplified(struct graph *g, struct node *node)
{
    if (!absent(node, 1) || !absent(node, 2)) {
        graph_append(g, node);
        return;
    }
    struct value *sum = absent(node, 3) ? NULL : node->out[3], *bias = node->nin > 3 ? node->in[3] : NULL;
    struct value *x = binary(g, "Add", named(g, node, bias ? "skip" : "sum"), node->in[0], node->in[1], bias ? NULL : sum);
    if (bias)
        x = binary(g, "Add", named(g, node, "sum"), x, bias, sum);
    rms_norm(g, node, x, node->in[2]);
}

void expand_nodes(struct graph *g, unsigned but)
{
    struct node **old = g->nodes.at;
    int n = g->nodes.n;
    g->nodes.at = NULL;
    g->nodes.n = g->nodes.cap = 0;
    for (int i = 0; i < n; i++)
        if (old[i]->op && old[i]->op->expand && !(old[i]->op->flags & but))
            old[i]->op->expand(g, old[i]);
        else
            graph_append(g, old[i]);
    graph_sort(g);
}
