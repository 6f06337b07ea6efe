/* train: training (tpc-run --train). The graph computes a loss and gradients, placed like their weights. This folder sums them over
 * microbatches and replicas, runs the optimizer on each rank's own shards, and writes checkpoints. */
#ifndef TPC_TRAIN_H
#define TPC_TRAIN_H

#include "job/job.h"
#include "onnx/onnx.h"
#include "supervise/supervise.h"

/* The options as given; 0, -1 (of lr and seed) and NULL: not given. */
struct train_options {
    const char *save, *resume, *log, *plot, *optimizer, *mix;
    struct text_list data, validate;
    int64_t batch, sequence, steps, accumulate, save_every, keep, validate_every, seed;
    double lr;
};

/* loop.c: trains. Every rank calls it; rank 0 prints. */
void train_run(struct arena *, const struct replicas *, const struct job_options *, const struct train_options *, int threads);

/* ---- settings.c: settings of a run, from options, a checkpoint and defaults --------------------------------------------------------- */
enum optimizer { OPTIMIZER_ADAMW, OPTIMIZER_SGD };
enum schedule { SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_CONSTANT, SCHEDULE_WSD };
struct settings {
    int64_t batch, sequence, steps, accumulate, save_every, keep, validate_every, seed; /* sequence 0: from the data */
    const char *text;                                                                   /* of --optimizer */
    enum optimizer optimizer;
    enum schedule schedule;
    double lr, beta1, beta2, eps, decay, momentum;
    double clip, warmup, cooldown, floor; /* clip 0: none; warmup, cooldown: steps; floor: the last learning rate, relative to lr */
    bool fast;
    const char *tokenizer; /* NULL: the one next to the model */
};
/* From the options; then from a checkpoint (NULL: none); then defaults. Fails with wrong usage on a bad option. */
struct checkpoint;
struct settings settings_of(struct arena *, const struct train_options *, const struct job_options *, const struct checkpoint *);
/* Fails with wrong usage if required settings are missing, naming all of them. samples: --input has samples. */
void settings_check(struct arena *, const struct settings *, const struct train_options *, bool samples);

/* ---- parameters.c: this rank's shards of all trained weights, contiguous -------------------------------------------------- */
struct parameter {
    const char *name;
    int input, output;   /* of the graph */
    struct tensor local; /* this rank's shard as runs read it, in place: f32, or bf16 */
    int rank;
    int64_t dim[MAX_RANK]; /* of the full weight */
    int64_t from, count;   /* its elements, among all */
    bool decays;           /* weight decay applies: it has two dimensions larger than one */
};
struct range {
    int64_t from, to;
};
struct bucket {
    struct range all, own; /* own: the part that this replica's optimizer updates (ZeRO stage 1) */
    int64_t moment;        /* where the moments of the own part begin */
    bool narrow;           /* for weights that runs read as bf16 */
};
/* A trained weight of some stage, as a full tensor. */
struct trained_weight {
    const char *name;
    int rank;
    int64_t dim[MAX_RANK];
    int stage, own; /* own: its number in this stage; -1: in another stage */
};
struct parameters {
    int n;
    struct parameter *at;
    VEC(struct trained_weight) all; /* of all stages */
    struct pipeline *pipeline;      /* NULL: no stages */
    int64_t narrow, total;          /* elements, with gaps of zeros: those that runs read as bf16, which come first; all */
    uint16_t *rounded;              /* [narrow], the weights as bf16; */
    float *master;                  /* the optimizer's copy of the own parts of their buckets */
    float *weight;                  /* [total - narrow], the other weights */
    float *gradient;                /* [total] */
    float **into;                   /* by number: destination of its gradient */
    int buckets;                    /* of the flat arrays */
    struct bucket *bucket;
    int64_t own;      /* elements in the own parts of all buckets */
    float *moment[2]; /* of the own parts of all buckets, first and second */
    int pieces;
    struct range *piece; /* of these, each element of the full model on exactly one rank */
    double *partial;     /* [pieces] */
};
struct range parameters_meet(struct range, struct range); /* the intersection; of negative length: empty */
struct parameters parameters_new(struct arena *, const struct replicas *, struct pipeline *, struct graph *, struct session *);
/* Of the weights; of their gradients and moments. */
int64_t parameters_bytes(const struct parameters *);
int64_t parameters_state_bytes(const struct parameters *);
/* The weights that this replica's optimizer updates, in the own part of a bucket. */
float *parameters_own(const struct parameters *, const struct bucket *);
/* After elements r of these were updated: rounds them for runs. */
void parameters_round(const struct parameters *, const struct bucket *, struct range r, struct kenv *);
/* Sets all weights of this rank, from f32. */
void parameters_set(struct parameters *, const float *from);
/* Takes this rank's shard of a full weight. */
void parameters_take_shard(struct arena *, const struct replicas *, struct session *, const struct parameter *, const void *full,
                           float *shard);

/* ---- join.c: communication of replicas, in buckets; with one replica it is NULL and does nothing -------------------- */
struct joining;
struct joining *join_start(struct arena *, const struct replicas *, const struct parameters *, int sessions, struct session *const *);
/* The next run of the session completes gradients. After the end, the own parts of all buckets are sums over all replicas. */
void join_gradients_begin(struct joining *, struct session *);
void join_gradients_end(struct joining *);
/* Each replica has the own part of a bucket, of the weights that runs read, or of a flat array. After the end all have everything. */
void join_weights(struct joining *, int bucket);
void join_parts(struct joining *, int bucket, float *all);
void join_parts_end(struct joining *);
/* Like the end, but if communication continues meanwhile, a step waits when it first reads a weight. */
void join_parts_later(struct joining *);
/* Statistics of both. After an end. Returns their number. */
enum { JOIN_COUNTS = 2 };
int join_counts(const struct joining *, struct session_collective[JOIN_COUNTS]);
void join_end(struct joining *);

/* For all rows of a step: the loss, its labels, the square of the gradient's norm, and how many ranks were asked to stop. */
struct step_sums {
    double loss, count, square, ends;
};
/* join.c: over all ranks, in one message. The ranks of a replica have the same loss: it counts once. */
struct step_sums train_sums_join(const struct replicas *, struct step_sums own);

/* ---- microbatches.c: the runs of a step. A pipeline stage starts several before it finishes the first (1F1B) ----------------- */
struct microbatches {
    const struct settings *settings;
    const struct replicas *replicas;
    struct batches *batches;
    int n;                    /* most in flight */
    struct session **session; /* for each of them */
    struct tensor **in, *out;
    int loss_sum, loss_count; /* outputs; -1: in another stage */
};
struct microbatches microbatches_new(struct arena *, const struct replicas *, struct graph *, const struct settings *,
                                     struct session_options);
/* The weights are inputs of every run. */
void microbatches_read(struct microbatches *, const struct parameters *);
struct step_sums microbatches_run(struct microbatches *, int64_t step, const struct parameters *, struct joining *);
void microbatches_free(struct microbatches *);

/* ---- shared_weights.c: weights that one stage trains and others also read (a tied embedding and head) -------------------------------- */
struct shared_weights;
/* NULL: no stage has any. in: inputs of n runs at once. */
struct shared_weights *shared_weights_new(struct arena *, struct pipeline *, struct graph *, int n, struct tensor *const *in);
/* After an update of the weights: sends the new ones to all stages. Every rank calls it. */
void shared_weights_send(struct shared_weights *, const struct replicas *, const struct parameters *, struct session *);
/* The same for another graph, whose inputs after the model's are `shift` positions earlier. */
void shared_weights_read(const struct shared_weights *, struct tensor *in, int shift);
int64_t shared_weights_bytes(const struct shared_weights *);

/* clip.c: this rank's addend of the square of the full gradient's norm. Each element counts once. */
double clip_square(const struct parameters *, struct kenv *);

/* schedule.c: the learning rate of a step, from 0: a linear rise, then by settings.schedule. */
double schedule_rate(const struct settings *, int64_t step);

/* optimizer.c: step number `step`, from 0, of the own part of a bucket. scale: of the gradients. */
void optimizer_step(const struct parameters *, const struct bucket *, const struct settings *, double rate, double scale, int64_t step,
                    struct kenv *);
/* The number of moments per element. */
int optimizer_moments(const struct settings *);

/* ---- data.c: memory-mapped files of tokens; also files of text ------------------------------------------------------------------- */
struct token_file {
    const char *path;
    enum dtype dtype;
    const void *at;
    int64_t samples, row; /* tokens of a row; samples 1: one stream */
    const bool *silent;   /* by token: whether it is no label; NULL: all are labels */
};
struct token_file data_open(const char *path);
bool data_is_text(const char *path);    /* by its name */
bool data_is_samples(const char *path); /* text, with a sample in each line */
/* text.c: the tokenizer, chat template and end tokens of the model, loaded when a text file first needs them. */
struct texts;
struct texts *data_texts_new(const struct job_options *);
void data_texts_free(struct texts *);
/* From a text file; for samples: rows for this sequence. */
struct token_file text_tokens(struct arena *, const char *path, struct texts *, int64_t sequence);
/* Token i of the file; negative: padding. */
int64_t data_token(const struct token_file *, int64_t i);
/* Draws one of n: a function of seed and number only. */
int64_t data_draw(int64_t seed, int64_t number, int64_t n);

/* ---- batch.c: the inputs of a microbatch ---------------------------------------------------------------------------------------- */
struct batches;
struct batch_source {
    struct text_list data;  /* files of tokens */
    const char *mix;        /* their weights, W,W,..; NULL: rows are drawn evenly from all */
    struct text_list input; /* NAME=FILE of samples */
    bool in_order;          /* rows are not drawn but numbered */
    int slots;              /* number of batches that exist at once */
    struct texts *texts;    /* for text files */
};
/* sources.c: the files; completes settings->sequence. Draws are a function of seed and number only. */
struct sources;
struct sources *sources_read(struct arena *, const struct batch_source *, struct settings *);
int64_t sources_samples(const struct sources *);
int64_t sources_draw(const struct sources *, int64_t seed, int64_t number);
const struct token_file *sources_at(const struct sources *, int64_t sample, int64_t *from); /* from: its first token */
/* Finds the source of each input. Fails with wrong usage if an input has none. Completes settings->sequence. Keeps a reference to the
 * settings. */
struct batches *batch_new(struct arena *, struct graph *, const struct session *, const struct job_options *, const struct batch_source *,
                          struct settings *);
/* The number of rows to draw from. */
int64_t batch_samples(const struct batches *);
/* Fills the inputs of the graph with rows of the step; they are valid until the slot is filled again. */
void batch_fill(struct batches *, int64_t step, struct replica_range rows, int slot, struct tensor *in);
void batch_free(struct batches *);

/* ---- validate.c: the loss on a file that is not trained on ---------------------------------------------------------------------- */
struct validation;
struct validation_source {
    const struct replicas *replicas; /* their process group is a stage's */
    struct comm *group;              /* the process group of all stages */
    struct graph *step;              /* the training graph, before it is lowered */
    const struct session *trains;    /* its session, for types */
    struct texts *texts;
};
struct validation *validate_new(struct arena *, const struct validation_source *, const struct job_options *, const struct train_options *,
                                const struct settings *, int threads);
/* The mean over all labels; NAN: none. Every rank calls it. */
double validate_loss(struct validation *, const struct parameters *, const struct shared_weights *);
void validate_free(struct validation *); /* accepts NULL */

/* ---- checkpoint.c: weights and moments as full tensors in one file that appears complete or not at all ------------------------- */
#define CHECKPOINT_KIND "\"step\":\"" /* near the beginning of such a file */
/* NULL: no path. Fails on a file that tpc-run did not write. */
struct checkpoint *checkpoint_open(struct arena *, const char *path);
const char *checkpoint_path(const struct checkpoint *);
/* Its value of a setting. NULL and false: no checkpoint. Fails if it lacks the setting, or the number is invalid. */
const char *checkpoint_text(const struct checkpoint *, const char *key);
bool checkpoint_integer(const struct checkpoint *, const char *key, int64_t least, int64_t most, int64_t *);
bool checkpoint_real(const struct checkpoint *, const char *key, double *);
bool checkpoint_says(const struct checkpoint *, const char *key); /* older ones have fewer settings */
/* The validation loss after its step; infinite: none. */
double checkpoint_validation(const struct checkpoint *);
/* Sets weights and moments; returns the number of steps that were done. */
int64_t checkpoint_load(struct arena *, const struct checkpoint *, const struct replicas *, struct session *, const struct settings *,
                        struct parameters *);
/* Every rank calls it; overwrites the gradients. to: on rank 0. validation: a loss; NAN: none after this step. */
struct claim;
void checkpoint_save(struct claim *to, const struct replicas *, struct session *, const struct settings *, int64_t steps, double validation,
                     const struct parameters *, struct joining *);

/* ---- kept.c: further checkpoints, FILE.best and FILE.step-N ------------------------------------------------------- */
struct kept;
/* Before the first step: fails if a file of another kind has such a name. done: the steps so far belong to this run. */
struct kept *kept_begin(struct arena *, const char *path, bool adapters, int64_t most, int64_t done);
double kept_best(const struct kept *); /* the lowest validation loss; infinite: none */
/* After each checkpoint. The name of the best if this one is it; otherwise NULL. */
const char *kept_add(struct kept *, const struct graph *, const struct parameters *, int64_t step, double validation);

/* ---- claim.c: the one process that writes checkpoints to a file --------------------------------------------------------------- */
/* Before the first step: fails if the file cannot be written, or another process writes it. */
struct claim *claim_begin(struct arena *, const char *path);
/* A new checkpoint, as a temporary file. end: once it is on disk, it takes the name. */
struct out *claim_write(struct claim *);
void claim_end(struct claim *);

/* ---- adapters.c: training of low-rank adapters only -------------------------------------------------------------------------- */
/* Initial values: drawn by the seed, or from a PEFT file (path NULL: none). */
void train_adapters_start(struct arena *, const struct graph *, const struct replicas *, struct session *, int64_t seed, const char *path,
                          struct parameters *);
/* For --save and --resume, the path of the checkpoint: inside a folder, for adapters. NULL: none. */
const char *train_checkpoint_path(struct arena *, const char *path, bool adapters);
void train_adapters_folder(const char *path); /* creates it, unless it exists */
void train_adapters_remove(const char *path); /* removes what was written there, and the folder if it is then empty */
/* Writes the content of its checkpoint to such a folder in PEFT's form. */
void train_adapters_write(const char *path, const struct graph *, const struct parameters *);

/* ---- log.c: a line per step, and a CSV file ------------------------------------------------------------------------------------ */
#define LOG_KIND "step,loss," /* the beginning of such a file */
enum { LOG_COLUMNS = 7 };
struct step_report {
    int64_t step, steps; /* from 1 */
    double loss, rate, norm, labels, seconds;
    double validation; /* a loss; NAN: none after this step */
};
struct train_log;
/* path NULL: no file. goes_on: keeps lines up to that step. Fails if another process writes a log there. */
struct train_log *log_open(struct arena *, const char *path, int64_t goes_on);
void log_step(struct train_log *, const struct step_report *);
void log_close(struct train_log *);

/* ---- plot/plot.c: the losses as a picture -------------------------------------------------------------------------------------- */
#define PLOT_KIND "<svg class=\"losses\"" /* the beginning of such a file */
struct train_plot;
struct plot_run {
    const char *folder, *log; /* log: has the earlier steps; NULL: no file */
    int64_t done, steps;
};
/* path NULL: nothing is drawn. */
struct train_plot *plot_open(struct arena *, const char *path, const struct plot_run *);
void plot_step(struct train_plot *, const struct step_report *);
/* Replaces the file. */
void plot_draw(const struct train_plot *);

#endif
