/* Operands of mixtures of experts. Experts' weights are scaled like other products'; the router's scores differ enough that the choice does
 * not depend on rounding. */
#include "tests/graphs/families.h"

struct sizes {
    const struct dim *experts, *inner, *hidden;
};

static struct value *weights(struct sketch *s, enum dtype dtype, int rank, const struct dim *a, const struct dim *b, const struct dim *c,
                             struct fill fill)
{
    struct type t = sketch_type(dtype, rank, (const struct dim *[]){a, b, c});
    return sketch_const(s, &t, fill);
}

/* x [batch, (rows,) hidden] with hidden a small integer, and the router's numbers for each row. */
static struct value *rows_of(struct sketch *s, struct sizes *z, struct value **router)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 2, 3);
    const struct dim *rows, *last = x ? x->type.dim[x->type.rank - 1] : NULL;
    if (!x || !dim_is_int(last, NULL))
        return NULL;
    z->hidden = last;
    z->inner = sketch_static(s);
    z->experts = dim_int(s->g->alg, 2 + draw(s->draws, 3));
    rows = x->type.rank == 3 ? dim_mul(s->g->alg, x->type.dim[0], x->type.dim[1]) : x->type.dim[0];
    *router = sketch_input(s, &(struct type){.dtype = DT_F32, .rank = 2, .dim = {rows, z->experts}}, (struct fill){FLOATS, -1.5, 1.5});
    return x;
}

static void add_moe(struct sketch *s, struct node *n, const char *activation)
{
    if (!n)
        return;
    attr_set_string(n, "activation_type", activation);
    attr_set_int(n, "k", 1 + draw(s->draws, 2));
    attr_set_int(n, "normalize_routing_weights", draw(s->draws, 2));
    sketch_add(s, n, NULL);
}

void make_moe(struct sketch *s, const struct op *op)
{
    static const char *const activations[] = {"relu", "gelu", "silu", "identity"};
    struct sizes z;
    struct value *router = NULL, *x = rows_of(s, &z, &router), *in[8] = {x, router};
    if (!x)
        return;
    bool biased = draw(s->draws, 2), gated = draw(s->draws, 2);
    struct fill narrow = {FLOATS, -0.6, 0.6};
    in[2] = weights(s, DT_F32, 3, z.experts, z.inner, z.hidden, narrow);
    in[3] = biased ? weights(s, DT_F32, 2, z.experts, z.inner, NULL, narrow) : NULL;
    in[4] = weights(s, DT_F32, 3, z.experts, z.hidden, z.inner, narrow);
    in[5] = biased ? weights(s, DT_F32, 2, z.experts, z.hidden, NULL, narrow) : NULL;
    in[6] = gated ? weights(s, DT_F32, 3, z.experts, z.inner, z.hidden, narrow) : NULL;
    add_moe(s, sketch_node(s, op, gated ? 7 : biased ? 6 : 5, in, 1), activations[draw(s->draws, 4)]);
}

/* A byte per weight, a scale per row. */
void make_qmoe(struct sketch *s, const struct op *op)
{
    struct sizes z;
    struct value *router = NULL, *x = rows_of(s, &z, &router), *in[7] = {x, router};
    if (!x)
        return;
    struct fill bytes = {INTEGERS, 0, 255}, small = {FLOATS, 0.002, 0.005};
    in[2] = weights(s, DT_U8, 3, z.experts, z.inner, z.hidden, bytes);
    in[3] = weights(s, DT_F32, 2, z.experts, z.inner, NULL, small);
    in[5] = weights(s, DT_U8, 3, z.experts, z.hidden, z.inner, bytes);
    in[6] = weights(s, DT_F32, 2, z.experts, z.hidden, NULL, small);
    struct node *n = sketch_node(s, op, 7, in, 1);
    if (n)
        attr_set_int(n, "expert_weight_bits", 8);
    add_moe(s, n, "silu");
}
