/* dequantize_pattern: a written-out quantised weight becomes one node: (Cast(q) - zero) * scale is DequantizeLinear(q, scale, zero), with
 * scale and zero per tensor or per index of one axis. Its products are then products of quantised weights. */
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

/* The range of a quantised type; false: it is not one. */
static bool quantized_range(enum dtype t, int64_t *lo, int64_t *hi)
{
    bool quantized = t == DT_I8 || t == DT_U8 || t == DT_I16 || t == DT_U16;
    if (quantized)
        dtype_range(t, lo, hi);
    return quantized;
}

/* The axis of x along which v has one element per index; -1: one for all. False: neither, or no constant. */
static bool axis_of(const struct value *v, const struct type *x, int *axis)
{
    *axis = -1;
    if (!v || !v->constant || v->type.rank > x->rank)
        return false;
    for (int d = 0; d < v->type.rank; d++) {
        int at = x->rank - v->type.rank + d;
        if (dim_equals(v->type.dim[d], 1))
            continue;
        if (*axis >= 0 || v->type.dim[d] != x->dim[at])
            return false;
        *axis = at;
    }
    return true;
}

/* The same elements in one dimension, or as a scalar. */
static struct value *flattened(struct graph *g, const struct value *v, bool scalar)
{
    struct constant *c = NEW(g->arena, struct constant);
    *c = *v->constant;
    c->rank = scalar ? 0 : 1;
    c->dim[0] = scalar ? 0 : constant_elements(v->constant);
    struct type type = {.dtype = c->dtype, .rank = c->rank};
    if (!scalar)
        type.dim[0] = dim_int(g->alg, c->dim[0]);
    struct value *flat = graph_value(g, v->name, &type);
    flat->constant = c;
    return flat;
}

/* Integer-valued floats as a quantised type; NULL: they are not. */
static struct value *as_quantized(struct graph *g, const struct value *v, enum dtype dtype)
{
    int64_t n = constant_elements(v->constant), bytes, lo, hi;
    if (!quantized_range(dtype, &lo, &hi) || !constant_present(v->constant) || !dtype_bytes(dtype, n, &bytes))
        return NULL;
    char *data = arena_alloc(g->arena, (size_t)bytes + 1);
    for (int64_t i = 0; i < n; i++) {
        double x = constant_float(v->constant, v->name, i);
        if (!(x >= (double)lo && x <= (double)hi) || x != floor(x))
            return NULL;
        int64_t k = (int64_t)x;
        memcpy(data + (size_t)i * dtype_size(dtype), &k, dtype_size(dtype));
    }
    return graph_constant(g, v->name, dtype, v->constant->rank, v->constant->dim, data);
}

/* The constant q of Cast(q), or of Cast(q) - zero. */
static struct value *cast_of(struct graph *g, const struct value *v, struct value **zero)
{
    int64_t lo, hi;
    const struct node *sub = op_made_by(v, "Sub"), *cast = op_made_by(sub ? sub->in[0] : v, "Cast");
    struct value *q = cast ? cast->in[0] : NULL;
    *zero = NULL;
    if (!q || !q->constant || !quantized_range(q->type.dtype, &lo, &hi))
        return NULL;
    if (sub && (!sub->in[1]->constant || !(*zero = as_quantized(g, sub->in[1], q->type.dtype))))
        return NULL;
    return q;
}

static bool dequantized(struct rewrite *w, const struct node *root, const struct value *scale, const struct value *v)
{
    int axis, zero_axis = -1;
    struct value *zero, *q = cast_of(w->g, v, &zero);
    if (!q || !dtype_is_float(scale->type.dtype) || !axis_of(scale, &q->type, &axis) || (zero && !axis_of(zero, &q->type, &zero_axis)))
        return false;
    if (zero && zero_axis != axis)
        return false;
    struct value *in[3] = {q, flattened(w->g, scale, axis < 0), zero ? flattened(w->g, zero, axis < 0) : NULL};
    struct node *node = rewrite_node(w, "", "DequantizeLinear", root, zero ? 3 : 2, in);
    attr_set_int(node, "axis", axis < 0 ? 0 : axis);
    node_output(w->g, node, 0, root->out[0]);
    return true;
}

bool canon_find_dequantize(struct rewrite *w, struct node *node)
{
    if (!op_is_onnx(node, "Mul"))
        return false;
    return dequantized(w, node, node->in[0], node->in[1]) || dequantized(w, node, node->in[1], node->in[0]);
}
