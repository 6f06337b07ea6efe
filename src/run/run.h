/* run: executes one graph (plain, or one rank's) on CPUs. Reads emitted ONNX only; does not see src/plan. */
#ifndef TPC_RUN_H
#define TPC_RUN_H

#include "kern/kern.h"

/* ---- comm.h part: communicators behind one struct: self, local (threads of one process), MPI (comm_mpi.c alone sees mpi.h) ------ */
struct comm {
    int rank, size;
    const char *kind;                                                /* "self", "local", "mpi" */
    void *state;
    /* Each blocks until done on this rank. id: the collective's number in file order; ranks that disagree stop with both names. */
    void (*barrier)(struct comm *);
    /* Every rank gives bytes[rank]; at: all ranks' blocks one after another, the own block already in place. */
    void (*allgatherv)(struct comm *, void *at, const int64_t *bytes);
    /* in place sum/max/min/prod of n elements, in rank order, f32 at least. */
    void (*allreduce)(struct comm *, void *at, int64_t n, enum dtype, enum redop);
    /* at: all ranks' blocks (elements[r] each); own block reduced into out. */
    void (*reduce_scatterv)(struct comm *, const void *at, void *out, const int64_t *elements, enum dtype, enum redop);
    /* send: blocks for ranks 0.. of send_bytes[r]; recv likewise. */
    void (*alltoallv)(struct comm *, const void *send, const int64_t *send_bytes, void *recv, const int64_t *recv_bytes);
    void (*broadcast)(struct comm *, void *at, int64_t bytes, int root);
    _Noreturn void (*abort)(struct comm *, int status);
    void (*free)(struct comm *);
};
struct comm *comm_self(void);
/* Runs body(comm, data) on size threads of this process and returns when all are done. */
void comm_local_run(int size, void (*body)(struct comm *, void *), void *data);
/* NULL when built without MPI. Separate singletons (size 1 under a launcher that started several) are found by the caller. */
struct comm *comm_mpi(int *argc, char ***argv);

/* ---- session.c: a loaded graph, its memory plan and its weights ------------------------------------------------------------- */
struct session;
/* graph: after the passes load..kernels. */
struct session *session_new(struct graph *, struct comm *, int threads);
void session_free(struct session *);
/* inputs: global tensors by position of graph->inputs (a rank slices its part by the file's placements). outputs: allocated by the
 * session, this rank's piece, valid until the next run. Input dtype or shape that does not fit, a violated assumption: failure. */
void session_run(struct session *, const struct tensor *inputs, struct tensor *outputs);
/* The global output: ranks' pieces put together on every rank. */
struct tensor session_gather(struct session *, struct arena *, int output, const struct tensor *piece);

#endif
