/* algebra: dimension expressions, types, splits, placements. Values here are interned: equal means the same pointer.
 *
 * A struct alg is the interner; it also holds the facts (lower bounds of symbols) and equations under which expressions are
 * simplified. It is not thread-safe: one per graph family, used by one thread; reading interned values from many threads is fine. */
#ifndef TPC_ALGEBRA_H
#define TPC_ALGEBRA_H

#include "base/base.h"

#define MAX_RANK 8          /* of a tensor; higher ranks are rejected at load */
enum { PLAN_RANKS = 4096 }; /* the most ranks of a plan */

struct alg;
struct alg *alg_new(struct arena *);
struct arena *alg_arena(const struct alg *);

/* ---- dim.c: dimension expressions -------------------------------------------------------------------------------------------- */
/* Canonical: a sum of products of atoms with integer coefficients; an atom is a symbol, a floor division, a mod, a min or a max.
 * Children are canonical and sorted, so equal expressions are the same pointer. lo and hi bound the value under the facts. */
enum dim_kind { DIM_INT, DIM_SYM, DIM_ADD, DIM_MUL, DIM_DIV, DIM_MOD, DIM_MIN, DIM_MAX };
struct dim {
    enum dim_kind kind;
    int64_t k;        /* INT: the value */
    const char *name; /* SYM */
    bool data;        /* SYM: the size is data-dependent */
    int64_t usual;    /* SYM: the smallest usual size: 1 for a plain dimension, 0 for a past length */
    int n;            /* children: ADD, MUL, MIN, MAX: >= 2; DIV, MOD: 2. An integer child comes last in ADD, first in MUL */
    const struct dim *const *arg;
    int64_t lo, hi; /* inclusive; INT64_MIN / INT64_MAX: unbounded */
    int id;         /* order of creation: the canonical sort key */
};
const struct dim *dim_int(struct alg *, int64_t);
/* The symbol of that name, a size of at least 0; the lowest given `usual` counts. */
const struct dim *dim_sym(struct alg *, const char *name, int64_t usual);
/* States that a symbol is at least lo. */
const struct dim *dim_at_least(struct alg *, const struct dim *symbol, int64_t lo);
/* The stated bound, or 0. An equation may raise the symbol's lo further. */
int64_t dim_stated_lo(const struct dim *symbol);
/* The symbol of a data-dependent size, at least 0; whether an expression contains such a symbol. */
const struct dim *dim_data_sym(struct alg *, const char *name);
bool dim_has_data(const struct dim *);
const struct dim *dim_add(struct alg *, const struct dim *, const struct dim *);
const struct dim *dim_sub(struct alg *, const struct dim *, const struct dim *);
const struct dim *dim_neg(struct alg *, const struct dim *);
const struct dim *dim_mul(struct alg *, const struct dim *, const struct dim *);
/* Floor division and floor modulus. Fails on a divisor of 0. a mod b is built as a - b*(a/b): no DIM_MOD is ever built. */
const struct dim *dim_div(struct alg *, const struct dim *, const struct dim *);
const struct dim *dim_mod(struct alg *, const struct dim *, const struct dim *);
const struct dim *dim_min(struct alg *, const struct dim *, const struct dim *);
const struct dim *dim_max(struct alg *, const struct dim *, const struct dim *);
/* The exact quotient a / b if it exists for all values of the symbols, else NULL. */
const struct dim *dim_quotient(struct alg *, const struct dim *a, const struct dim *b);
bool dim_is_int(const struct dim *, int64_t *out); /* out may be NULL */
bool dim_equals(const struct dim *, int64_t);
/* Whether it is provable under the facts and equations. */
bool dim_ge(struct alg *, const struct dim *a, const struct dim *b);
bool dim_uses(const struct dim *, const char *symbol);
/* The names of the symbols in d, each once, in order of first use. */
int dim_symbols(const struct dim *, const char **out, int max);
/* Calls note(data, symbol) for every occurrence of a symbol in d. */
void dim_each_symbol(const struct dim *, void (*note)(void *data, const struct dim *symbol), void *data);
/* "2*B*(S + P) + 1", "S/4" (floor), "S%4", "min(S, 64)"; parses back to the same pointer. Symbols may hold any characters except those of
 * the grammar; others are written in backquotes. NULL, and *error is set, if the text is not an expression. usual: for new symbols. */
char *dim_str(struct arena *, const struct dim *);
char *dim_str_compact(struct arena *, const struct dim *); /* without blanks */
const struct dim *dim_parse(struct alg *, const char *text, int64_t usual, const char **error);
/* Copies an expression of another interner to this one: symbols keep their names and lower bounds. */
const struct dim *dim_copy(struct alg *, const struct dim *);
/* Rebuilds an expression in this interner with each symbol replaced by `symbol`'s result; NULL if that returns NULL. */
const struct dim *dim_replace(struct alg *, const struct dim *, const struct dim *(*symbol)(void *data, const struct dim *), void *data);

/* Values for symbols. */
struct binding {
    const char *name;
    int64_t value;
};
struct bindings {
    VEC(struct binding) list;
    struct name_index index; /* positions in the list */
};
const int64_t *bindings_get(const struct bindings *, const char *name);
/* The name is kept, not copied. */
void bindings_set(struct arena *, struct bindings *, const char *name, int64_t value);
void bindings_clear(struct bindings *);
/* "NAME=SIZE", a size of 0 or more; the name may hold '=' itself. */
bool binding_parse(struct arena *, const char *text, struct binding *out);
/* False if a symbol is unbound, or on overflow or division by zero. */
bool dim_eval(const struct dim *, const struct bindings *, int64_t *out);

/* ---- equations (also dim.c): assumptions found during inference, checked in every run ---------------------------------- */
struct equation {
    const struct dim *left, *right;
    const char *why;
}; /* as found, before rewriting */
/* An equation min(x, most) = x states that x is at most `most`: returns x. NULL: another equation. */
const struct dim *dim_at_most(const struct dim *left, const struct dim *right, int64_t *most);
enum equate { EQ_KNOWN, EQ_ADDED, EQ_FALSE };
/* States a = b. From then on every constructor rewrites to the simpler side: solved for a symbol if linear in it, else the hardest term
 * (min, max, quotient, product) is replaced. In total = past + sequence, the composite name (total) is replaced. EQ_KNOWN: already equal;
 * EQ_FALSE: impossible (4 = 5). Earlier expressions keep their pointer: run them through dim_rewrite, or infer again. */
enum equate alg_equate(struct alg *, const struct dim *a, const struct dim *b, const char *why);
const struct dim *dim_rewrite(struct alg *, const struct dim *);
int alg_equations(const struct alg *, const struct equation **out);
/* From min(n, 1) = 1, which states that n is not 0: n. NULL: another equation. */
const struct dim *dim_of_not_zero(const struct dim *left, const struct dim *right);

/* ---- not_zero.c: sizes of inputs are at least 0, and seldom 0 ----------------------------------------------------------- */
/* The lower bound of an expression for usual sizes of its symbols. */
int64_t dim_usual_lo(struct alg *, const struct dim *);
/* Whether a >= b. If it holds only for usual sizes, adds the assumption that a symbol is not 0: min(n, 1) = 1. */
bool alg_assume_ge(struct alg *, const struct dim *a, const struct dim *b, const char *why);

/* ---- type.c ---------------------------------------------------------------------------------------------------- */
enum dtype { /* ONNX's TensorProto.DataType numbers */
             DT_NONE = 0,
             DT_F32 = 1,
             DT_U8 = 2,
             DT_I8 = 3,
             DT_U16 = 4,
             DT_I16 = 5,
             DT_I32 = 6,
             DT_I64 = 7,
             DT_STRING = 8,
             DT_BOOL = 9,
             DT_F16 = 10,
             DT_F64 = 11,
             DT_U32 = 12,
             DT_U64 = 13,
             DT_BF16 = 16,
             DT_F8E4M3FN = 17,
             DT_F8E4M3FNUZ = 18,
             DT_F8E5M2 = 19,
             DT_F8E5M2FNUZ = 20,
             DT_U4 = 21,
             DT_I4 = 22,
             DT_F4E2M1 = 23,
             DT_F8E8M0 = 24,
             DT_U2 = 25,
             DT_I2 = 26
};
/* Elements of 2 and 4 bits have a byte each in values. In constants and files they share bytes, the first in the lowest bits; rows are not
 * padded. */
size_t dtype_size(enum dtype);    /* bytes of an element of a value, for a string of its number (base/text/string.c); 0: unknown type */
int dtype_bits(enum dtype);       /* of an element in constants and files */
bool dtype_is_packed(enum dtype); /* fewer than 8 */
/* Bytes of n elements of a value; in a constant or file; false on overflow and for types without a size. */
bool dtype_bytes(enum dtype, int64_t n, int64_t *out);
bool dtype_packed_bytes(enum dtype, int64_t n, int64_t *out);
const char *dtype_name(enum dtype); /* f32 i64 bool ... */
enum dtype dtype_parse(const char *name);
bool dtype_is_float(enum dtype);       /* of 16 bits or more: ops compute with them */
bool dtype_is_small_float(enum dtype); /* of 4 and 8 bits: small_float.c */
bool dtype_is_byte(enum dtype);        /* u8 or i8 */
bool dtype_is_half(enum dtype);        /* f16, bf16: computed in float32 */
bool dtype_is_small(enum dtype);       /* packed or a small float: moved, cast and scaled, never summed */
bool dtype_is_integer(enum dtype);
void dtype_range(enum dtype, int64_t *lo, int64_t *hi); /* for an integer type; hi of u64: the largest int64 */

/* ---- packed.c: elements first.. of a packed type, from and to bytes ------------------------------------------ */
void dtype_unpack(enum dtype, const void *packed, int64_t first, int64_t n, void *to);
void dtype_pack(enum dtype, const void *from, int64_t n, void *packed);
uint8_t dtype_low_bits(enum dtype, int64_t); /* for a packed type: the low bits, as in values */

/* ---- small_float.c: floats of 4 and 8 bits, which ops move, cast and scale ---------------------------------------- */
float small_float_decode(enum dtype, uint8_t code);
/* saturate: numbers out of range become the largest number, else infinity or NaN. */
uint8_t small_float_encode(enum dtype, float, bool saturate);
uint8_t small_float_power(float, const char *round); /* f8e8m0; round: up, down, nearest */

struct type {
    enum dtype dtype;
    int rank;
    const struct dim *dim[MAX_RANK];
}; /* dtype DT_NONE: unknown */
bool type_eq(const struct type *, const struct type *);
bool type_uses(const struct type *, const char *symbol); /* in one of its dimensions */
const struct dim *type_elements(struct alg *, const struct type *);
char *type_str(struct arena *, const struct type *); /* "f32[B, S, 64]" */
bool type_parse(struct alg *, const char *text, int64_t usual, struct type *out, const char **error);
/* Product of n sizes, then bytes; false for a negative size, and if the product of the nonzero sizes overflows, so that no partial product
 * overflows. */
bool type_sizes_product(const int64_t *size, int n, int64_t *out);
bool type_bytes(const struct type *, int64_t *out); /* false also if a size is unknown */

/* ---- split.c: how one dimension is sharded over t ranks ---------------------------------------------------------------------- */
/* The dimension is outer repetitions of a period; a period is the pattern with every index standing for inner elements. A pattern is, for
 * each rank, the ordered list of half-open intervals of [0, n) it holds; or balanced: n = q*t + m, rank r holds q+1 indices if r < m, else
 * q. Integer outer and inner are multiplied into a listed pattern, so a static dimension has one list (outer = inner = 1); adjoining
 * intervals are joined. Ranks may hold nothing; ranks may overlap (KV heads repeated). reads: the n indices are windows, evenly split, and
 * each rank holds the elements that its windows read: a cover. outer = inner = 1. */
struct interval {
    int64_t lo, hi;
};
/* Windows that slide over a dimension of `size` elements, in steps of 1 / per element. Window o reads the existing elements from (o*stride
 * - pad) / per to (o*stride - pad + reach) / per, both rounded up. If per is 1, fewer than a stride are left after the last window. */
struct sliding {
    int64_t stride, reach, pad, per;
    const struct dim *size;
};
/* A part of a dimension: the groups of `group` indices that each rank touches, with n indices split as evenly as possible; every index
 * stands for inner elements. whole: every rank holds all n. */
struct split_part {
    int64_t n, group, inner;
    bool whole;
};
/* Each rank's part, as a share of the sum. */
struct shares {
    int ranks;
    int64_t sum;         /* of all; at most SHARES_SUM */
    const int64_t *from; /* [ranks + 1]: the sum before each rank */
};
enum { SHARES_SUM = 1 << 20 };
struct split {
    int ranks;
    bool balanced;
    const struct shares *shares;         /* balanced only; NULL: equal shares */
    const struct dim *outer, *n, *inner; /* n: length of the pattern, an integer unless balanced */
    const struct sliding *reads;         /* balanced only; NULL: n are elements */
    const int *count;                    /* listed: intervals of each rank */
    const struct interval *const *list;  /* listed: [rank][count[rank]] */
    int parts;                           /* listed: formulas that produce the list, in order; 0: none */
    int64_t times;                       /* repetitions of the parts */
    const struct split_part *part;
    bool partition, cover, replicated; /* each index held exactly once / at least once / by every rank, in order */
    int id;
};
/* n indices split as evenly as possible: a list for an integer n, balanced for a symbolic one. */
const struct split *split_even(struct alg *, int ranks, const struct dim *n);
/* shares.c: interned. NULL if all are equal: then split_shared is split_even. No share is negative, and one is not 0. */
const struct shares *alg_shares(struct alg *, int ranks, const int64_t *share);
/* How many of the items each of n gets, so that the slowest finishes as early as possible: at least the integer part of its share, and the
 * rest one by one (Jefferson's method). */
void shares_deal(int n, const double *share, int64_t items, int64_t *held);
/* n indices, as close to the shares as possible: rank r begins at n * from[r] / sum, rounded to the nearest. */
const struct split *split_shared(struct alg *, int ranks, const struct shares *, const struct dim *n);
const struct split *split_list(struct alg *, int ranks, int64_t n, const int *count, const struct interval *const *list);
/* Every rank holds all of n (integer or symbolic: one interval, scaled by inner = n). */
const struct split *split_replicated(struct alg *, int ranks, const struct dim *n);
const struct dim *split_size(struct alg *, const struct split *); /* outer * n * inner */
/* The split of outer * size * inner whose middle factor is split by s. NULL if its list would have more than a million intervals. */
const struct split *split_scale(struct alg *, const struct split *, const struct dim *outer, const struct dim *inner);
/* The inverse: the split of size / (outer * inner), or NULL if s cuts inside inner or differs between the outer repetitions. */
const struct split *split_divide(struct alg *, const struct split *, const struct dim *outer, const struct dim *inner);
/* Each rank's part of [lo, hi), counted from lo. NULL if s is not listed with outer = inner = 1 (a replicated one is allowed). */
const struct split *split_restrict(struct alg *, const struct split *, int64_t lo, int64_t hi);
/* Concatenated parts, each listed (or replicated); NULL if a size is symbolic. */
const struct split *split_concat(struct alg *, int parts, const struct split *const *part);
/* The same fractions of another size, if every bound remains an integer, else NULL. */
const struct split *split_rescale(struct alg *, const struct split *, int64_t size);
/* The groups of g consecutive indices that each rank touches: bounds lo/g .. ceil(hi/g). A cover; listed splits only, else NULL. */
const struct split *split_image(struct alg *, const struct split *, int64_t g);
/* split_window.c: the elements that each rank reads if windows are split by s: a cover; for a symbolic size, with windows split evenly, as
 * `reads`. NULL unless each rank has one interval of windows, in ascending order, and reads an element (for a symbolic size, per is 1). */
const struct split *split_windows(struct alg *, const struct split *, const struct sliding *);
/* For a split with `reads`: the padding before and after a rank's elements, where its windows exceed the ends; negative after, if they do
 * not reach its last elements. With the padding, the rank has a stride for each window plus reach minus stride, also if it has no
 * window. */
void split_window_border(struct alg *, const struct split *, int rank, const struct dim **before, const struct dim **behind);
/* The windows of rank r for known sizes, and the elements that they read. */
struct interval split_window_piece(const struct split *, int rank, int64_t windows, int64_t size);
/* The largest part of a dimension that a rank sends or receives when it is redistributed under these sizes; -1 unless each rank holds one
 * range, before and after. */
double split_moved(struct arena *, const struct split *from, const struct split *to, const struct bindings *);
/* Whether rank r's part by a is within its part by b, scaled to b's size (KV cover of query fractions). */
bool split_fraction_within(const struct split *a, const struct split *b);
/* Number of elements rank r holds, as an expression (balanced: (n + t-1-r)/t scaled). */
const struct dim *split_extent(struct alg *, const struct split *, int rank);
/* The first pattern index that rank r holds (balanced: the sum of earlier extents). */
const struct dim *split_start(struct alg *, const struct split *, int rank);
/* Rank r's pieces for given symbol values: out gets global [lo, hi) element ranges of the dimension in order. Arena allocated; -1 if a
 * symbol is unbound. owned: only indices that no lower rank holds. */
int split_pieces(struct arena *, const struct split *, int rank, bool owned, const struct bindings *, struct interval **out);
/* split_open.c: how many of its sizes are no integers; the symbols in all sizes of n splits, by name, each once. */
int split_open_sizes(const struct split *);
int split_symbols(struct arena *, int n, const struct split *const *, const struct dim *const **out);
/* "t4:balanced(64)", "t2:64:0-16/16-64", "t4:balanced(S);inner=64", "t4:balanced(S/2)[3/2-1](S)", "t4:whole(S)" (grammar in split_text.c):
 * one token without spaces; parses back to the same pointer. */
char *split_str(struct arena *, const struct split *);
/* Each text is parsed once: the interner caches results. */
const struct split *split_parse(struct alg *, const char *text, const char **error);

/* ---- placement.c ------------------------------------------------------------------------------------------------ */
enum place { PLACE_R, PLACE_S, PLACE_P };
enum redop { RED_NONE, RED_SUM, RED_MAX, RED_MIN, RED_PROD };
struct placement {
    enum place kind;
    int dim;
    const struct split *split;
    enum redop op;
};                                                               /* dim, split: S; op: P */
extern const struct placement placement_replicated;              /* R */
struct placement placement_split(int dim, const struct split *); /* R if the split is replicated */
struct placement placement_partial(enum redop);
bool placement_eq(struct placement, struct placement);
char *placement_str(struct arena *, struct placement); /* "R", "S(1; split)", "P(sum)" */
bool placement_parse(struct alg *, const char *text, struct placement *out, const char **error);
/* A text with placements, with each split in the form of split_str: older files list the intervals of even splits. Anything that is no
 * split, such as a pattern, is unchanged. In the interner's arena. */
char *placement_texts(struct alg *, const char *text);
char *placement_outlines(struct arena *, const char *text); /* without the splits: "S(1; split)" becomes "S(1)" */
/* Rank r's type of a value of global type t. */
struct type placement_local(struct alg *, const struct type *, struct placement, int rank);
/* Whether, under these sizes, rank r's part is one contiguous range of the value's memory: at most one range, with at most one index in the
 * dimensions before it. False if sizes are unknown. */
bool placement_is_stretch(const struct type *, struct placement, int rank, const struct bindings *);
const char *redop_name(enum redop);
enum redop redop_parse(const char *);

/* ---- sum_wire.c: messages of float32 sums between machines ------------------------------------------------------- */
enum wire { WIRE_PLANNED = -1, WIRE_F32, WIRE_BF16, WIRE_Q8, WIRES }; /* PLANNED: from the rank files */
enum { SUM_WIRE_BLOCK = 32 };                                         /* floats of q8 that share a scale */
const char *sum_wire_name(enum wire);
bool sum_wire_parse(const char *name, enum wire *); /* false: no such name */
int64_t sum_wire_bytes(enum wire, int64_t floats);

/* ---- collective.c ----------------------------------------------------------------------------------------------- */
/* X(constant, op of domain tpc) */
#define COLLECTIVES(X)                \
    X(ALLREDUCE, "AllReduce")         \
    X(ALLGATHER, "AllGather")         \
    X(REDUCESCATTER, "ReduceScatter") \
    X(ALLTOALL, "AllToAll")           \
    X(REDISTRIBUTE, "Redistribute")   \
    X(BROADCAST, "Broadcast")         \
    X(DISPATCH, "Dispatch")           \
    X(COMBINE, "Combine")
#define COLLECTIVE_CONSTANT(constant, op) COLL_##constant,
enum collective { COLL_NONE, COLLECTIVES(COLLECTIVE_CONSTANT) };
#undef COLLECTIVE_CONSTANT
const char *collective_name(enum collective);
enum collective collective_parse(const char *op); /* COLL_NONE: it is none */
/* One step from a placement to another. by: its collective; COLL_NONE: each rank does its part locally, as a slice. */
struct transition {
    bool possible;
    enum collective by;
};
struct transition placement_transition(struct placement from, struct placement to);

#endif
