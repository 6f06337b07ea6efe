/* run: executes one graph (plain, or one rank's) on CPUs. Reads emitted ONNX only; does not see src/plan. */
#ifndef TPC_RUN_H
#define TPC_RUN_H

#include "kern/kern.h"

/* ---- comm.h part: communicators behind one struct: self, local (threads of one process), MPI (comm_mpi.c alone sees mpi.h) ------ */
struct block {
    void *at;
    int64_t bytes;
};
struct comm {
    int rank, size;
    int local_size;     /* ranks on this machine */
    int64_t id;         /* the collective under way, set by the caller before a call: */
    const char *name;   /* its number in file order and its name, for messages */
    int64_t bytes_sent; /* to other ranks, since the start */
    const char *kind;   /* "self", "local", "mpi" */
    void *state;
    /* Each blocks until done on this rank. id: the collective's number in file order; ranks that disagree stop with both names. */
    void (*barrier)(struct comm *);
    /* Every rank gives bytes[rank]; at: all ranks' blocks one after another, the own block already in place. */
    void (*allgatherv)(struct comm *, void *at, const int64_t *bytes);
    /* y = sum/max/min/prod of every rank's x, n elements, in rank order, f32 at least. x and y lie apart. */
    void (*allreduce)(struct comm *, const void *x, void *y, int64_t n, enum dtype, enum redop);
    void (*broadcast)(struct comm *, void *at, int64_t bytes, int root);
    /* send[r], set by the caller, goes to rank r; out = sum/max/min/prod of the n elements that come from every rank. */
    void (*reduce_scatter)(struct comm *, void *out, int64_t n, enum dtype, enum redop);
    /* send[r] goes to rank r, what comes from it to recv[r]; both set by the caller. */
    void (*alltoall)(struct comm *);
    /* What all collectives are made of: send[r] goes to rank r, what comes from it has recv[r].bytes (both have an entry for the own rank).
     * seen[r] says where that lies: at recv[r].at, or in the sender's own memory. Until done, no sent block may change; after it, what was
     * lent may not be read. */
    void (*exchange)(struct comm *, const struct block *send, const struct block *recv, const void **seen);
    void (*done)(struct comm *);
    /* The ranks that give the same color get a communicator of their own, numbered in the order that they have here. All ranks call it, and
     * all free what they got before this one is freed. */
    struct comm *(*split)(struct comm *, int color);
    __attribute__((noreturn)) void (*abort)(struct comm *, int status);
    void (*free)(struct comm *);
    struct buffer *scratch;    /* grows only */
    struct block *send, *recv; /* [size], what the caller of an exchange fills */
    const void **seen;
};
struct comm *comm_self(void);
/* Runs body(comm, data) on size threads of this process and returns when all are done. */
void comm_local_run(int size, void (*body)(struct comm *, void *), void *data);
/* NULL when built without MPI. Separate singletons (size 1 under a launcher that started several) are found by the caller. */
struct comm *comm_mpi(int *argc, char ***argv);
/* The linked MPI library, one line; NULL when built without MPI. Needs no initialisation. */
const char *comm_mpi_library(void);
/* out = in[0] op in[1] op ... in this order, n elements; float32 at least for floats. out may be one of in. */
void comm_reduce(void *out, const void *const *in, int nin, int64_t n, enum dtype, enum redop);
/* The collectives of *c over its exchange, and scratch for them. Called by the makers of communicators. */
void comm_setup(struct comm *, struct arena *);
void comm_release(struct comm *);

/* ---- session.c: a loaded graph, its memory plan and its weights ------------------------------------------------------------- */
struct session;
struct session_options {
    int threads;
    bool keep;          /* state (a rank file's metadata, graph->states) stays on its rank from run to run */
    bool deterministic; /* results are those of one rank, bit for bit (complete_sums.c) */
};
/* graph: after the passes load..kernels. */
struct session *session_new(struct graph *, struct comm *, struct session_options);
void session_free(struct session *);
/* inputs: global tensors by position of graph->inputs (a rank slices its part by the file's placements). outputs: allocated by the
 * session, this rank's piece, valid until the next run. Input dtype or shape that does not fit, a violated assumption: failure. A kept
 * input whose data is NULL is what the last run left; before the first run, it has no rows along the axis along which it grows. */
void session_run(struct session *, const struct tensor *inputs, struct tensor *outputs);
/* Global type and placement of an input or output: the rank file's metadata, or the type in a plain graph. */
const struct type *session_input_type(const struct session *, int input);
const struct type *session_output_type(const struct session *, int output);
/* Sizes of an input under given symbols; equations complete them. False and *missing: a symbol that has no value. */
bool session_input_sizes(struct session *, const struct bindings *, int input, int64_t *dim, const char **missing);

bool session_keeps(const struct session *, int input);
/* The output of another graph of the model from which it starts, where a plan names one; else NULL. */
const char *session_keeps_from(const struct session *, int input);
/* The kept input of one session takes what the last run of another left as an output, each rank its own piece. Other placements: failure.
 */
void session_take(struct session *to, int input, const struct session *from, int output);

/* Each rank has its own piece of an input, from a file that messages name: session_run will take that where it is given the tensor that
 * this returns, which has the global sizes. Pieces of an input that is whole are alike. All ranks call it; pieces that are not those of one
 * tensor: failure. */
struct tensor session_give(struct session *, int input, const char *from, const struct tensor *piece);
/* The global tensor: *in, or what session_give made it of, put together on every rank; after a run. */
struct tensor session_gather_input(struct session *, struct arena *, int input, const struct tensor *in);
/* Where an output stays after a run. */
const struct placement *session_output_place(const struct session *, int output);

/* Types and sizes of a node's results where data decides them: by the node's own inference on its real operands. No memory for them. */
void late_types(struct arena *, const struct graph *, const struct node *, const struct tensor *in, struct tensor *out);

/* Of a clock that only goes forward. */
double seconds_now(void);
/* Time and traffic since session_new or the last session_reset_stats. */
struct session_collective {
    const char *name, *op;
    int64_t calls, bytes, payload;
    double seconds;
}; /* bytes: sent; payload: of the operand */
struct session_stats {
    int64_t runs, slab_bytes, weight_bytes, state_bytes;
    int64_t state_moved; /* bytes of kept values that were copied from one memory to another, since session_new */
    double seconds, comm_seconds;
    int ncollective;
    const struct session_collective *collective;
};
const struct session_stats *session_stats(struct session *);
void session_reset_stats(struct session *);
/* Values of the symbols in the last run. */
const struct bindings *session_sizes(const struct session *);

/* How an output is placed; of a dimension that is dealt out, the global indices that this rank's piece has, in their order. */
struct held {
    enum place kind;
    int dim, n;
    const struct interval *at;
};
struct held session_held(struct session *, struct arena *, int output, const struct tensor *piece);
/* The global output: ranks' pieces put together on every rank. */
struct tensor session_gather(struct session *, struct arena *, int output, const struct tensor *piece);

/* ---- batch_groups.c: a dimension of global tensors, dealt out evenly to groups of ranks
 * ----------------------------------------------------- */
struct rows {
    int64_t from, count;
};
struct rows rows_deal(int64_t total, int groups, int group);
/* These places of dimension dim. */
struct tensor rows_take(struct arena *, const struct tensor *, int dim, struct rows);
/* The tensor of which each rank of `across` has the rows that rows_deal gives it; a rank without rows needs no tensor. Other sizes that
 * differ are a failure that names it. */
struct tensor rows_join(struct arena *, struct comm *across, const char *name, const struct tensor *own, int dim, int64_t total);

/* ---- measure_*.c: what this machine does. Every rank calls these; times are of the slowest rank, in seconds, the least of several. ----
 */
struct measured_collective {
    const char *op;
    int64_t bytes;
    double seconds;
}; /* bytes: of the whole value; op NULL: a message from one rank to another */
struct measured {
    double flops, memory; /* per second, of rank 0 while the others wait: products of many rows; bytes of weights in products of one row */
    double flops_together, memory_together; /* of each rank while all work */
    double elementwise;                     /* seconds per byte that the ops of a chain read and write if each runs alone */
    double node;                            /* seconds of a node that has next to nothing to do */
    int ncollective;                        /* 0: there is one rank */
    struct measured_collective *collective;
};
void measure_work(struct comm *, int threads, struct measured *); /* better figures replace those of an earlier call */
void measure_comm(struct arena *, struct comm *, struct measured *);

/* ---- complete_sums.c: for --deterministic, in the canonical graph of a rank: sums are completed where they are made
 * ------------------------ */
void complete_sums(struct graph *);

/* ---- keep_sharded.c: outputs stay as the ranks hold them: no AllGather is made for them alone
 * ------------------------------------------------ */
void ungather_outputs(struct graph *);

/* ---- fuse_*.c: load-time fusion, run by the pass kernels ---------------------------------------------------------------------- */
void fuse_attention(struct graph *);
void fuse_chains(struct graph *);
void fuse_weights(struct graph *);
void fuse_quantized(struct graph *);

#endif
