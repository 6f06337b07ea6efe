/* job: loads a model or a folder of rank files, makes inputs, runs, compares and measures it, and merges a folder into its model. */
#ifndef TPC_JOB_H
#define TPC_JOB_H

#include "op/canon/canon.h"
#include "passes/pass.h"
#include "plan/input/input.h"
#include "run/run.h"

#include <jansson.h>

enum { SERVE_SLOTS = 64 }; /* most rows of a server */

/* For --serve; NULL, 0 and, where 0 is a value, -1: not given. */
struct serve_options {
    const char *host;
    int64_t port, slots, context, per_address, request_seconds;
    int64_t prefix_cache;  /* bytes per rank; -1: not given */
    struct text_list cors; /* origins of pages that may use it */
    const char *api_key_file;
};

/* Output form of --bench; BENCH_NONE: not given. */
enum bench_form { BENCH_NONE, BENCH_MD, BENCH_CSV, BENCH_JSON };

/* The tokens that end a text. */
struct end_tokens {
    VEC(int64_t) list;
};

struct job_options {
    struct text_list paths;  /* models or folders of rank files; one, except with --generate */
    struct text_list prompt; /* texts to continue, a row each; in a file: a line each; "-": stdin */
    const char *prompt_file, *tokenizer;
    const char *chat_template, *system;  /* a file that replaces the model's own; NULL: not given */
    const char *save_state, *load_state; /* files of decoding that continues; NULL: none */
    struct text_list input, role;        /* texts of the options: [K:]NAME=FILE, [K:]NAME=ROLE */
    int64_t local, repeat, threads, generate;
    int64_t lookup;                    /* most tokens looked up per run; 0: none */
    const char *draft;                 /* a model or folder that drafts tokens; NULL: none */
    const char *grammar, *json_schema; /* a file with the form of texts; NULL: none */
    bool usual_length;                 /* generate is the default: less if positions end */
    struct end_tokens eos;
    int64_t start;                             /* -1: not given */
    double temperature, top_p, min_p, penalty; /* of sampling; -1: not given */
    double presence, frequency;                /* penalties; NaN: not given */
    int64_t top_k, sampling_seed;              /* -1: not given */
    struct bindings dims;
    struct bound_inputs fixed; /* --bind */
    struct folders external_roots;
    bool random, stats, force;
    int workload;           /* whose sizes made-up inputs have if none is given, from 1 */
    uint64_t seed;          /* seed of --random */
    const char *stats_path; /* JSON file; NULL: text to stdout */
    enum bench_form bench;
    bool profile;      /* print where the time goes */
    const char *trace; /* file for the last run's times; NULL: none */
    bool dump;         /* print the lowered graph, and run nothing */
    const char *output, *test_data, *calibrate;
    int64_t seconds;        /* of calibrate; 0: the default */
    struct text_list check; /* the graphs of a model */
    double rtol, atol, rel; /* -1: by the types in the graph */
    enum wire wire;         /* of sums between machines; WIRE_PLANNED: from their folder */
    enum dtype cache;       /* type of f32 caches: f16 or i8; DT_NONE: unchanged */
    bool deterministic, fast, verify, write_shards, quiet, serve, doctor;
    const char *pooling;      /* of embeddings; NULL: not given */
    bool supervised;          /* a supervisor started the job (supervise) */
    bool chat;                /* serves only a conversation on the terminal */
    struct text_list lora;    /* adapters in PEFT's form, [NAME=]FILE: to run with; with train: to start from */
    bool train;               /* weights are inputs of the rank's graph (weight_inputs.c) */
    int64_t groups;           /* number of replicas, from 1 */
    const char *batch_symbol; /* the symbol of --groups; NULL: none */
    const double *speed;      /* of each replica; NULL: equal */
};

/* defaults.c: the defaults. */
struct job_options job_defaults(void);

/* config_beside.c: such a file next to the first of the models that has it; NULL: none. The length of a text by the configuration next to
 * the model at one path. */
const char *config_beside(struct arena *, const struct job_options *, enum model_text);
struct config_limit config_beside_limit(struct arena *, const struct job_options *, const char *path, enum config_side);

/* agree.c: fails on a rank whose program or options differ from rank 0's, and names the difference. Every rank calls it. */
void job_agree(struct comm *, const char *program, const struct text_list *settings);

/* fits.c: rejects a graph whose weights exceed the memory available to the ranks of this machine, without --force. Every rank calls it. */
void job_check_memory(struct comm *all, const struct graph *, const struct job_options *);
/* The bytes of weights that a run reads. */
int64_t job_weight_bytes(const struct graph *);
/* The same for what decoding will finally hold. Every rank of the group calls it. */
struct cache_need {
    int64_t bytes, rows, tokens;
    int64_t prefixes; /* bytes for prefixes of texts (decode/prefix) */
    int64_t drafts;   /* and for a draft model (decode/draft) */
    bool weights;     /* they are not loaded yet */
};
void job_check_cache(struct comm *group, struct comm *all, const struct graph *, const struct job_options *, const struct cache_need *);

/* threads.c: the threads of one rank: `wanted`, or, if that is 0, the cores that it is bound to, or its share of all cores that others
 * leave free. */
int job_thread_count(const struct comm *, int64_t wanted);

/* doctor.c: prints where the ranks run, how fast memory and messages are, and what to change. Every rank calls it. launcher: evidence of a
 * launcher; NULL: none. */
void job_doctor(struct arena *, struct comm *, const char *launcher, int threads);

/* bench.c: runs the session on made-up inputs of each workload's size and prints times. Every rank calls it. */
struct replicas;
void bench_run(struct arena *, const struct replicas *, struct session *, struct graph *, const struct job_options *, int threads);
/* Timed runs per --bench test, after one warm-up run. */
int64_t bench_runs(const struct job_options *);
/* Prints a warning if more ranks than cores are measured. */
void bench_warn(const struct comm *all, const struct job_options *);

/* run.c: runs one model or folder, without --generate. Every rank calls it. Returns true on rank 0 if a comparison failed. */
bool job_run(struct arena *, const struct replicas *, const struct job_options *, int threads);
/* Sizes of made-up inputs of a graph that was not compiled for any. */
void job_note_workloads(struct graph *, const char *path);

/* merge.c: writes the source model of a folder to out, with its external data, and with the weights of a checkpoint (NULL: its own). Leaves
 * nothing on failure. force: replace files. */
void job_merge(struct arena *, const char *dir, const char *weights, const char *out, bool force);

/* ---- replica.c: replicas of the model on equal process groups; each runs its rows of the batch -------------------- */
struct replicas {
    struct comm *all, *process_group; /* all ranks; the process group of this replica */
    struct comm *across;              /* the ranks of the same index in all groups; NULL: one replica */
    int count, index;
    struct replica_shares shares; /* of the rows */
    const char *symbol;           /* the symbol of --groups; NULL: none */
};
/* Parses --groups G[:SYMBOL], and --speed X,Y,.. of the replicas; NULL: one replica; equal speeds. */
void replica_read(struct arena *, const char *text, const char *speed, struct job_options *);
/* The index of a rank of the job within its process group, before groups are made. */
int replica_rank(const struct comm *, const struct job_options *);
/* Makes the process groups; every rank calls both functions. Fails with wrong usage if G does not divide the number of ranks. */
struct replicas replica_form(struct comm *, const struct job_options *);
void replica_leave(struct replicas *);
/* The rows of this replica. symbol NULL: one replica has all rows. total: rows of all replicas; 0: unknown from given inputs. */
struct batch_shard {
    const char *symbol;
    int64_t total;
    struct replica_range rows;
};
/* Finds the rows of this replica from the global inputs; data NULL: not given. The symbol is that of --groups, else the first one, by input
 * and dimension, along which rows are independent. Fails on dependent rows, or inputs with different numbers of rows. */
struct batch_shard replica_shard_batch(const struct replicas *, const struct graph *, const struct session *, const struct tensor *in);
/* True if the replica has rows. The first replica runs even without, to report errors of an empty batch. */
bool replica_runs(const struct replicas *, const struct batch_shard *);
/* Slices the inputs to the rows of this replica. */
void replica_take_rows(struct arena *, const struct batch_shard *, const struct graph *, const struct session *, struct tensor *in);
/* Gathers an output of all replicas on rank 0 of each process group. Other ranks get their own part, as do outputs without rows. */
struct tensor replica_gather_output(struct arena *, const struct replicas *, const struct batch_shard *, const struct type *,
                                    const char *name, const struct tensor *own);

/* ---- io/stages.c: a folder of tpc-shard --pp; each rank has the file of one stage ---------------------------- */
/* The number of inputs of the model, which come first in the graph, before those from other stages and the trained weights. */
int job_given_inputs(const struct graph *);
/* A graph with the inputs and outputs of the model, without nodes; the graph itself if it is no stage. */
struct graph *job_model_ends(struct arena *, struct graph *);
/* The global outputs of the model, on rank 0 of all; own: of this rank's stage. Every rank calls it. */
struct tensor *job_model_outputs(struct arena *, struct pipeline *, struct graph *, const struct tensor *own);
/* Fails if the options need what stages do not support. */
void job_check_stages(const struct graph *, const char *folder, const struct job_options *);

/* load.c: loads this rank's file, or a model on one rank, and checks it against the other ranks' files. Before a session runs the graph,
 * job_fuse fuses its nodes. */
struct graph *job_load(struct arena *, struct comm *, const char *path, const struct job_options *);
/* The number of rank files in a folder; 0: none, or no folder. */
int job_rank_files(struct arena *, const char *path);
/* fixed: values of inputs that become constants; sizes: of inputs, if sizes decide a form. NULL: none. */
struct graph *job_load_model(struct arena *, const char *path, const struct bound_inputs *fixed, const struct size_source *,
                             const struct job_options *);
void job_fuse(struct graph *, struct comm *, const struct job_options *);

/* dump.c: prints the lowered graphs of all ranks on rank 0 of all: of one model or folder; of a graph that is lowered already. Every rank
 * calls them. */
void job_dump(struct arena *, const struct replicas *, const struct job_options *);
void job_dump_graph(struct arena *, const struct replicas *, const struct graph *);

/* weight_inputs.c: for a training step from tpc-shard --train: each weight with a gradient becomes an input, of this rank's local type, in
 * the order of the gradients; graph->trained lists them. */
void job_weights_as_inputs(struct graph *);
/* The name of the weight whose gradient an output of this name is; NULL: none. */
const char *job_weight_of_gradient(struct arena *, const char *output);

/* calibrate.c: measures the machine. Every rank calls it; rank 0 writes the profile. */
void job_calibrate(struct arena *, struct comm *, const struct job_options *, int threads);

/* times.c: the seconds of a run on the slowest replica. runs: this one has rows. Every rank calls it. */
double job_timed_run(struct comm *all, struct session *, const struct tensor *in, struct tensor *out, bool runs);
/* times.c: prints what --profile and --trace request. folder: of the graph. Every rank calls it. */
void job_tell_times(struct arena *, struct comm *all, struct session *, const char *folder, const struct job_options *);

#endif
