/* rule: which dimensions of a node's operands and results may be split together, as factors, and which placements follow.
 *
 * Every dimension of every operand and result is a sequence of factors, outer to inner, or parts that are concatenated. Nodes are in
 * canonical form: operands that only give sizes are gone. */
#ifndef TPC_OP_RULE_H
#define TPC_OP_RULE_H

#include "ir/ir.h"

enum factor_flag {
    FACTOR_WHOLE = 1,      /* ! never split */
    FACTOR_POSITION = 2,   /* @ the index means something: acts as ! unless a lowering uses the start of the split */
    FACTOR_CONTRACTED = 4, /* summed or attended over (also when whole): how a sequence dimension is recognised */
    FACTOR_DROPPED = 8,    /* absent from the results because it is cut away (Slice, unused part): no reduction needed */
    FACTOR_HEADS = 16,     /* seeded: outer factor of a Reshape that splits or merges, head factors of attention, Repeat's result */
    FACTOR_LOWERED = 32,   /* split only by the row's lowering; red tells what its result is (Gather from a split table: sum) */
    FACTOR_ORDERED = 64    /* beside LOWERED: only where ranks hold one interval each, in ascending order (running sums) */
};
struct factor {
    char name[12];
    const struct dim *size;
    unsigned flags;
    enum redop red;
}; /* red: absent from results, reduced by */
struct rule_part {
    int n;
    int factor[MAX_RANK];
}; /* a product, outer to inner; n == 0: size 1 (broadcast) */
struct rule_dim {
    int n, cap;
    struct rule_part *part;
}; /* parts laid end to end; n == 1 mostly; cap 0: no room for more */
struct rule_operand {
    bool present;
    bool term;
    int rank;
    struct rule_dim dim[MAX_RANK];
}; /* term: + counts once: P when a sum factor is split */
/* An attribute that states a size: localize writes the local extent of the product. */
struct rule_size {
    const char *attr;
    struct rule_part part;
};
struct rule {
    int nfactor, factor_cap;
    struct factor *factor;
    int nin, nout;
    struct rule_operand *in, *out;
    int nlinear; /* sets of operands, as bit masks, in which the op is jointly linear while the others are whole */
    uint32_t linear[8];
    bool moves;            /* only moves elements: passes every reduction in these sets, not just sum, and max and min in each operand */
    uint32_t rises, falls; /* operands, one element of which makes a result, and greater (less) where it is greater: passes max and min */
                           /* alone, or exchanges them */
    uint32_t joined;       /* operands of whose elements results are the reduction `joins` (max, min): passes it in all of them */
    enum redop joins;
    int nsize;
    struct rule_size size[4];
    int ngroup, group[8];         /* factors that split together: the parts of a |; several factors, one group per rule */
    int query_outer, query_inner; /* (hk g): a rank holds whole groups or heads of one group; -1: no such product */
};

/* May it be split at all, by itself or by a lowering? */
bool factor_splits(const struct factor *);
/* Building a rule. Factors are numbered from 0; names are for printing only. */
struct rule *rule_new(struct graph *, const struct node *); /* operands present as in the node, ranks set, dims empty */
int rule_factor(struct graph *, struct rule *, const char *name, const struct dim *size, unsigned flags);
/* The same, named by a stem and a number. */
int rule_numbered(struct graph *, struct rule *, const char *stem, int number, const struct dim *size, unsigned flags);
/* Appends factor f as the innermost of part p of dimension d (creating parts up to p). */
void rule_put(struct graph *, struct rule_operand *, int d, int part, int f);
/* Dimension d of operand 0 and of result 0 is one factor. */
void rule_same_dim(struct graph *, struct rule *, const char *stem, int d, const struct dim *size, unsigned flags);
void rule_linear(struct rule *, uint32_t operands);
/* Operand i is added to the result: a term, through which max and min pass. */
void rule_term(struct rule *, int i);
/* For data (operand 0), indices and updates (2) with attribute reduction: what passes through both, or through data alone. */
void rule_scatter(struct rule *, const struct node *);
/* One way terms pass: where these operands are terms of `from` and the others whole, all results are terms of `to`. */
struct rule_pass {
    uint32_t operands;
    enum redop from, to;
};
/* All ways of a rule, none twice, into an array of MOST_PASSES; returns their number. */
enum { MOST_PASSES = 256 };
int rule_passes(const struct rule *, struct rule_pass *);
/* "(b.. m k)(k n) -> (b.. m n)  k: sum  linear 0, 1"; prints and parses (parse: for fixed rules and for tests). */
char *rule_str(struct arena *, const struct rule *);
/* Sizes and the number of dims behind ".." come from the node's types; a text that does not fit them is a bug(). */
struct rule *rule_parse(struct graph *, const struct node *, const char *text);
/* The rule of a node: by its row; NULL when it has none (kept whole), or when equations do not
 * show its sizes to be the types'. Checks the rule against the types (product of sizes). */
struct rule *rule_of(struct graph *, const struct node *);

/* An assignment: splits given to factors (split[f], over the factor's own size) or to one product of adjoining factors. */
struct assignment {
    const struct split **factor;     /* by factor, NULL: whole */
    int nproduct, product[MAX_RANK]; /* adjoining factors, outer to inner, split as one */
    const struct split *product_split;
};
/* Placements of all operands and results under an assignment. An operand that lacks the inner factors of a product takes the image of
 * the split; a result that lacks a split factor is P(red); a term is P. False: no legal strategy (a whole factor would be cut, two
 * dims of one operand split, a factor lost without reduction, a sum over an overlapping split, groups not uniform). */
bool rule_project(struct graph *, const struct rule *, int ranks, const struct assignment *, struct placement *in, struct placement *out,
                  const char **why);
/* How a node is to run on the ranks; node->strategy after choose. */
struct strategy {
    struct placement *in, *out;   /* what the node wants of each operand, how it leaves each result */
    struct assignment assignment; /* the split factors; none: whole or partial */
    bool lowered;                 /* the assignment needs the row's lowering */
    struct space *body;           /* the lowering, made when its price is asked for (src/plan/cost/lowering.c) */
};
/* How a product of factors, as in rule_size, is split under a legal assignment; NULL: whole. */
const struct split *rule_part_split(struct graph *, const struct rule *, int ranks, const struct assignment *, const struct rule_part *);
/* Product of the sizes of factors list[from .. to); 1 for none. Of a part: of all its factors. */
const struct dim *rule_sizes(struct graph *, const struct rule *, const int *list, int from, int to);
const struct dim *rule_part_size(struct graph *, const struct rule *, const struct rule_part *);
/* The one factor that a dimension is; -1: none or several. The same of dimension d of an operand or result. */
int rule_lone_factor(const struct rule_dim *);
int rule_factor_at(const struct rule_operand *, int d);
/* Puts dimension d of an operand that is broadcast, right-aligned, into factors of the result's dimensions (factor[rank]; -1: the
 * result's dimension is 1). An extent of 1 against a larger result is left empty. */
void rule_broadcast(struct graph *, const struct rule *, struct rule_operand *, const struct type *, int rank, const int *factor);

/* ---- rules as text (rule_parse.c, rule_print.c) ----
 *
 *     (b0 m k)(k n) -> (b0 m n)  k: sum contracted  linear 0, 1
 *
 * An operand is its dimensions in parentheses, "-" when absent, with + before a term. A dimension is factors; a product stands in
 * parentheses, parts laid end to end are joined by |, 1 is no factor. ! marks a whole factor, @ one whose index means something. Notes
 * follow, two spaces apart: a factor's properties, linear sets (members joined by +), moves, operands in which it rises or falls, those it
 * joins, group, query, size attributes. A factor whose size no dimension says alone has it in its note. Reading, "b.." stands for as many
 * dimensions as the type leaves, aligned at the right. */
/* Properties of factors that have a word of their own; the others are marks. */
enum { RULE_FLAGS = 5 };
struct flag_name {
    unsigned flag;
    const char *name;
};
extern const struct flag_name rule_flag[RULE_FLAGS];

#endif
