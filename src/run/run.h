/* run: executes one graph, plain or one rank's, on CPUs. Reads emitted ONNX only and does not use src/plan. */
#ifndef TPC_RUN_H
#define TPC_RUN_H

#include "kern/kern.h"
#include "op/analysis/analysis.h"
#include "run/comm/comm.h"
#include "run/pipeline/pipeline.h"

/* ---- sessions: a loaded graph, its memory plan and its weights ---------------------------------------------------------- */
struct session;
struct session_options {
    int threads;
    bool keep_state;              /* state (a rank file's metadata, graph->states) stays on its rank between runs */
    bool verify;                  /* checks all bytes of all weights, not only packed ones */
    bool deterministic;           /* results equal those of one rank, bit for bit (complete_sums.c) */
    enum wire wire;               /* of sums between machines */
    bool narrow;                  /* products may round their operands to bf16 */
    bool force;                   /* activations may exceed the available memory */
    enum gradients_go gradients;  /* the purpose of session_gradients_to */
    bool profile;                 /* times every step; collectives start together */
    struct pipeline *pipeline;    /* of a graph that is a stage: each run receives what other stages send, and sends what they read */
    const struct session *beside; /* another session of this rank; shares its packed weights where they are equal; NULL: none */
};
/* graph: after the passes load to fuse_kernels. */
struct session *session_new(struct graph *, struct comm *, struct session_options);
void session_free(struct session *);
/* inputs: global tensors by position of graph->inputs; a rank takes its shard. outputs: this rank's shards, in the session's memory, valid
 * until the next run. Fails on a wrong dtype or shape and on a violated assumption. A state whose data is NULL keeps the value of the last
 * run; before the first run its size is 0 along its growing dimension. */
void session_run(struct session *, const struct tensor *inputs, struct tensor *outputs);
/* The same in two parts, for a training step in a stage: other runs of the stage may come between them. The first part ends where gradients
 * of later stages are needed, or else at the end of the run. The inputs must stay until the second part has run. */
void session_begin(struct session *, const struct tensor *inputs);
void session_finish(struct session *, struct tensor *outputs);
/* For later runs: writes the gradient of graph->trained number i to to[i] (GRADIENTS_LEAVE), or adds it there (GRADIENTS_ADD); copies it
 * there in the first run of a step. last: it is the last run of the step. */
void session_gradients_to(struct session *, float *const *to, bool first, bool last);
/* In later runs, made(data, i) is called as soon as gradient i is in its place and no step reads it any more: in the same order on all
 * ranks. NULL: no calls. */
void session_gradients_made(struct session *, void (*made)(void *data, int number), void *data);
/* In later runs, needed(data, i) is called before the first step that reads the weight of graph->trained number i. */
void session_weights_needed(struct session *, void (*needed)(void *data, int number), void *data);
/* Fails as session_run would, and changes nothing. */
void session_check(struct session *, const struct tensor *inputs);

/* Global types: from the rank file's metadata, or from a plain graph. */
const struct type *session_input_type(const struct session *, int input);
const struct type *session_output_type(const struct session *, int output);
const struct placement *session_output_placement(const struct session *, int output);
/* Sizes of an input under these bindings, completed by equations. False, and *missing: a symbol without a value. */
bool session_input_sizes(struct session *, const struct bindings *, int input, int64_t *dim, const char **missing);
/* Values of the symbols in the last run. */
const struct bindings *session_bindings(const struct session *);

/* State. */
bool session_is_state(const struct session *, int input);
/* The output of another graph of the model from which a state starts, if the plan names one; else NULL. */
const char *session_state_source(const struct session *, int input);
/* The dimension along which a state grows; -1: none. */
int session_state_grows_along(const struct session *, int input);
/* Bytes of the states on this rank when growing states hold this many tokens, for these sizes; states of other unknown sizes do not
 * count. */
int64_t session_state_need(const struct session *, const struct bindings *, int64_t tokens);
/* The global type and sizes of a state; the global tensor on every rank, in a call by all ranks. Fails if the state is empty. */
struct tensor session_state_sizes(const struct session *, int input);
struct tensor session_gather_state(struct session *, struct arena *, int input);
/* Copies an output of another session's last run to the state `input`, shard by shard. Fails if placements differ. */
void session_copy_state(struct session *to, int input, const struct session *from, int output);

/* state_rows.c: states as rows of a batch; `symbol` is the batch size. Further sets of states; a new set may take rows from several
 * others. */
struct session_states;
struct session_states *session_states_new(const struct session *); /* in the condition before the first run */
void session_states_free(struct session_states *);
void session_states_swap(struct session *, struct session_states *);
/* The first state that cannot be divided by rows; NULL: all can. */
const char *session_states_without_rows(const struct session *, const char *symbol);
/* Whether some state grows along a dimension, so that a row has columns. */
bool session_states_grow(const struct session *);
/* The input of a recurrent state: every token of a row changes it, and a mask hides none. NULL: none. */
const char *session_recurrent_state(const struct session *);
/* A row of a set of states after a run, NULL: of the current set. Of growing states these columns, which will begin at column `to`. */
struct session_state_row {
    const struct session_states *from;
    int64_t row, column, columns, to;
};
/* Composes the current states from these rows, with this many columns; the rest is zero. No rows: as before the first run. */
void session_states_compose(struct session *, const char *symbol, int64_t rows, int64_t columns, const struct session_state_row *);
/* Columns of a row, over all states. The reason why they cannot be copied from and to states, in the arena; NULL: they can. */
const char *session_states_without_columns(const struct session *, struct arena *, const char *symbol);
/* Truncates the current states to this many columns; only if session_states_without_columns returns NULL. */
void session_states_cut(struct session *, int64_t columns);
/* The layout of columns in the current states after a run; the bytes of one column on this rank. */
struct session_columns;
struct session_columns *session_columns_new(struct arena *, const struct session *, const char *symbol);
int64_t session_columns_bytes(const struct session_columns *);
/* Copies columns of a row of the current states. */
void session_columns_read(const struct session_columns *, const struct session *, int64_t row, int64_t column, int64_t columns, void *to);
/* The current states become one row of this many columns, all of which must be written before the next run. */
void session_columns_begin(const struct session_columns *, struct session *, int64_t columns);
void session_columns_write(const struct session_columns *, struct session *, int64_t column, int64_t columns, void *from);

/* Shards of inputs and outputs. */
/* Sets each rank's own shard of an input, read from `file` (for messages). Returns a tensor with the global sizes for session_run. All
 * ranks call it. Fails on shards that do not form one tensor, and on replicas that differ. */
struct tensor session_set_shard(struct session *, int input, const char *file, const struct tensor *shard);
/* The global tensor on every rank: *in, or the tensor of session_set_shard; after a run. */
struct tensor session_gather_input(struct session *, struct arena *, int input, const struct tensor *in);
struct tensor session_gather(struct session *, struct arena *, int output, const struct tensor *shard);
/* The placement of an output; if it is sharded, the global indices along dim of this rank's shard, in order. */
struct output_shard {
    enum place kind;
    int dim, n;
    const struct interval *at;
};
struct output_shard session_output_shard(struct session *, struct arena *, int output, const struct tensor *shard);

/* Time and traffic since session_new or the last session_reset_stats. */
struct session_collective {
    const char *name, *op;
    int64_t calls, bytes, payload; /* bytes: sent; payload: bytes of the operand */
    double seconds;
    double behind; /* seconds that it ran while this rank computed */
};
struct session_stats {
    int64_t runs, slab_bytes, weight_bytes, state_bytes;
    int64_t state_moved; /* bytes of state copied in memory, since session_new */
    double seconds, comm_seconds;
    int ncollective;
    const struct session_collective *collective;
};
const struct session_stats *session_stats(struct session *);
struct pipeline *session_pipeline(const struct session *); /* NULL: the graph is no stage */
/* Adds bytes that the caller holds for the session: weights that are inputs, and state. */
void session_stats_add(struct session *, int64_t weights, int64_t state);
void session_reset_stats(struct session *);

/* profile.c: times of the nodes in execution order; NULL: without the option `profile`. In seconds: for the last run, start time, time
 * waiting for other ranks, compute time; then sums over all runs since session_new or session_reset_stats. bytes: sent. operations: of
 * products, two per multiply-add; moved: bytes of operands and results. in, out: sizes in the last part of the last run. */
struct session_timed {
    const struct node *node;
    const char *module; /* of the network from which the node was exported; NULL: unknown */
    bool collective;
    double at, wait, seconds, wait_sum, sum;
    int64_t bytes;
    double operations, moved, operations_sum, moved_sum;
    const struct tensor *in, *out;
};
const struct session_timed *session_times(const struct session *, int *n);

/* dynamic_shape.c: types and sizes of a node's results, by its inference on its real operands. Allocates no data. */
void dynamic_types(struct arena *, const struct graph *, const struct node *, const struct tensor *in, struct tensor *out);

/* ---- replica_batch.c: a dimension of global tensors, split over the replicas of --groups ----------------------------------- */
struct replica_range {
    int64_t from, count;
};
/* Even shares, or in proportion to speeds. */
struct replica_shares {
    int count;
    const double *speed; /* by replica; NULL: equal */
};
struct replica_range replica_range_of(const struct replica_shares *, int64_t total, int replica);
/* The slice at these positions of dimension dim. */
struct tensor replica_slice(struct arena *, const struct tensor *, int dim, struct replica_range);
/* Concatenates the ranges of the ranks of `across`; a rank with an empty range needs no tensor. Fails with the tensor's name if other sizes
 * differ. */
struct tensor replica_gather(struct arena *, struct comm *across, const struct replica_shares *, const char *name, const struct tensor *own,
                             int dim, int64_t total);

#endif
