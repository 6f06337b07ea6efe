/* generate: decoding. The prefill runs every graph once; then the last graph decodes every further token. KV caches and scores
 * stay sharded: only the best ones of each rank travel to pick a token. */
#include "decode/decode.h"
#include "job/io/io.h"
#include "job/timing/timing.h"

#include <stdlib.h>
#include <string.h>

struct decoder {
    const struct replicas *replicas;
    struct comm *comm; /* process group of the replica, which decodes its rows alone */
    struct batch_shard shard;
    const struct job_options *options;
    int nstage;
    struct stage *stage;
    struct history history;
    struct unsharded *unsharded; /* the model of --check; NULL: none, or this is not rank 0 */
    struct prompt_text *text;    /* NULL: ids are printed, or this is not rank 0 */
    int64_t fed;                 /* tokens that the KV cache holds */
    int64_t first_made;          /* column of the first decoded token */
    int64_t before;              /* decoded before the state was saved that this run goes on from */
    struct arena *loaded;        /* of that state, until the session has it; NULL: there is none */
    struct sampling sampling;
    struct row_sampling *how; /* by row */
    int64_t *next;
    int64_t made;                     /* tokens decoded per row */
    int64_t printed;                  /* of them, as they came */
    struct session_collective chosen; /* bytes and seconds of picking tokens */
    double first, rest;               /* seconds until the first token, and after it */
    char progress[64];
};

/* ---- one run of one graph ---- */

static bool is_end(const struct decoder *d, int64_t token)
{
    return config_is_end(&d->options->eos, token);
}

static int64_t last_token(const struct history *h, int64_t row)
{
    return h->token[row * h->room + h->length - 1];
}

static bool has_ended(const struct decoder *d, int64_t row)
{
    return d->before + d->made > 0 && is_end(d, last_token(&d->history, row));
}

/* A row that has ended repeats its last token. Returns true if all rows have ended. */
static bool end_rows(struct decoder *d)
{
    const struct history *h = &d->history;
    bool all = true;
    for (int64_t b = 0; b < h->batch; b++) {
        if (has_ended(d, b))
            d->next[b] = last_token(h, b);
        all = all && is_end(d, d->next[b]);
    }
    return all;
}

/* Seconds and bytes since the start. */
struct spent {
    double run, comm, choose;
    int64_t bytes;
};

static struct spent spent_now(const struct decoder *d, const struct stage *s)
{
    const struct session_stats *stats = session_stats(s->session);
    return (struct spent){stats->seconds, stats->comm_seconds, d->chosen.seconds, d->comm->bytes_sent};
}

static void print_token(const struct decoder *d, const struct spent *before, const struct spent *after)
{
    double comm = after->comm - before->comm, choose = after->choose - before->choose;
    printf("token %lld: compute %.3f ms, communication %.3f ms, %lld bytes sent\n", (long long)d->made,
           1e3 * (after->run - before->run - comm), 1e3 * (comm + choose), (long long)(after->bytes - before->bytes));
}

/* ---- what was made, printed as it comes, at the end, or when a run fails ---- */

/* The tokens of one row are printed as they come. Several rows have one line each, at the end. */
static bool streams(const struct decoder *d)
{
    return d->replicas->all->rank == 0 && d->replicas->count == 1 && d->history.batch == 1 && !d->options->stats;
}

/* How many tokens come before the one that ends a row. */
static int64_t before_end(const struct decoder *d, const int64_t *id, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (is_end(d, id[i]))
            return i;
    return n;
}

static void print_text(struct decoder *d, bool last)
{
    const int64_t *id = d->history.token + d->first_made;
    prompt_text_print(d->text, id - d->before, d->before + before_end(d, id, d->made), last);
}

static void print_now(struct decoder *d)
{
    if (!streams(d))
        return;
    if (d->text) {
        print_text(d, false);
        streams_flush();
        return;
    }
    int64_t k = __atomic_fetch_add(&d->printed, 1, __ATOMIC_ACQ_REL);
    printf("%s%lld", k > 0 ? " " : "", (long long)d->next[0]);
    streams_flush();
}

/* Messages of this rank say how far it came. */
static void note_progress(struct decoder *d)
{
    snprintf(d->progress, sizeof d->progress, "after %lld of %lld tokens", (long long)d->made, (long long)d->options->generate);
    diag_progress(d->progress);
}

/* The chosen tokens, and the scores that they were chosen by. Every rank calls it. */
static void compare_token(const struct decoder *d, const struct stage *s)
{
    if (!d->options->check.text.n)
        return;
    struct arena *tmp = arena_new();
    bool *ended = NEWN(tmp, bool, d->history.batch);
    const struct row_scores scores = row_scores_gather(tmp, d->comm, s, &d->history);
    for (int64_t b = 0; b < d->history.batch; b++)
        ended[b] = has_ended(d, b);
    if (d->unsharded)
        unsharded_compare(d->unsharded, &scores, d->how, d->next, ended);
    arena_free(tmp);
}

static void forget_loaded(struct decoder *d)
{
    if (d->loaded)
        arena_free(d->loaded);
    d->loaded = NULL;
}

/* The tables of the stage have rows for the tokens so far. */
static void check_positions(const struct decoder *d, const struct stage *s, const struct history *h)
{
    for (int64_t b = 0; s->positions > 0 && b < h->batch; b++) {
        int64_t tokens = history_next_position(h, b);
        if (tokens <= s->positions)
            continue;
        if (d->made)
            fail("%s: has positions for %lld tokens, and the text has them all: --generate is at most %lld here", s->path,
                 (long long)s->positions, (long long)d->made);
        fail("%s: has positions for %lld tokens, and the %s has %lld", s->path, (long long)s->positions, d->before ? "text" : "prompt",
             (long long)tokens);
    }
}

/* Decodes one token per row. Returns true if all rows have ended. */
static bool run_token(struct decoder *d, struct stage *s)
{
    check_positions(d, s, &d->history);
    struct spent before = spent_now(d, s);
    stage_run(s, &d->history, d->fed);
    if (d->unsharded)
        unsharded_run(d->unsharded, (int)(s - d->stage), &d->history, d->fed);
    if (!d->options->check.text.n)
        forget_loaded(d);
    d->fed = d->history.length;
    pick_next(d->comm, s, &d->history, d->how, d->next, &d->chosen);
    compare_token(d, s);
    bool ended = end_rows(d);
    history_add(&d->history, d->next);
    d->made++;
    print_now(d);
    note_progress(d);
    struct spent after = spent_now(d, s);
    if (d->options->stats && !d->options->stats_path && d->replicas->all->rank == 0)
        print_token(d, &before, &after);
    return ended;
}

/* ---- the graphs in order ---- */

static bool has_prompt(const struct stage *s)
{
    int i = decode_find_input(s, ROLE_TOKENS);
    return i >= 0 && s->given[i].data;
}

/* The batch size of the first graph's inputs. */
static int64_t given_batch(const struct stage *first)
{
    for (int i = 0; i < first->graph->inputs.n; i++)
        if (first->in[i].data && first->in[i].rank > 0)
            return first->in[i].dim[0];
    return 1;
}

/* What every row of the history needs to go on. */
static void start_rows(struct decoder *d, struct arena *a)
{
    d->next = NEWN(a, int64_t, d->history.batch);
    d->how = NEWN(a, struct row_sampling, d->history.batch);
    for (int64_t b = 0; b < d->history.batch; b++)
        d->how[b] = (struct row_sampling){d->sampling, (uint64_t)(d->shard.rows.from + b)};
    d->first_made = d->history.length;
}

/* Starts the history from the given tokens, or with one start token. */
static void start_history(struct decoder *d, struct arena *a, int k)
{
    int64_t start = d->options->start;
    struct stage *s = &d->stage[k];
    if (decode_find_input(s, ROLE_TOKENS) < 0)
        fail_usage("%s: no input holds tokens: give --role INPUT=tokens", s->path);
    if (has_prompt(s) || (k == 0 && start < 0))
        d->history = prompt_rows(a, s, d->nstage - k, d->options->generate);
    else
        d->history = history_start(a, given_batch(&d->stage[0]), start < 0 ? 0 : start, d->options->generate);
    d->fed = d->history.past;
    start_rows(d, a);
    stage_check_cache(a, d->comm, d->replicas->all, d->options, &d->stage[d->nstage - 1],
                      (struct cache_need){.rows = d->history.batch, .tokens = d->history.room, .weights = k == 0});
}

/* Runs a graph without logits: an encoder. */
static void run_encoder(struct decoder *d, struct arena *a, int k)
{
    struct stage *s = &d->stage[k];
    bool reads = decode_find_input(s, ROLE_TOKENS) >= 0;
    struct history own = {0};
    if (reads) {
        own = prompt_as_given(a, s);
        check_positions(d, s, &own);
    }
    stage_get_ready(a, d->stage, k, reads ? &own : NULL);
    stage_run(s, reads ? &own : NULL, 0);
    if (d->unsharded)
        unsharded_run(d->unsharded, k, reads ? &own : NULL, 0);
}

static bool run_stage(struct decoder *d, struct arena *a, int k)
{
    if (d->stage[k].logits < 0) {
        run_encoder(d, a, k);
        return false;
    }
    if (!d->next && d->before)
        start_rows(d, a);
    else if (!d->next)
        start_history(d, a, k);
    stage_get_ready(a, d->stage, k, &d->history);
    return run_token(d, &d->stage[k]);
}

/* Frees the earlier graphs, which have handed over their results. */
static void free_earlier(struct decoder *d)
{
    for (int k = 0; k < d->nstage - 1; k++)
        session_free(d->stage[k].session);
}

static void decode_tokens(struct decoder *d, struct arena *a)
{
    struct stage *last = &d->stage[d->nstage - 1];
    double start = clock_seconds(), first = 0;
    bool ended = false;
    int k = 0;
    for (; k < d->nstage && !ended && d->made < d->options->generate; k++) {
        ended = run_stage(d, a, k);
        if (d->made == 1 && first <= 0)
            first = clock_seconds();
    }
    if (k < d->nstage && d->options->save_state)
        stage_get_ready(a, d->stage, d->nstage - 1, NULL);
    free_earlier(d);
    while (!ended && d->made < d->options->generate)
        ended = run_token(d, last);
    d->first = first - start;
    d->rest = clock_seconds() - first;
}

/* ---- rows of replicas ---- */

/* Adds the batch dimension to the tokens of one row, and to the mask and positions given with them. */
static void add_row_dim(struct tensor *given, const struct type *type)
{
    if (!given->data || given->rank != 1 || type->rank != 2)
        return;
    given->rank = 2;
    given->dim[1] = given->dim[0];
    given->dim[0] = 1;
}

/* Gives each replica its rows. All graphs have the batch size of the first one with given inputs; without any it is 1. */
static void shard_rows(struct decoder *d, struct arena *a)
{
    int64_t total = 0;
    for (int k = 0; k < d->nstage; k++) {
        struct stage *s = &d->stage[k];
        for (int i = 0; i < s->graph->inputs.n; i++)
            add_row_dim(&s->given[i], session_input_type(s->session, i));
        d->shard = replica_shard_batch(d->replicas, s->graph, s->session, s->given);
        replica_take_rows(a, &d->shard, s->graph, s->session, s->given);
        if (total && d->shard.total && d->shard.total != total)
            fail("%s: %lld rows are given, and %lld to the graphs before it", s->path, (long long)d->shard.total, (long long)total);
        if (d->shard.total)
            total = d->shard.total;
    }
    if (!d->replicas->across)
        return;
    d->shard.total = total ? total : 1;
    d->shard.rows = batch_range_of(d->shard.total, d->replicas->count, d->replicas->index);
}

/* Writes the outputs of the last run. Every rank calls it. */
static void write_outputs(const struct decoder *d, struct arena *a, const struct stage *s)
{
    struct tensor *whole = NEWN(a, struct tensor, s->graph->outputs.n);
    for (int i = 0; i < s->graph->outputs.n; i++) {
        struct tensor own = d->made ? session_gather(s->session, a, i, &s->out[i]) : (struct tensor){0};
        whole[i] = replica_gather_output(a, d->replicas, &d->shard, s->session, i, s->graph->outputs.at[i]->name, &own);
    }
    if (d->replicas->all->rank == 0)
        outputs_write(a, s->graph, whole, d->options->output);
}

/* The tokens of this replica's rows, those made before with them, as many columns as the longest replica has. Ended rows repeat their last
 * token. */
static struct tensor own_tokens(const struct decoder *d, struct arena *a, int64_t columns)
{
    const struct history *h = &d->history;
    int64_t made = d->before + d->made;
    struct tensor t = {.dtype = DT_I64, .rank = 2, .dim = {h->batch, columns}, .data = NEWN(a, int64_t, h->batch * columns + 1)};
    int64_t *to = t.data;
    for (int64_t b = 0; b < h->batch; b++)
        for (int64_t i = 0; i < columns; i++)
            *to++ = i < made ? h->token[b * h->room + h->length - made + i] : last_token(h, b);
    return t;
}

static void print_tokens(const struct tensor *t, int64_t before)
{
    const int64_t *token = t->data;
    for (int64_t b = 0; b < t->dim[0]; b++)
        for (int64_t i = before; i < t->dim[1]; i++)
            printf("%lld%c", (long long)token[b * t->dim[1] + i], i + 1 < t->dim[1] ? ' ' : '\n');
}

static void print_rest(struct decoder *d, const struct tensor *tokens)
{
    const int64_t *id = tokens->data;
    if (streams(d) && d->text)
        print_text(d, true);
    if (streams(d))
        printf("\n");
    for (int64_t b = 0; d->text && !streams(d) && b < tokens->dim[0]; b++, id += tokens->dim[1])
        prompt_text_print_row(d->text, id, d->before, before_end(d, id + d->before, tokens->dim[1] - d->before));
    if (!d->text && !streams(d))
        print_tokens(tokens, d->before);
}

/* On stderr, why the texts are no longer. */
static void tell_ends(const struct decoder *d, const struct tensor *tokens)
{
    int64_t ended = 0, rows = tokens->dim[0], n = tokens->dim[1];
    for (int64_t b = 0; b < rows; b++)
        ended += before_end(d, (const int64_t *)tokens->data + b * n, n) < n;
    streams_flush();
    n -= d->before;
    if (ended == rows)
        diag_tell("%s at an end token", rows == 1 ? "the text ended" : "all texts ended");
    else if (ended)
        diag_tell("%lld of %lld texts ended at an end token, the others after %lld tokens", (long long)ended, (long long)rows,
                  (long long)n);
    else
        diag_tell("%s after %lld tokens, before an end token", rows == 1 ? "the text stopped" : "all texts stopped", (long long)n);
}

static _Thread_local const struct decoder *running; /* on this rank */

/* A run that fails has not made its tokens in vain. The thread that fails knows what it made, which is what rank 0 did or is about to do.
 */
static void print_made(void *data, int status)
{
    const struct decoder *d = running ? running : data;
    const struct history *h = &d->history;
    (void)status;
    if (!d->made || d->replicas->index > 0)
        return;
    struct decoder *first = data;
    if (first->text) {
        printf("\n");
        return;
    }
    for (int64_t b = 0; b < h->batch; b++)
        for (int64_t i = __atomic_load_n(&first->printed, __ATOMIC_ACQUIRE); i < d->made; i++)
            printf("%s%lld%s", i > 0 ? " " : "", (long long)h->token[b * h->room + d->first_made + i], i + 1 < d->made ? "" : "\n");
    if (first->printed >= d->made)
        printf("\n");
}

/* On stderr, so that stdout has tokens only. */
static void print_rate(struct arena *a, int64_t rows, int64_t steps, const double *seconds)
{
    const char *rest = "";
    if (steps > 0)
        rest = arena_printf(a, ", then %.3f ms per step, %.1f tokens/s", 1e3 * seconds[1] / (double)steps,
                            (double)(steps * rows) / seconds[1]);
    streams_flush();
    (void)fprintf(stderr, "time: first token after %.3f ms%s\n", 1e3 * seconds[0], rest);
}

/* The elementwise maximum over all replicas. */
static void most_of(const struct decoder *d, const void *own, void *most, int64_t n, enum dtype dtype)
{
    struct comm *across = d->replicas->across;
    across->id = 0;
    across->name = "tokens of all groups";
    across->allreduce(across, own, most, n, dtype, RED_MAX);
}

struct decoded {
    struct tensor tokens;
    double seconds[2];
}; /* tokens [rows, made]; seconds until the first token, and after it */

/* Gathers the tokens of all replicas on rank 0 of each process group. */
static struct decoded join_results(const struct decoder *d, struct arena *a)
{
    const double own[2] = {d->first, d->rest};
    struct decoded r = {.seconds = {d->first, d->rest}};
    int64_t columns = d->before + d->made;
    if (d->replicas->across) {
        most_of(d, &d->made, &columns, 1, DT_I64);
        most_of(d, own, r.seconds, 2, DT_F64);
    }
    r.tokens = own_tokens(d, a, columns);
    if (d->replicas->across)
        r.tokens = batch_gather(a, d->replicas->across, "tokens of all groups", &r.tokens, 0, d->shard.total);
    return r;
}

/* A token that the vocabulary lacks ends no row. */
static void check_ends(const struct stage *s, const struct job_options *o)
{
    const struct type *t = s->logits < 0 || s->chosen ? NULL : session_output_type(s->session, s->logits);
    int64_t vocabulary;
    if (!t || t->rank < 1 || !dim_is_int(t->dim[t->rank - 1], &vocabulary))
        return;
    for (int i = 0; i < o->eos.list.n; i++)
        if (o->eos.list.at[i] >= vocabulary)
            fail_usage("--eos is %lld, but %s has tokens 0 to %lld", (long long)o->eos.list.at[i], s->path, (long long)vocabulary - 1);
}

/* The default number of tokens ends where tables of positions do. */
static void limit_length(const struct decoder *d, const struct stage *last, struct job_options *o)
{
    int i = decode_find_input(last, ROLE_TOKENS);
    int64_t given = i >= 0 && last->given[i].data ? last->given[i].dim[last->given[i].rank - 1] : 0;
    int64_t left = last->positions - (d->before ? d->history.length : given);
    o->generate = left < 1 ? 1 : left < o->generate ? left : o->generate;
}

static void load_stages(struct decoder *d, struct arena *a, struct job_options *o)
{
    int first = o->load_state ? o->paths.text.n - 1 : 0; /* the last graph makes all tokens then */
    d->nstage = o->paths.text.n - first;
    d->stage = NEWN(a, struct stage, d->nstage);
    for (int k = 0; k < d->nstage; k++) {
        d->stage[k].path = o->paths.text.at[first + k];
        d->stage[k].number = first + k + 1;
        stage_load(a, d->comm, o, &d->stage[k]);
    }
}

static void check_goes_on(const struct decoder *d)
{
    for (int64_t b = 0; b < d->history.batch; b++)
        if (!is_end(d, last_token(&d->history, b)))
            return;
    fail("%s: all its rows have ended: --eos says at which tokens rows end", d->options->load_state);
}

/* What is there to decode behind. */
static void take_beginning(struct decoder *d, struct arena *a, struct job_options *o)
{
    struct comm *all = d->replicas->all;
    struct stage *last = &d->stage[d->nstage - 1];
    struct saved_run saved = {0};
    if (o->load_state) {
        d->loaded = arena_new();
        d->history = saved_read(a, d->loaded, all, last, o, &saved);
        d->before = saved.made;
        d->fed = d->history.length - 1;
        check_goes_on(d);
    }
    if (saved.text || (o->load_state && o->tokenizer))
        d->text = prompt_text_again(a, all, o);
    else if (o->prompt.text.n || o->prompt_file)
        d->text = prompt_text_give(a, all, d->stage, d->nstage, o);
    if (d->nstage > 1 && (o->prompt.text.n || o->prompt_file))
        o->start = config_start(a, all, o);
    if (d->text && d->before)
        prompt_text_skip(d->text, d->history.token + d->history.length - d->before, d->before);
    if (o->usual_length && last->positions > 0)
        limit_length(d, last, o);
}

static void save_state(const struct decoder *d, struct saved_file *to)
{
    const struct saved_run now = {.made = d->before + d->made, .past = d->history.past, .text = d->text, .sampling = d->sampling};
    if (d->options->save_state)
        saved_write(to, &d->stage[d->nstage - 1], &d->history, d->options, &now);
}

bool generate_run(struct arena *a, const struct replicas *replicas, const struct job_options *given, int threads)
{
    struct job_options own = *given, *o = &own;
    struct decoder d = {
        .replicas = replicas, .comm = replicas->process_group, .options = o, .chosen = {.name = "next tokens", .op = "AllGather"}};
    load_stages(&d, a, o);
    struct stage *last = &d.stage[d.nstage - 1];
    roles_find(a, replicas->all, d.stage, d.nstage, o);
    for (int k = 0; k < d.nstage; k++) {
        positions_find(a, &d.stage[k]);
        stage_prepare(a, d.replicas->all, d.comm, o, threads, d.stage, k);
    }
    check_ends(last, o);
    take_beginning(&d, a, o);
    d.sampling = sampling_agree(a, replicas->all, o);
    shard_rows(&d, a);
    struct saved_file *saving = saved_begin(a, replicas->all, last, o);
    bool prints = replicas->all->rank == 0, runs = replica_runs(replicas, &d.shard), failed = false;
    if (prints && o->check.text.n && runs)
        d.unsharded = unsharded_new(a, d.stage, d.nstage, o, threads);
    running = &d;
    if (prints)
        diag_before_message(print_made, &d);
    replicas->all->barrier(replicas->all);
    if (runs)
        decode_tokens(&d, a);
    else
        free_earlier(&d);
    const struct decoded r = join_results(&d, a);
    if (prints)
        diag_forget(print_made, &d);
    diag_progress(NULL);
    running = NULL;
    if (prints)
        print_rest(&d, &r.tokens);
    if (d.text)
        tell_ends(&d, &r.tokens);
    save_state(&d, saving);
    if (o->output)
        write_outputs(&d, a, last);
    if (o->stats)
        stats_report(a, replicas, &d.shard, last->session, 1, &d.chosen, o->stats_path);
    job_tell_times(a, replicas->all, last->session, last->path, o);
    if (d.unsharded)
        failed = unsharded_end(d.unsharded, &d.history, d.text);
    else if (prints && !diag_is_quiet())
        print_rate(a, r.tokens.dim[0], r.tokens.dim[1] - d.before - 1, r.seconds);
    replicas->all->barrier(replicas->all);
    session_free(last->session);
    forget_loaded(&d);
    return failed;
}
