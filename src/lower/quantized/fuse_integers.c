/* Products of integers give real numbers at once, as IntegerMatMul. Integers are exact, so at most the order of scaling changes.
 *
 *     Mul(Cast(MatMulInteger(a, b)), s)                   the same numbers
 *     Add(IntegerMatMul(...), bias), one for each column  the same numbers
 *     QuantMatMul(DequantizeLinear(a), b), one scale      the scales are multiplied first; the sum is exact, not one of real numbers
 *     for all of a, one for all or each column of b
 */
#include "lower/lower.h"
#include "op/op.h"

#include <string.h>

enum { SCALE = 4, BIAS, OPERANDS };

struct integer_search {
    struct graph *g;
    const struct uses *uses;
    int nvalues;
};

/* The one node that reads v is before us. */
static bool read_once(const struct integer_search *s, const struct value *v)
{
    return graph_reads_once(s->uses, s->nvalues, v);
}

static bool is_f32(const struct value *v)
{
    return v->type.dtype == DT_F32;
}

/* One number, or one for each of n columns. */
static bool scales_columns(const struct value *v, const struct dim *n, int rank)
{
    const struct type *t = &v->type;
    for (int d = 0; d + 1 < t->rank; d++)
        if (!dim_equals(t->dim[d], 1))
            return false;
    return is_f32(v) && t->rank <= rank && (t->rank == 0 || dim_equals(t->dim[t->rank - 1], 1) || t->dim[t->rank - 1] == n);
}

static struct node *product_node(const struct integer_search *s, const struct node *n, struct value *const *in, bool transposed)
{
    struct node *made = graph_node(s->g, op_find("tpc", "IntegerMatMul"), n->name, in[BIAS] ? OPERANDS : BIAS, in, 1);
    attr_set_int(made, "transposed", transposed);
    node_output(s->g, made, 0, n->out[0]);
    return made;
}

static struct node *scaled_integers(const struct integer_search *s, const struct node *n)
{
    for (int side = 0; side < 2 && op_is_onnx(n, "Mul"); side++) {
        struct node *cast = op_made_by(n->in[side], "Cast"), *product = cast ? op_made_by(cast->in[0], "MatMulInteger") : NULL;
        struct value *scale = n->in[1 - side], *in[OPERANDS] = {0};
        if (!product || !read_once(s, cast->out[0]) || !read_once(s, product->out[0]))
            continue;
        const struct type *y = &product->out[0]->type;
        if (!scales_columns(scale, y->dim[y->rank - 1], y->rank))
            continue;
        memcpy(in, product->in, (size_t)product->nin * sizeof *in);
        in[SCALE] = scale;
        return product_node(s, n, in, false);
    }
    return NULL;
}

static struct node *biased_integers(const struct integer_search *s, const struct node *n)
{
    for (int side = 0; side < 2 && op_is_onnx(n, "Add"); side++) {
        struct node *product = n->in[side]->producer;
        struct value *bias = n->in[1 - side], *in[OPERANDS] = {0};
        const struct type *y = &n->in[side]->type, *t = &bias->type;
        bool columns = is_f32(bias) && t->rank == 1 && t->dim[0] == y->dim[y->rank - 1];
        if (!product || !op_is_tpc(product, "IntegerMatMul") || product->nin > BIAS || !columns || !read_once(s, n->in[side]))
            continue;
        memcpy(in, product->in, (size_t)product->nin * sizeof *in);
        in[BIAS] = bias;
        return product_node(s, n, in, attr_int(product, "transposed") != 0);
    }
    return NULL;
}

/* A real operand that is 8-bit integers with one scale. */
static struct node *decoder_of_rows(const struct value *v)
{
    struct node *d = v->producer && op_is_onnx(v->producer, "DequantizeLinear") ? v->producer : NULL;
    return d && dtype_is_byte(d->in[0]->type.dtype) && is_f32(d->out[0]) && scales_columns(d->in[1], NULL, 1) && !attr_int(d, "block_size")
        ? d
        : NULL;
}

static bool has_column_scales(const struct node *n)
{
    bool transposed = attr_int(n, "transposed") != 0;
    int64_t axis = attr_int(n, "axis");
    bool along_n = (axis < 0 ? axis + 2 : axis) != transposed;
    const struct type *x = &n->in[1]->type, *scale = &n->in[2]->type;
    enum dtype t = x->dtype;
    bool small = dtype_is_byte(t) || t == DT_U4 || t == DT_I4 || t == DT_U2 || t == DT_I2;
    bool one = scale->rank == 0 || (scale->rank == 1 && dim_equals(scale->dim[0], 1));
    return small && is_f32(n->in[2]) && scale->rank < 2 && (one || along_n);
}

/* Two nodes: the product of the scales, at *scales. */
static struct node *decoded_integers(const struct integer_search *s, const struct node *n, struct node **scales)
{
    struct node *d = op_is_tpc(n, "QuantMatMul") ? decoder_of_rows(n->in[0]) : NULL;
    if (!d || !has_column_scales(n))
        return NULL;
    struct value *both[2] = {d->in[1], n->in[2]};
    const struct type *a = &both[0]->type, *b = &both[1]->type;
    struct value *scale = graph_value(s->g, arena_printf(s->g->arena, "%s/scales", n->name), b->rank ? b : a);
    *scales = graph_node(s->g, op_find("", "Mul"), scale->name, 2, both, 1);
    node_output(s->g, *scales, 0, scale);
    struct value *zero[2] = {d->nin > 2 ? d->in[2] : NULL, n->nin > 3 ? n->in[3] : NULL};
    return product_node(s, n, (struct value *[OPERANDS]){d->in[0], n->in[1], zero[0], zero[1], scale, NULL},
                        attr_int(n, "transposed") != 0);
}

void fuse_integers(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct integer_search s = {g, graph_uses(g, tmp), g->values.n};
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *scales = NULL, *n = g->nodes.at[i], *made = scaled_integers(&s, n);
        made = made ? made : decoded_integers(&s, n, &scales);
        made = made ? made : biased_integers(&s, n);
        if (made)
            g->nodes.at[i] = made;
        if (scales)
            graph_insert(g, i++, scales);
    }
    arena_free(tmp);
    graph_prune(g);
}
