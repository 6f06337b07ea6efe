/* Operands of Fourier transforms and of ReverseSequence. */
#include "tests/graphs/families.h"

static struct value *signal(struct sketch *s, const struct dim *length)
{
    struct type t = {.dtype = DT_F32, .rank = 3, .dim = {sketch_dim(s), length, dim_int(s->g->alg, 1)}};
    return sketch_input(s, &t, (struct fill){FLOATS, -1, 1});
}

void make_dft(struct sketch *s, const struct op *op)
{
    struct value *x = signal(s, sketch_static(s));
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (n)
        attr_set_int(n, "onesided", draw(s->draws, 2));
    sketch_add(s, n, NULL);
}

void make_stft(struct sketch *s, const struct op *op)
{
    struct type frame = {.dtype = DT_F32, .rank = 1, .dim = {sketch_static(s)}};
    struct value *in[3] = {signal(s, dim_mul(s->g->alg, frame.dim[0], dim_int(s->g->alg, 3))), NULL,
                           sketch_input(s, &frame, (struct fill){FLOATS, 0, 1})};
    struct node *n = sketch_node(s, op, 3, in, 1);
    const int64_t step = 1 + (int64_t)draw(s->draws, 3);
    if (!n)
        return;
    set_sizes(s, n, "step", 1, &step);
    sketch_add(s, n, NULL);
}

/* No row is longer than one step, or none where there is none. */
void make_reverse(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 2, 4);
    if (!x)
        return;
    struct type t = {.dtype = DT_I64, .rank = 1, .dim = {x->type.dim[1]}};
    struct value *in[2] = {x, sketch_input(s, &t, (struct fill){INTEGERS, 0, sketch_size(s, x->type.dim[0]) > 0 ? 1 : 0})};
    sketch_add(s, sketch_node(s, op, 2, in, 1), NULL);
}
