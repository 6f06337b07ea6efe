/* rule: the dimensions of a node's operands and results that may be split together, as factors, and the placements that follow.
 *
 * Every dimension of every operand and result is a sequence of factors, outer to inner, or concatenated parts. Nodes are in canonical form,
 * without size operands. */
#ifndef TPC_OP_RULE_H
#define TPC_OP_RULE_H

#include "ir/ir.h"

enum factor_flag {
    FACTOR_REPLICATED = 1, /* ! never split */
    FACTOR_POSITION = 2,   /* @ the index has a meaning: like ! unless a lowering uses the start of the split */
    FACTOR_CONTRACTED = 4, /* summed or attended over, also if never split: identifies a sequence dimension */
    FACTOR_DROPPED = 8,    /* absent from the results because it is cut away (Slice, unused part): no reduction needed */
    FACTOR_HEADS = 16,     /* seeds splits: outer factor of a split or merging Reshape, heads of attention, Repeat's result, hidden units */
    FACTOR_LOWERED = 32,   /* split only by the row's lowering, whose result is partial by `red` (Gather from a table: sum) */
    FACTOR_TRAVELS = 128,  /* a result may be split, too: the row's lowering sends its rows to the ranks of this factor, and back */
    FACTOR_ORDERED = 64    /* with LOWERED: only if ranks hold one interval each, in ascending order (running sums) */
};
struct factor {
    char name[12];
    const struct dim *size;
    unsigned flags;
    enum redop red; /* for a factor that results lack: the reduction over it */
};
/* A product, outer to inner; n == 0: size 1 (broadcast). */
struct rule_part {
    int n;
    int factor[MAX_RANK];
};
/* Concatenated parts, usually one. */
struct rule_dim {
    int n, cap;
    struct rule_part *part;
    const struct sliding *window; /* windows read the dimension, and the only factor of its part counts them; NULL: no windows */
};
struct rule_operand {
    bool present;
    bool addend; /* + added to the result: partial if a summed factor is split */
    int rank;
    struct rule_dim dim[MAX_RANK];
};
/* An attribute with a size: localize writes the local extent of the product. */
struct rule_size {
    const char *attr;
    struct rule_part part;
};
struct rule {
    int nfactor, factor_cap;
    struct factor *factor;
    struct name_index names; /* of factors, if there are many */
    int nin, nout;
    struct rule_operand *in, *out;
    int nlinear; /* sets of operands, as bit masks, in which the op is jointly linear while the others are replicated */
    uint32_t linear[8];
    bool moves; /* only moves elements: passes every reduction in these sets, not just sum, and max and min in each operand */
    /* Operands in which a result is monotone: it increases (decreases) with one element of the operand. A partial max or min passes alone,
     * or is exchanged for the other. */
    uint32_t increasing, decreasing;
    uint32_t extremal;   /* max-linear (min-linear): the result is the max (min) over elements of these operands; a partial max (min) of all
                          * of them passes */
    enum redop extremum; /* RED_MAX or RED_MIN */
    int nsize;
    struct rule_size size[4];
    int ngroup, group[8];         /* factors that split together: the parts of a |; several factors, one group per rule */
    int query_outer, query_inner; /* (hk g): a rank holds all of some groups or some heads of one group; -1: no such product */
};

/* One rank's windows along a dimension of operand 0: which of them, and the elements that they read; for a symbolic size, the positions
 * before and after these. */
struct slide {
    const struct node *global; /* its node of the global graph */
    int dim;
    const struct sliding *by;
    struct interval windows, elements;
    const struct dim *before, *behind; /* NULL: the size is a number */
};

/* Whether it may be split, directly or by a lowering. */
bool rule_factor_splits(const struct factor *);
/* Building a rule. Factors are numbered from 0; names are only printed. */
struct rule *rule_new(struct graph *, const struct node *); /* operands present as in the node, ranks set, dims empty */
int rule_factor(struct graph *, struct rule *, const char *name, const struct dim *size, unsigned flags);
/* The same, named by a stem and a number. */
int rule_numbered(struct graph *, struct rule *, const char *stem, int number, const struct dim *size, unsigned flags);
/* Appends factor f as the innermost of part p of dimension d (creates parts up to p). */
void rule_put(struct graph *, struct rule_operand *, int d, int part, int f);
/* Makes dimension d of operand 0 and of result 0 one factor; returns it. */
int rule_same_dim(struct graph *, struct rule *, const char *stem, int d, const struct dim *size, unsigned flags);
/* Windows read dimension d of operand 0; dimension d of result 0 is factor f, which counts them. */
void rule_slide(struct graph *, struct rule *, int d, int f, const struct sliding *);
void rule_linear(struct rule *, uint32_t operands);
/* Marks operand i as added to the result; max and min pass through it. */
void rule_addend(struct rule *, int i);
/* For data (operand 0), indices and updates (2) with attribute reduction: marks what passes through both, or through data alone. */
void rule_scatter(struct rule *, const struct node *);
/* One way in which partial values pass: if these operands are partial by `from` and the others replicated, all results are partial by
 * `to`. */
struct rule_pass {
    uint32_t operands;
    enum redop from, to;
};
/* All ways of a rule, each once, in an array of MOST_PASSES; returns their number. */
enum { MOST_PASSES = 256 };
int rule_passes(const struct rule *, struct rule_pass *);
/* "(b.. m k)(k n) -> (b.. m n)  k: sum  linear 0, 1": prints and parses (parse: for fixed rules and for tests). */
char *rule_str(struct arena *, const struct rule *);
/* Sizes and the number of dims of ".." come from the node's types; a text that does not match them is a bug(). */
struct rule *rule_parse(struct graph *, const struct node *, const char *text);
/* The same for texts of any rank and number of operands; operands that the node lacks are omitted.
 *
 *   (a..)*      every operand that follows
 *   a...        a factor for each dimension, a0 and on
 *   [n a]...    n for dimensions in the set, a for the others; n may also be 1, - (none) or ~ (1 if dimensions are kept, else none)
 *   [n a]..     the same for a broadcast operand
 *   n*: sum     a note for each n; a plain * in a note: all operands
 *
 * The first operand with ... determines the dimensions. A note may end in " if " and conditions, joined by " and ", each optionally after
 * "not ":
 *
 *   float, float result         the type of the elements of operand 0, or of result 0
 *   2                           the node has operand 2
 *   result 1, one result        the node has result 1; it has no other than one
 *   vector 1                    operand 1 has one dimension
 *   positive 1, negative 1      operand 1 is a constant number of this sign
 *   divides 1                   operand 1 is constant, and no element is 0
 *   reducible result            ranks can reduce the result's type
 *   over                        "[n a]" has an n
 *   axis is given               the attribute is set
 *   upper                       the attribute is not 0
 *   mode = avg, beta >= 0       compares an attribute; bias <= lambd: two attributes
 *   num_groups divides 1        the attribute, a number above 0, divides dimension 1 of operand 0 */
struct rule *rule_template(struct graph *, const struct node *, uint32_t set, const char *text);
/* The rule of a row of ops.def by its text, "if CONDITIONS: CASE; if CONDITIONS: CASE; CASE": the first case that holds; NULL: none.
 * "{num_groups}" is the value of that attribute. */
struct rule *rule_by_text(struct graph *, const struct node *);
/* rule_NAME, for ops.def, as a call, which may read g and node. */
#define RULE_IS(name, is)                                              \
    struct rule *rule_##name(struct graph *g, const struct node *node) \
    {                                                                  \
        return is;                                                     \
    }
/* The rule of a node, by its row. NULL if it has none (the node stays replicated), if equations do not prove that the products of its sizes
 * equal the types', or if ranks run it on their shards against it (node.on_ranks). */
struct rule *rule_of(struct graph *, const struct node *);
/* Whether the node reads or makes strings. String numbers are valid in one process only, so all ranks have all strings. */
bool rule_of_strings(const struct node *);

/* An assignment: splits of factors (split[f], over the factor's size), or of one product of adjacent factors. */
struct assignment {
    const struct split **factor;     /* by factor, NULL: not split */
    int nproduct, product[MAX_RANK]; /* adjacent factors, outer to inner, split as one */
    const struct split *product_split;
};
/* Placements of all operands and results under an assignment. An operand that lacks the inner factors of a product gets the image of the
 * split; a result that lacks a split factor is P(red); an addend is P. False: not a legal strategy (a replicated factor would be split, two
 * dims of one operand split, a factor lost without reduction, a sum over an overlapping split, groups not uniform). */
bool rule_project(struct graph *, const struct rule *, int ranks, const struct assignment *, struct placement *in, struct placement *out,
                  const char **why);
/* How a node runs on the ranks; node->strategy after choose. */
struct strategy {
    struct placement *in, *out;   /* required placement of each operand, placement of each result */
    struct assignment assignment; /* the split factors; none: replicated or partial */
    bool lowered;                 /* the assignment needs the row's lowering */
    struct space *body;           /* the lowering, made when its cost is computed (src/plan/cost/lowering.c) */
};
/* The split of a product of factors, as in rule_size, under a legal assignment; NULL: not split. */
const struct split *rule_part_split(struct graph *, const struct rule *, int ranks, const struct assignment *, const struct rule_part *);
/* Product of the sizes of factors list[from .. to); 1 for none. For a part: of all its factors. */
const struct dim *rule_sizes(struct graph *, const struct rule *, const int *list, int from, int to);
const struct dim *rule_part_size(struct graph *, const struct rule *, const struct rule_part *);
/* The only factor of a dimension; -1: none, several, or windows. The same for dimension d of an operand or result. */
int rule_lone_factor(const struct rule_dim *);
/* Whether both rows and a factor to which they travel (FACTOR_TRAVELS) are split. */
bool rule_travels(const struct rule *, const struct assignment *);
int rule_factor_at(const struct rule_operand *, int d);
bool rule_has_factor(const struct rule_operand *, int factor);
/* Whether dimension d is one factor in every result, and each range of its indices is computed from the same range of the operands that
 * have it. */
bool rule_cuts_anywhere(const struct rule *, int d);
/* Puts dimension d of a broadcast operand, right-aligned, into factors of the result's dimensions (factor[rank]; -1: the result's dimension
 * is 1). An extent of 1 against a larger result is left empty. */
void rule_broadcast(struct graph *, const struct rule *, struct rule_operand *, const struct type *, int rank, const int *factor);

/* ---- rules as text (rule_parse.c, rule_print.c) ------------------------------------------------------------------------------ */
/*     (b0 m k)(k n) -> (b0 m n)  k: sum contracted  linear 0, 1
 *
 * An operand is its dimensions in parentheses, "-" if absent, with + before an addend. A dimension is factors. A product is in
 * parentheses, | separates concatenated parts, 1 is no factor. y[3/2-1]: what windows y of 3 elements read, with stride 2, starting at -1;
 * y[3/1:2-1]: the same with a stride of half an element. ! marks a factor that is never split, @ one whose index has a meaning. Notes
 * follow, two spaces apart: properties of factors, linear sets (members separated by +), moves, operands in which the op is increasing or
 * decreasing, operands in which it is max-linear or min-linear, group, query, size attributes. The note of a factor that is nowhere a
 * dimension of its own gives its size. In parsed text, "b.." stands for as many dimensions as the type leaves, aligned at the right. */
/* Properties of factors that have a word; the others are marks. */
enum { RULE_FLAGS = 5 };
struct flag_name {
    unsigned flag;
    const char *name;
};
extern const struct flag_name rule_flag[RULE_FLAGS];

#endif
