/* monomial: a product as a number and powers of values, so that products are equal however an exporter wrote them. */
#include "lower/matcher.h"
#include "op/op.h"

#include <math.h>

bool monomial_near(double x, double want)
{
    return fabs(x - want) <= 1e-6 * fmax(1, fabs(want));
}

static bool is_op(const struct node *n, const char *op)
{
    return n && !*n->domain && strcmp(n->optype, op) == 0;
}

/* The exponent of a Pow that is a product; 0: it is none. */
static int whole_power(const struct node *n)
{
    double x;
    if (!is_op(n, "Pow") || !op_constant_real(n->in[1], &x))
        return 0;
    return monomial_near(x, 2) ? 2 : monomial_near(x, 3) ? 3 : 0;
}

bool monomial_node(const struct node *n)
{
    return is_op(n, "Mul") || is_op(n, "Div") || is_op(n, "Reciprocal") || whole_power(n) > 0;
}

static void put_factor(struct monomial *m, struct value *v, int power)
{
    for (int i = 0; i < m->n && i < MOST_FACTORS; i++)
        if (m->factor[i].value == v) {
            m->factor[i].power += power;
            return;
        }
    if (m->n < MOST_FACTORS) {
        m->factor[m->n].value = v;
        m->factor[m->n].power = power;
    }
    m->n++;
}

struct products {
    const struct uses *uses;
    int nuses;
    const struct value *all;
    bool shared;
    struct monomial *m;
};

static bool may_open(const struct products *p, const struct value *v)
{
    const struct node *n = v->producer;
    double x;
    if (v == p->all)
        return true;
    if (!p->shared && !graph_reads_once(p->uses, p->nuses, v))
        return false;
    return is_op(n, "Reciprocal") || (is_op(n, "Div") && op_constant_real(n->in[0], &x)) || type_eq(&v->type, &p->all->type);
}

static void multiply(const struct products *p, struct value *v, int power)
{
    struct monomial *m = p->m;
    struct node *n = v->producer;
    double x;
    if (op_constant_real(v, &x)) {
        m->number *= pow(x, power);
        return;
    }
    if (m->n > MOST_FACTORS || !monomial_node(n) || !may_open(p, v) || m->nnode == (int)(sizeof m->node / sizeof *m->node)) {
        put_factor(m, v, power);
        return;
    }
    m->node[m->nnode++] = n;
    if (is_op(n, "Pow"))
        put_factor(m, n->in[0], power * whole_power(n));
    else if (is_op(n, "Reciprocal"))
        multiply(p, n->in[0], -power);
    else {
        multiply(p, n->in[0], power);
        multiply(p, n->in[1], is_op(n, "Div") ? -power : power);
    }
}

struct monomial monomial_of(const struct uses *uses, int nuses, struct value *v, bool shared)
{
    struct monomial m = {.number = 1};
    multiply(&(struct products){uses, nuses, v, shared, &m}, v, 1);
    return m;
}
