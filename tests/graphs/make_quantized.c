/* Operands of quantised ops: small integers with scales that bring them to about 1. */
#include "op/op.h"
#include "tests/graphs/families.h"

#include <string.h>

static struct value *number(struct sketch *s, enum dtype dtype, double lo, double hi, bool is_float, int rank, const struct dim *const *dim)
{
    struct type t = sketch_type(dtype, rank, dim);
    return sketch_const(s, &t, (struct fill){is_float ? FLOATS : INTEGERS, lo, hi});
}

/* A scale for all or one for each index of an axis of integer size, and a zero point. */
static int scales(struct sketch *s, const struct value *x, enum dtype zero, struct value **in)
{
    int axis = x->type.rank ? (int)draw(s->draws, (uint32_t)x->type.rank) : 0;
    bool per_axis = x->type.rank > 0 && dim_is_int(x->type.dim[axis], NULL) && draw(s->draws, 2);
    const struct dim *const *dim = per_axis ? &x->type.dim[axis] : NULL;
    in[1] = number(s, DT_F32, 0.05, 0.2, true, per_axis, dim);
    in[2] = number(s, zero, 0, 5, false, per_axis, dim);
    return axis;
}

void make_quantize(struct sketch *s, const struct op *op)
{
    static const enum dtype types[] = {DT_U8, DT_I8, DT_I16};
    struct value *in[3] = {sketch_pick(s, SORT_FLOAT, 0, 4)};
    if (!in[0])
        return;
    int axis = scales(s, in[0], types[draw(s->draws, 3)], in);
    struct node *n = sketch_node(s, op, 3, in, 1);
    if (n)
        attr_set_int(n, "axis", axis);
    struct value *back[3] = {sketch_add(s, n, NULL), in[1], in[2]};
    n = draw(s->draws, 2) ? sketch_node(s, op_find("", "DequantizeLinear"), 3, back, 1) : NULL;
    if (n)
        attr_set_int(n, "axis", axis);
    sketch_add(s, n, NULL);
}

/* A weight: a table or a matrix, read by a product. */
void make_dequantize(struct sketch *s, const struct op *op)
{
    static const enum dtype types[] = {DT_I8, DT_U8};
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4), *in[3];
    enum dtype dtype = types[draw(s->draws, 2)];
    if (!x || !dim_is_int(x->type.dim[x->type.rank - 1], NULL))
        return;
    const struct dim *columns = sketch_static(s);
    in[0] = number(s, dtype, 0, 10, false, 2, (const struct dim *[]){x->type.dim[x->type.rank - 1], columns});
    if (!in[0])
        return;
    int axis = scales(s, in[0], dtype, in);
    struct node *n = sketch_node(s, op, 3, in, 1);
    if (n)
        attr_set_int(n, "axis", axis);
    sketch_op2(s, "MatMul", x, sketch_add(s, n, NULL));
}

void make_dynamicquantize(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    sketch_add(s, sketch_node(s, op, 1, &x, 3), NULL);
}

void make_matmulinteger(struct sketch *s, const struct op *op)
{
    struct type t = {.dtype = DT_U8, .rank = 2 + (int)draw(s->draws, 2)};
    for (int d = 0; d < t.rank; d++)
        t.dim[d] = d < t.rank - 1 ? sketch_dim(s) : sketch_static(s);
    const struct dim *columns = sketch_static(s);
    struct value *in[4] = {sketch_input(s, &t, (struct fill){INTEGERS, 0, 9})};
    in[1] = number(s, DT_I8, -5, 5, false, 2, (const struct dim *[]){t.dim[t.rank - 1], columns});
    in[2] = number(s, DT_U8, 0, 5, false, 0, NULL);
    in[3] = number(s, DT_I8, 0, 2, false, 1, &columns);
    sketch_add(s, sketch_node(s, op, draw(s->draws, 2) ? 4 : 2, in, 1), NULL);
}

/* 32 contracted values in two blocks, of 4 bits or 8; columns as they come. */
void make_matmulnbits(struct sketch *s, const struct op *op)
{
    struct alg *alg = s->g->alg;
    int64_t k = 32, block = 16, bits = draw(s->draws, 2) ? 8 : 4;
    const struct dim *n = sketch_static(s), *blocks = dim_int(alg, k / block);
    struct type t = {.dtype = DT_F32, .rank = 2, .dim = {sketch_dim(s), dim_int(alg, k)}};
    struct value *in[4] = {sketch_input(s, &t, (struct fill){FLOATS, -1, 1})};
    in[1] = number(s, DT_U8, 0, 255, false, 3, (const struct dim *[]){n, blocks, dim_int(alg, block * bits / 8)});
    in[2] = number(s, DT_F32, 0.01, 0.03, true, 2, (const struct dim *[]){n, blocks});
    in[3] = number(s, DT_U8, 0, 255, false, 2, (const struct dim *[]){n, dim_int(alg, (k / block * bits + 7) / 8)});
    struct node *node = sketch_node(s, op, draw(s->draws, 2) ? 4 : 3, in, 1);
    if (!node)
        return;
    attr_set_int(node, "K", k);
    attr_set_int(node, "N", sketch_size(s, n));
    attr_set_int(node, "bits", bits);
    attr_set_int(node, "block_size", block);
    sketch_add(s, node, NULL);
}

void make_gatherblock(struct sketch *s, const struct op *op)
{
    struct alg *alg = s->g->alg;
    const struct dim *rows = sketch_static(s), *row = sketch_dim(s);
    struct type t = {.dtype = DT_I64, .rank = 1, .dim = {row}};
    struct value *in[3];
    in[0] = number(s, DT_U8, 0, 255, false, 2, (const struct dim *[]){rows, dim_int(alg, 16)});
    in[1] = sketch_input(s, &t, (struct fill){INTEGERS, 0, (double)(sketch_size(s, rows) - 1)});
    in[2] = number(s, DT_F32, 0.1, 0.3, true, 2, (const struct dim *[]){rows, dim_int(alg, 2)});
    struct node *n = sketch_node(s, op, 3, in, 1);
    if (n)
        attr_set_int(n, "block_size", 16);
    sketch_add(s, n, NULL);
}
