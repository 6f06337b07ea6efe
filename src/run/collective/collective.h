/* collective: collective nodes between two placements: which index ranges every rank holds, which boxes move between ranks, and the
 * exchange of them. */
#ifndef TPC_RUN_COLLECTIVE_H
#define TPC_RUN_COLLECTIVE_H

#include "kern/kern.h"
#include "run/comm/comm.h"

/* ---- intervals.c: lists of index intervals, in local order ------------------------------------------------------------- */
struct intervals {
    int n;
    struct interval *at;
};
/* The number of indices. */
int64_t intervals_extent(const struct intervals *);
/* The intervals that a split assigns to a rank under these bindings. owned: without those that a lower rank has, too. */
struct intervals intervals_of(struct arena *, const struct split *, int rank, bool owned, const struct bindings *);
/* The global size that a split of these bindings has. */
int64_t intervals_total(struct arena *, const struct split *, const struct bindings *);
struct intervals intervals_range(struct arena *, int64_t lo, int64_t hi);
/* The indices of a that are in b, in the order of a; and those that are not. */
struct intervals intervals_meet(struct arena *, const struct intervals *a, const struct intervals *b);
struct intervals intervals_without(struct arena *, const struct intervals *a, const struct intervals *b);
/* Positions of p, a subset of held, in the concatenation of held. */
struct intervals intervals_local(struct arena *, const struct intervals *p, const struct intervals *held);

/* ---- region.c: boxes of dense tensors ----------------------------------------------------------------------------------- */
/* A tensor seen as [outer, extent[0], mid, extent[1], inner bytes], of which two lists name the rows of the box. */
struct region {
    int64_t outer, extent[2], mid, inner;
    struct intervals list[2];
};
int64_t region_bytes(const struct region *);
/* Where the region lies if it is one stretch of memory; NULL: it is not, or it is empty. */
const void *region_stretch(const struct region *, const void *tensor);
void region_pack(const struct region *, const void *tensor, void *block);
void region_unpack(const struct region *, void *tensor, const void *block);
/* The box of a tensor of these sizes: the listed positions along axis and along axis2 (-1: none), everything elsewhere. */
struct region region_of(struct arena *, const struct tensor *, int axis, const struct intervals *, int axis2, const struct intervals *);

/* ---- collective.c: one collective node ----------------------------------------------------------------------------------- */
struct collective_node {
    enum collective kind;
    const char *name;
    int64_t id;            /* its number in file order */
    int axis, axis2, root; /* AllToAll: split axis, concatenated axis */
    enum redop red;
    enum wire wire;
    bool bits;                               /* AllReduce: only one rank's addend is not zero: bits are added, which keeps -0 */
    bool complete;                           /* ReduceScatter: every rank has the sum already (complete_sums.c) */
    const struct split *from, *to, *experts; /* experts: Dispatch and Combine */
    const struct dim *const *extent;         /* global sizes that the file states, beside the splits' own */
    int nextent;
};
/* read.c */
void collective_read(struct graph *, const struct node *, struct collective_node *);

/* route.c: where every block of a collective lies, for the current sizes. */
struct route {
    int64_t strips, x_step, y_step; /* runs of this route, and bytes from one to the next; 0 strips: globally empty, skipped by all */
    struct route *last;             /* the rest, a smaller strip; NULL: none */
    int64_t elements;               /* AllReduce, Broadcast */
    int64_t send_total, recv_total;
    struct region *send, *recv; /* by rank: of x, of y */
    int64_t *send_bytes, *recv_bytes;
    struct intervals *rows, *experts; /* by rank, of Dispatch and Combine: the rows that are its own, the experts that it holds */
    const void **part;                /* as many as there are ranks */
};
/* strip: bytes of the global tensor that go at a time, if it can be cut. */
struct route *collective_route(struct arena *, const struct collective_node *, const struct comm *, const struct tensor *x,
                               const struct tensor *y, const struct bindings *, int64_t strip);
/* Of a ReduceScatter or an AllGather, what moves of every rank's intervals is part[rank], on the side that has all of the axis. The other
 * side, y or x, is what moves for this rank. */
struct route *collective_route_parts(struct arena *, const struct collective_node *, const struct comm *, const struct tensor *x,
                                     const struct tensor *y, const struct interval *part);
/* x: all operands. */
void collective_run(const struct collective_node *, const struct route *, struct comm *, struct buffer *scratch, const struct tensor *x,
                    struct tensor *y);
/* Fails unless every rank has the same list of collectives and the same plan, by its hash. */
void collective_agree(struct comm *, struct arena *, const char *path, const struct collective_node *, int n, uint64_t plan);

/* ---- unit_gather.c: the exchange inside a recurrent net ---------------------------------------------------------------------- */
struct unit_gather;
/* For a split of the hidden units that holds each once; blocks: what is on its way. */
struct unit_gather *unit_gather_new(struct arena *, struct comm *, struct buffer *blocks, const struct split *);
/* For the kernel's call. */
const struct units *unit_gather_units(const struct unit_gather *);

/* ---- travel.c: rows that go to the ranks of their experts, and back --------------------------------------------------------------- */
enum { TRAVEL_OPERANDS = 3 }; /* x, chosen, met */
void travel_route(struct arena *, const struct collective_node *, const struct comm *, const struct tensor *x, const struct tensor *y,
                  const struct bindings *, struct route *);
void travel_dispatch(const struct collective_node *, const struct route *, struct comm *, struct buffer *scratch, const struct tensor *x,
                     struct tensor *y);
void travel_combine(const struct collective_node *, const struct route *, struct comm *, struct buffer *scratch, const struct tensor *x,
                    struct tensor *y);

/* ---- kinds.c: one row for each kind ------------------------------------------------------------------------------------------ */
struct collective_kind {
    /* Fills route->send and route->recv; NULL: whole tensors move. */
    void (*route)(struct arena *, const struct collective_node *, const struct comm *, const struct tensor *x, const struct tensor *y,
                  const struct bindings *, struct route *);
    /* How many leading dimensions of x can be cut into strips, alike on every rank. */
    int (*leading)(const struct collective_node *, const struct tensor *x);
    void (*run)(const struct collective_node *, const struct route *, struct comm *, struct buffer *scratch, const struct tensor *x,
                struct tensor *y);
};
const struct collective_kind *collective_kind(enum collective);

#endif
