/* cli/run.h: the parts of tpc-run. */
#ifndef TPC_CLI_RUN_H
#define TPC_CLI_RUN_H

#include "cli/args.h"
#include "op/canon/canon.h"
#include "run/run.h"

struct run_options {
    struct arg_list paths; /* models, or folders of rank files; one, but for --generate */
    int64_t local, repeat, threads, generate;
    struct arg_list input, dim, bind, role, external_root;
    struct arg_maybe random, stats; /* stats: the text is a file */
    const char *output, *test_data, *check, *eos, *start, *calibrate;
    double rtol, atol, rel; /* -1: by type */
    bool deterministic, pieces, quiet, verbose;
    const char *grouped, *rows; /* --groups as given; the symbol in it, NULL: none */
    int64_t groups;             /* from 1 */
    const char *launcher;       /* variable of a launcher that started several processes; NULL: none */
};

/* run_groups.c: the ranks of a job, in groups of the same size */
struct team {
    struct comm *all, *own; /* all ranks; those of this group, which runs the model once */
    struct comm *across;    /* the ranks of one number in all groups; NULL: there is one group */
    int groups, group;
    const char *symbol; /* of --groups; NULL: none */
};
/* The groups that --groups asks for. */
void groups_read(struct arena *, struct run_options *);
/* Ranks that can't be divided so: wrong usage. All ranks form teams, and all leave them. */
struct team team_form(struct comm *, const struct run_options *);
void team_leave(struct team *);
/* The rows of this group; symbol NULL: there is one group, which has all. total: of all groups, 0: no given input tells. */
struct dealt {
    const char *symbol;
    int64_t total;
    struct batch_range rows;
};
/* in: global inputs; data NULL: not given. The symbol is that of --groups, else the first, in the order of the inputs and of their
 * dimensions, along which rows are independent. A symbol whose rows are not, inputs of different numbers of rows: failure. */
struct dealt team_deal(struct arena *, const struct team *, const struct graph *, const struct session *, const struct tensor *in);
/* It has rows to run on; the first group runs without any, too, to tell what it makes of that. */
bool team_runs(const struct team *, const struct dealt *);
/* Leaves of the inputs the rows of this group. */
void team_take(struct arena *, const struct dealt *, const struct graph *, const struct session *, struct tensor *in);
/* An output of all groups, on rank 0 of each; elsewhere, and where it has no rows, what the group has of it. */
struct tensor team_join(struct arena *, const struct team *, const struct dealt *, const struct session *, int output, const char *name,
                        const struct tensor *own);

/* run_load.c: the file of this rank, checked against the others, through the front end. */
struct graph *run_load(struct arena *, struct comm *, const char *path, const struct run_options *);
/* fixed: inputs that are constants. */
struct graph *run_load_model(struct arena *, const char *path, const struct bound_inputs *fixed, const struct run_options *);

/* run_inputs.c: global inputs from files, test data, or made from the types. */
struct tensor *run_inputs(struct arena *, struct session *, const struct graph *, const struct run_options *);

struct tensor run_read_tensor(struct arena *, const char *path);
const char *run_input_names(struct arena *, const struct graph *);

/* element.c */
double tensor_element(const struct tensor *, int64_t i);
void tensor_put(struct tensor *, int64_t i, double);

/* run_compare.c */
/* What is given; else by the narrowest float type that the graph reads or makes, stored weights included: 8 units roundoff for f16 and bf16
 * (2^-8, 2^-5), the fixed 1e-4, 1e-5, 1e-5 for wider ones. */
struct tolerance {
    double rtol, atol, rel;
};
struct tolerance tolerance_of(const struct graph *, const struct run_options *);
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
void verdict_print(const struct verdict *);

/* run_calibrate.c: every rank calls it; rank 0 writes the profile. */
void run_calibrate(struct arena *, struct comm *, const struct run_options *, int threads);

/* run_report.c */
char *dims_str(struct arena *, const struct tensor *); /* "f32[2, 7]" */
void report_outputs(struct arena *, const struct graph *, const struct tensor *outputs, const char *folder);
/* Every rank calls it: what it holds of each output, as NAME.rank-R.npy; of a whole one, rank 0, as NAME.npy. */
void report_pieces(struct arena *, const struct comm *, const struct graph *, const struct session *, const struct tensor *pieces,
                   const char *folder);
void report_times(const double *seconds, int64_t n);

/* run_stats.c: every rank calls it; rank 0 prints, or writes JSON to path. more: a collective beside those of the graph, or NULL. */
void report_stats(struct arena *, const struct team *, const struct dealt *, struct session *, const struct session_collective *more,
                  const char *path);

#endif
