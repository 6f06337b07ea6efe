/* Operands of RNN, GRU, LSTM and DynamicQuantizeLSTM. */
#include "tests/graphs/families.h"

#include <string.h>

static struct value *weights(struct sketch *s, enum dtype dtype, int rank, const struct dim *a, const struct dim *b, const struct dim *c)
{
    struct type t = {.dtype = dtype, .rank = rank, .dim = {a, b, c}};
    struct fill fill = dtype == DT_F32 ? (struct fill){FLOATS, -0.5, 0.5} : (struct fill){INTEGERS, dtype == DT_U8 ? 0 : -5, 9};
    return sketch_input(s, &t, fill);
}

/* Scales and zero points of both weights. */
static void scales(struct sketch *s, const struct dim *directions, struct value **in)
{
    struct type scale = {.dtype = DT_F32, .rank = 1, .dim = {directions}};
    for (int i = 0; i < 4; i++)
        in[i] = i % 2 ? weights(s, DT_U8, 1, directions, NULL, NULL) : sketch_input(s, &scale, (struct fill){FLOATS, 0.01, 0.03});
}

void make_recurrent(struct sketch *s, const struct op *op)
{
    struct alg *alg = s->g->alg;
    bool quantized = *op->domain, lstm = quantized || strcmp(op->name, "LSTM") == 0, both = draw(s->draws, 2);
    const struct dim *d = dim_int(alg, both ? 2 : 1), *b = sketch_dim(s), *i = sketch_static(s), *h = sketch_static(s),
                     *gates = dim_int(alg,
                                      lstm                               ? 4
                                          : strcmp(op->name, "GRU") == 0 ? 3
                                                                         : 1),
                     *gh = dim_mul(alg, gates, h);
    enum dtype stored = quantized ? DT_U8 : DT_F32;
    struct value *in[12] = {weights(s, DT_F32, 3, dim_int(alg, 1 + (int64_t)draw(s->draws, 4)), b, i)};
    in[1] = quantized ? weights(s, stored, 3, d, i, gh) : weights(s, stored, 3, d, gh, i);
    in[2] = quantized ? weights(s, stored, 3, d, h, gh) : weights(s, stored, 3, d, gh, h);
    in[3] = draw(s->draws, 2) ? weights(s, DT_F32, 2, d, dim_mul(alg, dim_int(alg, 2), gh), NULL) : NULL;
    in[5] = draw(s->draws, 2) ? weights(s, DT_F32, 3, d, b, h) : NULL;
    in[6] = lstm && draw(s->draws, 2) ? weights(s, DT_F32, 3, d, b, h) : NULL;
    if (quantized)
        scales(s, d, in + 8);
    struct node *n = sketch_node(s, op, quantized ? 12 : lstm ? 7 : 6, in, 2);
    if (!n)
        return;
    attr_set_string(n, "direction", both ? "bidirectional" : draw(s->draws, 2) ? "forward" : "reverse");
    sketch_add(s, n, NULL);
}
