/* job: what a program does with a model or a folder of rank files: load it, give it inputs, run it, look at what comes out, measure it, or
 * merge the folder into the model it was made from. */
#ifndef TPC_JOB_H
#define TPC_JOB_H

#include "op/canon/canon.h"
#include "run/run.h"

struct job_options {
    struct text_list paths;       /* models, or folders of rank files; one, but for --generate */
    struct text_list input, role; /* as given: [K:]NAME=FILE, [K:]NAME=ROLE */
    int64_t local, repeat, threads, generate;
    int64_t eos, start; /* token ids; -1: not given */
    struct bindings dims;
    struct bound_inputs fixed; /* --bind */
    struct folders external_roots;
    bool random, stats;
    uint64_t seed;          /* of --random */
    const char *stats_path; /* NULL: to stdout */
    const char *output, *test_data, *check, *calibrate;
    double rtol, atol, rel; /* -1: by type */
    bool deterministic, write_shards, quiet;
    int64_t groups;           /* replicas, from 1 */
    const char *batch_symbol; /* the symbol that --groups names; NULL: none */
};

/* run.c: every rank calls it; one rank's part of a run of one model or folder, --generate aside. True when a comparison failed; on rank 0.
 */
struct replicas;
bool job_run(struct arena *, const struct replicas *, const struct job_options *, int threads);

/* merge.c: writes the source of an emitted folder to out, and its external data beside it, or fails and leaves nothing. force: replaces
 * files. */
void job_merge(struct arena *, const char *dir, const char *out, bool force);

/* ---- replica.c: the ranks of a job, in process groups of the same size, each of which runs a replica on its rows --------- */
struct replicas {
    struct comm *all, *process_group; /* all ranks; those of this group, which runs the model once */
    struct comm *across;              /* the ranks of one number in all groups; NULL: there is one group */
    int count, index;
    const char *symbol; /* of --groups; NULL: none */
};
/* Reads --groups G[:SYMBOL]; text NULL: one group. */
void replica_read(struct arena *, const char *text, struct job_options *);
/* Ranks that can't be divided so: wrong usage. All ranks form groups, and all leave them. */
struct replicas replica_form(struct comm *, const struct job_options *);
void replica_leave(struct replicas *);
/* The rows of this group; symbol NULL: there is one group, which has all. total: of all groups, 0: no given input tells. */
struct batch_shard {
    const char *symbol;
    int64_t total;
    struct batch_range rows;
};
/* in: global inputs; data NULL: not given. The symbol is that of --groups, else the first, in the order of the inputs and of their
 * dimensions, along which rows are independent. A symbol whose rows are not, inputs of different numbers of rows: failure. */
struct batch_shard replica_shard_batch(const struct replicas *, const struct graph *, const struct session *, const struct tensor *in);
/* It has rows to run on; the first group runs without any, too, to tell what it makes of that. */
bool replica_runs(const struct replicas *, const struct batch_shard *);
/* Leaves of the inputs the rows of this group. */
void replica_take_rows(struct arena *, const struct batch_shard *, const struct graph *, const struct session *, struct tensor *in);
/* An output of all groups, on rank 0 of each; elsewhere, and where it has no rows, what the group has of it. */
struct tensor replica_gather_output(struct arena *, const struct replicas *, const struct batch_shard *, const struct session *, int output,
                                    const char *name, const struct tensor *own);

/* load.c: the file of this rank, checked against the others, through the front end. */
struct graph *job_load(struct arena *, struct comm *, const char *path, const struct job_options *);
/* fixed: inputs that are constants. */
struct graph *job_load_model(struct arena *, const char *path, const struct bound_inputs *fixed, const struct job_options *);

/* inputs.c: global inputs from files, test data, or made from the types. */
struct tensor *job_inputs(struct arena *, struct session *, const struct graph *, const struct job_options *);

struct tensor job_read_tensor(struct arena *, const char *path);
const char *job_input_names(struct arena *, const struct graph *);

/* tensor_element.c: element i as a number. */
double tensor_element(const struct tensor *, int64_t i);
void tensor_put(struct tensor *, int64_t i, double);

/* compare_outputs.c */
/* What is given; else by the narrowest float type that the graph reads or makes, stored weights included: 8 units roundoff for f16 and bf16
 * (2^-8, 2^-5), the fixed 1e-4, 1e-5, 1e-5 for wider ones. */
struct tolerance {
    double rtol, atol, rel;
};
struct tolerance compare_tolerance(const struct graph *, const struct job_options *);
struct verdict {
    bool failed;
    int outputs;
    double worst;
    const char *name;
}; /* worst difference, and in which output */
/* |a-b| <= rtol |b| + atol max(1, max|b|), integers exact. The first difference found is printed. */
void compare_close(struct verdict *, const char *name, const struct tensor *got, const struct tensor *want, double rtol, double atol);
/* max|a-b| <= rel max|b|, integers exact. */
void compare_relative(struct verdict *, const char *name, const struct tensor *got, const struct tensor *want, double rel);
void compare_print(const struct verdict *);

/* calibrate.c: every rank calls it; rank 0 writes the profile. */
void job_calibrate(struct arena *, struct comm *, const struct job_options *, int threads);

/* outputs.c */
char *outputs_shape_text(struct arena *, const struct tensor *); /* "f32[2, 7]" */
void outputs_write(struct arena *, const struct graph *, const struct tensor *outputs, const char *folder);
/* Every rank calls it: what it holds of each output, as NAME.rank-R.npy; of a whole one, rank 0, as NAME.npy. */
void outputs_write_shards(struct arena *, const struct comm *, const struct graph *, const struct session *, const struct tensor *shards,
                          const char *folder);
void outputs_print_times(const double *seconds, int64_t n);

/* stats.c: every rank calls it; rank 0 prints, or writes JSON to path. more: a collective beside those of the graph, or NULL. */
void stats_report(struct arena *, const struct replicas *, const struct batch_shard *, struct session *,
                  const struct session_collective *more, const char *path);

#endif
