/* equation: equations between expressions, as rewrite rules, and the rewriting itself.
 *
 * a = b is written a - b = 0, divided by the common factor of all terms. It is solved for a symbol that occurs once, linearly: preferably
 * one that is alone on one side, else the youngest. Otherwise the hardest term (most atoms, then youngest) becomes a rule mono -> rest,
 * which applies wherever the monomial divides a term; with a coefficient other than 1, to multiples of it. No rule expresses a size of the
 * inputs by a data-dependent one. A right side never contains its left side, so that rules cannot rewrite each other forever; a limit
 * guards the other cases. An expression is fresh when it was made or rewritten after the last change; every constructor freshens its
 * operands. */
#include "algebra/dim/cell.h"

enum { MAX_STEPS = 2000, MAX_ROUNDS = 16, MAX_EQUATIONS = 4096 };

/* ---- rewriting ---- */

static const struct dim *rebuild_list(struct alg *alg, const struct dim *d,
                                      const struct dim *(*make)(struct alg *, const struct dim *, const struct dim *))
{
    const struct dim *result = dim_fresh(alg, d->arg[0]);
    for (int i = 1; i < d->n; i++)
        result = make(alg, result, d->arg[i]);
    return result;
}

static const struct dim *rebuild(struct alg *alg, const struct dim *d)
{
    if (cell_of(d)->rule)
        return dim_fresh(alg, cell_of(d)->rule);
    switch (d->kind) {
    case DIM_INT: return d;
    case DIM_SYM: return d->lo == d->hi ? dim_int(alg, d->lo) : d;
    case DIM_ADD: return rebuild_list(alg, d, dim_add);
    case DIM_MUL: return rebuild_list(alg, d, dim_mul);
    case DIM_DIV: return rebuild_list(alg, d, dim_div);
    case DIM_MIN: return rebuild_list(alg, d, dim_min);
    case DIM_MAX: return rebuild_list(alg, d, dim_max);
    case DIM_MOD:
    default: bug("kind %d of a dimension", (int)d->kind);
    }
}

const struct dim *dim_fresh(struct alg *alg, const struct dim *d)
{
    struct cell *c = cell_of(d);
    if (c->epoch == alg->epoch)
        return c->now;
    c->epoch = alg->epoch;
    c->now = d; /* found by a rule that leads back here */
    c->now = rebuild(alg, d);
    return c->now;
}

const struct dim *dim_rewrite(struct alg *alg, const struct dim *d)
{
    return dim_fresh(alg, d);
}

static bool apply_rule(struct alg *alg, struct poly *p, int i, const struct dim_rule *r)
{
    struct term t = p->at[i];
    const struct dim *rest;
    if (t.coef % r->coef != 0 || !poly_mono_div(alg, t.mono, r->mono, &rest) || t.coef == INT64_MIN)
        return false;
    poly_insert(p, -t.coef, t.mono);
    poly_add_product(alg, p, t.coef / r->coef, rest, dim_fresh(alg, r->right));
    return true;
}

static bool reduce_step(struct alg *alg, struct poly *p)
{
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < alg->rules.n && p->at[i].mono; j++)
            if (apply_rule(alg, p, i, &alg->rules.at[j]))
                return true;
    return false;
}

void poly_reduce(struct alg *alg, struct poly *p)
{
    for (int step = 0; alg->rules.n > 0 && p->ok && step < MAX_STEPS; step++)
        if (!reduce_step(alg, p))
            return;
}

/* ---- from an equation to a rule ---- */

static bool contains(const struct dim *d, const struct dim *what)
{
    if (d == what)
        return true;
    for (int i = 0; i < d->n; i++)
        if (contains(d->arg[i], what))
            return true;
    return false;
}

/* Whether another term contains an atom of that monomial, or its atoms occur inside other atoms. */
static bool occurs_elsewhere(struct alg *alg, const struct poly *p, int i, bool nested_only)
{
    const struct dim *const *x, *const *y, *rest;
    int nx = poly_mono_atoms(p->at[i].mono, &x);
    for (int j = 0; j < p->n; j++) {
        int ny = poly_mono_atoms(p->at[j].mono, &y);
        if (j != i && p->at[j].mono && poly_mono_div(alg, p->at[j].mono, p->at[i].mono, &rest))
            return true;
        for (int b = 0; j != i && b < ny; b++)
            for (int a = 0; a < nx; a++)
                if (contains(y[b], x[a]) && !(nested_only && y[b] == x[a]))
                    return true;
    }
    return false;
}

static bool unit(int64_t coef)
{
    return coef == 1 || coef == -1;
}

/* Whether a size of the inputs would be expressed by data-dependent sizes. */
static bool loses_data_free(const struct poly *p, int i)
{
    for (int j = 0; j < p->n && !dim_has_data(p->at[i].mono); j++)
        if (p->at[j].mono && dim_has_data(p->at[j].mono))
            return true;
    return false;
}

/* The term i that solves p = 0 for the symbol, or -1. */
static int solvable_at(struct alg *alg, const struct poly *p, const struct dim *symbol)
{
    for (int i = 0; i < p->n; i++)
        if (p->at[i].mono == symbol)
            return unit(p->at[i].coef) && !occurs_elsewhere(alg, p, i, false) && !loses_data_free(p, i) ? i : -1;
    return -1;
}

static bool younger(const struct dim *a, const struct dim *b)
{
    return !b || a->id > b->id;
}

static int lone_symbol(struct alg *alg, const struct poly *p, const struct dim *a, const struct dim *b)
{
    const struct dim *side[2] = {a, b}, *best = NULL;
    for (int i = 0; i < 2; i++)
        if (side[i]->kind == DIM_SYM && younger(side[i], best) && solvable_at(alg, p, side[i]) >= 0)
            best = side[i];
    return best ? solvable_at(alg, p, best) : -1;
}

static int linear_symbol(struct alg *alg, const struct poly *p)
{
    const struct dim *best = NULL;
    for (int i = 0; i < p->n; i++) {
        const struct dim *m = p->at[i].mono;
        if (m && m->kind == DIM_SYM && younger(m, best) && solvable_at(alg, p, m) >= 0)
            best = m;
    }
    return best ? solvable_at(alg, p, best) : -1;
}

static bool harder(const struct dim *a, const struct dim *b)
{
    int x = cell_of(a)->weight, y = cell_of(b)->weight;
    return x != y ? x > y : a->id > b->id;
}

/* The hardest term that can be replaced; with any coefficient if none has 1. */
static int hardest_term(struct alg *alg, const struct poly *p, bool any_coefficient)
{
    int best = -1;
    for (int i = 0; i < p->n; i++) {
        const struct dim *m = p->at[i].mono;
        if (!m || !(any_coefficient || unit(p->at[i].coef)) || occurs_elsewhere(alg, p, i, true) || loses_data_free(p, i))
            continue;
        if (best < 0 || harder(m, p->at[best].mono))
            best = i;
    }
    return best;
}

static int choose_term(struct alg *alg, const struct poly *p, const struct dim *a, const struct dim *b)
{
    int i = lone_symbol(alg, p, a, b);
    if (i < 0)
        i = linear_symbol(alg, p);
    if (i < 0)
        i = hardest_term(alg, p, false);
    return i < 0 ? hardest_term(alg, p, true) : i;
}

static void raise_lo(struct alg *alg, struct cell *c, int64_t lo)
{
    if (c->d.kind != DIM_SYM || lo <= c->d.lo)
        return;
    c->d.lo = lo;
    alg->bounds_moved = true;
}

const struct dim *dim_at_least(struct alg *alg, const struct dim *symbol, int64_t lo)
{
    struct cell *c = cell_of(symbol);
    if (c->d.kind == DIM_SYM && lo > c->stated_lo)
        c->stated_lo = lo;
    raise_lo(alg, c, lo);
    if (alg->bounds_moved)
        alg_facts_changed(alg);
    return symbol;
}

int64_t dim_stated_lo(const struct dim *symbol)
{
    return cell_of(symbol)->stated_lo;
}

static void lower_hi(struct alg *alg, struct cell *c, int64_t hi)
{
    if (c->d.kind != DIM_SYM || hi >= c->d.hi)
        return;
    c->d.hi = hi;
    alg->bounds_moved = true;
}

/* min(x, y, ..) = x implies x <= y; max(x, y, ..) = x implies x >= y. */
static void learn_order(struct alg *alg, const struct dim *choice, const struct dim *chosen)
{
    if (choice->kind != DIM_MIN && choice->kind != DIM_MAX)
        return;
    for (int i = 0; i < choice->n; i++) {
        bool min = choice->kind == DIM_MIN;
        const struct dim *small = min ? chosen : choice->arg[i], *large = min ? choice->arg[i] : chosen;
        if (small == large)
            continue;
        lower_hi(alg, cell_of(small), large->hi);
        raise_lo(alg, cell_of(large), small->lo);
        const struct dim *gap = dim_sub(alg, large, small);
        if (gap->lo < 0)
            VEC_PUSH(alg->arena, &alg->nonnegative, gap);
    }
}

/* The replacement of a symbol gets its bounds. */
static void merge_facts(struct alg *alg, const struct dim *gone, const struct dim *kept)
{
    if (gone->kind != DIM_SYM)
        return;
    if (kept->kind == DIM_SYM && kept->usual < gone->usual)
        cell_of(kept)->d.usual = gone->usual;
    raise_lo(alg, cell_of(kept), gone->lo);
    lower_hi(alg, cell_of(kept), gone->hi);
    if (kept->lo < gone->lo)
        VEC_PUSH(alg->arena, &alg->nonnegative, dim_sub(alg, kept, dim_int(alg, gone->lo)));
}

static void add_rule(struct alg *alg, const struct poly *p, int i)
{
    struct term t = p->at[i];
    POLY(rest, alg);
    poly_add_poly(&rest, t.coef < 0 ? 1 : -1, p);
    poly_insert(&rest, t.coef < 0 ? -t.coef : t.coef, t.mono);
    const struct dim *right = poly_dim(alg, &rest);
    int64_t coef = t.coef < 0 ? -t.coef : t.coef;
    if (coef == 1 && t.mono->kind != DIM_MUL) {
        learn_order(alg, t.mono, right);
        merge_facts(alg, t.mono, right);
        cell_of(t.mono)->rule = right;
    } else
        VEC_PUSH(alg->arena, &alg->rules, ((struct dim_rule){coef, t.mono, right}));
    alg_facts_changed(alg);
}

/* ---- stating ---- */

/* n*a = n*b is taken as a = b unless n is known to be 0 sometimes. */
static bool is_divided_out(const struct dim *x, bool usual)
{
    return x->lo > 0 || x->hi < 0 || (usual && !x->data && x->kind == DIM_SYM && x->usual > 0);
}

/* p divided by its terms' common factor; if usual sizes are assumed, also by factors that may be 0, which makes it stronger. False if no
 * integers solve p = 0. */
static bool simplify(struct alg *alg, struct poly *p, bool usual, bool *stronger)
{
    const struct dim *common = poly_mono_content(alg, p), *const * x;
    int n = poly_mono_atoms(common, &x);
    POLY(q, alg);
    int64_t g = poly_content(p, false);
    for (int i = 0; i < p->n; i++) {
        const struct dim *m = p->at[i].mono;
        if (p->at[i].coef % g != 0)
            return false;
        for (int a = 0; a < n; a++)
            if (is_divided_out(x[a], usual)) {
                (void)poly_mono_div(alg, m, x[a], &m);
                *stronger |= x[a]->lo == 0;
            }
        poly_insert(&q, p->at[i].coef / g, m);
    }
    poly_copy(p, &q);
    return true;
}

static bool can_vanish(struct alg *alg, const struct poly *p)
{
    POLY(minus, alg);
    poly_add_poly(&minus, -1, p);
    return poly_lower(alg, p) <= 0 && poly_lower(alg, &minus) <= 0;
}

/* Without dividing by sizes that may be 0 if the rest cannot be 0: n = 0, n*(a + 1) = 0. */
static bool solvable(struct alg *alg, struct poly *p, bool *stronger)
{
    POLY(q, alg);
    poly_copy(&q, p);
    if (simplify(alg, &q, true, stronger) && can_vanish(alg, &q)) {
        poly_copy(p, &q);
        return true;
    }
    bool again = *stronger;
    *stronger = false;
    return again && simplify(alg, p, false, stronger) && can_vanish(alg, p);
}

/* p = 0 with the negative terms on the right. */
static void equation_of(struct alg *alg, const struct poly *p, struct equation *e)
{
    POLY(left, alg);
    POLY(below, alg);
    POLY(right, alg);
    for (int i = 0; i < p->n; i++)
        poly_insert(p->at[i].coef < 0 ? &below : &left, p->at[i].coef, p->at[i].mono);
    poly_add_poly(&right, -1, &below);
    e->left = poly_dim(alg, &left);
    e->right = poly_dim(alg, &right);
}

/* Turns the equation into a rule if possible. A stronger rule replaces the equation. */
static enum equate learn(struct alg *alg, struct equation *e)
{
    POLY(p, alg);
    bool stronger = false;
    const struct dim *a = dim_fresh(alg, e->left), *b = dim_fresh(alg, e->right);
    if (a == b)
        return EQ_KNOWN;
    const struct dim *d = dim_sub(alg, a, b);
    if (d->kind == DIM_INT)
        return d->k == 0 ? EQ_KNOWN : EQ_FALSE;
    poly_add_dim(&p, 1, d);
    if (!solvable(alg, &p, &stronger))
        return EQ_FALSE;
    if (stronger)
        equation_of(alg, &p, e);
    int i = choose_term(alg, &p, a, b);
    if (i >= 0)
        add_rule(alg, &p, i);
    return EQ_ADDED;
}

/* A new rule can hide an older one's left side: the remaining content of an equation becomes a rule again. */
static enum equate complete_rules(struct alg *alg)
{
    bool changed = true;
    for (int round = 0; changed && round < MAX_ROUNDS; round++) {
        changed = false;
        for (int i = 0; i < alg->unsettled.n; i++) {
            int before = alg->epoch;
            if (learn(alg, &alg->equations.at[alg->unsettled.at[i]]) == EQ_FALSE)
                return EQ_FALSE;
            changed = changed || alg->epoch != before;
        }
    }
    return EQ_ADDED;
}

static bool is_stated(const struct alg *alg, const struct dim *a, const struct dim *b)
{
    for (int i = 0; i < alg->unsettled.n; i++) {
        const struct equation *e = &alg->equations.at[alg->unsettled.at[i]];
        if (e->left == a && e->right == b)
            return true;
    }
    return false;
}

/* Whether one side is rewritten to the other, whatever other rules are added. */
static bool is_settled(const struct dim *a, const struct dim *b)
{
    return cell_of(a)->rule == b || cell_of(b)->rule == a;
}

enum equate alg_equate(struct alg *alg, const struct dim *a, const struct dim *b, const char *why)
{
    if (is_stated(alg, a, b))
        return EQ_KNOWN;
    struct equation e = {a, b, why};
    enum equate result = learn(alg, &e);
    if (result != EQ_ADDED)
        return result;
    if (alg->equations.n == MAX_EQUATIONS)
        fail("sizes of the model must agree in more than %d ways, which tpc does not handle: %s", MAX_EQUATIONS, why ? why : "");
    if (!is_settled(e.left, e.right))
        VEC_PUSH(alg->arena, &alg->unsettled, alg->equations.n);
    VEC_PUSH(alg->arena, &alg->equations, ((struct equation){e.left, e.right, arena_strdup(alg->arena, why ? why : "")}));
    return complete_rules(alg);
}

int alg_equations(const struct alg *alg, const struct equation **out)
{
    *out = alg->equations.at;
    return alg->equations.n;
}

static bool is_least_of(const struct dim *least, const struct dim *x, int64_t *most)
{
    for (int i = 0; least->kind == DIM_MIN && least->n == 2 && i < 2; i++)
        if (least->arg[i] == x && dim_is_int(least->arg[1 - i], most))
            return true;
    return false;
}

const struct dim *dim_at_most(const struct dim *left, const struct dim *right, int64_t *most)
{
    return is_least_of(left, right, most) ? right : is_least_of(right, left, most) ? left : NULL;
}
