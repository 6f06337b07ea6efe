/* integral_weights: the constants of a graph that computes in integers: -1, 0 and 1.
 *
 * A weight keeps about NONZERO elements in each row or column, whichever is shorter; a number alone keeps its sign. A tensor that masks
 * (1e30 and more, infinities) becomes -1 or 1 there and 0 elsewhere: what it is added to is a softmax, which is replaced, and a mask shows
 * in that like any other summand. Integers that are stored stay; their scales are weights. */
#include "tests/prove/integral.h"
#include "tests/prove/private.h"

#include <math.h>
#include <string.h>

enum { NONZERO = 4 };
static const double MASKING = 1e30;

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(uint64_t *random)
{
    uint64_t z = *random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct tensor integral_tensor(struct constant *c, const char *name)
{
    struct tensor t = {.dtype = c->dtype, .rank = c->rank};
    memcpy(t.dim, c->dim, sizeof t.dim);
    union {
        const void *from;
        void *to;
    } data = {.from = constant_data(c, name)};
    t.data = data.to;
    return t;
}

static bool masks(const struct tensor *t)
{
    bool found = false;
    for (int64_t i = 0; i < tensor_elements(t); i++)
        found |= fabs(tensor_element(t, i)) >= MASKING;
    return found;
}

/* The length of a row or a column of a matrix, whichever is shorter. */
static uint64_t shorter(const struct tensor *t)
{
    int64_t most = 1;
    for (int d = 0; d < t->rank; d++)
        most = t->dim[d] > most ? t->dim[d] : most;
    return (uint64_t)(tensor_elements(t) / most);
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static double sparse(uint64_t *random, uint64_t of)
{
    uint64_t z = draw(random);
    bool zero = of < 2 * NONZERO ? z % 2 != 0 : z % of >= NONZERO;
    return zero ? 0 : z >> 63 ? 1 : -1;
}

/* Not only zeros, unless the constant is: they would make all later values zero. */
static void fill(struct tensor *t, const struct tensor *old, uint64_t *random)
{
    bool mask = masks(old), alone = tensor_elements(old) == 1, zeros = true;
    uint64_t of = shorter(old);
    int64_t one = -1;
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        double x = tensor_element(old, i);
        double y = mask ? sign(x) * (fabs(x) >= MASKING) : alone ? sign(x) : sparse(random, of);
        tensor_put(t, i, y);
        zeros = zeros && y == 0;
        one = one < 0 && x != 0 ? i : one;
    }
    if (zeros && one >= 0)
        tensor_put(t, one, 1);
}

/* In memory: the printed graph has no file next to it to refer to. */
static struct constant *integral_constant(struct arena *a, struct constant *c, const char *name, uint64_t *random)
{
    struct constant *made = NEW(a, struct constant);
    struct tensor old = integral_tensor(c, name), t = old;
    *made = (struct constant){.dtype = c->dtype, .rank = c->rank, .bytes = c->bytes, .data = old.data, .origin = c->origin};
    memcpy(made->dim, c->dim, sizeof made->dim);
    if (!dtype_is_float(c->dtype))
        return made;
    made->data = t.data = arena_alloc(a, (size_t)c->bytes + 1);
    fill(&t, &old, random);
    return made;
}

void integral_constants(struct graph *g)
{
    uint64_t random = 1;
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (v->constant)
            v->constant = integral_constant(g->arena, v->constant, v->name, &random);
    }
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nattr; k++) {
            struct attr *a = &g->nodes.at[i]->attr[k];
            if (a->kind == ATTR_TENSOR && a->set)
                a->tensor = integral_constant(g->arena, a->tensor, a->name, &random);
        }
}
