/* stages: a graph cut into stages of consecutive nodes (tpc-shard --pp). Every stage is a graph by itself: its inputs are all inputs of the
 * model, then what other stages send; its outputs are those of the model that it makes, then what it sends.
 *
 * In a training step, the forward pass is cut. Gradients are computed in the stage of the nodes that they belong to, so values of the
 * forward pass go to later stages and gradients to earlier ones. */
#ifndef TPC_STAGES_H
#define TPC_STAGES_H

#include "plan/plan.h"

enum { STAGE_POSITIONS = 1024 }; /* the most positions where a stage may begin: those with the least traffic */

/* stage_map.c: where a graph may be cut, and the stage of each node. A node computed only from constants and sizes is copied: each stage
 * that reads it has it, and its weights. Every other node is in one stage. */
struct stage_map {
    const struct graph *g;
    bool *copied;  /* by node */
    bool *cut;     /* by position, including the end: a stage may begin there, because no state and no data-dependent size would cross */
    int *place;    /* by node: its position; in the backward pass the position of the node whose gradient it computes; -1: copied */
    int *position; /* by value id: of its producer; -1: an input, a constant or copied, which every stage has */
    const int *least, *most; /* by stage: the first and last position where it may begin; NULL: anywhere */
};
struct stage_map stage_map_of(struct arena *, const struct graph *);
/* Keeps nodes of the forward pass that run as one kernel in one stage. */
struct space;
void stage_map_join_kernels(struct stage_map *, const struct space *);

/* stage_places.c: sets copied, place, position, and where the forward pass lets stages begin. */
void stage_places_find(struct stage_map *, struct arena *);
/* Lets no stage begin between these two positions, in either order. */
void stage_map_join(struct stage_map *, int position, int other);
/* By node: whether the loss depends on it. Without a loss all nodes belong to the forward pass. */
const bool *stage_places_forward(struct arena *, const struct graph *);
/* Lets no stage begin between a weight's gradient and the nearest node that reads the weight. */
void stage_places_keep_weights(struct stage_map *, struct arena *);

/* stage_given.c: the stages that a device configuration of the model gives to nodes, of `stages` of that many ranks each. find: by node;
 * -1: none. */
const int *stage_given_find(struct arena *, const struct graph *, const struct configuration *, int ranks, int stages);
/* Orders nodes by stage, and within a stage as they are. A node that reads what one of a later stage makes is a failure naming both. */
void stage_given_order(struct graph *, const struct configuration *, int ranks, int stages);
/* Sets least and most. parted: by position, with the end, where a stage may begin that parts a kernel; it does so where it may not begin
 * otherwise. That it may not begin at all between two nodes of different stages is a failure naming them. */
void stage_given_bound(struct stage_map *, struct arena *, const struct configuration *, int ranks, int stages, const bool *parted);

/* stage_cut.c: the cut with the least time of the slowest stage; within STAGE_NEAR of that, the one with the least traffic, counted once
 * per receiving stage; among these, the one whose fullest stage is lightest. */
#define STAGE_NEAR 0.01
struct stage_prices {
    const double *node;     /* by node: seconds of a weighted step on the ranks of a stage */
    const double *crossing; /* by value id: seconds to send it to a stage that reads it */
    double message;         /* seconds per message, which carries all that one stage sends another, in addition to its bytes */
    const double *bytes;    /* by value id: of an activation, per weighted step; of a weight, in total */
    const double *held;     /* by value id: bytes that a stage which reads it holds: of a weight or a state */
    /* By stage; NULL: all stages are alike. */
    const double *slower; /* factor on `node` */
    const double *room;   /* its memory limit in bytes, applied if some cut keeps all limits; NULL: no limit */
};
struct stage_cut {
    int stages;
    int *first; /* positions where stages begin, and the end */
    bool *copied;
    double *seconds; /* by stage, at these prices */
    double *work;    /* of these, without receiving */
    double bytes;    /* sent between stages */
    double held;     /* by the fullest stage */
};
struct stage_cut stage_cut_find(struct arena *, const struct stage_map *, const struct stage_prices *, int stages);
/* The least possible value of the largest memory relative to its limit, over all cuts. */
double stage_cut_least_part(const struct stage_map *, const struct stage_prices *, int stages);
/* stage_ends.c: the stage of a position; -1 for -1. */
int stage_at_position(const struct stage_cut *, int position);
/* The stage that makes a value; -1: every stage that reads it has it. */
int stage_of(const struct stage_map *, const struct stage_cut *, const struct value *);

/* A weight that one stage trains and others also read, such as a tied embedding: they receive its new value after each step. */
struct stage_weight {
    const char *name;
    int trains, n, *reads; /* the stage that trains it; stages that read it */
};
struct stage_weights {
    VEC(struct stage_weight) list;
};

/* The stages of a model, each planned separately. */
struct stage_made {
    const struct options *options; /* the model's options, with speed and memory of the stage's ranks */
    const struct graph *source, *global;
    const struct plan *plan;
};
struct stage_plan {
    struct stage_map map;
    struct stage_prices prices;
    struct stage_cut cut;
    const struct plan *model;      /* of the model before it is cut: what it trains, warnings */
    const struct plan *whole;      /* the plan of the whole model on one rank */
    const struct stage_made *made; /* by stage */
    struct stage_weights shared;
    double equal;       /* seconds of the slowest stage, at these prices, with the best cut for equal stages */
    const bool *addend; /* by value id of the model: it is only added to gradients of weights */
};
/* stage_weights.c: of the stages that are made. */
struct stage_weights stage_weights_find(struct arena *, const struct stage_plan *);
/* The stage that sends a value of this name. The number of stages that receive it from that one. */
int stage_sender(const struct stage_plan *, const char *value);
int stage_readers(struct arena *, const struct stage_plan *, const char *value, const int **out);
/* Seconds per weighted step until a stage has received its inputs from other stages. */
double stage_receives(const struct stage_plan *, int stage);
/* Bytes that each of its ranks receives from other stages per weighted step. */
double stage_received_bytes(const struct stage_plan *, int stage);

/* stage_addends.c: as stage_plan.addend. */
const bool *stage_addends(struct arena *, const struct graph *);

/* stage_meta.c: adds to the metadata of a rank file. own: the stage's global graph. */
void stage_write_meta(struct graph *rank_file, const struct stage_plan *, const struct graph *own, int stage);

/* stage_annotation.c: the plans of all stages, with what is chosen, as one configuration (struct annotation of onnx.h); the first argument
 * of the other two is what new returns. Device k T + t is rank t of stage k. */
struct stage_annotation;
struct stage_annotation *stage_annotation_new(struct arena *, int stages, struct space *const *);
int stage_annotation_stage(void *, const char *node, const char *result);
/* After that: how many nodes have parts in several stages, of which they have the first; the name of one. */
int stage_annotation_parted(const struct stage_annotation *, const char **first);
bool stage_annotation_of(void *, struct arena *, const char *node, const char *tensor, bool result, struct sharding *out);

/* stage_graph.c: the graph of a stage, a copy. Model outputs that no stage makes, such as an input or a constant, belong to the first
 * stage. */
struct graph *stage_graph(struct arena *, const struct stage_map *, const struct stage_cut *, int stage);

#endif
