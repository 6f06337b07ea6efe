/* generate: a random graph in text form, with inputs that suit it.
 *
 * A graph grows by steps: an op of the table with legal operands (families.h), or a block as models have them (block.h). Sizes of symbols
 * are bound; the graph itself says nothing of them. */
#ifndef TPC_TESTS_GENERATE_H
#define TPC_TESTS_GENERATE_H

#include "kern/kern.h"
#include "tests/graphs/draws.h"

struct generated {
    char *text; /* the text form */
    int nodes;
    struct bindings sizes;
    struct tensor *input; /* by graph input */
    const int *made;      /* by row of the op table: nodes of it, those included that lead to no output */
};
/* exact: integers only, by ops that keep them exact: no sum reaches 2^24, and every output is the same bits whatever the order of
 * additions. NULL: what was drawn makes no output. */
struct generated *generate(struct arena *, struct draws *, bool exact);
/* Prints every op of the table that is never generated, with the reason; the number of those without one. */
int never_generated(FILE *);

#endif
