/* Operands of reductions, norms, pooling and losses. The epsilon of norms is large: rows of nearly equal numbers would magnify rounding. */
#include "tests/graphs/families.h"

#include <string.h>

/* Products of many numbers: where all of them underflow, some may overflow, and 0 times infinity is NaN. */
static struct value *few_factors(struct sketch *s, struct value *x)
{
    bool many = x && tensor_elements(&sketch_item(s, x)->lane[0]) > 12;
    return !many ? x : s->exact ? NULL : sketch_op1(s, "Tanh", x);
}

void make_reduce(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    x = strcmp(op->name, "ReduceProd") == 0 ? few_factors(s, x) : x;
    struct node *n = sketch_node(s, op, 1, &x, 1);
    int64_t axes[MAX_RANK];
    int count = 0;
    for (int d = 0; n && d < x->type.rank; d++)
        if (draw(s->draws, 2))
            axes[count++] = draw(s->draws, 2) ? d : d - x->type.rank;
    if (!n)
        return;
    attr_set_int(n, "keepdims", draw(s->draws, 2));
    if (count > 0)
        set_sizes(s, n, "axes", count, axes);
    sketch_add(s, n, NULL);
}

void make_softmax(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (n)
        attr_set_int(n, "axis", (int64_t)draw(s->draws, (uint32_t)x->type.rank) - x->type.rank);
    sketch_add(s, n, NULL);
}

/* LayerNormalization and its relatives: a scale, and where the op has one a bias, of the normalised dimensions. */
void make_norm(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    if (!x)
        return;
    int from = x->type.rank - 1 - (x->type.rank > 1 && draw(s->draws, 4) == 1), rank = x->type.rank - from;
    bool bias = op->max_in > 2 && draw(s->draws, 2);
    struct value *in[3] = {x, sketch_like(s, DT_F32, rank, x->type.dim + from),
                           bias ? sketch_like(s, DT_F32, rank, x->type.dim + from) : NULL};
    struct node *n = sketch_node(s, op, bias ? 3 : 2, in, 1);
    if (!n)
        return;
    attr_set_int(n, "axis", from - x->type.rank);
    set_float(n, "epsilon", 0.125);
    sketch_add(s, n, NULL);
}

/* Results 1 and 2 of the op are absent. */
static struct node *with_sum(struct sketch *s, struct node *n)
{
    struct type none = {.dtype = DT_NONE};
    n->nout = 4;
    n->out = NEWN(s->arena, struct value *, 4);
    node_output(s->g, n, 0, graph_value(s->g, "v", &none));
    node_output(s->g, n, 3, graph_value(s->g, "v", &none));
    return n;
}

void make_skipnorm(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 3, 3);
    if (!x)
        return;
    const struct dim *const *dim = x->type.dim;
    bool bias = draw(s->draws, 2);
    struct value *in[4] = {x, sketch_like(s, DT_F32, 3, dim), sketch_like(s, DT_F32, 1, dim + 2),
                           bias ? sketch_like(s, DT_F32, 1, dim + 2) : NULL};
    struct node *n = sketch_node(s, op, bias ? 4 : 3, in, 1);
    if (!n)
        return;
    if (draw(s->draws, 2))
        with_sum(s, n);
    set_float(n, "epsilon", 0.125);
    sketch_add(s, n, NULL);
}

static int64_t a_divisor(struct sketch *s, const struct dim *d)
{
    int64_t n, k = 1 + (int64_t)draw(s->draws, 4);
    return dim_is_int(d, &n) && n > 0 && n % k == 0 ? k : 1;
}

/* BatchNormalization, InstanceNormalization, GroupNormalization: one number per channel for each operand. */
void make_channelnorm(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 3, 4), *in[5] = {x};
    if (!x)
        return;
    struct type t = sketch_type(DT_F32, 1, x->type.dim + 1);
    for (int i = 1; i < op->min_in; i++)
        in[i] = i < 4 ? sketch_like(s, DT_F32, 1, t.dim) : sketch_input(s, &t, (struct fill){FLOATS, 0.5, 1.5});
    struct node *n = sketch_node(s, op, op->min_in, in, 1);
    if (!n)
        return;
    set_float(n, "epsilon", 0.125);
    if (strcmp(op->name, "GroupNormalization") == 0)
        attr_set_int(n, "num_groups", a_divisor(s, t.dim[0]));
    sketch_add(s, n, NULL);
}

void make_globalpool(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 3, 4);
    sketch_add(s, sketch_node(s, op, 1, &x, 1), NULL);
}

/* Norm over neighbouring channels. */
void make_lrn(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 3, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (!n)
        return;
    attr_set_int(n, "size", 1 + 2 * draw(s->draws, 2));
    set_float(n, "alpha", 0.5);
    sketch_add(s, n, NULL);
}

/* Labels are classes, dimension 1 of the scores; with the op's logarithms where it has them. */
void make_loss(struct sketch *s, const struct op *op)
{
    static const char *const reductions[] = {"none", "sum", "mean"};
    struct value *x = sketch_pick(s, SORT_FLOAT, 2, 4);
    if (!x || sketch_size(s, x->type.dim[1]) == 0)
        return;
    struct type labels = {.dtype = DT_I64, .rank = x->type.rank - 1, .dim = {x->type.dim[0]}};
    for (int d = 1; d < labels.rank; d++)
        labels.dim[d] = x->type.dim[d + 1];
    struct value *in[3] = {x, sketch_input(s, &labels, (struct fill){INTEGERS, 0, (double)sketch_size(s, x->type.dim[1]) - 1})};
    bool weighted = draw(s->draws, 2), logarithms = op->max_out == 2 && draw(s->draws, 2);
    in[2] = weighted ? sketch_like(s, DT_F32, 1, x->type.dim + 1) : NULL;
    struct node *n = sketch_node(s, op, weighted ? 3 : 2, in, logarithms ? 2 : 1);
    if (n)
        attr_set_string(n, "reduction", reductions[draw(s->draws, 3)]);
    sketch_add(s, n, NULL);
}
