/* output: prints tokens as they are generated, at the end, or when a run fails; gathers them from replicas. */
#include "decode/generate/generate.h"
#include "job/io/io.h"

/* The tokens of a single row are printed as they are generated; several rows get one line each, at the end. */
static bool streams(const struct decoder *d)
{
    return d->replicas->all->rank == 0 && d->replicas->count == 1 && d->history.batch == 1 && !d->options->stats;
}

/* How many of a row's n tokens come before the one that ends it. */
static int64_t before_end(const struct decoder *d, int64_t row, const int64_t *id, int64_t n)
{
    if (generate_is_whole(d, row) && d->form.whole[row] < n)
        n = d->form.whole[row];
    for (int64_t i = 0; i < n; i++)
        if (generate_is_end(d, id[i]))
            return i;
    return n;
}

static void print_text(struct decoder *d, bool last)
{
    const int64_t *id = d->history.token + d->first_made;
    prompt_text_print(d->text, id - d->before, d->before + before_end(d, 0, id, d->made), last);
}

void generate_print_now(struct decoder *d)
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

void generate_note_progress(struct decoder *d)
{
    snprintf(d->progress, sizeof d->progress, "after %lld of %lld tokens", (long long)d->made, (long long)d->options->generate);
    diag_progress(d->progress);
}

struct token_cost generate_spent(const struct decoder *d, const struct stage *s)
{
    const struct session_stats *stats = session_stats(s->session);
    return (struct token_cost){stats->seconds, stats->comm_seconds, d->chosen.seconds, d->comm->bytes_sent};
}

void generate_print_cost(const struct decoder *d, const struct token_cost *before, const struct token_cost *after)
{
    double comm = after->comm - before->comm, choose = after->choose - before->choose;
    printf("token %lld: compute %.3f ms, communication %.3f ms, %lld bytes sent\n", (long long)d->made,
           1e3 * (after->run - before->run - comm), 1e3 * (comm + choose), (long long)(after->bytes - before->bytes));
}

/* The tokens of this replica's rows, including earlier ones, with as many columns as the longest replica has. Ended rows repeat their last
 * token. */
static struct tensor own_tokens(const struct decoder *d, struct arena *a, int64_t columns)
{
    const struct history *h = &d->history;
    int64_t made = d->before + d->made;
    struct tensor t = {.dtype = DT_I64, .rank = 2, .dim = {h->batch, columns}, .data = NEWN(a, int64_t, h->batch * columns + 1)};
    int64_t *to = t.data;
    for (int64_t b = 0; b < h->batch; b++)
        for (int64_t i = 0; i < columns; i++)
            *to++ = i < made ? h->token[b * h->room + h->length - made + i] : generate_last_token(h, b);
    return t;
}

void generate_write_outputs(const struct decoder *d, struct arena *a, const struct stage *s)
{
    struct tensor *global = NEWN(a, struct tensor, s->graph->outputs.n);
    for (int i = 0; i < s->graph->outputs.n; i++) {
        struct tensor own = d->made ? session_gather(s->session, a, i, &s->out[i]) : (struct tensor){0};
        global[i] = replica_gather_output(a, d->replicas, &d->shard, session_output_type(s->session, i), s->graph->outputs.at[i]->name,
                                          &own);
    }
    if (d->replicas->all->rank == 0)
        outputs_write(a, s->graph, global, d->options->output);
}

static void print_tokens(const struct tensor *t, int64_t before)
{
    const int64_t *token = t->data;
    for (int64_t b = 0; b < t->dim[0]; b++)
        for (int64_t i = before; i < t->dim[1]; i++)
            printf("%lld%c", (long long)token[b * t->dim[1] + i], i + 1 < t->dim[1] ? ' ' : '\n');
}

void generate_print_rest(struct decoder *d, const struct tensor *tokens)
{
    const int64_t *id = tokens->data;
    if (streams(d) && d->text)
        print_text(d, true);
    if (streams(d))
        printf("\n");
    for (int64_t b = 0; d->text && !streams(d) && b < tokens->dim[0]; b++, id += tokens->dim[1])
        prompt_text_print_row(d->text, id, d->before, before_end(d, b, id + d->before, tokens->dim[1] - d->before));
    if (!d->text && !streams(d))
        print_tokens(tokens, d->before);
}

void generate_tell_ends(const struct decoder *d, const struct tensor *tokens)
{
    int64_t ended = 0, rows = tokens->dim[0], n = tokens->dim[1];
    for (int64_t b = 0; b < rows; b++)
        ended += generate_is_whole(d, b) || before_end(d, b, (const int64_t *)tokens->data + b * n, n) < n;
    streams_flush();
    n -= d->before;
    if (d->form.all && ended == rows)
        diag_tell("%s", rows == 1 ? "the text is whole" : "all texts are whole");
    else if (d->form.all)
        diag_tell("%lld of %lld texts %s whole, the others stopped after %lld tokens", (long long)ended, (long long)rows,
                  ended == 1 ? "is" : "are", (long long)n);
    else if (ended == rows)
        diag_tell("%s at an end token", rows == 1 ? "the text ended" : "all texts ended");
    else if (ended)
        diag_tell("%lld of %lld texts ended at an end token, the others after %lld tokens", (long long)ended, (long long)rows,
                  (long long)n);
    else
        diag_tell("%s after %lld tokens, before an end token", rows == 1 ? "the text stopped" : "all texts stopped", (long long)n);
}

static _Thread_local const struct decoder *running; /* on this rank */

/* A failing run still prints its tokens. The failing thread knows what it generated, which is what rank 0 has or is about to have. */
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

void generate_watch(struct decoder *d)
{
    running = d;
    if (d->replicas->all->rank == 0)
        diag_before_message(print_made, d);
}

void generate_unwatch(struct decoder *d)
{
    if (d->replicas->all->rank == 0)
        diag_forget(print_made, d);
    diag_progress(NULL);
    running = NULL;
}

void generate_tell_rate(struct arena *a, const struct decoder *d, const struct decoded *r)
{
    int64_t rows = r->tokens.dim[0], steps = r->tokens.dim[1] - d->before - 1;
    const double *seconds = r->seconds;
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

struct decoded generate_join_results(const struct decoder *d, struct arena *a)
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
        r.tokens = replica_gather(a, d->replicas->across, &d->replicas->shares, "tokens of all groups", &r.tokens, 0, d->shard.total);
    return r;
}
