/* Operands and result types of ops that change or tell shapes. */
#include "op/op.h"
#include "tests/graphs/families.h"

/* Dimensions d and d + 1 become one. */
static struct type merged(struct sketch *s, const struct type *x, int d)
{
    struct type t = *x;
    t.dim[d] = dim_mul(s->g->alg, x->dim[d], x->dim[d + 1]);
    for (int k = d + 1; k + 1 < t.rank; k++)
        t.dim[k] = x->dim[k + 1];
    t.rank--;
    return t;
}

/* Dimension d becomes two, the first of size n. */
static struct type parted(struct sketch *s, const struct type *x, int d, int64_t n)
{
    struct type t = *x;
    for (int k = t.rank; k > d; k--)
        t.dim[k] = x->dim[k - 1];
    t.dim[d + 1] = dim_quotient(s->g->alg, x->dim[d], dim_int(s->g->alg, n));
    t.dim[d] = dim_int(s->g->alg, n);
    t.rank++;
    return t;
}

static struct value *reshape(struct sketch *s, const struct op *op, struct value *x, const struct type *to)
{
    return sketch_add(s, sketch_node(s, op, 1, &x, 1), to);
}

/* A dimension that is a multiple of 2, 3 or 4 is parted, or two are merged; sometimes both, so that no dimension stays. */
void make_reshape(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 5);
    if (!x)
        return;
    int d = (int)draw(s->draws, (uint32_t)x->type.rank);
    int64_t n = 2 + (int64_t)draw(s->draws, 3);
    bool parts = draw(s->draws, 2) && dim_quotient(s->g->alg, x->type.dim[d], dim_int(s->g->alg, n)) && x->type.rank < 5;
    struct type t = parts ? parted(s, &x->type, d, n) : x->type;
    if (t.rank > 1 && (!parts || draw(s->draws, 3) == 1))
        t = merged(s, &t, (int)draw(s->draws, (uint32_t)t.rank - 1));
    reshape(s, op, x, &t);
}

void make_flatten(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (n)
        attr_set_int(n, "axis", draw(s->draws, (uint32_t)x->type.rank + 1));
    sketch_add(s, n, NULL);
}

/* Adds a dimension of size 1, or removes one. */
static struct value *with_one(struct sketch *s, struct value *x, int64_t *axis)
{
    for (*axis = 0; x && *axis < x->type.rank; ++*axis)
        if (dim_equals(x->type.dim[*axis], 1))
            return x;
    struct node *n = sketch_node(s, op_find("", "Unsqueeze"), 1, &x, 1);
    *axis = 0;
    set_sizes(s, n, "axes", 1, axis);
    return sketch_add(s, n, NULL);
}

void make_squeeze(struct sketch *s, const struct op *op)
{
    int64_t axis;
    struct value *x = sketch_pick(s, SORT_ANY, 0, 4);
    x = with_one(s, x, &axis);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    set_sizes(s, n, "axes", 1, &axis);
    sketch_add(s, n, NULL);
}

void make_unsqueeze(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 0, 3);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    int64_t axis = x ? (int64_t)draw(s->draws, (uint32_t)x->type.rank + 1) : 0;
    set_sizes(s, n, "axes", 1, &axis);
    sketch_add(s, n, NULL);
}

/* Dimensions of size 1 grow, or there is a new one in front. */
void make_expand(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 0, 4);
    if (!x)
        return;
    struct type t = x->type;
    if (t.rank < 4 && draw(s->draws, 2)) {
        for (int d = t.rank++; d > 0; d--)
            t.dim[d] = x->type.dim[d - 1];
        t.dim[0] = sketch_dim(s);
    }
    for (int d = 0; d < t.rank; d++)
        t.dim[d] = dim_equals(t.dim[d], 1) ? sketch_dim(s) : t.dim[d];
    reshape(s, op, x, &t);
}

/* ConstantOfShape: zeros. */
void make_fill(struct sketch *s, const struct op *op)
{
    struct type t = {.dtype = DT_F32, .rank = 1 + (int)draw(s->draws, 3)};
    for (int d = 0; d < t.rank; d++)
        t.dim[d] = sketch_dim(s);
    sketch_add(s, sketch_node(s, op, 0, NULL, 1), &t);
}

void make_range(struct sketch *s, const struct op *op)
{
    struct node *n = sketch_node(s, op, 0, NULL, 1);
    const struct dim *start = dim_int(s->g->alg, draw(s->draws, 3)), *limit = dim_add(s->g->alg, start, sketch_dim(s)),
                     *delta = dim_int(s->g->alg, 1);
    attr_set_dims(s->g, n, "start", 1, &start);
    attr_set_dims(s->g, n, "limit", 1, &limit);
    attr_set_dims(s->g, n, "delta", 1, &delta);
    sketch_add(s, n, &(struct type){.dtype = DT_I64});
}

/* A size that data decides, as the result of NonZero has. */
static bool is_decided(const struct type *t)
{
    for (int d = 0; d < t->rank; d++)
        for (const char *c = t->dim[d]->kind == DIM_SYM ? t->dim[d]->name : ""; *c; c++)
            if (*c == '.')
                return true;
    return false;
}

/* Shape and Size; what they tell is used as data, too. A size that data decides is not told: nothing else may be left that knows it. */
void make_shape(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    x = x && is_decided(&x->type) ? NULL : x;
    struct value *y = sketch_add(s, sketch_node(s, op, 1, &x, 1), NULL);
    if (y && draw(s->draws, 2))
        sketch_op2(s, "Mul", y, sketch_like(s, DT_I64, y->type.rank, y->type.dim));
}
