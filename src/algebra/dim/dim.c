/* dim: the constructors of dimension expressions. Their results are canonical and rewritten under the known equations.
 *
 * Sums and products are polynomials, multiplied out. A modulus is written with its quotient, a mod b = a - b*floor(a/b), so that padding to
 * a multiple is provably a multiple. A quotient by an integer c has the multiples of c taken out, coefficients reduced to (-c/2, c/2], the
 * first one positive (else it is the ceiling of the negative), the constant to [0, c), and nested quotients merged: floor((floor(x/a) + y)
 * / b) = floor((x + a*y) / (a*b)). min and max are flat lists without provably redundant members. */
#include "algebra/dim/cell.h"

#include <string.h>

static const struct dim *linear_sum(struct alg *alg, const struct dim *a, int64_t scale, const struct dim *b)
{
    POLY(p, alg);
    poly_add_dim(&p, 1, a);
    poly_add_dim(&p, scale, b);
    return poly_dim(alg, &p);
}

const struct dim *dim_add(struct alg *alg, const struct dim *a, const struct dim *b)
{
    a = dim_fresh(alg, a);
    b = dim_fresh(alg, b);
    if (dim_equals(a, 0) || dim_equals(b, 0))
        return dim_equals(a, 0) ? b : a;
    return linear_sum(alg, a, 1, b);
}

const struct dim *dim_sub(struct alg *alg, const struct dim *a, const struct dim *b)
{
    return linear_sum(alg, dim_fresh(alg, a), -1, dim_fresh(alg, b));
}

const struct dim *dim_neg(struct alg *alg, const struct dim *a)
{
    return linear_sum(alg, dim_int(alg, 0), -1, dim_fresh(alg, a));
}

static void poly_from(struct poly *p, const struct dim *d)
{
    poly_zero(p);
    poly_add_dim(p, 1, d);
}

const struct dim *dim_mul(struct alg *alg, const struct dim *a, const struct dim *b)
{
    POLY(x, alg);
    POLY(y, alg);
    POLY(product, alg);
    a = dim_fresh(alg, a);
    b = dim_fresh(alg, b);
    if (dim_equals(a, 1) || dim_equals(b, 1))
        return dim_equals(a, 1) ? b : a;
    poly_from(&x, a);
    poly_from(&y, b);
    poly_mul(alg, &product, &x, &y);
    return poly_dim(alg, &product);
}

bool dim_is_int(const struct dim *d, int64_t *out)
{
    if (d->kind != DIM_INT)
        return false;
    if (out)
        *out = d->k;
    return true;
}

bool dim_equals(const struct dim *d, int64_t k)
{
    return d->kind == DIM_INT && d->k == k;
}

/* The interned atom, or its replacement by bounds or an equation. */
static const struct dim *atom(struct alg *alg, enum dim_kind kind, int n, const struct dim *const *arg)
{
    const struct dim *d = alg_composite(alg, kind, n, arg);
    if (cell_of(d)->rule)
        return dim_fresh(alg, cell_of(d)->rule);
    return d->lo == d->hi ? dim_int(alg, d->lo) : d;
}

/* ---- quotients by an integer ---- */

static _Noreturn void overflow(void)
{
    fail_here("a dimension expression is too large: expected numbers of 64 bits, found more");
}

/* k = q*c + r with r in (-c/2, c/2]. */
static int64_t balanced_residue(int64_t k, int64_t c)
{
    int64_t r = i64_floor_mod(k, c);
    return r > c - r ? r - c : r;
}

/* p = c*whole + rest, with rest reduced; divides both by the common divisor of rest's coefficients and c. */
static int64_t take_multiples(struct poly *whole, struct poly *rest, const struct poly *p, int64_t c)
{
    int64_t constant = 0;
    poly_zero(whole);
    poly_zero(rest);
    for (int i = 0; i < p->n; i++) {
        int64_t k = p->at[i].coef, r = p->at[i].mono ? balanced_residue(k, c) : i64_floor_mod(k, c);
        if (p->at[i].mono)
            poly_insert(rest, r, p->at[i].mono);
        else
            constant = r;
        if (!i64_sub(k, r, &k))
            overflow();
        poly_insert(whole, k / c, p->at[i].mono);
    }
    poly_insert(rest, c, NULL);
    int64_t g = poly_content(rest, true);
    poly_insert(rest, -c, NULL);
    for (int i = 0; i < rest->n; i++)
        rest->at[i].coef /= g;
    poly_insert(rest, constant / g, NULL);
    return c / g;
}

static bool has_variable(const struct poly *p)
{
    return p->n > 0 && p->at[0].mono;
}

static const struct dim *div_int(struct alg *alg, const struct poly *p, int64_t c);

/* p with term i, k * floor(x/a), k = 1 or -1, merged: the numerator over a*c of the same quotient. */
static bool unnest(struct poly *out, const struct poly *p, int i, int64_t c, int64_t *divisor)
{
    int64_t k = p->at[i].coef, a = p->at[i].mono->arg[1]->k;
    if (!i64_mul(a, c, divisor))
        return false;
    POLY(others, p->alg);
    poly_copy(&others, p);
    poly_insert(&others, -k, p->at[i].mono);
    poly_zero(out);
    poly_add_dim(out, k, p->at[i].mono->arg[0]);
    poly_add_poly(out, a, &others);
    if (k < 0)
        poly_insert(out, a - 1, NULL);
    return out->ok;
}

static const struct dim *div_nested(struct alg *alg, const struct poly *p, int64_t c)
{
    POLY(q, alg);
    int64_t divisor;
    for (int i = 0; i < p->n; i++)
        if ((p->at[i].coef == 1 || p->at[i].coef == -1) && dim_is_int_div(p->at[i].mono) && unnest(&q, p, i, c, &divisor))
            return div_int(alg, &q, divisor);
    return NULL;
}

/* floor(p/c) = -floor((-p + c-1) / c) */
static const struct dim *div_negated(struct alg *alg, const struct poly *p, int64_t c)
{
    POLY(minus, alg);
    poly_add_poly(&minus, -1, p);
    poly_insert(&minus, c - 1, NULL);
    return dim_neg(alg, div_int(alg, &minus, c));
}

static const struct dim *div_reduced(struct alg *alg, const struct poly *p, int64_t c)
{
    if (!has_variable(p))
        return dim_int(alg, p->n ? i64_floor_div(p->at[0].coef, c) : 0);
    if (c == 1)
        return poly_dim(alg, p);
    const struct dim *merged = div_nested(alg, p, c);
    if (merged)
        return merged;
    if (p->at[0].coef < 0)
        return div_negated(alg, p, c);
    const struct dim *arg[2] = {poly_dim(alg, p), dim_int(alg, c)};
    if (arg[0]->kind == DIM_INT)
        return dim_int(alg, i64_floor_div(arg[0]->k, c));
    return atom(alg, DIM_DIV, 2, arg);
}

static const struct dim *div_int(struct alg *alg, const struct poly *p, int64_t c)
{
    POLY(whole, alg);
    POLY(rest, alg);
    if (!p->ok)
        overflow();
    int64_t divisor = take_multiples(&whole, &rest, p, c);
    const struct dim *quotient = div_reduced(alg, &rest, divisor);
    poly_add_dim(&whole, 1, quotient);
    return poly_dim(alg, &whole);
}

/* ---- quotients by an expression ---- */

static void divide_by(struct alg *alg, struct poly *p, int64_t k, const struct dim *mono)
{
    POLY(out, alg);
    out.ok = p->ok;
    for (int i = 0; i < p->n; i++) {
        const struct dim *m = NULL;
        require(poly_mono_div(alg, p->at[i].mono, mono, &m) && p->at[i].coef % k == 0);
        poly_insert(&out, p->at[i].coef / k, m);
    }
    poly_copy(p, &out);
}

static int64_t common_factor(const struct poly *a, const struct poly *b)
{
    int64_t x = poly_content(a, true), y = poly_content(b, true);
    while (y) {
        int64_t r = x % y;
        x = y;
        y = r;
    }
    return x;
}

/* floor(k*m*x / (k*m*y)) = floor(x/y) */
static void cancel_factors(struct alg *alg, struct poly *a, struct poly *b)
{
    const struct dim *m = poly_mono_content(alg, a), *n = poly_mono_content(alg, b), *const * x;
    const struct dim *common = NULL;
    int nx = poly_mono_atoms(m, &x);
    for (int i = 0; i < nx; i++) {
        const struct dim *rest;
        if (poly_mono_div(alg, n, x[i], &rest)) {
            common = poly_mono_mul(alg, common, x[i]);
            n = rest;
        }
    }
    int64_t g = common_factor(a, b);
    divide_by(alg, a, g, common);
    divide_by(alg, b, g, common);
}

/* Moves the terms of a that the single term b divides to whole. */
static void take_divisible(struct alg *alg, struct poly *whole, struct poly *a, struct term b)
{
    POLY(rest, alg);
    poly_zero(whole);
    for (int i = 0; i < a->n; i++) {
        const struct dim *m;
        if (a->at[i].coef % b.coef == 0 && poly_mono_div(alg, a->at[i].mono, b.mono, &m))
            poly_insert(whole, a->at[i].coef / b.coef, m);
        else
            poly_insert(&rest, a->at[i].coef, a->at[i].mono);
    }
    poly_copy(a, &rest);
}

static const struct dim *div_atom(struct alg *alg, const struct dim *a, const struct dim *b)
{
    const struct dim *arg[2] = {a, b};
    if (a->lo >= 0 && dim_ge(alg, b, dim_add(alg, a, dim_int(alg, 1))))
        return dim_int(alg, 0);
    if (dim_is_int_div(a) && b->lo >= 1)
        return dim_div(alg, a->arg[0], dim_mul(alg, a->arg[1], b));
    return atom(alg, DIM_DIV, 2, arg);
}

static const struct dim *div_poly(struct alg *alg, struct poly *a, struct poly *b)
{
    POLY(whole, alg);
    if (poly_quotient(alg, &whole, a, b))
        return poly_dim(alg, &whole);
    cancel_factors(alg, a, b);
    poly_zero(&whole);
    if (b->n == 1 && b->at[0].coef > 0)
        take_divisible(alg, &whole, a, b->at[0]);
    const struct dim *x = poly_dim(alg, a), *y = poly_dim(alg, b);
    poly_add_dim(&whole, 1, dim_is_int(y, NULL) ? dim_div(alg, x, y) : dim_equals(x, 0) ? x : div_atom(alg, x, y));
    return poly_dim(alg, &whole);
}

const struct dim *dim_div(struct alg *alg, const struct dim *a, const struct dim *b)
{
    POLY(x, alg);
    POLY(y, alg);
    a = dim_fresh(alg, a);
    b = dim_fresh(alg, b);
    if (dim_equals(b, 0))
        fail("a dimension divides by zero: expected a divisor other than 0 of %s", dim_str(alg->arena, a));
    bool negate = b->hi < 0;
    poly_add_dim(&x, negate ? -1 : 1, a);
    poly_add_dim(&y, negate ? -1 : 1, b);
    if (!x.ok || !y.ok)
        overflow();
    return b->kind == DIM_INT ? div_int(alg, &x, y.at[0].coef) : div_poly(alg, &x, &y);
}

const struct dim *dim_mod(struct alg *alg, const struct dim *a, const struct dim *b)
{
    return dim_sub(alg, a, dim_mul(alg, b, dim_div(alg, a, b)));
}

const struct dim *dim_quotient(struct alg *alg, const struct dim *a, const struct dim *b)
{
    POLY(x, alg);
    POLY(y, alg);
    POLY(q, alg);
    a = dim_fresh(alg, a);
    b = dim_fresh(alg, b);
    if (dim_equals(b, 0))
        return NULL;
    if (dim_equals(b, 1))
        return a;
    if (a->kind == DIM_INT && b->kind == DIM_INT && b->k > 0)
        return a->k % b->k == 0 ? dim_int(alg, a->k / b->k) : NULL;
    poly_from(&x, a);
    poly_from(&y, b);
    if (poly_quotient(alg, &q, &x, &y))
        return poly_dim(alg, &q);
    const struct dim *floor = dim_div(alg, a, b);
    return dim_mul(alg, floor, b) == a ? floor : NULL;
}

/* ---- comparison ---- */

static bool provably_nonnegative(struct alg *alg, const struct poly *p, int fuel);

static bool known_nonnegative(struct alg *alg, const struct poly *p)
{
    if (poly_lower(alg, p) >= 0)
        return true;
    for (int i = 0; i < alg->nonnegative.n; i++) {
        POLY(q, alg);
        poly_copy(&q, p);
        poly_add_dim(&q, -1, dim_fresh(alg, alg->nonnegative.at[i]));
        if (q.ok && poly_lower(alg, &q) >= 0)
            return true;
    }
    return false;
}

/* A min or max in the term, if its other factors are >= 0. */
static const struct dim *choice_in(struct alg *alg, const struct dim *mono, const struct dim **rest)
{
    const struct dim *const *x;
    int n = poly_mono_atoms(mono, &x);
    for (int i = 0; i < n; i++)
        if ((x[i]->kind == DIM_MIN || x[i]->kind == DIM_MAX) && poly_mono_div(alg, mono, x[i], rest) && (!*rest || (*rest)->lo >= 0))
            return x[i];
    return NULL;
}

/* p with the min or max of term i replaced by its members: all must hold if the term is smallest at the chosen one, else any. */
static bool by_cases(struct alg *alg, const struct poly *p, int i, const struct dim *choice, const struct dim *rest, int fuel)
{
    bool all = (choice->kind == DIM_MIN) == (p->at[i].coef > 0);
    for (int j = 0; j < choice->n; j++) {
        POLY(q, alg);
        poly_copy(&q, p);
        poly_insert(&q, -p->at[i].coef, p->at[i].mono);
        poly_add_product(alg, &q, p->at[i].coef, rest, choice->arg[j]);
        if (provably_nonnegative(alg, &q, fuel - 1) != all)
            return !all;
    }
    return all;
}

static bool provably_nonnegative(struct alg *alg, const struct poly *p, int fuel)
{
    if (!p->ok)
        return false;
    if (known_nonnegative(alg, p))
        return true;
    for (int i = 0; i < p->n && fuel > 0; i++) {
        const struct dim *rest, *choice = choice_in(alg, p->at[i].mono, &rest);
        if (choice && by_cases(alg, p, i, choice, rest, fuel))
            return true;
    }
    return false;
}

bool dim_ge(struct alg *alg, const struct dim *a, const struct dim *b)
{
    POLY(p, alg);
    a = dim_fresh(alg, a);
    b = dim_fresh(alg, b);
    if (a == b || (a->lo >= b->hi && b->hi != UNBOUNDED_HI && a->lo != UNBOUNDED_LO))
        return true;
    if (a->kind == DIM_INT && b->kind == DIM_INT)
        return a->k >= b->k;
    poly_from(&p, a);
    poly_add_dim(&p, -1, b);
    return provably_nonnegative(alg, &p, 3);
}

/* ---- min and max ---- */

struct choices {
    int n;
    const struct dim *at[MAX_CHOICES];
};

/* By age, an integer last. */
static bool choice_before(const struct dim *a, const struct dim *b)
{
    bool x = a->kind == DIM_INT, y = b->kind == DIM_INT;
    return x != y ? y : a->id < b->id;
}

static void choices_insert(struct choices *c, const struct dim *d)
{
    int i = 0;
    while (i < c->n && choice_before(c->at[i], d))
        i++;
    if (i < c->n && c->at[i] == d)
        return;
    if (c->n == MAX_CHOICES)
        fail_here("a dimension expression is too large: expected a min or max of at most %d members, found more", MAX_CHOICES);
    memmove(&c->at[i + 1], &c->at[i], (size_t)(c->n - i) * sizeof c->at[0]);
    c->at[i] = d;
    c->n++;
}

static void choices_add(struct choices *c, enum dim_kind kind, const struct dim *d)
{
    for (int i = 0; d->kind == kind && i < d->n; i++)
        choices_insert(c, d->arg[i]);
    if (d->kind != kind)
        choices_insert(c, d);
}

/* Whether a is never chosen if b is present. */
static bool loses(struct alg *alg, enum dim_kind kind, const struct dim *a, const struct dim *b)
{
    return kind == DIM_MIN ? dim_ge(alg, a, b) : dim_ge(alg, b, a);
}

static void choices_prune(struct alg *alg, enum dim_kind kind, struct choices *c)
{
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < c->n; j++)
            if (i != j && loses(alg, kind, c->at[i], c->at[j])) {
                memmove(&c->at[i], &c->at[i + 1], (size_t)(c->n - i - 1) * sizeof c->at[0]);
                c->n--;
                i--;
                break;
            }
}

/* Whether term i is 0 whenever another one is. */
static bool bounded_by_another(struct alg *alg, const struct poly *p, int i)
{
    for (int j = 0; j < p->n; j++)
        if (j != i && dim_ge(alg, p->at[j].mono, p->at[i].mono))
            return true;
    return false;
}

/* min(x, 1) for a sum x of terms >= 0 tests whether any is not 0: terms bounded by others are redundant. */
static const struct dim *any_term(struct alg *alg, const struct dim *x)
{
    POLY(p, alg);
    if (x->kind != DIM_ADD || x->lo != 0)
        return x;
    poly_from(&p, x);
    for (int i = 0; i < p.n; i++)
        if (!p.at[i].mono || p.at[i].coef < 0 || p.at[i].mono->lo < 0)
            return x;
    for (int i = p.n - 1; i >= 0; i--)
        if (bounded_by_another(alg, &p, i))
            poly_insert(&p, -p.at[i].coef, p.at[i].mono);
    return poly_dim(alg, &p);
}

static const struct dim *choose_extreme(struct alg *alg, enum dim_kind kind, const struct dim *a, const struct dim *b)
{
    struct choices c = {0};
    choices_add(&c, kind, dim_fresh(alg, a));
    choices_add(&c, kind, dim_fresh(alg, b));
    choices_prune(alg, kind, &c);
    if (kind == DIM_MIN && c.n == 2 && dim_equals(c.at[1], 1))
        c.at[0] = any_term(alg, c.at[0]);
    return c.n == 1 ? c.at[0] : atom(alg, kind, c.n, c.at);
}

const struct dim *dim_min(struct alg *alg, const struct dim *a, const struct dim *b)
{
    return choose_extreme(alg, DIM_MIN, a, b);
}

const struct dim *dim_max(struct alg *alg, const struct dim *a, const struct dim *b)
{
    return choose_extreme(alg, DIM_MAX, a, b);
}
