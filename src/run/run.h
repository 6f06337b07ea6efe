/* run: executes one graph, plain or one rank's, on CPUs. It reads emitted ONNX only and does not see src/plan. */
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
    bool keep_state;              /* state (a rank file's metadata, graph->states) stays on its rank from run to run */
    bool verify;                  /* all bytes of all weights are checked, not only those that are packed */
    bool deterministic;           /* results are those of one rank, bit for bit (complete_sums.c) */
    enum wire wire;               /* of sums between machines */
    bool narrow;                  /* products may round their operands to bf16 */
    bool force;                   /* activations may take more than what is available */
    enum gradients_go gradients;  /* what session_gradients_to is for */
    bool profile;                 /* every step is timed, and collectives begin together */
    struct pipeline *pipeline;    /* of a graph that is a stage: each run takes what others send, and sends what they read */
    const struct session *beside; /* another session of this rank, whose packed weights this one uses where they are its own; NULL: none */
};
/* graph: after the passes load to fuse_kernels. */
struct session *session_new(struct graph *, struct comm *, struct session_options);
void session_free(struct session *);
/* inputs: global tensors by position of graph->inputs, of which a rank takes its shard. outputs: this rank's shards, in the session's
 * memory, valid until the next run. A dtype or shape that does not fit and a violated assumption are failures. A state whose data is NULL
 * keeps the value that the last run left; before the first run it has size 0 along its growing dimension. */
void session_run(struct session *, const struct tensor *inputs, struct tensor *outputs);
/* The same in two parts, for a stage of a step of training: between them other sessions of the stage may run. The first ends where the
 * gradients of later stages are needed, without these at the end of the run. The inputs must stay until the second has run. */
void session_begin(struct session *, const struct tensor *inputs);
void session_finish(struct session *, struct tensor *outputs);
/* For the runs that follow: the gradient of graph->trained number i is made in to[i] (GRADIENTS_LEAVE), or added to what is there
 * (GRADIENTS_ADD); copied there if it is the first run of a step. last: it is the last one. */
void session_gradients_to(struct session *, float *const *to, bool first, bool last);
/* In the runs that follow, made(data, i) is called as soon as gradient i is where it goes and nothing reads it any more: in the same order
 * on all ranks. NULL: nothing is. */
void session_gradients_made(struct session *, void (*made)(void *data, int number), void *data);
/* In the runs that follow, needed(data, i) is called before the first step that reads the weight of graph->trained number i. */
void session_weights_needed(struct session *, void (*needed)(void *data, int number), void *data);
/* Only these failures: it changes nothing. */
void session_check(struct session *, const struct tensor *inputs);

/* Global types: of the rank file's metadata, or of a plain graph. */
const struct type *session_input_type(const struct session *, int input);
const struct type *session_output_type(const struct session *, int output);
const struct placement *session_output_placement(const struct session *, int output);
/* Sizes of an input under these bindings, completed by equations. False, and *missing: a symbol without a value. */
bool session_input_sizes(struct session *, const struct bindings *, int input, int64_t *dim, const char **missing);
/* Values of the symbols in the last run. */
const struct bindings *session_bindings(const struct session *);

/* State. */
bool session_is_state(const struct session *, int input);
/* The output of another graph of the model from which a state starts, if a plan names one; else NULL. */
const char *session_state_source(const struct session *, int input);
/* The dimension along which a state grows; -1: none. */
int session_state_grows_along(const struct session *, int input);
/* Bytes of the states on this rank once those that grow hold so many tokens, for these sizes; states of other unknown sizes do not count.
 */
int64_t session_state_need(const struct session *, const struct bindings *, int64_t tokens);
/* The global type and sizes of what a state holds; and the global tensor on every rank, which all call it. Empty state: failure. */
struct tensor session_state_sizes(const struct session *, int input);
struct tensor session_gather_state(struct session *, struct arena *, int input);
/* The state `input` of one session becomes what the last run of another left as an output, shard by shard. Other placements: failure. */
void session_copy_state(struct session *to, int input, const struct session *from, int output);

/* state_rows.c: states as rows of a batch, where `symbol` counts these. Other sets of states than that in use; the rows of one may come
 * from several. */
struct session_states;
struct session_states *session_states_new(const struct session *); /* as before the first run */
void session_states_free(struct session_states *);
void session_states_swap(struct session *, struct session_states *);
/* The first state that can't be taken apart by rows; NULL: all can. */
const char *session_states_without_rows(const struct session *, const char *symbol);
/* Some state grows along a dimension: a row has columns. */
bool session_states_grow(const struct session *);
/* The input that a state of a recurrence takes: every token of a row changes it, and nothing hides one. NULL: there is none. */
const char *session_recurrent_state(const struct session *);
/* A row of a set of states that a run left, NULL: of those in use. Of those that grow, these columns, which are to begin at column `to`. */
struct session_state_row {
    const struct session_states *from;
    int64_t row, column, columns, to;
};
/* The states in use become these rows, of so many columns; what no row fills is zero. No rows: as before the first run. */
void session_states_compose(struct session *, const char *symbol, int64_t rows, int64_t columns, const struct session_state_row *);
/* Columns of a row, of all states. Why they can't be copied out of states and into them, in the arena; NULL: they can. */
const char *session_states_without_columns(const struct session *, struct arena *, const char *symbol);
/* The states in use, of which session_states_without_columns says nothing, keep so many of their first columns. */
void session_states_cut(struct session *, int64_t columns);
/* How they lie in the states in use, which a run left; and the bytes of one column on this rank. */
struct session_columns;
struct session_columns *session_columns_new(struct arena *, const struct session *, const char *symbol);
int64_t session_columns_bytes(const struct session_columns *);
/* Copies columns of a row of the states in use. */
void session_columns_read(const struct session_columns *, const struct session *, int64_t row, int64_t column, int64_t columns, void *to);
/* The states in use become one row of so many columns, each of which is to be written before the next run. */
void session_columns_begin(const struct session_columns *, struct session *, int64_t columns);
void session_columns_write(const struct session_columns *, struct session *, int64_t column, int64_t columns, void *from);

/* Shards of inputs and outputs. */
/* Each rank passes its own shard of an input, which it read from a file (for messages). Returns a tensor with the global sizes to pass to
 * session_run. All ranks call it. Shards that don't form one tensor, and replicas that differ, are failures. */
struct tensor session_set_shard(struct session *, int input, const char *file, const struct tensor *shard);
/* The global tensor on every rank: *in, or what session_set_shard made it of; after a run. */
struct tensor session_gather_input(struct session *, struct arena *, int input, const struct tensor *in);
struct tensor session_gather(struct session *, struct arena *, int output, const struct tensor *shard);
/* How an output is placed; if it is sharded, the global indices along dim that this rank's shard has, in their order. */
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
    double behind; /* seconds that it went on while this rank computed */
};
struct session_stats {
    int64_t runs, slab_bytes, weight_bytes, state_bytes;
    int64_t state_moved; /* bytes of state that were copied from one memory to another, since session_new */
    double seconds, comm_seconds;
    int ncollective;
    const struct session_collective *collective;
};
const struct session_stats *session_stats(struct session *);
/* Counts bytes that the caller holds for it: weights that are inputs, and state. */
void session_stats_add(struct session *, int64_t weights, int64_t state);
void session_reset_stats(struct session *);

/* profile.c: the times of the nodes in the order in which they run; NULL: without the option `profile`. In seconds: of the last run, since
 * its begin, waiting for other ranks, working; then sums over all runs since session_new or session_reset_stats. bytes: sent. operations:
 * of products, two for each multiply-add; moved: bytes of operands and results. in, out: sizes in the last run, of its last part. */
struct session_timed {
    const struct node *node;
    const char *module; /* of the network that the node was exported from; NULL: not known */
    bool collective;
    double at, wait, seconds, wait_sum, sum;
    int64_t bytes;
    double operations, moved, operations_sum, moved_sum;
    const struct tensor *in, *out;
};
const struct session_timed *session_times(const struct session *, int *n);

/* dynamic_shape.c: types and sizes of a node's results, by its own inference on its real operands. Allocates no data. */
void dynamic_types(struct arena *, const struct graph *, const struct node *, const struct tensor *in, struct tensor *out);

/* ---- replica_batch.c: a dimension of global tensors, split over the replicas of --groups ----------------------------------- */
struct replica_range {
    int64_t from, count;
};
/* Evenly, or in proportion to speeds. */
struct replica_shares {
    int count;
    const double *speed; /* by replica; NULL: all are alike */
};
struct replica_range replica_range_of(const struct replica_shares *, int64_t total, int replica);
/* These positions of dimension dim. */
struct tensor replica_slice(struct arena *, const struct tensor *, int dim, struct replica_range);
/* The tensor whose ranges the ranks of `across` have; a rank with an empty range needs no tensor. Other sizes that differ are a failure
 * that names the tensor. */
struct tensor replica_gather(struct arena *, struct comm *across, const struct replica_shares *, const char *name, const struct tensor *own,
                             int dim, int64_t total);

#endif
