/* trial: a node of a plug-in's op on small random operands: whole, and on ranks. */
#ifndef TPC_OP_PLUGIN_TRIAL_H
#define TPC_OP_PLUGIN_TRIAL_H

#include "kern/kern.h"
#include "op/plugin/plugin.h"
#include "op/rule/rule.h"

/* A size for each name of the signature, and the whole node: its operands and results. like: a node of a model, whose attributes to use;
 * NULL: the defaults. where: for messages. */
struct plugin_trial {
    struct arena *arena;
    const struct plugin_op *p;
    const struct node *like;
    const char *where;
    struct bindings bind;
    struct graph *graph;
    struct node *node;
    struct rule *rule;
    struct kenv *env;
    struct tensor in[PLUGIN_OPERANDS], whole[PLUGIN_RESULTS];
    uint64_t random;
    bool infinite; /* the difference is a NaN or infinity */
};

double plugin_trial_draw(struct plugin_trial *); /* between -1 and 1 */
struct tensor plugin_trial_tensor(struct plugin_trial *, const struct type *);
double plugin_trial_get(const struct tensor *, int64_t i);
void plugin_trial_set(struct tensor *, int64_t i, double);
struct graph *plugin_trial_graph(struct plugin_trial *, struct alg *); /* an empty one */
/* Makes the node with operands of these types, infers, and runs it. Fails if the kernel fails, leaves elements unwritten, writes to an
 * operand, or computes something else in a second run. */
void plugin_trial_start(struct plugin_trial *, const struct type *in);
/* NULL: with these placements ranks compute what one computes; else why not. addends: [operand][rank], for partial operands. */
const char *plugin_trial_wrong(struct plugin_trial *, int ranks, const struct placement *in, const struct placement *out,
                               struct tensor *const *addends);

#endif
