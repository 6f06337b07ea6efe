/* constrain: restricts a space by the plan file and the model's annotations, and finds the constraint at fault if nothing is left. */
#ifndef TPC_CONSTRAIN_H
#define TPC_CONSTRAIN_H

#include "op/rule/rule.h"
#include "plan/input/input.h"
#include "plan/space/space.h"

/* constrain.c: the constraints of the plan file. */
bool constrain_seed(struct space *);
void constrain_all(struct space *);
void constrain_user(struct space *); /* not for an emitted plan */
/* After no plan was found: fails with the first constraint that contradicts earlier ones. Returns if no constraint is at fault. */
void constrain_blame(struct space *);

/* replay.c: restricts the space to the choices of an emitted plan; fails with the first difference if the plan is of another graph. */
void replay_plan(struct space *);
/* Whether the plan costs what the emitted one says. */
bool replay_holds(const struct space *);

/* kept_weights.c: for a chosen plan, warns of each constraint on tensors that adds reshards and changes the placement of no weight; after
 * plan_note_step. */
void constrain_note_kept(struct space *);

/* strict.c: unrequested communication of a chosen plan: fails with the first; warns of each. */
_Noreturn void strict_blame(struct space *);
void strict_warn(struct space *);

/* sharding_spec.c: the placement that a sharding spec gives a tensor of that type. NULL, or the end of a sentence that names what tpc does
 * not support. */
const char *sharding_placement(struct arena *, struct alg *, const struct type *, const struct sharding *, int ranks,
                               struct placement *out);
/* The spec of a placement, without node and tensor; false: there is no spec (partial values, blocks of unequal sizes). */
bool sharding_of_placement(struct arena *, struct alg *, const struct type *, struct placement, int ranks, struct sharding *out);

/* The devices that entry i of the spec's list names: how many. */
int sharding_entry_devices(const struct sharding *, int i, const int64_t **out);

/* onnx_config.c: plan_configuration chooses the model's device configuration (options->configuration). annotation_of: after the pass
 * choose, the placement that the chosen plan gives a tensor of a node of the source (struct annotation of onnx.h); the first argument is
 * plan->space. */
void plan_configuration(const struct graph *, const struct options *, struct plan *);
bool onnx_annotation_of(void *space, struct arena *, const char *node, const char *tensor, bool result, struct sharding *out);

/* ---- style.c: styles of nodes ------------------------------------------------------------------------------------------------- */

enum { REQUESTS_OPERANDS = 1, REQUESTS_RESULTS = 2 };
/* Whether the style applies to the node. style_constraint: the constraint of styles sequence and loss-parallel. */
bool style_applies(const struct space *, enum style, const struct constraint *, int node);
/* The nodes that a style applies to, in words: "multiplies a weight". */
const char *style_subject(enum style);
/* The number of the style's requirements that the strategy does not meet. */
int style_unmet(const struct space *, enum style, int dim, int node, const struct strategy *);
/* For --strict: bits of REQUESTS_: the values whose communication the style requests. */
unsigned style_requests(const struct space *, enum style, int node);
/* Adds candidates for splits that the style needs, if there are none; true if any is new. */
bool style_seed(struct space *, enum style, int dim, int node);

/* ---- style_pairwise.c: style pairwise ------------------------------------------------------------------------------------------ */

/* By node: whether it is the row-parallel half of a pair; whether no other product of the style follows it. */
struct pairs {
    bool *row, *last;
};
/* target, by node: the products that alternate. */
struct pairs style_pairs_find(const struct space *, const bool *target);

/* ---- requirement.c: constraints, which match many nodes and values, become requirements, each on one of them ------------------- */

enum requirement_kind {
    REQUIREMENT_STYLE,    /* the node has the style */
    REQUIREMENT_STRATEGY, /* the text of the node's strategy matches the glob `text` */
    REQUIREMENT_KEPT,     /* the node reads the operand with placement `text`, or partial if such a strategy exists */
    REQUIREMENT_OPERAND,  /* the node reads the operand with placement `text` */
    REQUIREMENT_READ,     /* the value is resharded to `text` before any read; a graph input or a weight has it */
    REQUIREMENT_PLACED    /* the same, but a graph output leaves with it */
};
struct requirement {
    const struct constraint *from;
    enum requirement_kind kind;
    int node, operand; /* node: position in the graph */
    enum style style;
    const struct value *value;
    const char *text;
};
/* onnx_config.c: requirements of the model's device configuration, if one is followed. */
void onnx_annotations_require(struct space *);
/* Makes the requirements of the annotations and the constraints, in their order. A constraint that matches nothing fails with the nearest
 * name. */
void requirement_make_all(struct space *);

/* ---- boundary.c: the values at the boundary of nodes --------------------------------------------------------------------------- */

/* A set of nodes whose boundary values get placements: by position, and as a mark of each node of the graph. in, out: the values that enter
 * and leave it; what: for messages. */
struct module {
    int n;
    const int *node;
    const bool *inside;
    bool in, out;
    const char *what;
};
void boundary_prepare(struct space *, const struct constraint *, const struct module *);
void boundary_add_requirement(struct space *, struct requirement);

#endif
