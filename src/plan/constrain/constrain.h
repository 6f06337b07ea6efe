/* constrain: what the plan file and the model's annotations leave of a space, and which of them is to blame where nothing is left. */
#ifndef TPC_CONSTRAIN_H
#define TPC_CONSTRAIN_H

#include "op/rule/rule.h"
#include "plan/input/input.h"
#include "plan/space/space.h"

/* constrain.c: the constraints of the plan file. */
bool constrain_seed(struct space *);
void constrain_all(struct space *);
void constrain_user(struct space *); /* but not an emitted plan */
/* After no plan was found: fails naming the first constraint that cannot be met beside those before it. Returns where none is to blame. */
void constrain_blame(struct space *);

/* replay.c: leaves what an emitted plan chose; a plan of another graph is a failure that names the first difference. */
void replay_plan(struct space *);
/* Does the plan cost what the emitted one says? */
bool replay_holds(const struct space *);

/* strict.c: of a chosen plan, communication that no constraint asks for: fails naming the first; makes a warning of each. */
_Noreturn void strict_blame(struct space *);
void strict_warn(struct space *);

/* sharding_spec.c: what a sharding spec says of a tensor of that type. NULL, or the end of a sentence that tells what it is that tpc can't
 * do. */
const char *sharding_placement(struct arena *, struct alg *, const struct type *, const struct sharding *, int ranks,
                               struct placement *out);
/* The spec that says it, but for node and tensor; false: none does (terms of a sum, blocks of unequal sizes). */
bool placement_sharding(struct arena *, struct alg *, const struct type *, struct placement, int ranks, struct sharding *out);

/* onnx_config.c: plan_configuration chooses the device configuration of a model (options->configuration). annotation_of: after the pass
 * choose, what a node of the source says of a tensor under the chosen plan (struct annotation of onnx.h); the first argument is
 * plan->space. */
void plan_configuration(const struct graph *, const struct options *, struct plan *);
bool annotation_of(void *space, struct arena *, const char *node, const char *tensor, bool result, struct sharding *out);

/* ---- style.c ------------------------------------------------------------------------------------------------------------- */

enum { ASKS_OPERANDS = 1, ASKS_RESULTS = 2 };
/* Does the style demand something of the node itself? The constraint is that of styles sequence and loss-parallel. */
bool style_speaks_of(const struct space *, enum style, const struct constraint *, int node);
/* Of what nodes styles speak, as "multiplies a weight". */
const char *style_subject(enum style);
/* How many demands of the style the strategy does not meet. */
int style_unmet(const struct space *, enum style, int dim, int node, const struct strategy *);
/* For --strict: whose communication the style asks for, bits of ASKS_. */
unsigned style_asks(const struct space *, enum style, int node);
/* Candidates for the splits that the style needs where there are none; true when there are new ones. */
bool style_seed(struct space *, enum style, int dim, int node);

/* ---- style_pairwise.c: style pairwise ------------------------------------------------------------------------------------------------ */

/* By node: is it the row half of a pair; does no other product of the style follow it? */
struct pairs {
    bool *row, *last;
};
/* target, by node: the products that alternate. */
struct pairs pairs_find(const struct space *, const bool *target);

/* ---- requirement.c -------------------------------------------------------------------------------------------------------------- */

enum demand_kind {
    DEMAND_STYLE,    /* the node has the style */
    DEMAND_STRATEGY, /* the text of the node's strategy matches the glob `text` */
    DEMAND_KEPT,     /* the node reads the operand as placed `text`, or terms of a sum, where it has such a strategy */
    DEMAND_READ,     /* the node reads the operand as placed `text` */
    DEMAND_BROUGHT,  /* the value is brought there before anything reads or takes it; a graph input, or a weight, stands there */
    DEMAND_PLACED    /* the same, but a graph output is taken there */
};
struct demand {
    const struct constraint *from;
    enum demand_kind kind;
    int node, operand; /* node: position in the graph */
    enum style style;
    const struct value *value;
    const char *text;
};
/* onnx_config.c: demands of the model's device configuration, if one is followed. */
void annotations_demand(struct space *);
/* What the annotations and the constraints demand, in their order. A constraint that speaks of nothing is a failure that names what is
 * nearest. */
void demands_make(struct space *);

/* ---- boundary.c: the values at the boundary of nodes --------------------------------------------------------------------------- */

/* A set of nodes, by position and as a mark of each node of the graph, the values of which are prepared. in, out: those that enter, that
 * leave; what: for messages. */
struct module {
    int n;
    const int *node;
    const bool *inside;
    bool in, out;
    const char *what;
};
void prepare_values(struct space *, const struct constraint *, const struct module *);
void demand_add(struct space *, struct demand);

#endif
