/* shape_tensor: dimension expressions as int64 tensors, from types back to data at emit.
 *
 * An expression becomes nodes over Shape of graph inputs, one per distinct expression and graph: an existing value whose shape information
 * is that expression is reused. A symbol is read from a graph input's dimension that is exactly this symbol; else solved from a dimension
 * in which it is linear, or from the sum of the ranks' parts of one; else (data-dependent sizes) read from the first result that has it.
 *
 * Rank graphs keep the same nodes: an entry that is an integer on every rank is a constant; one that is the same expression
 * everywhere is that expression; otherwise every rank computes all ranks' expressions and picks its own by a constant. */
#include "op/emit/emit.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#define LONGEST_NAME 96

static struct value *make_expression(struct graph *g, const char *domain, const char *op, const char *name, int nin,
                                     struct value *const *in)
{
    struct node *node = graph_node(g, op_find(domain, op), name, nin, in, 1);
    struct value *out = graph_value(g, name, NULL);
    node_output(g, node, 0, out);
    graph_append(g, node);
    return out;
}

static struct value *infer(struct graph *g, struct value *v)
{
    op_infer(g, v->producer);
    v->placed = true;
    v->place = placement_replicated;
    return v;
}

static struct value *make_binary(struct graph *g, const char *op, const char *name, struct value *a, struct value *b)
{
    return infer(g, make_expression(g, "", op, name, 2, (struct value *[]){a, b}));
}

/* Stores the expression with the value: inference may know it in another form. */
static struct value *remember(struct graph *g, struct value *v, const struct dim *e)
{
    op_set_dims(g, v->producer, 1)[0] = e;
    return v;
}

static const char *dim_name(struct graph *g, const struct dim *e)
{
    char *text = dim_str(g->arena, e);
    if (strlen(text) > LONGEST_NAME)
        text = arena_printf(g->arena, "%016" PRIx64, (uint64_t)XXH3_64bits(text, strlen(text)));
    return arena_printf(g->arena, "tpc/dim/%s", text);
}

static bool keeps_entry(const struct value *v, int n, const struct dim *const *e)
{
    if (!v || !v->dims || v->dims->n != n || v->type.dtype != DT_I64 || v->type.rank != 1)
        return false;
    return n == 0 || memcmp(v->dims->at, e, (size_t)n * sizeof *e) == 0;
}

static struct value *constant_ints(struct graph *g, const char *name, int n, const struct dim *const *e)
{
    int64_t *at = NEWN(g->arena, int64_t, n);
    for (int i = 0; i < n; i++)
        require(dim_is_int(e[i], &at[i]));
    struct value *v = graph_find(g, name);
    if (v && v->constant && keeps_entry(v, n, e))
        return v;
    v = graph_ints(g, name, n, at);
    v->placed = true;
    v->dims = NEW(g->arena, struct dims_value);
    v->dims->n = n;
    v->dims->at = NEWN(g->arena, const struct dim *, n);
    if (n > 0)
        memcpy(v->dims->at, e, (size_t)n * sizeof *e);
    return v;
}

/* ---- where a symbol is read -------------------------------------------------------------------------------------------- */

static struct value *shape_entry(struct graph *g, struct value *of, int d)
{
    const char *name = arena_printf(g->arena, "tpc/shape/%s/%d", of->name, d);
    struct value *v = graph_find(g, name);
    if (v && keeps_entry(v, 1, &of->type.dim[d]))
        return v;
    v = make_expression(g, "", "Shape", name, 1, &of);
    attr_set_int(v->producer, "start", d);
    attr_set_int(v->producer, "end", d + 1);
    return remember(g, infer(g, v), of->type.dim[d]);
}

static int dim_at(const struct value *v, const struct dim *e)
{
    for (int d = 0; d < v->type.rank; d++)
        if (v->type.dim[d] == e)
            return d;
    return -1;
}

/* Whether a rank only has a shard of it, so that ranks read different sizes. */
static bool is_part(const struct value *v, int d)
{
    return v->place.kind == PLACE_S && v->place.dim == d;
}

static struct value *plain_input(struct graph *g, const struct dim *symbol, int *d)
{
    for (int i = 0; i < g->inputs.n; i++)
        for (*d = 0; *d < g->inputs.at[i]->type.rank; ++*d)
            if (g->inputs.at[i]->type.dim[*d] == symbol && !is_part(g->inputs.at[i], *d))
                return g->inputs.at[i];
    return NULL;
}

/* The k of a term k * symbol of e; 0: none. */
static int64_t coefficient(const struct dim *e, const struct dim *symbol)
{
    if (e == symbol)
        return 1;
    if (e->kind == DIM_MUL && e->n == 2 && e->arg[0]->kind == DIM_INT && e->arg[1] == symbol)
        return e->arg[0]->k;
    for (int i = 0; e->kind == DIM_ADD && i < e->n; i++) {
        int64_t k = coefficient(e->arg[i], symbol);
        if (k != 0)
            return k;
    }
    return 0;
}

static bool all_plain(struct graph *g, const struct dim *e)
{
    int d;
    if (e->kind == DIM_SYM)
        return plain_input(g, e, &d) != NULL;
    for (int i = 0; i < e->n; i++)
        if (!all_plain(g, e->arg[i]))
            return false;
    return true;
}

static struct value *dim_value(struct graph *, const struct dim *);

/* The rest of e = k * symbol + rest, which other inputs determine; NULL: e has another form. */
static const struct dim *rest_of(struct graph *g, const struct dim *e, const struct dim *symbol, int64_t *k)
{
    *k = coefficient(e, symbol);
    if (*k == 0)
        return NULL;
    const struct dim *rest = dim_sub(g->alg, e, dim_mul(g->alg, dim_int(g->alg, *k), symbol));
    return dim_uses(rest, symbol->name) || !all_plain(g, rest) ? NULL : rest;
}

/* symbol = (v - rest) / k. */
static struct value *solved(struct graph *g, const struct dim *symbol, struct value *v, int64_t k, const struct dim *rest)
{
    if (!dim_equals(rest, 0))
        v = make_binary(g, "Sub", arena_printf(g->arena, "tpc/part/%s", symbol->name), v, dim_value(g, rest));
    if (k != 1)
        v = make_binary(g, "Div", arena_printf(g->arena, "tpc/solved/%s", symbol->name), v, dim_value(g, dim_int(g->alg, k)));
    return v->producer ? remember(g, v, symbol) : v;
}

/* The global size of a sharded dimension, as the sum of the shards' sizes. tpc-run, which gets the global value, drops the collective. */
static struct value *summed_entry(struct graph *g, struct value *of, const struct dim *size)
{
    const char *name = arena_printf(g->arena, "tpc/sum/%s/%d", of->name, of->place.dim);
    struct value *part = shape_entry(g, of, of->place.dim), *v = graph_find(g, name);
    if (v && keeps_entry(v, 1, &size))
        return v;
    v = make_expression(g, "tpc", "AllReduce", name, 1, &part);
    attr_set_string(v->producer, "extent_of", split_str(g->arena, of->place.split));
    return remember(g, infer(g, v), size);
}

/* parts: from the shards of all ranks; else from a dimension that is not split. */
static struct value *solved_entry(struct graph *g, const struct dim *symbol, struct value *v, int d, bool parts)
{
    int64_t k;
    if (parts != is_part(v, d) || (parts && !v->place.split->partition))
        return NULL;
    const struct dim *size = parts ? split_size(g->alg, v->place.split) : v->type.dim[d], *rest = rest_of(g, size, symbol, &k);
    return rest ? solved(g, symbol, parts ? summed_entry(g, v, size) : shape_entry(g, v, d), k, rest) : NULL;
}

static struct value *solved_input(struct graph *g, const struct dim *symbol, bool parts)
{
    struct value *v = NULL;
    for (int i = 0; !v && i < g->inputs.n; i++)
        for (int d = 0; !v && d < g->inputs.at[i]->type.rank; d++)
            v = solved_entry(g, symbol, g->inputs.at[i], d, parts);
    return v;
}

/* A value made from an input's shards would itself need the global size. */
static void refuse_parts(const struct graph *g, const struct dim *symbol)
{
    for (int i = 0; i < g->inputs.n; i++) {
        const struct value *v = g->inputs.at[i];
        if (v->place.kind == PLACE_S && dim_uses(split_size(g->alg, v->place.split), symbol->name))
            fail("%s: input '%s' is placed %s, and nothing tells the ranks how large '%s' is", graph_file(g), v->name,
                 placement_str(g->arena, v->place), symbol->name);
    }
}

/* Nodes are in topological order up to the one that needs the symbol: the first result with the symbol depends on no later result. */
static struct value *first_result(const struct graph *g, const struct dim *symbol, int *d)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k] && (*d = dim_at(n->out[k], symbol)) >= 0 && !is_part(n->out[k], *d))
                return n->out[k];
    }
    return NULL;
}

static struct value *symbol_value(struct graph *g, const struct dim *symbol)
{
    int d;
    struct value *input = plain_input(g, symbol, &d);
    if (input)
        return shape_entry(g, input, d);
    struct value *v = solved_input(g, symbol, false);
    if (!v)
        v = solved_input(g, symbol, true);
    if (v)
        return v;
    refuse_parts(g, symbol);
    v = first_result(g, symbol, &d);
    if (v)
        return shape_entry(g, v, d);
    fail("%s: dimension '%s' cannot be computed from the shapes of the graph's inputs", graph_file(g), symbol->name);
}

/* ---- expressions ----------------------------------------------------------------------------------------------------------- */

static struct value *fold_binary(struct graph *g, const char *op, const struct dim *e)
{
    struct value *v = dim_value(g, e->arg[0]);
    for (int i = 1; i < e->n; i++)
        v = make_binary(g, op, i + 1 < e->n ? arena_printf(g->arena, "%s/%d", dim_name(g, e), i) : dim_name(g, e), v,
                        dim_value(g, e->arg[i]));
    return v;
}

/* ONNX divides integers towards zero: below zero, subtracts the remainder first. */
static struct value *floor_division(struct graph *g, const struct dim *e)
{
    struct value *a = dim_value(g, e->arg[0]), *b = dim_value(g, e->arg[1]);
    if (e->arg[0]->lo < 0 || e->arg[1]->lo < 0) {
        struct value *mod = make_binary(g, "Mod", arena_printf(g->arena, "%s/mod", dim_name(g, e)), a, b);
        a = make_binary(g, "Sub", arena_printf(g->arena, "%s/sub", dim_name(g, e)), a, mod);
    }
    return make_binary(g, "Div", dim_name(g, e), a, b);
}

static struct value *build(struct graph *g, const struct dim *e)
{
    switch (e->kind) {
    case DIM_INT: return constant_ints(g, arena_printf(g->arena, "tpc/int/%" PRId64, e->k), 1, &e);
    case DIM_SYM: return symbol_value(g, e);
    case DIM_ADD: return fold_binary(g, "Add", e);
    case DIM_MUL: return fold_binary(g, "Mul", e);
    case DIM_DIV: return floor_division(g, e);
    case DIM_MOD: return fold_binary(g, "Mod", e);
    case DIM_MIN: return fold_binary(g, "Min", e);
    case DIM_MAX: return fold_binary(g, "Max", e);
    }
    bug("dimension expression of kind %d", (int)e->kind);
}

/* The expression as i64[1]. */
static struct value *dim_value(struct graph *g, const struct dim *e)
{
    struct value *v = graph_find(g, dim_name(g, e));
    if (keeps_entry(v, 1, &e))
        return v;
    v = build(g, e);
    return v->producer ? remember(g, v, e) : v;
}

/* ---- one rank's of several --------------------------------------------------------------------------------------------------- */

struct row {
    int ranks, rank, n;
    const struct dim *const *const *dims;
}; /* dims[rank][entry] */

static bool is_static(const struct row *row, int i)
{
    for (int r = 0; r < row->ranks; r++)
        if (!dim_is_int(row->dims[r][i], NULL))
            return false;
    return true;
}

static bool entry_uniform(const struct row *row, int i)
{
    for (int r = 1; r < row->ranks; r++)
        if (row->dims[r][i] != row->dims[0][i])
            return false;
    return true;
}

/* A name that is the same on every rank: the entries, or a digest of all ranks' entries. */
static const char *row_name(struct graph *g, const struct row *row, const char *prefix, int lo, int hi)
{
    const char *text = "";
    bool uniform = true;
    for (int i = lo; i < hi; i++) {
        text = arena_printf(g->arena, "%s%s%s", text, i > lo ? "," : "", dim_str(g->arena, row->dims[0][i]));
        uniform = uniform && entry_uniform(row, i);
    }
    if (uniform && strlen(text) <= LONGEST_NAME)
        return arena_printf(g->arena, "%s[%s]", prefix, text);
    for (int r = 1; r < row->ranks; r++)
        for (int i = lo; i < hi; i++)
            text = arena_printf(g->arena, "%s%s%s", text, i > lo ? "," : "|", dim_str(g->arena, row->dims[r][i]));
    return arena_printf(g->arena, "%s%016" PRIx64, prefix, (uint64_t)XXH3_64bits(text, strlen(text)));
}

static struct value *pick(struct graph *g, const struct row *row, int i)
{
    const struct dim *own = row->dims[row->rank][i];
    const char *name = row_name(g, row, "tpc/pick/", i, i + 1);
    struct value *v = graph_find(g, name);
    if (keeps_entry(v, 1, &own))
        return v;
    struct value **each = NEWN(g->arena, struct value *, row->ranks);
    for (int r = 0; r < row->ranks; r++)
        each[r] = dim_value(g, row->dims[r][i]);
    struct value *all = make_expression(g, "", "Concat", arena_printf(g->arena, "%s/all", name), row->ranks, each);
    attr_set_int(all->producer, "axis", 0);
    const struct dim *rank = dim_int(g->alg, row->rank);
    struct value *index = constant_ints(g, "tpc/rank", 1, &rank);
    return remember(g, make_binary(g, "Gather", name, infer(g, all), index), own);
}

/* The end of the entries from lo on that can be one piece: integers, or one expression. */
static int piece_end(const struct row *row, int lo)
{
    int hi = lo;
    while (hi < row->n && is_static(row, hi))
        hi++;
    return hi > lo ? hi : lo + 1;
}

static struct value *piece(struct graph *g, const struct row *row, int lo, int hi)
{
    if (hi == lo || is_static(row, lo))
        return constant_ints(g, row_name(g, row, "tpc/ints/", lo, hi), hi - lo, row->dims[row->rank] + lo);
    return entry_uniform(row, lo) ? dim_value(g, row->dims[0][lo]) : pick(g, row, lo);
}

static struct value *joined(struct graph *g, const struct row *row, int n, struct value *const *pieces)
{
    const char *name = row_name(g, row, "tpc/dims/", 0, row->n);
    struct value *v = graph_find(g, name);
    if (keeps_entry(v, row->n, row->dims[row->rank]))
        return v;
    v = make_expression(g, "", "Concat", name, n, pieces);
    attr_set_int(v->producer, "axis", 0);
    infer(g, v);
    memcpy(op_set_dims(g, v->producer, row->n), row->dims[row->rank], (size_t)row->n * sizeof *row->dims[0]);
    return v;
}

struct value *shape_tensor_of_rank(struct graph *g, int ranks, int rank, int n, const struct dim *const *const *dims)
{
    const struct row row = {ranks, rank, n, dims};
    VEC(struct value *) pieces = {NULL, 0, 0};
    if (n == 0)
        return piece(g, &row, 0, 0);
    for (int lo = 0, hi; lo < n; lo = hi) {
        hi = piece_end(&row, lo);
        VEC_PUSH(g->arena, &pieces, piece(g, &row, lo, hi));
    }
    return pieces.n == 1 ? pieces.at[0] : joined(g, &row, pieces.n, pieces.at);
}

struct value *shape_tensor(struct graph *g, int n, const struct dim *const *dims)
{
    return shape_tensor_of_rank(g, 1, 0, n, &dims);
}

/* ---- other forms -------------------------------------------------------------------------------------------------------------- */

static struct value *cast_to(struct graph *g, struct value *v, enum dtype dtype)
{
    const char *name = arena_printf(g->arena, "%s/%s", v->name, dtype_name(dtype));
    struct value *cast = graph_find(g, name);
    if (cast && cast->type.dtype == dtype && cast->producer && cast->producer->nin == 1 && cast->producer->in[0] == v)
        return cast;
    cast = make_expression(g, "", "Cast", name, 1, &v);
    attr_set_int(cast->producer, "to", (int)dtype);
    return infer(g, cast);
}

static struct value *scalar_constant(struct graph *g, const struct value *v)
{
    int64_t k = constant_int(v->constant, v->name, 0);
    const char *name = arena_printf(g->arena, "%s/scalar", v->name);
    struct value *s = graph_find(g, name);
    if (s && s->constant && s->type.rank == 0 && s->type.dtype == DT_I64 && constant_int(s->constant, name, 0) == k)
        return s;
    int64_t *at = NEW(g->arena, int64_t);
    *at = k;
    s = graph_constant(g, name, DT_I64, 0, NULL, at);
    s->placed = true;
    return s;
}

static struct value *to_scalar(struct graph *g, struct value *v)
{
    if (v->constant)
        return scalar_constant(g, v);
    const char *name = arena_printf(g->arena, "%s/scalar", v->name);
    struct value *s = graph_find(g, name);
    if (s && s->type.rank == 0 && s->producer && node_operand(s->producer, 0) == v)
        return s;
    const struct dim *zero = dim_int(g->alg, 0);
    return make_binary(g, "Squeeze", name, v, constant_ints(g, "tpc/int/0", 1, &zero));
}

struct value *shape_tensor_as(struct graph *g, struct value *v, enum dtype dtype, bool scalar)
{
    if (scalar)
        v = to_scalar(g, v);
    return dtype == DT_I64 ? v : cast_to(g, v, dtype);
}
