/* poly: polynomials with integer coefficients over atoms, the working form of every dimension expression.
 *
 * Terms are sorted by the id of their monomial and merged, zero terms are dropped: two polynomials are equal if their terms are. Division
 * is by leading terms in degree-lexicographic order. No function fails on overflow: ok becomes false, and poly_dim, which converts the
 * polynomial to an interned expression, reports it. */
#include "algebra/dim/cell.h"

#include <string.h>

void poly_begin(struct poly *p, struct alg *alg)
{
    p->alg = alg;
    p->block = NULL;
    p->at = p->few;
    poly_zero(p);
}

void poly_release(struct poly *p)
{
    if (!p->block)
        return;
    p->block->next = p->alg->blocks;
    p->alg->blocks = p->block;
    p->block = NULL;
}

/* Makes room for another term; false: the polynomial is full. */
static bool make_room(struct poly *p)
{
    if (p->block || p->n < FEW_TERMS)
        return p->n < MAX_TERMS;
    p->block = p->alg->blocks;
    if (p->block)
        p->alg->blocks = p->block->next;
    else
        p->block = NEW(p->alg->arena, struct term_block);
    memcpy(p->block->at, p->few, sizeof p->few);
    p->at = p->block->at;
    return true;
}

void poly_copy(struct poly *to, const struct poly *from)
{
    to->n = 0;
    for (int i = 0; i < from->n; i++) {
        require(make_room(to));
        to->at[to->n++] = from->at[i];
    }
    to->ok = from->ok;
}

void poly_zero(struct poly *p)
{
    p->n = 0;
    p->ok = true;
}

static int mono_order(const struct dim *mono)
{
    return mono ? mono->id : INT32_MAX;
}

/* The index of the term with that monomial, or where to insert it. */
static int term_position(const struct poly *p, const struct dim *mono)
{
    int lo = 0, hi = p->n, key = mono_order(mono);
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (mono_order(p->at[mid].mono) < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void term_remove(struct poly *p, int i)
{
    memmove(&p->at[i], &p->at[i + 1], (size_t)(p->n - i - 1) * sizeof p->at[0]);
    p->n--;
}

void poly_insert(struct poly *p, int64_t coef, const struct dim *mono)
{
    if (coef == 0)
        return;
    int i = term_position(p, mono);
    if (i < p->n && p->at[i].mono == mono) {
        if (!i64_add(p->at[i].coef, coef, &p->at[i].coef))
            p->ok = false;
        else if (p->at[i].coef == 0)
            term_remove(p, i);
        return;
    }
    if (!make_room(p)) {
        p->ok = false;
        return;
    }
    memmove(&p->at[i + 1], &p->at[i], (size_t)(p->n - i) * sizeof p->at[0]);
    p->at[i] = (struct term){coef, mono};
    p->n++;
}

static void insert_scaled(struct poly *p, int64_t scale, int64_t coef, const struct dim *mono)
{
    int64_t k;
    if (i64_mul(scale, coef, &k))
        poly_insert(p, k, mono);
    else
        p->ok = false;
}

void poly_add_dim(struct poly *p, int64_t scale, const struct dim *d)
{
    if (d->kind != DIM_ADD) {
        insert_scaled(p, scale, cell_of(d)->coef, cell_of(d)->mono);
        return;
    }
    for (int i = 0; i < d->n; i++)
        insert_scaled(p, scale, cell_of(d->arg[i])->coef, cell_of(d->arg[i])->mono);
}

void poly_add_poly(struct poly *p, int64_t scale, const struct poly *q)
{
    p->ok = p->ok && q->ok;
    for (int i = 0; i < q->n; i++)
        insert_scaled(p, scale, q->at[i].coef, q->at[i].mono);
}

/* ---- monomials ---- */

int poly_mono_atoms(const struct dim *mono, const struct dim *const **out)
{
    if (mono && mono->kind == DIM_MUL) {
        *out = mono->arg;
        return mono->n;
    }
    *out = mono ? &cell_of(mono)->mono : NULL;
    return mono ? 1 : 0;
}

static const struct dim *mono_make(struct alg *alg, int n, const struct dim *const *atom)
{
    return n == 0 ? NULL : n == 1 ? atom[0] : alg_composite(alg, DIM_MUL, n, atom);
}

const struct dim *poly_mono_mul(struct alg *alg, const struct dim *a, const struct dim *b)
{
    if (!a || !b)
        return a ? a : b;
    const struct dim *atom[MAX_DEGREE], *const *x, *const *y;
    int nx = poly_mono_atoms(a, &x), ny = poly_mono_atoms(b, &y), i = 0, j = 0;
    if (nx + ny > MAX_DEGREE)
        fail_here("a dimension expression is too large: expected a product of at most %d factors, found %d", MAX_DEGREE, nx + ny);
    while (i + j < nx + ny) {
        bool left = j == ny || (i < nx && x[i]->id <= y[j]->id);
        atom[i + j] = left ? x[i] : y[j];
        *(left ? &i : &j) += 1;
    }
    return mono_make(alg, nx + ny, atom);
}

bool poly_mono_div(struct alg *alg, const struct dim *a, const struct dim *by, const struct dim **out)
{
    const struct dim *atom[MAX_DEGREE], *const *x, *const *y;
    int nx = poly_mono_atoms(a, &x), ny = poly_mono_atoms(by, &y), n = 0, j = 0;
    for (int i = 0; i < nx; i++)
        if (j < ny && x[i] == y[j])
            j++;
        else
            atom[n++] = x[i];
    if (j < ny)
        return false;
    *out = mono_make(alg, n, atom);
    return true;
}

static const struct dim *mono_common(struct alg *alg, const struct dim *a, const struct dim *b)
{
    const struct dim *atom[MAX_DEGREE], *const *x, *const *y;
    int nx = poly_mono_atoms(a, &x), ny = poly_mono_atoms(b, &y), n = 0;
    for (int i = 0, j = 0; i < nx && j < ny;)
        if (x[i] == y[j]) {
            atom[n++] = x[i++];
            j++;
        } else if (x[i]->id < y[j]->id)
            i++;
        else
            j++;
    return mono_make(alg, n, atom);
}

/* ---- products and quotients ---- */

/* p += coef * mono * by */
void poly_add_product(struct alg *alg, struct poly *p, int64_t coef, const struct dim *mono, const struct dim *by)
{
    POLY(q, alg);
    poly_add_dim(&q, coef, by);
    p->ok = p->ok && q.ok;
    for (int i = 0; i < q.n; i++)
        poly_insert(p, q.at[i].coef, poly_mono_mul(alg, mono, q.at[i].mono));
}

void poly_mul(struct alg *alg, struct poly *out, const struct poly *a, const struct poly *b)
{
    poly_zero(out);
    out->ok = a->ok && b->ok;
    for (int i = 0; i < a->n && out->ok; i++)
        for (int j = 0; j < b->n && out->ok; j++)
            insert_scaled(out, a->at[i].coef, b->at[j].coef, poly_mono_mul(alg, a->at[i].mono, b->at[j].mono));
}

/* The greatest common divisor of the coefficients, > 0; 0 for a polynomial without any. */
int64_t poly_content(const struct poly *p, bool with_constant)
{
    int64_t g = 0;
    for (int i = 0; i < p->n; i++)
        if (with_constant || p->at[i].mono)
            g = i64_gcd(g, p->at[i].coef == INT64_MIN ? 1 : p->at[i].coef);
    return g < 0 ? -g : g;
}

/* The largest monomial that divides every term. */
const struct dim *poly_mono_content(struct alg *alg, const struct poly *p)
{
    const struct dim *common = p->n ? p->at[0].mono : NULL;
    for (int i = 1; i < p->n && common; i++)
        common = mono_common(alg, common, p->at[i].mono);
    return common;
}

/* Degree first, then atoms in order. */
static int mono_compare(const struct dim *a, const struct dim *b)
{
    const struct dim *const *x, *const *y;
    int nx = poly_mono_atoms(a, &x), ny = poly_mono_atoms(b, &y);
    if (nx != ny)
        return nx - ny;
    for (int i = 0; i < nx; i++)
        if (x[i] != y[i])
            return y[i]->id - x[i]->id;
    return 0;
}

static const struct term *leading_term(const struct poly *p)
{
    const struct term *best = &p->at[0];
    for (int i = 1; i < p->n; i++)
        if (mono_compare(p->at[i].mono, best->mono) > 0)
            best = &p->at[i];
    return best;
}

/* One step: moves the quotient of the leading terms from rest to out. */
static bool divide_step(struct alg *alg, struct poly *out, struct poly *rest, const struct poly *by, struct term lead)
{
    struct term top = *leading_term(rest);
    const struct dim *mono;
    if (lead.coef == -1 && top.coef == INT64_MIN)
        return false;
    if (top.coef % lead.coef != 0 || !poly_mono_div(alg, top.mono, lead.mono, &mono))
        return false;
    int64_t coef = top.coef / lead.coef;
    poly_insert(out, coef, mono);
    if (coef == INT64_MIN)
        return false;
    for (int i = 0; i < by->n; i++)
        insert_scaled(rest, -coef, by->at[i].coef, poly_mono_mul(alg, mono, by->at[i].mono));
    return rest->ok && out->ok;
}

bool poly_quotient(struct alg *alg, struct poly *out, const struct poly *p, const struct poly *by)
{
    POLY(rest, alg);
    poly_copy(&rest, p);
    poly_zero(out);
    if (by->n == 0)
        return false;
    struct term lead = *leading_term(by);
    for (int step = 0; rest.n > 0; step++)
        if (step == 2 * MAX_TERMS || !divide_step(alg, out, &rest, by, lead))
            return false;
    return true;
}

/* ---- back to expressions ---- */

static const struct dim *term_dim(struct alg *alg, struct term t)
{
    if (!t.mono)
        return dim_int(alg, t.coef);
    if (t.coef == 1)
        return t.mono;
    const struct dim *arg[MAX_DEGREE + 1], *const *atom;
    int n = poly_mono_atoms(t.mono, &atom);
    arg[0] = dim_int(alg, t.coef);
    memcpy(arg + 1, atom, (size_t)n * sizeof *atom);
    return alg_composite(alg, DIM_MUL, n + 1, arg);
}

/* Not inlined: its terms are large, and poly_dim recurses. */
static __attribute__((noinline)) const struct dim *sum_dim(struct alg *alg, const struct poly *p)
{
    const struct dim *arg[MAX_TERMS];
    for (int i = 0; i < p->n; i++)
        arg[i] = term_dim(alg, p->at[i]);
    return p->n == 0 ? dim_int(alg, 0) : p->n == 1 ? arg[0] : alg_composite(alg, DIM_ADD, p->n, arg);
}

/* floor((x + first + j*step) / divisor), j = 0 .. times-1: the family of a quotient. */
struct family {
    const struct dim *x, *divisor, *rest;
    int64_t first, step, times;
};

static const struct dim *family_member(struct alg *alg, const struct family *f, int64_t j)
{
    const struct dim *arg[2] = {dim_add(alg, f->x, dim_int(alg, f->first + j * f->step)), f->divisor};
    return poly_mono_mul(alg, f->rest, alg_composite(alg, DIM_DIV, 2, arg));
}

/* The common coefficient of all members; 0 if one is missing. */
static int64_t common_coefficient(struct alg *alg, const struct poly *p, const struct family *f)
{
    int64_t common = 0;
    for (int64_t j = 0; j < f->times; j++) {
        const struct dim *mono = family_member(alg, f, j);
        int i = term_position(p, mono);
        if (i == p->n || p->at[i].mono != mono || (common != 0 && (common < 0) != (p->at[i].coef < 0)))
            return 0;
        if (common == 0 || (common < 0 ? p->at[i].coef > common : p->at[i].coef < common))
            common = p->at[i].coef;
    }
    return common == INT64_MIN ? 0 : common;
}

/* Hermite's identity: the sum of floor((x + j*g) / (t*g)) over j = 0 .. t-1 is floor(x/g). */
static bool hermite_family(struct alg *alg, struct poly *p, const struct family *f)
{
    int64_t k = common_coefficient(alg, p, f);
    if (k == 0)
        return false;
    for (int64_t j = 0; j < f->times; j++)
        poly_insert(p, -k, family_member(alg, f, j));
    const struct dim *sum = dim_div(alg, dim_add(alg, f->x, dim_int(alg, f->first)), dim_int(alg, f->step));
    poly_add_product(alg, p, k, f->rest, sum);
    return true;
}

static int64_t coefficient_of(const struct poly *p, const struct dim *mono)
{
    int i = term_position(p, mono);
    return i < p->n && p->at[i].mono == mono ? p->at[i].coef : 0;
}

/* The same for two members: floor(x/g) minus one is the other. Terms of other coefficients stay, so a - 2*floor(a/2) does.
 * k is 0 where p has the member in the form from before an equation. */
static bool hermite_other(struct alg *alg, struct poly *p, const struct family *member)
{
    struct family f = *member;
    f.times = 2;
    f.step = f.divisor->k / 2;
    int64_t j = f.first / f.step;
    f.first -= j * f.step;
    const struct dim *sum = dim_div(alg, dim_add(alg, f.x, dim_int(alg, f.first)), dim_int(alg, f.step));
    const struct dim *one = family_member(alg, &f, j), *other = family_member(alg, &f, 1 - j);
    POLY(whole, alg);
    poly_add_dim(&whole, 1, sum);
    int64_t k = coefficient_of(p, one);
    if (k == 0 || k == INT64_MIN || whole.n < 1 || !whole.at[0].mono || (whole.n == 2 && whole.at[1].mono) || whole.n > 2 ||
        whole.at[0].coef != 1 || coefficient_of(p, whole.at[0].mono) != -k || coefficient_of(p, other) != 0)
        return false;
    poly_insert(p, -k, one);
    poly_insert(p, -k, other);
    poly_add_poly(p, k, &whole);
    return true;
}

static bool hermite_at(struct alg *alg, struct poly *p, const struct dim *atom, const struct dim *rest)
{
    const struct dim *x = atom->arg[0];
    int64_t c = atom->arg[1]->k;
    struct family f = {.x = x, .divisor = atom->arg[1], .rest = rest};
    if (x->kind == DIM_ADD && x->arg[x->n - 1]->kind == DIM_INT) {
        f.first = x->arg[x->n - 1]->k;
        f.x = dim_sub(alg, x, dim_int(alg, f.first));
    }
    if (!rest && c % 2 == 0 && f.first >= 0 && f.first < c && hermite_other(alg, p, &f))
        return true;
    for (f.times = c < p->n ? c : p->n; f.times > 1; f.times--) {
        f.step = c / f.times;
        if (c % f.times == 0 && f.first < f.step && hermite_family(alg, p, &f))
            return true;
    }
    return false;
}

static bool hermite_term(struct alg *alg, struct poly *p, const struct dim *mono)
{
    const struct dim *const *atom, *rest;
    int n = poly_mono_atoms(mono, &atom);
    for (int i = 0; i < n; i++)
        if (dim_is_int_div(atom[i]) && poly_mono_div(alg, mono, atom[i], &rest) && hermite_at(alg, p, atom[i], rest))
            return true;
    return false;
}

static void hermite(struct alg *alg, struct poly *p)
{
    if (p->n < 2)
        return;
    for (int i = 0; i < p->n && p->ok; i++)
        if (hermite_term(alg, p, p->at[i].mono))
            i = -1;
}

const struct dim *poly_dim(struct alg *alg, const struct poly *given)
{
    POLY(p, alg);
    poly_copy(&p, given);
    hermite(alg, &p);
    poly_reduce(alg, &p);
    if (!p.ok)
        fail_here("a dimension expression is too large: expected coefficients of 64 bits and at most %d terms", MAX_TERMS);
    const struct dim *d = sum_dim(alg, &p);
    return d->lo == d->hi ? dim_int(alg, d->lo) : d;
}
