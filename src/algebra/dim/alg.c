/* alg: the interner. Equal values are built once, so that equality is a comparison of pointers.
 *
 * Integers, symbols and composites have a table each. A composite is looked up by its kind and its interned children; its bounds, weight
 * and depth are computed when it is made, and its bounds again whenever a fact changes. */
#include "algebra/dim/cell.h"

#include <string.h>

struct alg *alg_new(struct arena *arena)
{
    struct alg *alg = NEW(arena, struct alg);
    alg->arena = arena;
    return alg;
}

struct arena *alg_arena(const struct alg *alg)
{
    return alg->arena;
}

static struct cell *cell_new(struct alg *alg, enum dim_kind kind, int keys)
{
    struct cell *c = arena_alloc(alg->arena, sizeof *c + (size_t)keys * sizeof c->key[0]);
    c->d.kind = kind;
    c->d.id = alg->all.n;
    c->coef = 1;
    c->mono = &c->d;
    c->now = &c->d;
    c->epoch = alg->epoch;
    VEC_PUSH(alg->arena, &alg->all, c);
    return c;
}

static struct cell *int_cell(struct alg *alg, int64_t k)
{
    struct cell *c;
    HASH_FIND(hh, alg->ints, &k, sizeof k, c);
    if (c)
        return c;
    c = cell_new(alg, DIM_INT, 0);
    c->d.k = c->d.lo = c->d.hi = c->coef = k;
    c->mono = NULL;
    HASH_ADD(hh, alg->ints, d.k, sizeof c->d.k, c);
    return c;
}

const struct dim *dim_int(struct alg *alg, int64_t k)
{
    if (k < 0 || k >= SMALL_INTS)
        return &int_cell(alg, k)->d;
    if (!alg->small[k])
        alg->small[k] = int_cell(alg, k);
    return &alg->small[k]->d;
}

static struct cell *symbol_new(struct alg *alg, const char *name, int64_t usual)
{
    struct cell *c = cell_new(alg, DIM_SYM, 0);
    c->d.name = arena_strdup(alg->arena, name);
    c->d.usual = usual;
    c->d.hi = UNBOUNDED_HI;
    c->weight = c->depth = 1;
    HASH_ADD_KEYPTR(hh, alg->symbols, c->d.name, strlen(name), c);
    return c;
}

const struct dim *dim_sym(struct alg *alg, const char *name, int64_t usual)
{
    struct cell *c;
    HASH_FIND(hh, alg->symbols, name, strlen(name), c);
    if (!c)
        c = symbol_new(alg, name, usual);
    else if (usual < c->d.usual)
        c->d.usual = usual;
    return dim_fresh(alg, &c->d);
}

const struct dim *dim_data_sym(struct alg *alg, const char *name)
{
    struct cell *c;
    const struct dim *d = dim_sym(alg, name, 0);
    HASH_FIND(hh, alg->symbols, name, strlen(name), c);
    c->d.data = true;
    return d;
}

/* Bounds follow from the bounds of symbols, children first, in order of creation. Folding by bounds happens when an expression is made or
 * rewritten. */
void alg_facts_changed(struct alg *alg)
{
    alg->epoch++;
    for (int i = 0; alg->bounds_moved && i < alg->all.n; i++)
        cell_bounds(alg, alg->all.at[i]);
    alg->bounds_moved = false;
}

static int saturating_add(int a, int b)
{
    int sum;
    return __builtin_add_overflow(a, b, &sum) ? INT32_MAX : sum;
}

/* Sums and products add no depth of their own. */
static void measure_cell(struct cell *c)
{
    bool atom = c->d.kind != DIM_ADD && c->d.kind != DIM_MUL;
    c->weight = atom;
    for (int i = 0; i < c->d.n; i++) {
        const struct cell *child = cell_of(c->d.arg[i]);
        c->weight = saturating_add(c->weight, child->weight);
        if (child->depth > c->depth)
            c->depth = child->depth;
    }
    c->depth += atom;
    if (c->depth > MAX_DEPTH)
        fail("a dimension expression nests too deep: expected at most %d levels, found more", MAX_DEPTH);
}

static void split_coefficient(struct alg *alg, struct cell *c)
{
    if (c->d.kind != DIM_MUL || c->d.arg[0]->kind != DIM_INT)
        return;
    c->coef = c->d.arg[0]->k;
    c->mono = c->d.n == 2 ? c->d.arg[1] : alg_composite(alg, DIM_MUL, c->d.n - 1, c->d.arg + 1);
}

/* The cell of that key; if missing, a new one without measures. Not inlined: the key is large, and the caller recurses. */
static __attribute__((noinline)) struct cell *composite_cell(struct alg *alg, enum dim_kind kind, int n, const struct dim *const *arg,
                                                             bool *is_new)
{
    const struct dim *key[MAX_TERMS + 2];
    require(n <= MAX_TERMS + 1);
    key[0] = (const struct dim *)(uintptr_t)kind;
    memcpy(key + 1, arg, (size_t)n * sizeof *arg);
    size_t bytes = (size_t)(n + 1) * sizeof *key;
    struct cell *c;
    HASH_FIND(hh, alg->composites, key, bytes, c);
    *is_new = !c;
    if (c)
        return c;
    c = cell_new(alg, kind, n + 1);
    memcpy(c->key, key, bytes);
    c->d.n = n;
    c->d.arg = c->key + 1;
    HASH_ADD_KEYPTR(hh, alg->composites, c->key, bytes, c);
    return c;
}

const struct dim *alg_composite(struct alg *alg, enum dim_kind kind, int n, const struct dim *const *arg)
{
    bool is_new;
    struct cell *c = composite_cell(alg, kind, n, arg, &is_new);
    if (!is_new)
        return &c->d;
    measure_cell(c);
    split_coefficient(alg, c);
    cell_bounds(alg, c);
    return &c->d;
}
