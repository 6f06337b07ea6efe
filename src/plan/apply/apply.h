/* apply: makes the ranks' graphs from a plan: merged collectives, local cut points, notes on partial sums. */
#ifndef TPC_APPLY_H
#define TPC_APPLY_H

#include "plan/plan.h"

/* merge_small.c: in a graph with explicit reshards, merges small AllReduces and AllGathers that need not wait for each other. */
void plan_merge_small(struct graph *, const struct machine *, const struct plan *);

/* bucket.c: merges several collectives of one kind into one, between a Concat and a Split. */
struct bucket {
    struct node *concat, *join, *split;
};
struct buckets {
    VEC(struct bucket) list;
};
/* Whether a bucket can take the node; whether two nodes are of one kind. */
bool bucket_takes(struct graph *, const struct node *);
bool bucket_alike(const struct node *, const struct node *);
/* The bucket whose collective the node is; NULL: none. */
const struct bucket *bucket_of(const struct buckets *, const struct node *);
/* Node `second` joins node `first`, at its position; makes `first` a bucket if it is none. */
void bucket_merge(struct graph *, struct buckets *, int first, int second);

/* quantize_weights.c: converts f32 weights of products and lookups to integers of 8 or 4 bits in blocks (--weights int8, int4). Returns the
 * number of nodes that changed. */
int plan_quantize_weights(struct graph *, int bits);

/* local_nodes.c: what differs between ranks in a node: sizes that its rule names, windows, positions. */
struct rule;
struct slice_parts;
struct local_node {
    int at;                  /* in the graph */
    const struct rule *rule; /* NULL: it names no size and no window */
    bool uneven;             /* slice_index_uneven */
    /* Made once for all ranks: splits of the dimensions in attributes, by size of the rule; what windows read, by dimension; cuts. */
    const struct split **size, **reads;
    struct slice_parts *slice;
};
struct local_nodes {
    struct graph *global;
    VEC(struct local_node) list;
};
struct local_nodes local_nodes_find(struct arena *, struct graph *global);
/* Sets them in the copy of the global graph for rank g->rank, whose values have local types. */
void local_nodes_set(const struct local_nodes *, struct graph *);

/* alike_ranks.c: by rank, the first rank whose graph is the same except for the rank's number. */
const int *alike_ranks_find(struct arena *, const struct local_nodes *);

/* slice_index.c: cut points and copies of index-map ops. uneven: on some rank the copies of a Repeat are not uniform, so all ranks need an
 * index. */
bool slice_index_is_map(const struct node *);
bool slice_index_uneven(const struct graph *, const struct node *);
void slice_index_localize(const struct node *global, struct graph *, struct node *local, struct local_node *);

/* file_form.c: brings the ranks' graphs into the form of files; all get the same nodes. */
void file_form_make(struct arena *, struct graph **, int ranks);

/* note_ranks.c: notes in the collectives of a rank's graph which ranks they connect. */
void plan_note_ranks(struct graph *local);

/* partial_sums.c: notes in a rank file's metadata which nodes of the global graph make partial sums, and over which split. */
void plan_note_partial_sums(struct graph *to, struct graph *global);

/* products.c: notes there how products with weights are split, for adapters at run time. */
void plan_note_products(struct graph *to, struct graph *global);

#endif
