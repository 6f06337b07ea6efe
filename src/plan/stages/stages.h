/* stages: a graph cut into stages of consecutive nodes (tpc-shard --pp). Every stage is a graph by itself: its inputs are all inputs of the
 * model, then what other stages send; its outputs are those of the model that it makes, then what it sends.
 *
 * Of a step of training the forward half is cut. What computes gradients is in the stage of the nodes whose gradients they are, so values
 * of the forward half go to later stages and gradients to earlier ones. */
#ifndef TPC_STAGES_H
#define TPC_STAGES_H

#include "plan/plan.h"

enum { STAGE_POSITIONS = 1024 }; /* where a stage may begin, at most: those where least crosses */

/* stage_map.c: where a graph may be cut, and what may be in which stage. A node that is computed from constants and sizes alone is copied:
 * each stage that reads it has it, and its weights. All others are in one stage. */
struct stage_map {
    const struct graph *g;
    bool *copied;  /* by node */
    bool *cut;     /* by position, with the end: a stage may begin there, for no state and no size that data decides would cross */
    int *place;    /* by node: its position, or of the backward half that of the node whose gradient it is part of; -1: copied */
    int *position; /* by value id: of the node that makes it; -1: an input, a constant or copied, which every stage has */
};
struct stage_map stage_map_of(struct arena *, const struct graph *);
/* No stage begins between these two positions, whichever comes first. */
void stage_map_join(struct stage_map *, int position, int other);

/* stage_places.c: sets copied, place, position, and where the forward half lets stages begin. */
void stage_places_find(struct stage_map *, struct arena *);
/* No stage begins between the gradient of a weight and the node nearest to it that reads the weight. */
void stage_places_keep_weights(struct stage_map *, struct arena *);

/* stage_cut.c: the cut of least time of the slowest stage; of those within STAGE_NEAR of it, the one by which least crosses, counted once
 * for each stage that a value is sent to; of these, the one of the lightest fullest stage. */
#define STAGE_NEAR 0.01
struct stage_prices {
    const double *node;     /* by node: seconds of a weighted step on the ranks of a stage */
    const double *crossing; /* by value id: seconds that its bytes take to a stage that reads it */
    double message;         /* seconds of a message, which brings all that a stage sends another, besides */
    const double *bytes;    /* by value id: of an activation, in a weighted step; of a weight, all */
    const double *held;     /* by value id: bytes that a stage holds which reads it: of a weight, or of a state */
    /* By stage; NULL: all stages are alike. */
    const double *slower; /* its nodes take this many times `node` */
    const double *room;   /* bytes that it may hold, if some cut keeps that; NULL: any number */
};
struct stage_cut {
    int stages;
    int *first; /* positions where stages begin, and the end */
    bool *copied;
    double *seconds; /* by stage, by these prices */
    double *work;    /* of these, without what is received */
    double bytes;    /* that cross */
    double held;     /* by the fullest stage */
};
struct stage_cut stage_cut_find(struct arena *, const struct stage_map *, const struct stage_prices *, int stages);
/* The part of its room that the fullest stage holds, of the cut where that is least. */
double stage_cut_least_part(const struct stage_map *, const struct stage_prices *, int stages);
/* stage_ends.c: the stage of a position; -1 of -1. */
int stage_at_position(const struct stage_cut *, int position);
/* The stage that makes a value; -1: every stage that reads it has it. */
int stage_of(const struct stage_map *, const struct stage_cut *, const struct value *);

/* A weight that one stage trains and others read, too, as a tied embedding: they get its new value after each step. */
struct stage_weight {
    const char *name;
    int trains, n, *reads; /* stages; n: of reads */
};
struct stage_weights {
    VEC(struct stage_weight) list;
};

/* The stages of a model, each planned by itself. */
struct stage_made {
    const struct options *options; /* those of the model, with speed and memory of the stage's ranks */
    const struct graph *source, *global;
    const struct plan *plan;
};
struct stage_plan {
    struct stage_map map;
    struct stage_prices prices;
    struct stage_cut cut;
    const struct plan *model;      /* of the model before it is cut: what it trains, warnings */
    const struct plan *whole;      /* what one rank takes for all */
    const struct stage_made *made; /* by stage */
    struct stage_weights shared;
    double equal;       /* seconds of the slowest stage, by these prices, of the cut that is best where all stages are alike */
    const bool *addend; /* by value id of the model: it is only added to gradients of weights */
};
/* stage_weights.c: of the stages that are made. */
struct stage_weights stage_weights_find(struct arena *, const struct stage_plan *);
/* The stage that sends a value of this name. The stages that get it from that one: how many. */
int stage_sender(const struct stage_plan *, const char *value);
int stage_readers(struct arena *, const struct stage_plan *, const char *value, const int **out);
/* Until a stage has what it reads of others: seconds of a weighted step. */
double stage_receives(const struct stage_plan *, int stage);
/* What each of its ranks gets from other stages in a weighted step. */
double stage_received_bytes(const struct stage_plan *, int stage);

/* stage_addends.c: as stage_plan.addend. */
const bool *stage_addends(struct arena *, const struct graph *);

/* stage_meta.c: into the metadata of a rank file. own: the stage's global graph. */
void stage_write_meta(struct graph *rank_file, const struct stage_plan *, const struct graph *own, int stage);

/* stage_graph.c: the graph of a stage, a copy. What no stage makes, as an output that is an input or a constant, is of the first one. */
struct graph *stage_graph(struct arena *, const struct stage_map *, const struct stage_cut *, int stage);

#endif
