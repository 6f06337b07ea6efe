/* decode/generate: tpc-run --generate. */
#ifndef TPC_DECODE_GENERATE_H
#define TPC_DECODE_GENERATE_H

#include "decode/decode.h"
#include "decode/small/small.h"

struct decoder {
    const struct replicas *replicas;
    struct comm *comm; /* process group of the replica, which decodes its rows separately */
    struct batch_shard shard;
    const struct job_options *options;
    int nstage;
    struct stage *stage;
    struct history history;
    struct unsharded *unsharded; /* the model of --check; NULL: none, or this is not rank 0 */
    struct prompt_text *text;    /* NULL: ids are printed, or this is not rank 0 */
    int64_t fed;                 /* tokens that the KV cache holds */
    int64_t first_made;          /* column of the first generated token */
    int64_t before;              /* generated before the loaded state was saved */
    struct arena *loaded;        /* of that state, until the session has it; NULL: none */
    struct saved_file *saving;   /* for --save-state */
    struct sampling sampling;
    struct row_sampling *how; /* by row */
    int64_t *next;
    struct {
        struct drafter *from;    /* NULL: nothing is drafted */
        bool *ended;             /* by row: it takes no more tokens */
        int64_t n;               /* per row in this run */
        int64_t *token, *picked; /* [rows, n]; [rows, n + 1] */
        int64_t runs, all, kept; /* runs after the first; drafted tokens; kept tokens */
    } draft;
    struct {
        const struct grammar *grammar;
        struct forms *all; /* NULL: texts are free */
        int64_t *whole;    /* by row: number of tokens with which its text is complete; 0: not yet */
    } form;
    int64_t made;                     /* tokens generated per row */
    int64_t printed;                  /* of these, printed so far */
    struct session_collective chosen; /* bytes and seconds for picking tokens */
    double first, rest;               /* seconds until the first token, and after it */
    char progress[64];
};

/* ---- steps.c ---- */
/* Runs all graphs, and frees all but the last. */
void generate_tokens(struct decoder *, struct arena *);
void generate_free_earlier(struct decoder *);
void generate_forget_loaded(struct decoder *);
/* Starts the history from the tokens given to graph k, or from one start token. */
void generate_start(struct decoder *, struct arena *, int k);
/* Fails unless the stage has positions for the tokens so far. */
void generate_check_positions(const struct decoder *, const struct stage *, const struct history *);
/* Appends the next token of each row. Returns true if all rows have ended. */
bool generate_take_tokens(struct decoder *);

/* ---- groups.c ---- */
/* Runs the rows of a pipeline in groups that alternate. False: there is no pipeline, or its rows depend on each other. */
bool generate_in_groups(struct decoder *, struct arena *);

/* ---- form.c: texts that follow a grammar, if the options give one, and where they end ---- */
/* Reads it. Every rank calls it. */
void generate_read_form(struct decoder *, struct arena *);
/* For all rows. */
void generate_start_form(struct decoder *, struct arena *);
/* The row takes its next token. */
void generate_take_form(struct decoder *, int64_t row);
bool generate_is_whole(const struct decoder *, int64_t row);
/* Of any row. */
bool generate_is_end(const struct decoder *, int64_t token);
int64_t generate_last_token(const struct history *, int64_t row);
void generate_end_form(struct decoder *);

/* ---- drafts.c: several tokens in one run ---- */
/* Tests whether the graph can do it, if requested, and fails if not. Every rank of the group calls it. */
void generate_try_drafts(struct decoder *, struct arena *, int threads);
/* Drafts for the next run, if any. */
void generate_draft(struct decoder *);
/* Whether the drafted tokens of all rows at this position are the next ones. */
bool generate_keeps_drafts(const struct decoder *, int64_t place);
/* After this many tokens of each row. */
void generate_note_drafts(struct decoder *, const struct stage *, int64_t taken);
void generate_tell_drafts(const struct decoder *);

/* ---- output.c: tokens as they are generated ---- */
/* Seconds and bytes since the start. */
struct token_cost {
    double run, comm, choose;
    int64_t bytes;
};
struct token_cost generate_spent(const struct decoder *, const struct stage *);
void generate_print_now(struct decoder *);
void generate_print_cost(const struct decoder *, const struct token_cost *before, const struct token_cost *after);
/* While active, a failure prints the tokens generated so far. */
void generate_watch(struct decoder *);
void generate_unwatch(struct decoder *);
void generate_note_progress(struct decoder *); /* for messages of this rank */

/* ---- output.c: at the end ---- */
struct decoded {
    struct tensor tokens; /* [rows, made] */
    double seconds[2];    /* until the first token, and after it */
};
/* Gathers the tokens of all replicas on rank 0 of each process group. */
struct decoded generate_join_results(const struct decoder *, struct arena *);
void generate_print_rest(struct decoder *, const struct tensor *tokens);
/* On stderr: why the texts end; how fast tokens were generated. */
void generate_tell_ends(const struct decoder *, const struct tensor *tokens);
void generate_tell_rate(struct arena *, const struct decoder *, const struct decoded *);
/* Writes the outputs of the last run. Every rank calls it. */
void generate_write_outputs(const struct decoder *, struct arena *, const struct stage *);

#endif
