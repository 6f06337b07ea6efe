/* session: one graph ready to run: the symbols that inputs bind, the memory of every value, states kept between runs, and nodes with
 * subgraphs. */
#ifndef TPC_RUN_SESSION_H
#define TPC_RUN_SESSION_H

#include "op/analysis/analysis.h"
#include "run/collective/collective.h"
#include "run/run.h"

/* ---- signature.c: global types of inputs and outputs, and the binding of symbols ------------------------------------------ */
struct formal {
    const char *name;
    struct type type;
    struct placement place;
};
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
/* Reads the signature from a rank file's metadata, or from the types and equations of a plain graph. */
void signature_read(struct arena *, struct graph *, struct signature *);
/* Checks dtypes, ranks and sizes of the inputs, binds every symbol, checks lower bounds and assumptions. Failures name the sizes. */
void signature_bind(struct arena *, const struct signature *, const struct tensor *, struct bindings *);
/* Types and sizes of inputs under these bindings. */
void signature_check_inputs(struct arena *, const struct signature *, const struct tensor *, const struct bindings *);
/* Checks assumptions whose sizes are all bound. A data-dependent size is bound when it is computed. */
void signature_check_assumptions(struct arena *, const struct signature *, const struct bindings *);
/* Adds the symbols that assumptions determine. */
void signature_complete(struct arena *, const struct signature *, struct bindings *);

/* ---- what a session consists of -------------------------------------------------------------------------------------------- */
struct control;
struct summation;
struct batch_blocks;
enum step_kind { STEP_KERNEL, STEP_VIEW, STEP_COLLECTIVE, STEP_CONTROL };
struct session_step {
    enum step_kind kind;
    struct node *node;
    struct tensor *in, *out; /* by position */
    bool *in_constant;
    void *cache;    /* the kernel's slot */
    bool as_stored; /* it has no cache: its weight is read unpacked */
    bool dynamic;   /* some result size is known only with its operands */
    struct collective_node *collective;
    struct session_collective *count;
    struct route *route;
    struct control *control;
    struct summation *sum;     /* NULL: the node sums over no sharded dimension */
    struct unit_gather *units; /* NULL: not a recurrent net with split hidden units */
};
/* A state of the graph: an input, and the output that is its value in the next run. */
struct state_slot {
    int input, output; /* output -1: the state is input-only */
    int axis;          /* along which it grows; -1: none */
    bool recurrent;    /* starts as zeros */
    bool in_place;     /* input and output share memory with this capacity along axis */
    int64_t capacity;
    bool filled; /* false: no run has set a value yet */
    struct buffer memory;
    const char *source;   /* the output of another graph from which it starts; NULL: none */
    struct tensor global; /* its global type and sizes; -1: unknown */
    struct tensor local;  /* this rank's shard in memory; if set by a run or by another session */
};
/* gradients.c: numbers of graph->trained, by the steps after which a call is made for them. */
struct due {
    int *first, *next; /* by number of finished steps; by number; -1: none */
    void (*tell)(void *, int number);
    void *data;
};
struct session {
    struct arena *arena; /* freed with the session */
    struct arena *plan;  /* reset when sizes change */
    struct graph *graph;
    struct comm *comm;
    struct kenv *env;
    bool verify, force;
    enum wire wire; /* of sums */
    bool inner;     /* runs a subgraph: env belongs to the outer session */
    struct pipeline *pipeline;
    struct {
        int pause;            /* the first step that reads what later stages send; the number of steps if none */
        struct tensor *taken; /* the inputs of a run */
        bool *unread;         /* by input: not available when a run starts: a state of another stage, or what later stages send; NULL: no
                               * stages */
        struct pipeline_values *values;
        struct buffer *zeros;                       /* by input: in place of a sum that a later run sends */
        struct session_collective *received, *sent; /* what other stages send this one, and it them */
    } stage;
    struct signature sig;
    struct bindings bind, next; /* of the plan; of the run that starts */
    bool planned;
    struct tensor *actual; /* sizes of all inputs of the run that starts */
    int nstep;
    struct session_step *step;
    struct tensor *tensor; /* by value id; dtype DT_NONE: size not known yet */
    struct {
        int n;
        struct state_slot *at, **by_input; /* by_input NULL: the session keeps no state; by_input[i] NULL: input i is no state */
    } states;
    struct input_shard *shards; /* by input; NULL: none is given per rank */
    struct {
        VEC(const struct dim *) dims; /* every expression in a live type, once */
        int64_t *value;               /* by dim id: its value under bind; -1: not known */
        int64_t ids;                  /* length of value */
    } sizes;
    struct {
        struct lifetimes life;   /* the items of the slab, and their lifetimes */
        struct slab_item *found; /* its items, if no steps run in blocks */
        bool *elsewhere;         /* by value id: an input that is read from the caller's memory */
        struct buffer memory;
        int64_t bytes; /* the largest of all plans so far */
    } slab;
    struct {
        struct arena *arena;         /* of this run; NULL: unused */
        struct block_pool pool;      /* of data-dependent results; */
        VEC(struct buffer *) memory; /* of its blocks */
    } dynamic;
    struct {
        enum gradients_go go;
        float *const *to;
        bool first, last;         /* run of a step */
        int *owner;               /* by value id: the first gradient stored in its bytes; -1: none */
        int *next;                /* by gradient: the next one with the same bytes; -1: none */
        struct due ready, needed; /* gradients that are complete after a step; weights that the next step reads first */
    } gradients;
    struct buffer scratch;
    struct {
        int n;
        struct collective_node *at;
        struct session_collective *count; /* of these; of a stage, then what it receives and sends */
    } traffic;
    struct session_stats stats;
    struct session_timed *profile; /* by step; NULL: not asked for */
    struct overlap *overlap;       /* NULL: each collective completes in its own step */
    struct batch_blocks *blocks;   /* NULL: every step computes the whole batch */
};

/* session.c */
/* The tensor of an input for the steps: a shard of the global tensor, or the tensor itself. */
void session_place_input(struct session *, int input, const struct tensor *);
/* Runs the kernel of a step on its operands and results, which are set. */
void session_run_kernel(struct session *, struct session_step *);
/* Bytes of its slab and of the slabs of subgraphs that ran. */
int64_t session_slab(const struct session *);
/* A session for a subgraph, with the outer session's threads. */
struct session *session_inner(const struct session *outer, struct graph *body);

/* stage_run.c: the run of a stage of a pipeline. */
/* Before steps are made: moves what later stages read to the front. */
void stage_run_prepare(struct session *);
void stage_run_free(struct session *);
/* The given inputs, plus what earlier stages send. */
const struct tensor *stage_run_inputs(struct session *, const struct tensor *given);
/* Receives what later stages send into the inputs' memory. */
void stage_run_later(struct session *);
/* Sends what later or earlier stages read, gathered on each rank. */
void stage_run_pass(struct session *, bool later);

/* profile.c: prepares a session to time its steps; runs a step and times it. began: start of the run. */
void profile_begin(struct session *);
void profile_step(struct session *, int step, double began, void (*run)(struct session *, struct session_step *));
/* The same for a step that ran in parts since `start`. */
void profile_part(struct session *, int step, double began, double start, bool first);

/* work.c: operations of a step's products, two per multiply-add, by the sizes of its operands and results; 0: no product, or its work
 * depends on data. Bytes of operands and results; 0: it moves none. */
double work_operations(const struct session *, const struct session_step *);
double work_bytes(const struct session_step *);

/* traffic.c: sets the current collective for messages; adds its time and bytes to its count and the session's statistics. */
struct traffic_start {
    double seconds;
    int64_t sent;
};
struct traffic_start traffic_begin(struct session *, const struct collective_node *);
void traffic_end(struct session *, struct session_collective *, struct traffic_start);
/* The same for what passes between stages. */
struct traffic_start traffic_begin_pass(struct session *, const struct session_collective *);
void traffic_end_pass(struct session *, struct session_collective *, struct traffic_start);

/* sizes.c: sizes under the session's bindings. */
void sizes_prepare(struct session *);
void sizes_evaluate(struct session *);
/* Below 0: unknown. */
int64_t sizes_of_dim(const struct session *, const struct dim *);
/* Concrete dims of a type; false: a size is unknown. */
bool sizes_of_type(const struct session *, const struct type *, const char *name, struct tensor *out);
/* Like sizes_of_type, with the symbols bound by the current run. */
bool sizes_after_run(const struct session *, const struct type *, struct tensor *out);
/* Fails if the tensor's bytes exceed an i64. Every size that a run computes is checked here before memory is allocated. */
void sizes_check(const struct session *, const struct tensor *, const char *name);
/* Fails with the value's name if its bytes exceed the available memory, without --force. held: bytes that are freed first. */
void sizes_need_room(const struct session *, const char *name, size_t bytes, size_t held);

/* layout.c: lifetimes once; sizes and addresses whenever bindings change. */
void layout_prepare(struct session *);
void layout_update(struct session *);

/* gradients.c: gradients in the caller's arrays. */
void gradients_prepare(struct session *);
void gradients_place(struct session *); /* before a run */
/* Before a step; after it; after all steps. */
void gradients_need(struct session *, int step);
void gradients_take(struct session *, int step);
void gradients_finish(struct session *);

/* dynamic_memory.c: memory of data-dependent results. */
/* Memory of this many bytes, for a value and its views. */
void *dynamic_take(struct session *, const struct value *, size_t bytes);
/* Frees what no step after this one reads. */
void dynamic_release(struct session *, int step);
/* Before a run: frees all. */
void dynamic_begin(struct session *);
/* Bytes in use. */
int64_t dynamic_bytes(const struct session *);
void dynamic_free(struct session *);
/* Reset before the next run. */
struct arena *dynamic_arena(struct session *);

/* dynamic_shape.c: data-dependent results. */
/* Computes sizes of a node's results from its real operands, allocates their memory, and sets the route of a collective. */
void dynamic_results(struct session *, struct session_step *);
/* Binds the symbols of a result's type to its sizes, for later shapes. */
void dynamic_bind(struct session *, const struct value *);

/* scatter_io.c */
/* Copies this rank's shard of a global input to `to`. */
void scatter_input(struct session *, int input, const struct tensor *global, struct tensor *to);
/* Copies a tensor; either may have spare capacity. */
void scatter_copy(struct tensor *to, const struct tensor *from);

/* sharded_input.c: an input whose shards all ranks have set; file NULL: not set. */
struct input_shard {
    const char *file;
    struct tensor tensor;
};
/* The shard, which has the sizes of `as`; NULL: the input has none. Fails if the split gives this rank another size. */
const struct tensor *sharded_input(struct session *, int input, const struct tensor *as);

/* state.c: values kept on their rank between runs. */
/* Finds the states, and which of them grow in place; inserts dense copies for nodes that cannot read memory with spare capacity. */
void state_prepare(struct session *);
/* The sizes with which the next run starts: of given inputs (data not NULL) and of states. */
void state_sizes(struct session *, const struct tensor *given, struct tensor *sizes);
/* Allocates the states for the sizes of this plan. */
void state_place(struct session *);
/* Sets a state from a global tensor. */
void state_fill(struct session *, int input, const struct tensor *global);
/* Sets the state of a recurrence to zero if neither a run nor the caller has set it. */
void state_begin(struct session *, int input);
/* Keeps this run's outputs as the states of the next. */
void state_advance(struct session *);
void state_free(struct session *);
/* Resets it as before the first run; the caller frees its memory. */
void state_empty(struct state_slot *);
/* Allocates memory for the sizes of k->local, with spare capacity if it grows in place. */
void state_reserve(const struct session *, struct state_slot *k);

/* ---- overlap: collectives that run while a rank computes ---------------------------------------------------------------- */
/* The collective of a block. */
struct block_exchange {
    struct overlap *overlap;
    const struct collective_node *node;
    struct session_collective *count;
    const struct route *route;
    const struct tensor *from, *to; /* where x and y begin, and the byte offset: a view has an address only when it is made */
    int64_t x_at, y_at;
    struct tensor x, y;
    int64_t payload; /* bytes */
    int64_t number;  /* its number in behind.c */
    int64_t sent;
    double took;
};
/* Rows lo to hi of `rows`: a tensor whose row dimension is a multiple of that has as many for each. */
struct row_range {
    int64_t lo, hi, of;
};
/* A segment for the sizes of this plan. */
struct block_plan {
    int nall;                                      /* number of ranges per block; 0: the segment runs as a whole */
    struct row_range *all[ROW_BLOCKS];             /* among the rows of all ranks */
    struct row_range own[ROW_BLOCKS];              /* among this rank's, if a stage has only these */
    struct block_exchange (*exchange)[ROW_BLOCKS]; /* by stage */
};
struct overlap {
    struct row_segments segments;
    struct block_plan *plan; /* by segment */
    int *begins;             /* by step: the segment that starts there; -1: none */
    int64_t least;           /* least bytes of a sum over all ranks that pays off */
    int runs;                /* number of segments that run in blocks in this plan */
    struct comm *comm;       /* of its own */
    struct behind *behind;
    struct buffer scratch;
};

/* row_blocks.c: blocks of rows. */
/* Whether the step is a ReduceScatter or an AllGather of rows. */
bool row_blocks_move(const struct session *, const struct row_segments *, int step);
/* The first such step of a segment; NULL: none. */
const struct session_step *row_blocks_mover(const struct session *, const struct row_segments *, const struct row_segment *);
/* The split of the rows that it moves, and this rank's number of them; NULL without it. */
const struct split *row_blocks_split(const struct session_step *mover);
const struct dim *row_blocks_own(const struct session_step *mover);
/* Of the `rows` leading dimensions of a tensor, the one that blocks cut: the first that is not 1; -1: none. */
int row_block_dim(const struct tensor *, int rows);
struct tensor row_block_of(const struct tensor *, int dim, struct row_range);
/* The dimension of operand k that corresponds to dimension d of the result; -1: all blocks read all of it. */
int row_block_operand_dim(const struct rule *, int k, int d);
/* Sets the addresses of values of these steps that share another value's memory. */
void row_blocks_point_views(struct session *, int first, int last);
/* For the sizes of a new plan. */
void row_blocks_plan(struct session *, const struct row_segment *, struct block_plan *);

/* overlap_blocks.c: decides what runs in blocks, and runs it. */
/* At load. */
void overlap_prepare(struct session *);
/* For the sizes of a new plan, given its lifetimes. True: lifetimes changed, now or in the previous plan. */
bool overlap_plan(struct session *);
/* Runs the steps in blocks that start at this one; returns their number. */
int overlap_run(struct session *, int step);
void overlap_free(struct session *);

/* batch_blocks.c: chains of steps that process the batch block by block. */
/* At load, after lifetimes are found. */
void batch_blocks_prepare(struct session *);
/* For the sizes of a new plan. True: the slab must be laid out again. */
bool batch_blocks_plan(struct session *);
/* Bytes of an item of the slab that takes `bytes` for the whole batch. */
int64_t batch_blocks_bytes(const struct session *, int item, int64_t bytes);
/* Runs the chain that starts at this step; returns its length, or 0. */
int batch_blocks_run(struct session *, int step, double began);

/* ordered_sum.c: the collective after a node that sums over a sharded dimension; for --deterministic. */
/* NULL: the node makes no partial sum of floats. */
struct summation *ordered_sum_new(struct session *, const struct node *);
/* From now on its collective is *c, whose traffic is counted there. */
void ordered_sum_register(struct summation *, struct collective_node *c, struct session_collective *count);
const struct share *ordered_sum_share(const struct summation *);
/* For the sizes of a new plan. */
void ordered_sum_update(struct summation *);

/* control.c: nodes with subgraphs. */
struct body_run {
    struct session *session; /* NULL: has not run yet */
    struct tensor *in, *out;
};
struct control {
    struct body_run *body;
    int nbuffer;
    struct buffer *buffer;
};
void control_prepare(struct session *, struct session_step *);
void control_run_if(struct session *, struct session_step *);
void control_free(struct session_step *);
/* Bytes of the slabs of subgraphs that ran. */
int64_t control_slab(const struct session_step *);
struct body_run *control_body(struct session *, struct session_step *, int body);
/* Runs a subgraph; the caller has set its inputs other than captures. */
void control_run_body(struct session_step *, int body);
/* The value of a condition. */
bool control_condition(const struct session *, const struct session_step *, const struct tensor *);
/* Sets result i to the tensor. stays: its memory is valid until the node runs again. */
void control_set_result(struct session *, struct session_step *, int i, const struct tensor *, bool stays);

/* loop_scan.c */
void loop_run(struct session *, struct session_step *);
void loop_run_scan(struct session *, struct session_step *);

#endif
