/* steps: runs the graphs in order, then the last one for each further token: their inputs, and the token that each row gets. */
#include "decode/generate/generate.h"

static bool has_ended(const struct decoder *d, int64_t row)
{
    return generate_is_whole(d, row) || (d->before + d->made > 0 && generate_is_end(d, generate_last_token(&d->history, row)));
}

/* A row that has ended repeats its last token. Returns true if all rows have ended. */
static bool end_rows(struct decoder *d)
{
    const struct history *h = &d->history;
    bool all = true;
    for (int64_t b = 0; b < h->batch; b++) {
        if (has_ended(d, b))
            d->next[b] = generate_last_token(h, b);
        else
            generate_take_form(d, b);
        all = all && (generate_is_whole(d, b) || generate_is_end(d, d->next[b]));
    }
    return all;
}

/* Compares the chosen tokens, and their scores. Every rank calls it. */
static void compare_token(const struct decoder *d, const struct stage *s)
{
    if (!d->options->check.text.n)
        return;
    struct arena *tmp = arena_new();
    bool *ended = NEWN(tmp, bool, d->history.batch);
    const struct row_scores scores = row_scores_gather(tmp, s, &d->history);
    for (int64_t b = 0; b < d->history.batch; b++)
        ended[b] = has_ended(d, b);
    if (d->unsharded)
        unsharded_compare(d->unsharded, &scores, d->how, d->next, ended);
    arena_free(tmp);
}

void generate_forget_loaded(struct decoder *d)
{
    if (d->loaded)
        arena_free(d->loaded);
    d->loaded = NULL;
}

void generate_check_positions(const struct decoder *d, const struct stage *s, const struct history *h)
{
    for (int64_t b = 0; s->positions > 0 && b < h->batch; b++) {
        int64_t tokens = history_next_position(h, b);
        if (tokens <= s->positions)
            continue;
        if (d->made)
            fail("%s: has positions for %lld tokens%s, and the text has them all: --generate is at most %lld here", s->path,
                 (long long)s->positions, s->limit, (long long)d->made);
        fail("%s: has positions for %lld tokens%s, and the %s has %lld", s->path, (long long)s->positions, s->limit,
             d->before ? "text" : "prompt", (long long)tokens);
    }
}

bool generate_take_tokens(struct decoder *d)
{
    bool ended = end_rows(d);
    history_add(&d->history, d->next);
    d->made++;
    generate_print_now(d);
    generate_note_progress(d);
    return ended;
}

/* Takes a picked token for every row; returns true if all rows have ended. */
static bool take_place(struct decoder *d, struct stage *s, int64_t place)
{
    for (int64_t b = 0; b < d->history.batch; b++)
        d->next[b] = d->draft.picked[b * (d->draft.n + 1) + place];
    compare_token(d, s);
    bool ended = generate_take_tokens(d);
    d->fed = d->history.length - 1;
    return ended;
}

/* Decodes a token per row, and further ones if they were drafted. Returns true if all rows have ended. */
static bool run_tokens(struct decoder *d, struct stage *s)
{
    generate_check_positions(d, s, &d->history);
    struct token_cost before = generate_spent(d, s);
    generate_draft(d);
    draft_run(s, &d->history, d->fed, d->how, d->draft.n, d->draft.token, d->draft.picked, &d->chosen);
    if (d->unsharded)
        unsharded_run(d->unsharded, (int)(s - d->stage), &d->history, d->fed);
    if (!d->options->check.text.n)
        generate_forget_loaded(d);
    int64_t taken = 0;
    bool ended = take_place(d, s, taken++);
    while (!ended && generate_keeps_drafts(d, taken - 1))
        ended = take_place(d, s, taken++);
    generate_note_drafts(d, s, taken);
    struct token_cost after = generate_spent(d, s);
    if (d->options->stats && !d->options->stats_path && d->replicas->all->rank == 0)
        generate_print_cost(d, &before, &after);
    return ended;
}

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

/* The data that every row of the history needs to continue. */
static void start_rows(struct decoder *d, struct arena *a)
{
    d->next = NEWN(a, int64_t, d->history.batch);
    d->draft.ended = NEWN(a, bool, d->history.batch);
    d->draft.token = NEWN(a, int64_t, d->history.batch * DRAFT_MOST);
    d->draft.picked = NEWN(a, int64_t, d->history.batch * (DRAFT_MOST + 1));
    d->how = NEWN(a, struct row_sampling, d->history.batch);
    for (int64_t b = 0; b < d->history.batch; b++)
        d->how[b] = (struct row_sampling){
            .of = d->sampling, .number = (uint64_t)(d->shard.rows.from + b), .prompts = history_next_position(&d->history, b) - d->before};
    d->first_made = d->history.length;
    drafter_check(d->draft.from, &d->history);
    generate_start_form(d, a);
}

void generate_start(struct decoder *d, struct arena *a, int k)
{
    int64_t start = d->options->start;
    struct stage *s = &d->stage[k];
    if (decode_find_input(s, ROLE_TOKENS) < 0)
        fail_usage("%s: no input holds tokens: give --role INPUT=tokens", s->path);
    if (s->vocabulary > 0 && start >= s->vocabulary)
        fail_usage("the start token, from --start or the model's configuration, is %lld, but %s has tokens 0 to %lld", (long long)start,
                   s->path, (long long)s->vocabulary - 1);
    if (has_prompt(s) || (k == 0 && start < 0))
        d->history = prompt_rows(a, s, d->nstage - k, d->options->generate);
    else
        d->history = history_start(a, given_batch(&d->stage[0]), start < 0 ? 0 : start, d->options->generate);
    d->fed = d->history.past;
    start_rows(d, a);
    const struct cache_need need = {.rows = d->history.batch,
                                    .tokens = d->history.room,
                                    .drafts = drafter_bytes(d->draft.from, d->history.batch, d->history.room),
                                    .weights = k == 0};
    stage_check_cache(d->comm, d->replicas->all, d->options, &d->stage[d->nstage - 1], need);
}

/* Runs a graph without logits: an encoder. */
static void run_encoder(struct decoder *d, struct arena *a, int k)
{
    struct stage *s = &d->stage[k];
    bool reads = decode_find_input(s, ROLE_TOKENS) >= 0;
    struct history own = {0};
    if (reads) {
        own = prompt_as_given(a, s);
        generate_check_positions(d, s, &own);
    }
    stage_get_ready(a, d->stage, k, reads ? &own : NULL);
    stage_run(s, reads ? &own : NULL, 0);
    if (d->unsharded)
        unsharded_run(d->unsharded, k, reads ? &own : NULL, 0);
}

static bool run_stage(struct decoder *d, struct arena *a, int k)
{
    if (!d->stage[k].decides) {
        run_encoder(d, a, k);
        return false;
    }
    if (!d->next && d->before)
        start_rows(d, a);
    else if (!d->next)
        generate_start(d, a, k);
    d->history.scored = d->draft.from ? d->draft.from->pace.most + 1 : 1; /* space for their positions */
    stage_get_ready(a, d->stage, k, &d->history);
    return run_tokens(d, &d->stage[k]);
}

/* Frees the earlier graphs, whose results were handed over. */
void generate_free_earlier(struct decoder *d)
{
    for (int k = 0; k < d->nstage - 1; k++)
        stage_free(&d->stage[k]);
}

void generate_tokens(struct decoder *d, struct arena *a)
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
    generate_free_earlier(d);
    while (!ended && d->made < d->options->generate)
        ended = run_tokens(d, last);
    d->first = first - start;
    d->rest = clock_seconds() - first;
}
