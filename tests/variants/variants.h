/* variants: changes of a graph, one at a time, for tests that compare what two forms of it compute. */
#ifndef TPC_VARIANTS_H
#define TPC_VARIANTS_H

#include "ir/ir.h"

/* make: change number k of this kind, in a graph that was only parsed; false: there are fewer. What it makes may be no legal graph. */
struct change {
    const char *name;
    bool (*make)(struct graph *, int k);
};
extern const struct change changes[]; /* one without a name ends the table */

#endif
