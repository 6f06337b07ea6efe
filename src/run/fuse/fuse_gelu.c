/* Gelu, as exporters write it out, becomes the operator: one pass over memory, and convolutions take it in.
 *
 *   0.5 x (1 + Erf(x / sqrt 2))
 *   0.5 x (1 + Tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
 *
 * Factors and addends stand in any order; a factor may be a divisor, and a power a product. */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "run/fuse/fuse.h"

#include <math.h>

enum { MOST_FACTORS = 3 };

/* number * factor[0] * factor[1] ..; n > MOST_FACTORS: too many. */
struct monomial {
    double number;
    int n;
    struct value *factor[MOST_FACTORS];
};

static bool is_near(double x, double want)
{
    return fabs(x - want) < 1e-6;
}

static void put_factor(struct monomial *m, struct value *v)
{
    if (m->n < MOST_FACTORS)
        m->factor[m->n] = v;
    m->n++;
}

/* Multiplies m by v, which is taken apart unless more than one node reads it. */
static void multiply(struct monomial *m, const struct uses *uses, struct value *v, bool whole)
{
    struct node *mul = op_made_by(v, "Mul"), *div = op_made_by(v, "Div"), *pow = op_made_by(v, "Pow");
    double x;
    if (op_number(v, &x)) {
        m->number *= x;
    } else if (whole && uses[v->id].n > 1) {
        put_factor(m, v);
    } else if (mul && m->n <= MOST_FACTORS) {
        multiply(m, uses, mul->in[0], true);
        multiply(m, uses, mul->in[1], true);
    } else if (div && op_number(div->in[1], &x)) {
        m->number /= x;
        multiply(m, uses, div->in[0], true);
    } else if (pow && op_number(pow->in[1], &x) && is_near(x, 3)) {
        for (int i = 0; i < 3; i++)
            put_factor(m, pow->in[0]);
    } else {
        put_factor(m, v);
    }
}

static struct monomial monomial_of(const struct uses *uses, struct value *v)
{
    struct monomial m = {.number = 1};
    multiply(&m, uses, v, false);
    return m;
}

/* v = number * x^power. */
static bool is_power(const struct uses *uses, struct value *v, double number, const struct value *x, int power)
{
    struct monomial m = monomial_of(uses, v);
    bool all = m.n == power && is_near(m.number, number);
    for (int i = 0; all && i < power; i++)
        all = m.factor[i] == x;
    return all;
}

/* The operand that function `op` has where v = 1 + op(operand); NULL: v is nothing such. */
static struct value *one_more_than(struct value *v, const char *op)
{
    struct node *add = op_made_by(v, "Add");
    double one;
    for (int k = 0; add && k < 2; k++) {
        struct node *f = op_made_by(add->in[k], op);
        if (f && op_number(add->in[1 - k], &one) && is_near(one, 1))
            return f->in[0];
    }
    return NULL;
}

/* v = sqrt(2 / pi) (x + 0.044715 x^3). */
static bool is_cubic(const struct uses *uses, struct value *v, const struct value *x)
{
    struct monomial m = monomial_of(uses, v);
    struct node *add = m.n == 1 && is_near(m.number, 0.79788456) ? op_made_by(m.factor[0], "Add") : NULL;
    for (int k = 0; add && k < 2; k++)
        if (add->in[k] == x && is_power(uses, add->in[1 - k], 0.044715, x, 3))
            return true;
    return false;
}

/* The attribute `approximate` of the Gelu that v is, and its operand; NULL: v is none. */
static const char *gelu_of(const struct uses *uses, struct value *v, struct value **x)
{
    struct monomial m = monomial_of(uses, v);
    for (int k = 0; m.n == 2 && k < 2 && is_near(m.number, 0.5); k++) {
        struct value *erf = one_more_than(m.factor[k], "Erf"), *tanh = one_more_than(m.factor[k], "Tanh");
        *x = m.factor[1 - k];
        if (!type_eq(&(*x)->type, &v->type))
            continue;
        if (erf && is_power(uses, erf, 0.70710678, *x, 1))
            return "none";
        if (tanh && is_cubic(uses, tanh, *x))
            return "tanh";
    }
    return NULL;
}

int fuse_gelu(struct graph *g)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(g, tmp);
    int made = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i], *gelu;
        struct value *x;
        const char *how = op_is_onnx(n, "Mul") && n->out[0]->type.dtype == DT_F32 ? gelu_of(uses, n->out[0], &x) : NULL;
        if (!how)
            continue;
        gelu = graph_node(g, op_find("", "Gelu"), n->name, 1, &x, 1);
        attr_set_string(gelu, "approximate", how);
        node_output(g, gelu, 0, n->out[0]);
        g->nodes.at[i] = gelu;
        made++;
    }
    arena_free(tmp);
    graph_prune(g);
    return made;
}
