/* bound: the range of an expression, given the bounds of its symbols.
 *
 * Interval arithmetic first. It ignores that two terms may contain the same symbol, so sums get two better bounds: with every atom written
 * as its lower bound plus a rest >= 0, products of mixed sign often have no negative coefficient left (B*S - S >= 0); and since x - c <
 * c*floor(x/c) <= x, a quotient can be traded for its numerator (S - 4*(S/4) lies in 0 .. 3). INT64_MIN below and INT64_MAX above stand for
 * unbounded; an overflow becomes unbounded, which is always true. */
#include "algebra/dim/cell.h"

struct bounds {
    int64_t lo, hi;
};

static int64_t lower_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return a == UNBOUNDED_LO || b == UNBOUNDED_LO || !i64_add(a, b, &sum) ? UNBOUNDED_LO : sum;
}

static bool infinite(int64_t x)
{
    return x == UNBOUNDED_LO || x == UNBOUNDED_HI;
}

/* The product of two ends; 0 times infinity is 0. */
static int64_t end_product(int64_t a, int64_t b)
{
    int64_t product;
    if (a == 0 || b == 0)
        return 0;
    if (!infinite(a) && !infinite(b) && i64_mul(a, b, &product))
        return product;
    return (a < 0) == (b < 0) ? UNBOUNDED_HI : UNBOUNDED_LO;
}

/* A lower bound above all numbers, or an upper one below, results from overflow: it bounds nothing. */
static struct bounds sound(int64_t lo, int64_t hi)
{
    return (struct bounds){lo == UNBOUNDED_HI ? UNBOUNDED_LO : lo, hi == UNBOUNDED_LO ? UNBOUNDED_HI : hi};
}

static int64_t least_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static struct bounds range_product(struct bounds a, struct bounds b)
{
    int64_t w = end_product(a.lo, b.lo), x = end_product(a.lo, b.hi), y = end_product(a.hi, b.lo), z = end_product(a.hi, b.hi);
    return sound(least_i64(least_i64(w, x), least_i64(y, z)), greatest(greatest(w, x), greatest(y, z)));
}

static struct bounds product_bounds(const struct dim *d)
{
    struct bounds r = {1, 1};
    for (int i = 0; i < d->n; i++)
        r = range_product(r, (struct bounds){d->arg[i]->lo, d->arg[i]->hi});
    return r;
}

/* One end of a quotient by a divisor >= 1. */
static int64_t end_quotient(int64_t a, int64_t b)
{
    if (b == UNBOUNDED_HI)
        return a < 0 ? -1 : 0;
    return infinite(a) ? a : i64_floor_div(a, b);
}

static struct bounds div_range(const struct dim *a, const struct dim *b)
{
    if (b->lo < 1)
        return (struct bounds){UNBOUNDED_LO, UNBOUNDED_HI};
    int64_t lo = least_i64(end_quotient(a->lo, b->lo), end_quotient(a->lo, b->hi));
    int64_t hi = greatest(end_quotient(a->hi, b->lo), end_quotient(a->hi, b->hi));
    return (struct bounds){lo, hi};
}

static struct bounds choice_range(const struct dim *d)
{
    struct bounds r = {d->arg[0]->lo, d->arg[0]->hi};
    for (int i = 1; i < d->n; i++) {
        bool min = d->kind == DIM_MIN;
        r.lo = min ? least_i64(r.lo, d->arg[i]->lo) : greatest(r.lo, d->arg[i]->lo);
        r.hi = min ? least_i64(r.hi, d->arg[i]->hi) : greatest(r.hi, d->arg[i]->hi);
    }
    return r;
}

bool dim_is_int_div(const struct dim *d)
{
    return d && d->kind == DIM_DIV && d->arg[1]->kind == DIM_INT && d->arg[1]->k > 0;
}

/* ---- lower bounds of sums ---- */

static int64_t interval_lower(const struct poly *p)
{
    int64_t sum = 0;
    for (int i = 0; i < p->n; i++) {
        struct bounds k = {p->at[i].coef, p->at[i].coef};
        const struct dim *m = p->at[i].mono;
        sum = lower_sum(sum, m ? range_product(k, (struct bounds){m->lo, m->hi}).lo : k.lo);
    }
    return sum;
}

static bool worth_shifting(const struct poly *p)
{
    bool product = false, negative = false;
    for (int i = 0; i < p->n; i++) {
        product = product || (p->at[i].mono && p->at[i].mono->kind == DIM_MUL);
        negative = negative || (p->at[i].mono && p->at[i].coef < 0);
    }
    return product && negative && p->n <= 16;
}

/* out += coef * product of (atom + its lower bound); from here on, an atom in `out` means its excess over that bound. */
static void add_shifted(struct alg *alg, struct poly *out, struct term t)
{
    POLY(product, alg);
    POLY(next, alg);
    const struct dim *const *atom;
    int n = poly_mono_atoms(t.mono, &atom);
    poly_insert(&product, t.coef, NULL);
    for (int i = 0; i < n; i++) {
        POLY(factor, alg);
        poly_insert(&factor, 1, atom[i]);
        if (atom[i]->lo != UNBOUNDED_LO)
            poly_insert(&factor, atom[i]->lo, NULL);
        poly_mul(alg, &next, &product, &factor);
        poly_copy(&product, &next);
    }
    poly_add_poly(out, 1, &product);
}

static bool nonnegative_rest(const struct dim *mono)
{
    const struct dim *const *atom;
    int n = poly_mono_atoms(mono, &atom);
    for (int i = 0; i < n; i++)
        if (atom[i]->lo == UNBOUNDED_LO)
            return false;
    return true;
}

static int64_t shifted_lower(struct alg *alg, const struct poly *p)
{
    POLY(q, alg);
    for (int i = 0; i < p->n; i++)
        add_shifted(alg, &q, p->at[i]);
    int64_t sum = 0;
    for (int i = 0; i < q.n; i++)
        if (!q.at[i].mono)
            sum = lower_sum(sum, q.at[i].coef);
        else if (q.at[i].coef < 0 || !nonnegative_rest(q.at[i].mono))
            return UNBOUNDED_LO;
    return q.ok ? sum : UNBOUNDED_LO;
}

static int64_t plain_lower(struct alg *alg, const struct poly *p)
{
    int64_t lo = interval_lower(p);
    return worth_shifting(p) ? greatest(lo, shifted_lower(alg, p)) : lo;
}

/* p >= out / c, with term i, k*floor(x/c), replaced by k*x/c or k*(x-c+1)/c. */
static void trade_quotient(struct poly *out, const struct poly *p, int i, int64_t c)
{
    int64_t k = p->at[i].coef, slack;
    const struct dim *x = p->at[i].mono->arg[0];
    poly_zero(out);
    out->ok = p->ok;
    for (int j = 0; j < p->n; j++) {
        int64_t scaled;
        if (j == i)
            continue;
        if (i64_mul(p->at[j].coef, c, &scaled))
            poly_insert(out, scaled, p->at[j].mono);
        else
            out->ok = false;
    }
    poly_add_dim(out, k, x);
    if (k > 0 && i64_mul(k, c - 1, &slack))
        poly_insert(out, -slack, NULL);
    else if (k > 0)
        out->ok = false;
}

static int64_t ceil_quotient(int64_t lo, int64_t c)
{
    return lo == UNBOUNDED_LO || lo == UNBOUNDED_HI ? lo : -i64_floor_div(-lo, c);
}

static int quotient_terms(const struct poly *p, int *first)
{
    int n = 0;
    for (int i = p->n - 1; i >= 0; i--)
        if (dim_is_int_div(p->at[i].mono)) {
            n++;
            *first = i;
        }
    return n;
}

static int64_t traded_lower(struct alg *alg, const struct poly *p, int i, int fuel);

/* Few quotients are tried in every order; many, only one after another. */
static int64_t lower(struct alg *alg, const struct poly *p, int fuel)
{
    int first = 0, n = quotient_terms(p, &first);
    int64_t best = plain_lower(alg, p);
    if (n == 0 || fuel <= 0)
        return best;
    if (n > 2)
        return greatest(best, traded_lower(alg, p, first, fuel - 1));
    for (int i = first; i < p->n; i++)
        if (dim_is_int_div(p->at[i].mono))
            best = greatest(best, traded_lower(alg, p, i, fuel - 1));
    return best;
}

static int64_t traded_lower(struct alg *alg, const struct poly *p, int i, int fuel)
{
    POLY(q, alg);
    int64_t c = p->at[i].mono->arg[1]->k;
    trade_quotient(&q, p, i, c);
    return q.ok ? ceil_quotient(lower(alg, &q, fuel), c) : UNBOUNDED_LO;
}

int64_t poly_lower(struct alg *alg, const struct poly *p)
{
    return lower(alg, p, 8);
}

static struct bounds sum_range(struct alg *alg, const struct dim *d)
{
    POLY(p, alg);
    POLY(minus, alg);
    poly_add_dim(&p, 1, d);
    poly_add_dim(&minus, -1, d);
    int64_t lo = poly_lower(alg, &p);
    int64_t hi = minus.ok ? poly_lower(alg, &minus) : UNBOUNDED_LO;
    return (struct bounds){lo, hi == UNBOUNDED_LO ? UNBOUNDED_HI : -hi};
}

void cell_bounds(struct alg *alg, struct cell *c)
{
    struct bounds r;
    switch (c->d.kind) {
    case DIM_INT:
    case DIM_SYM: return;
    case DIM_ADD: r = sum_range(alg, &c->d); break;
    case DIM_MUL: r = product_bounds(&c->d); break;
    case DIM_DIV: r = div_range(c->d.arg[0], c->d.arg[1]); break;
    case DIM_MIN:
    case DIM_MAX: r = choice_range(&c->d); break;
    case DIM_MOD:
    default: bug("kind %d of a dimension", (int)c->d.kind);
    }
    c->d.lo = r.lo;
    c->d.hi = r.hi;
}
