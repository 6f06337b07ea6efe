/* lower/pattern: rewriting by example. A row of patterns.def has two graphs in text form (ir/text/text.h): one to find, and what takes its
 * place. A new fusion of nodes is a row there. */
#ifndef TPC_LOWER_PATTERN_H
#define TPC_LOWER_PATTERN_H

#include "ir/ir.h"

enum pattern_group {
    PATTERN_NORM,      /* of canon. Others may read inner values: they stay, up to DECODED */
    PATTERN_QUANTIZED, /* of fuse_kernels, as those that follow: products and lookups read a quantised weight as it is stored */
    PATTERN_DECODED,   /* behind QUANTIZED: products of such a weight with integers */
    PATTERN_INTEGERS,  /* behind DECODED. Only what was found reads inner values, from here on */
    PATTERN_GELU,
    PATTERN_GROUP_NORM /* before channels_last */
};

struct match;
/* Rewrites all that the rows of a group find, first rows first. The last new node takes over the result; what nobody reads any more is
 * pruned. Returns how many were found. */
int pattern_apply(struct graph *, enum pattern_group);

/* ---- for predicates: what was found, by the names of the pattern ------------------------------------------------------------------- */
struct graph *match_graph(struct match *);
struct value *match_value(struct match *, const char *name);
double match_number(struct match *, const char *name); /* of a constant of one element */
const struct value *match_result(struct match *);
/* What the graph in its place reads, or has as an attribute, besides what was found. */
void match_bind(struct match *, const char *name, struct value *);
void match_bind_number(struct match *, const char *name, double);
void match_bind_text(struct match *, const char *name, const char *);

#endif
