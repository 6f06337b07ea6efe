/* Steps of optimisers: Momentum, Adagrad, Adam. Operands are the rate R, the count T of steps before, and lists of one length: tensors X,
 * their gradients G, and what is kept of them; results are the new X, and what is kept. */
#include "onnx/compose/compose.h"

#include <string.h>

/* Operand `list` of tensor i; there are `lists` of them. */
static char *listed(struct composer *c, size_t lists, size_t list, size_t i)
{
    size_t n = c->node->n_input < 2 ? 0 : (c->node->n_input - 2) / lists;
    return compose_input(c, 2 + list * n + i);
}

static size_t tensors(struct composer *c, size_t lists, size_t results)
{
    size_t n = c->node->n_input < 2 ? 0 : (c->node->n_input - 2) / lists;
    if (n == 0 || c->node->n_input != 2 + n * lists || c->node->n_output != n * results)
        fail("%s: %s has %zu operands and %zu results, expected lists of one length", c->im->path, c->where, c->node->n_input,
             c->node->n_output);
    return n;
}

static char *number(struct composer *c, const char *attribute, float otherwise, char *like)
{
    return compose_number_like(c, (double)compose_float_of(c->node, attribute, otherwise), like);
}

static char *binary(struct composer *c, const char *op, char *a, char *b)
{
    return compose_op(c, op, a, b);
}

/* a x + b y */
static char *blend(struct composer *c, char *a, char *x, char *b, char *y)
{
    return binary(c, "Add", binary(c, "Mul", a, x), binary(c, "Mul", b, y));
}

/* G + norm_coefficient X */
static char *regularised(struct composer *c, char *x, char *g)
{
    return binary(c, "Add", binary(c, "Mul", number(c, "norm_coefficient", 0, x), x), g);
}

/* Result k of the node, by an Identity. The last one made becomes the node itself. */
static void give(struct composer *c, size_t k, char *value)
{
    if (k > 0)
        compose_also(c, k, "Identity", 1, &value);
    else
        compose_become(c, "Identity", 1, &value);
}

/* T > 0, as a number of x's type. */
static char *has_begun(struct composer *c, char *x)
{
    char *t = compose_op(c, "CastLike", compose_input(c, 1), x);
    return compose_op(c, "CastLike", binary(c, "Greater", t, compose_number_like(c, 0, x)), x);
}

static void momentum(struct composer *c)
{
    size_t n = tensors(c, 3, 2);
    const Onnx__AttributeProto *mode = proto_attribute(c->node, "mode");
    bool nesterov = mode && mode->s.len == 8 && memcmp(mode->s.data, "nesterov", 8) == 0;
    char **x = NEWN(c->im->tmp, char *, n), **v = NEWN(c->im->tmp, char *, n);
    for (size_t i = 0; i < n; i++) {
        char *own = listed(c, 3, 0, i), *g = regularised(c, own, listed(c, 3, 1, i)), *begun = has_begun(c, own);
        char *alpha = number(c, "alpha", 0, own), *one = compose_number_like(c, 1, own);
        char *less = binary(c, "Mul", begun, binary(c, "Sub", one, number(c, "beta", 0, own)));
        v[i] = blend(c, alpha, listed(c, 3, 2, i), binary(c, "Sub", one, less), g);
        char *step = nesterov ? binary(c, "Add", g, binary(c, "Mul", alpha, v[i])) : v[i];
        x[i] = binary(c, "Sub", own, binary(c, "Mul", compose_op(c, "CastLike", compose_input(c, 0), own), step));
    }
    for (size_t i = n; i-- > 0;)
        give(c, n + i, v[i]);
    for (size_t i = n; i-- > 0;)
        give(c, i, x[i]);
}

static void adagrad(struct composer *c)
{
    size_t n = tensors(c, 3, 2);
    char **x = NEWN(c->im->tmp, char *, n), **h = NEWN(c->im->tmp, char *, n);
    for (size_t i = 0; i < n; i++) {
        char *own = listed(c, 3, 0, i), *g = regularised(c, own, listed(c, 3, 1, i)),
             *t = compose_op(c, "CastLike", compose_input(c, 1), own);
        char *slower = binary(c, "Add", compose_number_like(c, 1, own), binary(c, "Mul", t, number(c, "decay_factor", 0, own)));
        char *rate = binary(c, "Div", compose_op(c, "CastLike", compose_input(c, 0), own), slower);
        h[i] = binary(c, "Add", listed(c, 3, 2, i), binary(c, "Mul", g, g));
        char *size = binary(c, "Add", compose_op(c, "Sqrt", h[i], NULL), number(c, "epsilon", 1e-6f, own));
        x[i] = binary(c, "Sub", own, binary(c, "Div", binary(c, "Mul", rate, g), size));
    }
    for (size_t i = n; i-- > 0;)
        give(c, n + i, h[i]);
    for (size_t i = n; i-- > 0;)
        give(c, i, x[i]);
}

/* R sqrt(1 - beta^T) / (1 - alpha^T), and R before the first step. */
static char *adam_rate(struct composer *c, char *x)
{
    char *t = compose_op(c, "CastLike", compose_input(c, 1), x), *one = compose_number_like(c, 1, x), *begun = has_begun(c, x);
    char *rate = compose_op(c, "CastLike", compose_input(c, 0), x);
    char *up = compose_op(c, "Sqrt", binary(c, "Sub", one, binary(c, "Pow", number(c, "beta", 0.999f, x), t)), NULL);
    char *down = binary(c, "Sub", one, binary(c, "Pow", number(c, "alpha", 0.9f, x), t));
    char *choice[3] = {compose_cast(c, begun, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL), binary(c, "Div", up, down), one};
    return binary(c, "Mul", rate, compose_node_of(c, "Where", 3, choice, 0, NULL, 1, NULL));
}

static void adam(struct composer *c)
{
    size_t n = tensors(c, 4, 3);
    char **x = NEWN(c->im->tmp, char *, n), **v = NEWN(c->im->tmp, char *, n), **h = NEWN(c->im->tmp, char *, n);
    for (size_t i = 0; i < n; i++) {
        char *own = listed(c, 4, 0, i), *g = regularised(c, own, listed(c, 4, 1, i)), *one = compose_number_like(c, 1, own);
        char *alpha = number(c, "alpha", 0.9f, own), *beta = number(c, "beta", 0.999f, own);
        v[i] = blend(c, alpha, listed(c, 4, 2, i), binary(c, "Sub", one, alpha), g);
        h[i] = blend(c, beta, listed(c, 4, 3, i), binary(c, "Sub", one, beta), binary(c, "Mul", g, g));
        char *size = binary(c, "Add", compose_op(c, "Sqrt", h[i], NULL), number(c, "epsilon", 1e-6f, own));
        char *moved = binary(c, "Sub", own, binary(c, "Div", binary(c, "Mul", adam_rate(c, own), v[i]), size));
        x[i] = binary(c, "Mul", binary(c, "Sub", one, number(c, "norm_coefficient_post", 0, own)), moved);
    }
    for (size_t i = n; i-- > 0;)
        give(c, 2 * n + i, h[i]);
    for (size_t i = n; i-- > 0;)
        give(c, n + i, v[i]);
    for (size_t i = n; i-- > 0;)
        give(c, i, x[i]);
}

#define TRAINING "ai.onnx.preview.training"
const struct composition compose_list_optimizer[] = {
    {TRAINING, "Adagrad", 1, "CastLike, Mul, Add, Div, Sub, Sqrt, Identity", adagrad},
    {TRAINING, "Adam", 1, "CastLike, Cast, Greater, Mul, Add, Div, Sub, Sqrt, Pow, Where, Identity", adam},
    {TRAINING, "Momentum", 1, "CastLike, Greater, Mul, Add, Sub, Identity", momentum},
    {NULL, NULL, 0, NULL, NULL},
};
