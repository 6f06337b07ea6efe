/* cell.h: shared by the files of this layer only: the interner, its cells, polynomials, rewrite rules.
 *
 * A cell is a struct dim with what the algebra remembers about it. A polynomial is the working form of an expression: a sum of terms sorted
 * by the id of their monomial, the constant (monomial NULL) last. A monomial is an atom or a DIM_MUL of atoms without a coefficient.
 * Polynomials are on the stack, long ones in a block; ok is false once a coefficient overflowed or the terms ran out. */
#ifndef TPC_ALGEBRA_CELL_H
#define TPC_ALGEBRA_CELL_H

#include "algebra/algebra.h"

#define uthash_malloc(bytes) arena_alloc(alg->arena, bytes)
#define uthash_free(p, bytes) ((void)0)
#include <uthash.h>

enum { FEW_TERMS = 64, MAX_TERMS = 1024, MAX_DEGREE = 32, MAX_DEPTH = 64, MAX_CHOICES = 64, SMALL_INTS = 16 };
#define UNBOUNDED_LO INT64_MIN
#define UNBOUNDED_HI INT64_MAX

struct cell {
    struct dim d;
    int64_t coef;           /* d = coef * mono, unless d is a sum */
    const struct dim *mono; /* NULL: 1 */
    int weight, depth;      /* number of atoms in it, nesting of atoms */
    int64_t stated_lo;      /* of a symbol: d.lo without the effect of equations */
    const struct dim *rule; /* of an atom: an equation replaces it by this */
    const struct dim *now;  /* d as rewritten in epoch */
    int epoch;
    UT_hash_handle hh;
    const struct dim *key[]; /* of composites: the kind, then the children */
};

struct dim_rule {
    int64_t coef;
    const struct dim *mono, *right;
}; /* coef * mono -> right, for products and coef != 1 */

struct alg {
    struct arena *arena;
    struct cell *ints, *symbols, *composites;
    struct cell *small[SMALL_INTS]; /* of small integers; NULL: not made yet */
    VEC(struct cell *) all;         /* in order of creation: children before parents */
    int epoch;                      /* counts changes of rules and facts */
    bool bounds_moved;              /* bounds of a symbol changed; others follow in alg_facts_changed */
    VEC(struct dim_rule) rules;
    VEC(struct equation) equations;
    VEC(int) unsettled;                  /* equations that later rules may hide */
    VEC(const struct dim *) nonnegative; /* expressions that equations state to be >= 0 */
    struct split_cell *splits;
    int split_count;
    VEC(int64_t) split_key;           /* of the split to look up */
    VEC(struct pattern_room *) rooms; /* split.c: patterns under construction, the first rooms_used */
    int rooms_used;
    struct split_text *texts; /* split_text.c: parsed texts */
    VEC(const struct shares *) shares;
    struct term_block *blocks; /* of polynomials of many terms, those that are free */
};

/* ---- alg.c ---- */
static inline struct cell *cell_of(const struct dim *d)
{
    return (struct cell *)(uintptr_t)d; /* every dim is the first member of one of our cells */
}
const struct dim *alg_composite(struct alg *, enum dim_kind, int n, const struct dim *const *arg);
void alg_facts_changed(struct alg *);

/* ---- poly.c ---- */
struct term {
    int64_t coef;
    const struct dim *mono;
};
struct term_block {
    struct term_block *next;
    struct term at[MAX_TERMS];
};
struct poly {
    struct alg *alg;
    int n;
    bool ok;
    struct term *at;          /* few, or of the block */
    struct term_block *block; /* NULL: none yet */
    struct term few[FEW_TERMS];
};
/* A local polynomial, 0. Its block goes back to the interner at the end of the scope. */
#define POLY(name, alg)                                      \
    __attribute__((cleanup(poly_release))) struct poly name; \
    poly_begin(&(name), alg)
void poly_begin(struct poly *, struct alg *);
void poly_release(struct poly *);
void poly_copy(struct poly *to, const struct poly *from);
void poly_zero(struct poly *);
void poly_insert(struct poly *, int64_t coef, const struct dim *mono);
void poly_add_dim(struct poly *, int64_t scale, const struct dim *);
void poly_add_poly(struct poly *, int64_t scale, const struct poly *);
void poly_add_product(struct alg *, struct poly *, int64_t coef, const struct dim *mono, const struct dim *by);
void poly_mul(struct alg *, struct poly *out, const struct poly *, const struct poly *);
bool poly_quotient(struct alg *, struct poly *out, const struct poly *, const struct poly *by);
int64_t poly_content(const struct poly *, bool with_constant);
const struct dim *poly_mono_content(struct alg *, const struct poly *);
const struct dim *poly_dim(struct alg *, const struct poly *);
int poly_mono_atoms(const struct dim *mono, const struct dim *const **out);
const struct dim *poly_mono_mul(struct alg *, const struct dim *, const struct dim *);
bool poly_mono_div(struct alg *, const struct dim *, const struct dim *by, const struct dim **out);

/* ---- bound.c ---- */
void cell_bounds(struct alg *, struct cell *);
int64_t poly_lower(struct alg *, const struct poly *);
bool dim_is_int_div(const struct dim *);

/* ---- equation.c ---- */
const struct dim *dim_fresh(struct alg *, const struct dim *);
void poly_reduce(struct alg *, struct poly *);

/* ---- split.c, split_window.c: splits with `reads` ---- */
const struct split *split_reading(struct alg *, const struct split *windows, const struct sliding *);
const struct dim *split_window_start(struct alg *, const struct split *, int rank);
const struct dim *split_window_extent(struct alg *, const struct split *, int rank);

/* ---- shares.c ---- */
/* The start of rank r if n indices are shared, or, without shares, split as evenly as possible: as a number, and as an expression. */
int64_t share_start(const struct shares *, int ranks, int64_t n, int rank);
const struct dim *share_start_dim(struct alg *, const struct shares *, int ranks, const struct dim *n, int rank);
const struct dim *share_extent_dim(struct alg *, const struct shares *, int ranks, const struct dim *n, int rank);

/* ---- split_formula.c ---- */
enum { SPLIT_PARTS = 16 };
/* Sets the parts of a listed split, if it has any, and their repetitions. */
void split_find_parts(struct arena *, struct split *);

/* ---- dim_text.c ---- */
/* Parses the longest expression at *at and moves *at past it; names have letters, digits and _ . $ unless in backquotes. */
const struct dim *dim_parse_at(struct alg *, const char **at, int64_t usual, const char **error);

#endif
