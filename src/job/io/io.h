/* job/io: the tensors of a run: read from files or made up, written, compared. */
#ifndef TPC_JOB_IO_H
#define TPC_JOB_IO_H

#include "job/job.h"

/* inputs.c: the global inputs, from files, from test data or random, on all ranks. Fails with wrong usage on a missing input. */
struct tensor *job_inputs(struct arena *, struct comm *all, struct session *, struct graph *, const struct job_options *);
/* The number of elements of the input that indexes the longest table: tokens, words; 0: none. */
int64_t job_count_tokens(struct arena *, struct graph *, const struct tensor *in);
/* True if the options give no input at all. */
bool job_gives_nothing(const struct job_options *);
/* Rank 0 sends its tensors to all ranks; data NULL: not given. */
void job_send_inputs(struct arena *, struct comm *, int n, struct tensor *);
/* A size_source (passes/pass.h): sizes from the options; and from tensors for another graph's inputs. Small integers that decide forms are
 * bound to their values. */
void job_state_sizes(const void *options, struct graph *);
struct job_tensors {
    const struct graph *of;
    const struct tensor *in; /* by input */
};
void job_state_sizes_of(const void *tensors, struct graph *);
/* By input; from the whole model, because a rank's tables may be parts. */
struct value_use *job_value_uses(struct arena *, struct graph *);
struct index_limits job_size_limits(struct arena *, struct graph *);
/* The largest size of a symbol, among limits on it alone; -1: none. */
int64_t job_most_of(struct arena *, struct graph *, const char *symbol);
/* Fails if sizes exceed a table. given: integers are given, so only limits on sizes alone count. */
void job_check_limits(struct arena *, struct graph *, const struct bindings *, bool given);
/* read_tensor.c: from a file, or numbers for literal_read. input: the value that it is for; NULL: unknown. */
struct tensor job_read_tensor(struct arena *, const char *from, const struct value *input);
/* The first few of n, for messages. */
const char *job_names(struct arena *, struct value *const *, int n);
const char *job_input_names(struct arena *, const struct graph *);

/* Why an input with an initializer cannot be given. */
const char *job_why_default(struct arena *, const struct graph *, const char *input);

/* input_forms.c: a size_source.held (passes/pass.h), for the inputs in the options. */
const char *job_input_held(const void *options, struct arena *, const char *input, bool tensor);
/* A size_source.given. */
bool job_input_given(const void *options, struct arena *, const char *input);
/* Integers and booleans that --bind can give, and their text. */
bool input_is_small_integer(const struct tensor *);
const char *input_values_text(struct arena *, const struct tensor *);

/* literal.c: the elements of an input, as 1,2,3 or [1,2],[3,4] or "a","b". */
bool literal_is_one(const char *text);
/* With the input's type, or, if that is unknown, the first of i64, f32, bool that they fit. */
struct tensor literal_read(struct arena *, const char *text, const struct value *input);

/* tensor_element.c: element i as a double. */
double tensor_element(const struct tensor *, int64_t i);
void tensor_put(struct tensor *, int64_t i, double);

/* compare_outputs.c */
/* The options' tolerances; others follow from the narrowest float type in the graph, including weights. f16 and bf16: 8 units of roundoff
 * (2^-8, 2^-5). Wider types: 1e-4, 1e-5, 1e-5. */
struct tolerance {
    double rtol, atol, rel;
};
struct tolerance compare_tolerance(const struct graph *, const struct job_options *);
struct verdict {
    const char *source; /* the source of expected values: a file or a model, for messages */
    bool failed;
    int outputs, different;
    double worst; /* the worst difference, and its output */
    const char *name;
    double mean; /* the largest root mean square of an output's differences, relative to the output's */
};
/* Compares |a-b| <= rtol |b| + atol max(1, max|b|); integers exactly. Prints what differs. */
void compare_close(struct verdict *, const char *name, const struct tensor *got, const struct tensor *want, double rtol, double atol);
/* Compares max|a-b| <= rel max|b|, where the latter counts as at least `least`; integers exactly. Prints differences. */
void compare_relative(struct verdict *, const char *name, const struct tensor *got, const struct tensor *want, double rel, double least);
/* The largest difference of floats, relative to the largest magnitude of want; infinity if they are not comparable. 0: integers. */
double compare_difference(const struct tensor *got, const struct tensor *want);
/* The tolerance of compare_relative for an output that the order of sums alone changes by `noise`: at least rel. */
double compare_allowance(const struct graph *, double rel, double noise);
/* Prints the verdict. The graph is the one that made the outputs. */
void compare_print(const struct graph *, const struct verdict *);

/* outputs.c */
char *outputs_shape_text(struct arena *, const struct tensor *); /* "f32[2, 7]" */
void outputs_write(struct arena *, const struct graph *, const struct tensor *outputs, const char *folder);
/* Writes each rank's shard of each output as NAME.rank-R.npy. Rank 0 writes a replicated output as NAME.npy. Every rank calls it. */
void outputs_write_shards(struct arena *, struct comm *, const struct graph *, const struct session *, const struct tensor *shards,
                          const char *folder);
void outputs_print_times(const double *seconds, int64_t n);

#endif
