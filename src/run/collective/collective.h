/* collective: collective nodes between two placements: the index ranges of every rank, the boxes that ranks exchange, and the exchange. */
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
/* The intervals that a split assigns to a rank under these bindings. owned: without those that a lower rank also has. */
struct intervals intervals_of(struct arena *, const struct split *, int rank, bool owned, const struct bindings *);
/* The global size of a split under these bindings. */
int64_t intervals_total(struct arena *, const struct split *, const struct bindings *);
struct intervals intervals_range(struct arena *, int64_t lo, int64_t hi);
/* The indices of a that are in b, in the order of a; the indices of a that are not in b. */
struct intervals intervals_meet(struct arena *, const struct intervals *a, const struct intervals *b);
struct intervals intervals_without(struct arena *, const struct intervals *a, const struct intervals *b);
/* Positions of p, a subset of held, in the concatenation of held. */
struct intervals intervals_local(struct arena *, const struct intervals *p, const struct intervals *held);

/* ---- region.c: boxes of dense tensors ----------------------------------------------------------------------------------- */
/* A tensor seen as [outer, extent[0], mid, extent[1], inner bytes]; two lists name the rows of the box. */
struct region {
    int64_t outer, extent[2], mid, inner;
    struct intervals list[2];
};
int64_t region_bytes(const struct region *);
/* The address of the region if it is contiguous; NULL: it is not, or it is empty. */
const void *region_stretch(const struct region *, const void *tensor);
void region_pack(const struct region *, const void *tensor, void *block);
void region_unpack(const struct region *, void *tensor, const void *block);
/* The box of a tensor of these sizes: the listed positions along axis and axis2 (-1: none), all positions along the others. */
struct region region_of(struct arena *, const struct tensor *, int axis, const struct intervals *, int axis2, const struct intervals *);

/* ---- collective.c: one collective node ----------------------------------------------------------------------------------- */
struct collective_node {
    enum collective kind;
    const char *name;
    int64_t id;            /* its number in file order */
    int axis, axis2, root; /* AllToAll: split axis, concatenated axis */
    enum redop red;
    enum wire wire;
    bool bits;                               /* AllReduce: only one rank's addend is nonzero: ORs the bits, which keeps -0 */
    bool complete;                           /* ReduceScatter: every rank already has the sum (complete_sums.c) */
    const struct split *from, *to, *experts; /* experts: Dispatch and Combine */
    const struct dim *const *extent;         /* global sizes in the file, besides those of the splits */
    int nextent;
};
/* read.c */
void collective_read(struct graph *, const struct node *, struct collective_node *);

/* route.c: the blocks of a collective, for the current sizes. */
struct route {
    int64_t strips, x_step, y_step; /* runs of this route, and bytes from one to the next; 0 strips: empty, skipped */
    struct route *last;             /* the remainder, a smaller strip; NULL: none */
    int64_t elements;               /* AllReduce, Broadcast */
    int64_t send_total, recv_total;
    struct region *send, *recv; /* by rank: of x, of y */
    int64_t *send_bytes, *recv_bytes;
    struct intervals *rows, *experts; /* by rank, of Dispatch and Combine: its rows, its experts */
    const void **part;                /* one entry per rank */
};
/* strip: bytes of the global tensor per run, if it can be cut. */
struct route *collective_route(struct arena *, const struct collective_node *, const struct comm *, const struct tensor *x,
                               const struct tensor *y, const struct bindings *, int64_t strip);
/* For a ReduceScatter or an AllGather: part[rank] are the rank's intervals that move, on the side with the whole axis. The other side, y or
 * x, is this rank's part of them. */
struct route *collective_route_parts(struct arena *, const struct collective_node *, const struct comm *, const struct tensor *x,
                                     const struct tensor *y, const struct interval *part);
/* x: all operands. */
void collective_run(const struct collective_node *, const struct route *, struct comm *, struct buffer *scratch, const struct tensor *x,
                    struct tensor *y);
/* Fails unless all ranks have the same list of collectives and the same plan hash. */
void collective_agree(struct comm *, struct arena *, const char *path, const struct collective_node *, int n, uint64_t plan);

/* ---- unit_gather.c: the exchange inside a recurrent net ---------------------------------------------------------------------- */
struct unit_gather;
/* For a split of the hidden units without overlap; blocks: buffer for messages. */
struct unit_gather *unit_gather_new(struct arena *, struct comm *, struct buffer *blocks, const struct split *);
/* The argument of the kernel. */
const struct units *unit_gather_units(const struct unit_gather *);

/* ---- travel.c: dispatch of rows to the ranks of their experts, and back ------------------------------------------------------ */
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
    /* The number of leading dimensions of x that can be cut into strips, equal on every rank. */
    int (*leading)(const struct collective_node *, const struct tensor *x);
    void (*run)(const struct collective_node *, const struct route *, struct comm *, struct buffer *scratch, const struct tensor *x,
                struct tensor *y);
};
const struct collective_kind *collective_kind(enum collective);

#endif
