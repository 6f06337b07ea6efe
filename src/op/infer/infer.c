/* infer: shared by the inference of all families: operands, equal dimensions, broadcasting, shape information.
 *
 * Inference is symbolic. Two dimensions that must agree and are not the same expression become an equation (docs/architecture.md);
 * it is checked against the real inputs at every run. Only a contradiction, such as 4 = 5, is an error here. */
#include "op/infer/infer.h"

#include <math.h>
#include <string.h>

static const char *operand_name(const struct node *node, int i)
{
    if (!node->op || !node->op->nin)
        return "operand";
    int last = node->op->nin - 1;
    return node->op->in[i < last ? i : last].name;
}

/* The node without a row that leaves a value untyped. It may be far up: types end there. */
static const struct node *origin_of_untyped(const struct value *v)
{
    const struct node *n = v->producer;
    for (int i = 0; n && i < n->nin; i++)
        if (n->in[i] && n->in[i]->type.dtype == DT_NONE && n->in[i]->producer) {
            n = n->in[i]->producer;
            i = -1;
        }
    return n && !n->op ? n : NULL;
}

const char *op_why_untyped(struct arena *a, const struct value *v)
{
    const struct node *n = origin_of_untyped(v);
    return n ? arena_printf(a, ": tpc does not know the op %s%s%s of node '%s'", n->domain, *n->domain ? "." : "", n->optype, n->name) : "";
}

const struct type *op_operand(const struct graph *g, const struct node *node, int i)
{
    if (i >= node->nin || !node->in[i])
        fail("%s: operand %d (%s) is missing", node_where(g, node), i, operand_name(node, i));
    if (node->in[i]->type.dtype == DT_NONE)
        fail("%s: the type of operand %d (%s, '%s') is not known%s", node_where(g, node), i, operand_name(node, i), node->in[i]->name,
             op_why_untyped(g->arena, node->in[i]));
    return &node->in[i]->type;
}

void op_result(struct graph *g, struct node *node, int i, enum dtype dtype, int rank, const struct dim *const *dim)
{
    if (rank > MAX_RANK)
        fail("%s: the result has %d dimensions, at most %d are handled", node_where(g, node), rank, MAX_RANK);
    if (i >= node->nout || !node->out[i])
        return;
    struct type type = {.dtype = dtype, .rank = rank};
    int64_t size;
    for (int d = 0; d < rank; d++) {
        type.dim[d] = dim_rewrite(g->alg, dim[d]);
        if (dim_is_int(type.dim[d], &size) && size < 0)
            fail("%s: size %d of the result is %lld", node_where(g, node), d, (long long)size);
    }
    node->out[i]->type = type;
}

void op_same_dtype(const struct graph *g, const struct node *node, int a, int b)
{
    const struct type *x = op_operand(g, node, a), *y = op_operand(g, node, b);
    if (x->dtype != y->dtype)
        fail("%s: operands '%s' and '%s' must have one element type but have %s and %s", node_where(g, node), node->in[a]->name,
             node->in[b]->name, dtype_name(x->dtype), dtype_name(y->dtype));
}

static const char *dimensions_text(struct arena *a, int least, int most)
{
    if (most == MAX_RANK)
        return arena_printf(a, "%d dimensions or more", least);
    return least < most ? arena_printf(a, "%d to %d dimensions", least, most)
                        : arena_printf(a, "%d dimension%s", most, most == 1 ? "" : "s");
}

void op_need_rank(const struct graph *g, const struct node *node, int i, int least, int most)
{
    const struct type *t = op_operand(g, node, i);
    if (t->rank < least || t->rank > most)
        fail("%s: operand '%s' must have %s but is %s", node_where(g, node), node->in[i]->name, dimensions_text(g->arena, least, most),
             type_str(g->arena, t));
}

void op_index_type(const struct graph *g, const struct node *node, int i)
{
    enum dtype dtype = op_operand(g, node, i)->dtype;
    if (dtype != DT_I64 && dtype != DT_I32)
        fail("%s: the indices '%s' are %s, expected i32 or i64", node_where(g, node), node->in[i]->name, dtype_name(dtype));
}

/* ---- dimensions that must agree ------------------------------------------------------------------------------------- */

/* "A f32[B, 4], B f32[5]" of all typed operands, for messages. */
static const char *operand_types(const struct graph *g, const struct node *node)
{
    const char *text = "";
    for (int i = 0; i < node->nin; i++)
        if (node->in[i])
            text = arena_printf(g->arena, "%s%s'%s' %s", text, *text ? ", " : "", node->in[i]->name,
                                type_str(g->arena, &node->in[i]->type));
    return text;
}

const struct dim *op_same_dim(struct graph *g, const struct node *node, const struct dim *a, const struct dim *b, const char *what)
{
    a = dim_rewrite(g->alg, a);
    b = dim_rewrite(g->alg, b);
    if (a == b)
        return a;
    const char *why = arena_printf(g->arena, "%s of node '%s' (%s)", what, node->name ? node->name : "", node->optype);
    if (alg_equate(g->alg, a, b, why) == EQ_FALSE)
        fail("%s: %s must agree but are %s and %s (operands %s)", node_where(g, node), what, dim_str(g->arena, a), dim_str(g->arena, b),
             operand_types(g, node));
    return dim_rewrite(g->alg, a);
}

bool op_assume_ge(struct graph *g, const struct node *node, const struct dim *a, const struct dim *b, const char *what)
{
    return alg_assume_ge(g->alg, a, b, arena_printf(g->arena, "%s of node '%s' (%s)", what, node->name ? node->name : "", node->optype));
}

/* A data-dependent size may be 1, and yields to a size that is not data-dependent. NULL: neither clearly yields. */
static const struct dim *stronger_size(const struct dim *a, const struct dim *b)
{
    bool data_a = dim_has_data(a), data_b = dim_has_data(b);
    const struct dim *known = data_a && !data_b ? b : data_b && !data_a ? a : NULL;
    return known && (known->lo > 1 || dim_equals(known, 0)) ? known : NULL;
}

/* The size; 1 if it is at most 1 and usually 1, as min(n, 1), assuming that it is. */
static const struct dim *settled_one(struct graph *g, const struct node *node, const struct dim *size, const char *what)
{
    const struct dim *one = dim_int(g->alg, 1);
    size = dim_rewrite(g->alg, size);
    return size->hi == 1 && op_assume_ge(g, node, size, one, what) ? one : size;
}

const struct dim *op_broadcast_dim(struct graph *g, const struct node *node, const struct dim *a, const struct dim *b, const char *what)
{
    a = dim_rewrite(g->alg, a);
    b = dim_rewrite(g->alg, b);
    for (int settled = 0; settled < 2 && a != b; settled++) {
        if (dim_equals(a, 1))
            return b;
        if (dim_equals(b, 1))
            return a;
        a = settled_one(g, node, a, what);
        b = settled_one(g, node, b, what);
    }
    const struct dim *stronger = stronger_size(a, b);
    return stronger ? stronger : op_same_dim(g, node, a, b, what);
}

static bool only_data_tells(struct graph *g, const struct node *node, const struct dim *a, const struct dim *b)
{
    a = dim_rewrite(g->alg, a);
    b = dim_rewrite(g->alg, b);
    if (a == b || dim_equals(a, 1) || dim_equals(b, 1) || (!dim_has_data(a) && !dim_has_data(b)))
        return false;
    a = settled_one(g, node, a, "broadcast dimensions");
    b = settled_one(g, node, b, "broadcast dimensions");
    return !dim_equals(a, 1) && !dim_equals(b, 1) && !stronger_size(a, b);
}

/* Broadcasts type t into out, which has at least t's rank and starts as ones. */
static void broadcast_into(struct graph *g, const struct node *node, const struct type *t, struct type *out)
{
    for (int d = 0; d < t->rank; d++) {
        int at = out->rank - t->rank + d;
        if (only_data_tells(g, node, out->dim[at], t->dim[d]))
            out->dim[at] = op_unknown_dim(g, node, 0, at);
        else
            out->dim[at] = op_broadcast_dim(g, node, out->dim[at], t->dim[d], "broadcast dimensions");
    }
}

struct type op_broadcast(struct graph *g, const struct node *node, int n, const struct type *const *type)
{
    struct type out = {.dtype = n > 0 ? type[0]->dtype : DT_NONE};
    for (int i = 0; i < n; i++)
        if (type[i]->rank > out.rank)
            out.rank = type[i]->rank;
    for (int d = 0; d < out.rank; d++)
        out.dim[d] = dim_int(g->alg, 1);
    for (int i = 0; i < n; i++)
        broadcast_into(g, node, type[i], &out);
    return out;
}

int op_axis(const struct graph *g, const struct node *node, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        fail("%s: axis %lld is out of range for %d dimensions", node_where(g, node), (long long)axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

void op_distinct_axes(const struct graph *g, const struct node *node, int n, const int *axis, const char *done)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (axis[k] == axis[i])
                fail("%s: axis %d is %s twice", node_where(g, node), axis[i], done);
}

/* ---- shape information ------------------------------------------------------------------------------------------------ */

bool op_carries_dims(enum dtype dtype)
{
    return dtype == DT_I64 || dtype == DT_I32 || dtype == DT_BOOL;
}

const struct dims_value *op_dims(struct graph *g, struct value *value)
{
    if (!value || value->type.rank > 1)
        return NULL;
    if (value->dims || !value->constant)
        return value->dims;
    struct constant *c = value->constant;
    int64_t n = constant_elements(c);
    if (!op_carries_dims(c->dtype) || c->rank > 1 || n > MOST_ENTRIES)
        return NULL;
    struct dims_value *dims = NEW(g->arena, struct dims_value);
    dims->n = (int)n;
    dims->at = NEWN(g->arena, const struct dim *, n);
    for (int i = 0; i < dims->n; i++)
        dims->at[i] = dim_int(g->alg, constant_int(c, value->name, i));
    value->dims = dims;
    return dims;
}

bool op_constant_number(const struct value *v, double *out)
{
    if (!v || !v->constant || !constant_present(v->constant) || constant_elements(v->constant) != 1)
        return false;
    *out = constant_float(v->constant, v->name, 0);
    return true;
}

bool op_constant_real(const struct value *v, double *out)
{
    return v && v->constant && dtype_is_float(v->constant->dtype) && op_constant_number(v, out);
}

bool op_whole_constant(const struct value *v, int64_t *out)
{
    double number;
    if (!op_constant_number(v, &number) || number != floor(number) || !(fabs(number) < OP_LARGEST_WHOLE))
        return false;
    *out = (int64_t)number;
    return true;
}

const struct dims_value *op_entries(struct graph *g, struct value *value)
{
    return value && value->type.rank == 2 ? value->dims : op_dims(g, value);
}

const struct dim **op_set_dims(struct graph *g, struct node *node, int n)
{
    struct dims_value *dims = NEW(g->arena, struct dims_value);
    dims->n = n;
    dims->at = NEWN(g->arena, const struct dim *, n);
    node->out[0]->dims = dims;
    return dims->at;
}

int op_size_operand(struct graph *g, const struct node *node, int i, const char *attr, const struct dim *const **out)
{
    if (node_operand(node, i)) {
        const struct dims_value *dims = op_dims(g, node->in[i]);
        if (!dims)
            return -1;
        *out = dims->at;
        return dims->n;
    }
    if (!attr || !attr_is_set(node, attr))
        return -2;
    const struct dim **at;
    int n = attr_dims(node, attr, &at);
    *out = at;
    return n;
}

int op_axes_count(struct graph *g, const struct node *node, int i)
{
    const struct type *t = op_operand(g, node, i);
    int64_t n = 1;
    if (t->rank > 1 || (t->rank == 1 && !dim_is_int(t->dim[0], &n)) || n > MAX_RANK)
        fail("%s: the number of axes in '%s' does not follow from its type %s; if it is an input, --bind sets it", node_where(g, node),
             node->in[i]->name, type_str(g->arena, t));
    return (int)n;
}

void op_unknown_result(struct graph *g, struct node *node, int i, enum dtype dtype, int rank)
{
    const struct dim *dim[MAX_RANK];
    if (rank < 0)
        fail("%s: has more axes than '%s' has dimensions", node_where(g, node), node->in[0]->name);
    for (int d = 0; d < rank && d < MAX_RANK; d++)
        dim[d] = op_unknown_dim(g, node, i, d);
    op_result(g, node, i, dtype, rank, dim);
}

/* ---- elements of constants -------------------------------------------------------------------------------------------- */

static bool floats_within(const uint8_t *at, int64_t n, float lo, float hi)
{
    bool within = true;
    for (int64_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, at + (size_t)i * sizeof x, sizeof x);
        within &= fabsf(x) > lo && fabsf(x) < hi;
    }
    return within;
}

bool op_constant_within(struct constant *c, const char *name, double lo, double hi, bool absent)
{
    if (!constant_present(c))
        return absent;
    int64_t n = constant_elements(c);
    bool within = c->dtype != DT_F32 || floats_within(constant_data(c, name), n, (float)lo, (float)hi);
    for (int64_t i = 0; c->dtype != DT_F32 && within && i < n; i++)
        within = fabs(constant_float(c, name, i)) > lo && fabs(constant_float(c, name, i)) < hi;
    constant_release(c);
    return within;
}
