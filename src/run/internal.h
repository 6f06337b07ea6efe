/* run/internal.h: what the files of src/run share and nobody else sees: growing buffers, the binding of symbols,
 * collectives over placements, and the session itself. */
#ifndef TPC_RUN_INTERNAL_H
#define TPC_RUN_INTERNAL_H

#include "kern/chunk/chunk.h"
#include "op/op.h"
#include "run/run.h"

/* ---- buffer.c: one block that only grows; growing forgets the content --------------------------------------------- */
struct buffer {
    struct arena *arena;
    void *at;
    size_t bytes;
};
void *buffer_reserve(struct buffer *, size_t bytes);
void buffer_free(struct buffer *);

/* ---- comm.c: n elements, dealt evenly to the ranks of a communicator ------------------------------------------------------------------
 */
/* How many come before rank r. */
int64_t deal_start(int64_t n, int size, int r);
/* Rank r's part of what begins at `at`. */
struct block comm_deal(const struct comm *, const void *at, int64_t n, int64_t size, int r);
/* Every rank has its own part at its place; afterwards, all parts. */
void comm_gather_dealt(struct comm *, void *at, int64_t n, int64_t size);

/* ---- signature.c: symbols from real sizes -------------------------------------------------------------------------------- */
struct formal {
    const char *name;
    struct type type;
    struct placement place;
}; /* a graph input or output, global */
struct assumption {
    const struct dim *left, *right;
    const char *text;
};
struct signature {
    const char *path;
    int nin, nout;
    struct formal *in, *out;
    int nassume;
    struct assumption *assume;
    VEC(struct binding) lower; /* smallest value of each symbol */
};
/* From the metadata of a rank file, or from the types and equations of a plain graph. */
void signature_read(struct arena *, struct graph *, struct signature *);
/* Checks dtypes, ranks and sizes of the inputs, binds every symbol, checks lower bounds and assumptions. Failure names sizes. */
void signature_bind(struct arena *, const struct signature *, const struct tensor *, struct bindings *);
/* Adds the symbols that assumptions determine. */
void signature_complete(struct arena *, const struct signature *, struct bindings *);

/* ---- pieces.c: interval lists -------------------------------------------------------------------------------------------- */
struct pieces {
    int n;
    struct interval *at;
};
int64_t pieces_extent(const struct pieces *);
struct pieces pieces_of(struct arena *, const struct split *, int rank, bool owned, const struct bindings *);
struct pieces pieces_range(struct arena *, int64_t lo, int64_t hi);
/* What of a lies in b, in the order of a; and what doesn't. */
struct pieces pieces_meet(struct arena *, const struct pieces *a, const struct pieces *b);
struct pieces pieces_without(struct arena *, const struct pieces *a, const struct pieces *b);
/* Positions of p (which lies within held) in the concatenation of held. */
struct pieces pieces_local(struct arena *, const struct pieces *p, const struct pieces *held);

/* A box of a dense tensor seen as [outer, extent[0], mid, extent[1], inner]: the rows named by two lists. */
struct region {
    int64_t outer, extent[2], mid, inner;
    struct pieces list[2];
}; /* inner: bytes */
int64_t region_bytes(const struct region *);
/* Where the region lies when it is one stretch of memory; NULL: it is not, or it is empty. */
const void *region_stretch(const struct region *, const void *tensor);
void region_pack(const struct region *, const void *tensor, void *block);
void region_unpack(const struct region *, void *tensor, const void *block);
/* The box of a tensor of these sizes: along axis, and along axis2 (-1: none) the listed positions, elsewhere everything. */
struct region region_of(struct arena *, const struct tensor *, int axis, const struct pieces *, int axis2, const struct pieces *);

/* ---- collective.c: one collective node ------------------------------------------------------------------------------------- */
enum collective_kind { COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCESCATTER, COLL_ALLTOALL, COLL_REDISTRIBUTE, COLL_BROADCAST };
struct collective {
    enum collective_kind kind;
    const char *name, *op;
    int64_t id;            /* its number in file order */
    int axis, axis2, root; /* AllToAll: split axis, concatenated axis */
    enum redop red;
    bool bits;     /* AllReduce: only one rank's terms are not zero: bits are added, which keeps -0 */
    bool complete; /* ReduceScatter: every rank has the sum already (complete_sums.c) */
    const struct split *from, *to;
    const struct dim *const *extent; /* global sizes stated by the file, beside the splits' own */
    int nextent;
};
void collective_read(struct graph *, const struct node *, struct collective *);
enum { COMM_SHORT_BYTES = 16 * 1024 }; /* up to so many, everybody gets everything: one message time instead of two */
/* ---- measure_comm.c: seconds of the rank that took longest ---------------------------------------------------------------------- */
double measure_slowest(struct comm *, double seconds);

/* ---- route.c: where every block of one collective lies, for the sizes of this plan ------------------------------------------------ */
struct route {
    int64_t strips, x_step, y_step; /* runs of this route, and bytes from one to the next; 0 strips: globally empty, skipped by all */
    struct route *last;             /* the rest, a smaller strip; NULL: none */
    int64_t elements;               /* AllReduce, Broadcast */
    int64_t send_total, recv_total;
    struct region *send, *recv; /* by rank: of x, of y */
    int64_t *send_bytes, *recv_bytes;
};
/* strip: bytes of the whole tensor that go at a time, where it can be cut. */
struct route *collective_route(struct arena *, const struct collective *, const struct comm *, const struct tensor *x,
                               const struct tensor *y, const struct bindings *, int64_t strip);
void collective_run(const struct collective *, const struct route *, struct comm *, struct buffer *scratch, const struct tensor *x,
                    struct tensor *y);
/* Fails unless every rank has the same list of collectives, and the same plan, by its hash. */
void collective_agree(struct comm *, struct arena *, const char *path, const struct collective *, int n, uint64_t plan);

/* ---- complete_sums.c ------------------------------------------------------------------------------------------------------------- */
/* The first operand's dimension over which a node of this rank's file sums, and how its factor is dealt out; NULL: it has no such entry. */
const struct split *sum_split(struct graph *, const struct node *, int *dim);

/* ---- ordered_sum.c: a node that sums over a dealt-out dimension -----------------------------------------------------------------------
 */
struct part {
    int n;
    const struct stretch *at;
    int nterm;
    struct subtree *subtree;
}; /* what a rank holds, and the terms it makes */
struct summation {
    struct share share; /* first: what the kernel sees */
    struct session *session;
    struct collective *collective; /* from: the split of the dimension */
    struct session_collective *count;
    int axis;
    struct part *part; /* by rank, for the sizes of this plan; their terms, and what follows, from the first run on */
    int nterm;
    struct subtree *subtree;
    struct term *term;
    const void **in;
};
/* For the sizes of a new plan. */
void summation_update(struct summation *);

/* ---- state.c: values that stay on their rank from run to run ----------------------------------------------------------------- */
struct kept {
    int past, present; /* input, output; present -1: read only */
    int axis;          /* along which it grows; -1: it does not */
    bool in_place;     /* past and present share memory; room: its places along axis */
    int64_t room;
    bool filled; /* false: no run yet left anything */
    struct buffer memory;
    const char *from;    /* the output of another graph that it starts as; NULL: none is named */
    struct tensor whole; /* its global type and sizes; -1: not known */
};
struct session;
/* Finds what is kept and which of it grows in place; gives dense copies to nodes that can't read memory with room. */
void state_prepare(struct session *);
/* The sizes under which the next run starts: of given inputs (data not NULL) and of what is kept. */
void state_sizes(struct session *, const struct tensor *given, struct tensor *sizes);
/* Memory for what is kept, under the sizes of this plan. */
void state_place(struct session *);
/* A global tensor becomes the content of a kept input. */
void state_fill(struct session *, int input, const struct tensor *global);
void state_advance(struct session *);
/* Copies a piece; either may have room. */
void state_copy(struct tensor *to, const struct tensor *from);
void state_free(struct session *);

/* ---- sharded_input.c: inputs of which a rank has brought its piece
 * ---------------------------------------------------------------------------- */
struct own {
    const char *from;
    struct tensor piece;
}; /* from NULL: it has not */
/* Into `to`; false: the rank has not brought it. Another size than the split gives this rank: failure. */
bool own_take(struct session *, int input, struct tensor *to);

/* ---- the session ------------------------------------------------------------------------------------------------------------- */
enum step_kind { STEP_KERNEL, STEP_VIEW, STEP_COLLECTIVE, STEP_CONTROL };
struct step {
    enum step_kind kind;
    struct node *node;
    struct tensor *in, *out; /* by position */
    bool *in_constant;
    void *cache; /* the kernel's slot */
    bool late;   /* a result's size is known only when its operands are */
    struct collective *collective;
    struct session_collective *count;
    struct route *route;
    struct control *control;
    struct summation *sum; /* NULL: the node sums over no dimension that is dealt out */
};
struct session {
    struct arena *arena; /* what lives as long as the session */
    struct arena *plan;  /* what lives as long as one set of sizes */
    struct arena *run;   /* late results of one run; NULL: none */
    struct graph *graph;
    struct comm *comm;
    struct kenv *env;
    bool inner; /* runs a body: env is that of the session around */
    struct signature sig;
    int nkept;
    struct kept *kept, **kept_input; /* by input, NULL: not kept; kept_input NULL: the session keeps nothing */
    struct own *own;                 /* by input; NULL: none is */
    struct tensor *actual;           /* sizes of all inputs of the run that starts */
    struct bindings bind, next;      /* of the plan; of the run that starts */
    bool planned;
    int nstep;
    struct step *step;
    struct tensor *tensor; /* by value id; dtype DT_NONE: size not known yet */
    struct lifetimes life; /* what lies in the slab, and when */
    struct buffer slab, scratch;
    int64_t slab_bytes;            /* the most that a plan took */
    int64_t late, late_bytes;      /* of late results of this run; the most that a run took */
    VEC(const struct dim *) sizes; /* every expression in a live type, once */
    int64_t *size;                 /* by dim id: its value under bind; -1: not known */
    int64_t size_ids;              /* length of size */
    int ncollective;
    struct collective *collective;
    struct session_stats stats;
    struct session_collective *count;
};
/* A collective begins, and ends: messages name it, its count and the session's statistics have its time and bytes. */
struct timed {
    double start;
    int64_t sent;
};
struct timed collective_begin(struct session *, const struct collective *);
void collective_end(struct session *, struct session_collective *, struct timed);
/* layout.c: lifetimes once; sizes and addresses whenever bindings change. */
void layout_prepare(struct session *);
void layout_update(struct session *);
/* A tensor whose bytes no i64 counts is a failure. */
void layout_check(const struct session *, const struct tensor *, const char *name);
/* Concrete dims of a type under the session's bindings; false: a size is not known. */
bool layout_type(const struct session *, const struct type *, const char *name, struct tensor *out);
/* dynamic_shape.c: sizes of a node's results from its real operands, by its own inference; memory for them; the route of a collective. */
void late_results(struct session *, struct step *);
/* The symbols of a result's type get its sizes: they may be wanted by name later. */
void late_bind(struct session *, const struct value *);
/* scatter_io.c: the local piece of an input, into `to`. */
void port_slice(struct session *, int input, const struct tensor *global, struct tensor *to);

/* session.c: its slab and those of the bodies that were run. */
int64_t session_slab(const struct session *);
/* session.c: memory of this run. */
struct arena *session_scratch(struct session *);
/* session.c: a session for a body, with the threads of the one around it. */
struct session *session_inner(const struct session *around, struct graph *body);

/* ---- control.c: nodes that own graphs ------------------------------------------------------------------------------------------ */
struct inner {
    struct session *session;
    struct tensor *in, *out;
}; /* session NULL: not run yet */
struct control {
    struct inner *body;
    int nbuffer;
    struct buffer *buffer;
};
void control_prepare(struct session *, struct step *);
void control_run(struct session *, struct step *);
void control_free(struct step *);
/* The slabs of bodies that were run. */
int64_t control_slab(const struct step *);
struct inner *control_inner(struct session *, struct step *, int body);
/* Runs it: the caller has set what it takes beside its captures. */
void control_run_body(struct step *, int body);
/* The value of a condition. */
bool control_truth(const struct session *, const struct step *, const struct tensor *);
/* The tensor becomes result i. stays: its memory is valid until the node runs again. */
void control_give(struct session *, struct step *, int i, const struct tensor *, bool stays);

/* ---- loop_scan.c -------------------------------------------------------------------------------------------------------------------- */
void turns_loop(struct session *, struct step *);
void turns_scan(struct session *, struct step *);

#endif
