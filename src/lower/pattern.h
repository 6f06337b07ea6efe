/* lower/pattern: rewriting by example. A row of patterns.def has two graphs in text form (ir/text/text.h): one to find, and its
 * replacement. A new fusion is a row there. */
#ifndef TPC_LOWER_PATTERN_H
#define TPC_LOWER_PATTERN_H

#include "ir/ir.h"

enum pattern_group {
    PATTERN_NORM,      /* in canon. Up to DECODED, other nodes may read inner values, which then stay */
    PATTERN_EXPERTS,   /* in canon */
    PATTERN_QUANTIZED, /* in lower_graph, like those below: products and lookups read a quantised weight as stored */
    PATTERN_DECODED,   /* after QUANTIZED: products of such a weight with integers */
    PATTERN_INTEGERS,  /* after DECODED. From here on, inner values may have no other readers */
    PATTERN_GELU,
    PATTERN_GROUP_NORM /* before channels_last */
};

struct match;
/* Applies all rows of a group, in order. The last new node takes over the result; unused nodes are pruned. Returns the number of
 * matches. */
int pattern_apply(struct graph *, enum pattern_group);

/* ---- for predicates: found values and nodes, by their names in the pattern --------------------------------------------------- */
struct graph *match_graph(struct match *);
struct value *match_value(struct match *, const char *name);
double match_number(struct match *, const char *name); /* of a constant of one element */
const struct value *match_result(struct match *);
/* Binds an operand or attribute of the replacement that the pattern does not have. */
void match_bind(struct match *, const char *name, struct value *);
void match_bind_number(struct match *, const char *name, double);
void match_bind_text(struct match *, const char *name, const char *);

#endif
