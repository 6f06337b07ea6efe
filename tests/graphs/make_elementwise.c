/* Operands of elementwise ops. What an op can't take (the logarithm of a negative number) is brought into its range first. */
#include "tests/graphs/families.h"

#include <string.h>

/* The one operand of an op of integers or of booleans. */
static void make_one(struct sketch *s, const struct op *op, enum sort sort)
{
    struct value *x = sketch_pick(s, sort, 0, 4);
    sketch_add(s, sketch_node(s, op, 1, &x, 1), NULL);
}

/* x; of (0, 1); of (1, 2). */
static struct value *in_range(struct sketch *s, struct value *x, int range)
{
    if (range == 0)
        return x;
    struct value *y = sketch_op1(s, "Sigmoid", x);
    return range == 1 || !y ? y : sketch_op2(s, "Add", y, sketch_scalar(s, DT_F32, 1));
}

static struct value *unary(struct sketch *s, const struct op *op, struct value *x)
{
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (n && strcmp(op->name, "Gelu") == 0 && draw(s->draws, 2))
        attr_set_string(n, "approximate", "tanh");
    return sketch_add(s, n, NULL);
}

void make_unary(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 0, 4);
    for (int range = 0; range < (s->exact ? 1 : 3); range++)
        if (unary(s, op, in_range(s, x, range)))
            return;
}

struct value *make_partner(struct sketch *s, const struct value *x, enum dtype dtype, bool wider)
{
    const struct dim *dim[MAX_RANK];
    int rank = x->type.rank, drop = (int)draw(s->draws, (uint32_t)rank + 1), n = 0;
    if (wider && rank < 4 && draw(s->draws, 6) == 1)
        dim[n++] = sketch_dim(s);
    else if (drop == 1 || drop == rank)
        rank -= drop;
    for (int d = x->type.rank - rank; d < x->type.rank; d++)
        dim[n++] = draw(s->draws, 5) == 1 ? dim_int(s->g->alg, 1) : x->type.dim[d];
    return sketch_like(s, dtype, n, dim);
}

static void add_pair(struct sketch *s, const struct op *op, struct value *x, struct value *y)
{
    bool swap = draw(s->draws, 2);
    struct value *in[2] = {swap ? y : x, swap ? x : y};
    sketch_add(s, sketch_node(s, op, 2, in, 1), NULL);
}

void make_binary(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_NUMBER, 0, 4);
    add_pair(s, op, x, x ? make_partner(s, x, x->type.dtype, true) : NULL);
}

void make_quotient(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 0, 4), *y = x ? make_partner(s, x, DT_F32, true) : NULL;
    y = y ? in_range(s, y, 2) : NULL;
    sketch_add(s, sketch_node(s, op, 2, (struct value *[]){x, y}, 1), NULL);
}

void make_power(struct sketch *s, const struct op *op)
{
    static const double exponent[] = {2, 0.5, 3, -1};
    struct value *x = sketch_pick(s, SORT_FLOAT, 0, 4);
    x = in_range(s, x, (int)draw(s->draws, 3));
    struct value *y = sketch_scalar(s, DT_F32, exponent[draw(s->draws, 4)]);
    sketch_add(s, sketch_node(s, op, 2, (struct value *[]){x, y}, 1), NULL);
}

void make_modulo(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_NUMBER, 0, 4);
    struct node *n = x ? sketch_node(s, op, 2, (struct value *[]){x, sketch_scalar(s, x->type.dtype, 3)}, 1) : NULL;
    if (n)
        attr_set_int(n, "fmod", x->type.dtype == DT_F32);
    sketch_add(s, n, NULL);
}

void make_several(struct sketch *s, const struct op *op)
{
    struct value *in[3] = {sketch_pick(s, SORT_FLOAT, 0, 4)};
    int n = 2 + (int)draw(s->draws, 2);
    for (int i = 1; i < n; i++)
        in[i] = in[0] ? make_partner(s, in[0], DT_F32, i == 1) : NULL;
    sketch_add(s, sketch_node(s, op, n, in, 1), NULL);
}

void make_compare(struct sketch *s, const struct op *op)
{
    make_binary(s, op);
}

void make_logic(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_BOOL, 0, 4);
    add_pair(s, op, x, x ? make_partner(s, x, DT_BOOL, true) : NULL);
}

void make_not(struct sketch *s, const struct op *op)
{
    make_one(s, op, SORT_BOOL);
}

void make_bitnot(struct sketch *s, const struct op *op)
{
    make_one(s, op, SORT_INT);
}

void make_bits(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_INT, 0, 4);
    add_pair(s, op, x, x ? make_partner(s, x, DT_I64, true) : NULL);
}

/* Only unsigned integers are shifted. */
void make_shift(struct sketch *s, const struct op *op)
{
    struct type t = {.dtype = DT_U8, .rank = 2, .dim = {sketch_dim(s), sketch_dim(s)}};
    struct value *x = sketch_input(s, &t, (struct fill){INTEGERS, 0, 31}), *y = x ? make_partner(s, x, DT_U8, false) : NULL;
    struct node *n = sketch_node(s, op, 2, (struct value *[]){x, y}, 1);
    if (n)
        attr_set_string(n, "direction", draw(s->draws, 2) ? "RIGHT" : "LEFT");
    sketch_add(s, n, NULL);
}

void make_where(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_NUMBER, 0, 4), *y = x ? make_partner(s, x, x->type.dtype, true) : NULL;
    struct value *c = x ? make_partner(s, x, DT_BOOL, true) : NULL;
    /* c and y may have each brought a new dimension in front of x */
    if (c && y && c->type.rank == y->type.rank && c->type.rank > x->type.rank && c->type.dim[0] != y->type.dim[0])
        return;
    sketch_add(s, sketch_node(s, op, 3, (struct value *[]){c, x, y}, 1), NULL);
}

void make_clip(struct sketch *s, const struct op *op)
{
    bool above = draw(s->draws, 2), below = draw(s->draws, 2);
    struct value *x = sketch_pick(s, SORT_FLOAT, 0, 4);
    struct value *in[3] = {x, below ? sketch_scalar(s, DT_F32, -1) : NULL, above ? sketch_scalar(s, DT_F32, 2) : NULL};
    sketch_add(s, sketch_node(s, op, above ? 3 : 2, in, 1), NULL);
}

void make_cast(struct sketch *s, const struct op *op)
{
    static const enum dtype to[] = {DT_F32, DT_I64, DT_BOOL};
    struct value *x = sketch_pick(s, SORT_ANY, 0, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (n)
        attr_set_int(n, "to", to[draw(s->draws, 3)]);
    sketch_add(s, n, NULL);
}

void make_castlike(struct sketch *s, const struct op *op)
{
    struct value *in[2] = {sketch_pick(s, SORT_NUMBER, 0, 4), sketch_pick(s, SORT_NUMBER, 0, 4)};
    sketch_add(s, sketch_node(s, op, 2, in, 1), NULL);
}

void make_prelu(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4), *slope = x ? make_partner(s, x, DT_F32, false) : NULL;
    sketch_add(s, sketch_node(s, op, 2, (struct value *[]){x, slope}, 1), NULL);
}
