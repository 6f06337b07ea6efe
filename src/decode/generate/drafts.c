/* drafts: tokens that --lookup or --draft drafts, for all rows alike: caches of a batch have equally many columns in each row, so a run
 * keeps what all rows keep. */
#include "decode/generate/generate.h"

/* The graph must return the scores of several tokens after a cache as in steps, and its caches must be truncatable. */
void generate_try_drafts(struct decoder *d, struct arena *a, int threads)
{
    const char *option = d->options->draft ? "--draft" : "--lookup";
    struct stage *s = &d->stage[d->nstage - 1];
    const struct job_options *o = d->options;
    int tokens = decode_find_input(s, ROLE_TOKENS);
    const struct type *t = tokens < 0 ? NULL : session_input_type(s->session, tokens);
    if (!o->lookup && !o->draft)
        return;
    if (d->nstage > 1 || !t || !s->keeps)
        fail("%s: %s is for one graph that reads tokens and has a KV cache", s->path, option);
    if (s->pipeline)
        fail("%s: it is in pipeline stages, where %s drafts nothing yet", s->path, option);
    if (t->rank != 2 || t->dim[0]->kind != DIM_SYM)
        fail("%s: %s needs a batch of any size", s->path, option);
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (s->role[i] == ROLE_CONSTANT)
            s->in[i] = s->given[i];
    const struct parts_found found = parts_try(a, d->comm, s, t->dim[0]->name, o, decode_vocabulary(a, s),
                                               s->positions > 0 ? s->positions : INT32_MAX);
    if (!found.all_scores || !found.columns)
        fail("%s: %s runs several tokens behind a cache, which this graph does not do as it does steps: %s", s->path, option,
             found.all_scores ? found.why : "their scores are others, or it returns only the last ones");
    d->draft.from = drafter_new(a, d->comm, s, o, threads);
}

static bool has_ended(const struct decoder *d, int64_t row)
{
    return d->before + d->made > 0 && generate_is_end(d, generate_last_token(&d->history, row));
}

/* Limited by the tokens still to make and the remaining positions. */
static int64_t most_drafts(struct decoder *d)
{
    const struct stage *s = &d->stage[d->nstage - 1];
    int64_t most = draft_pace_next(&d->draft.from->pace), left = d->options->generate - d->made - 1;
    for (int64_t b = 0; s->positions > 0 && b < d->history.batch; b++) {
        int64_t more = s->positions - history_next_position(&d->history, b);
        left = more < left ? more : left;
    }
    return left < most ? left : most;
}

void generate_draft(struct decoder *d)
{
    struct drafter *from = d->draft.from;
    int64_t rows = d->history.batch, n = from && d->made > 0 && !d->form.all ? most_drafts(d) : 0;
    d->draft.n = 0;
    if (n <= 0)
        return;
    for (int64_t b = 0; b < rows; b++)
        d->draft.ended[b] = has_ended(d, b);
    n = d->draft.n = from->draft(from, &d->history, d->how, d->draft.ended, n, d->draft.token);
    for (int64_t i = 0; i < rows * n; i++) /* a row that has ended repeats its last token */
        if (d->draft.ended[i / n])
            d->draft.token[i] = generate_last_token(&d->history, i / n);
}

bool generate_keeps_drafts(const struct decoder *d, int64_t place)
{
    for (int64_t b = 0; b < d->history.batch && place < d->draft.n; b++)
        if (d->draft.token[b * d->draft.n + place] != d->next[b])
            return false;
    return place < d->draft.n;
}

void generate_note_drafts(struct decoder *d, const struct stage *s, int64_t taken)
{
    if (!d->draft.from)
        return;
    d->draft.runs += d->made > taken;
    d->draft.all += d->draft.n;
    d->draft.kept += taken - 1;
    draft_pace_note(&d->draft.from->pace, d->draft.n, taken - 1);
    if (taken <= d->draft.n)
        session_states_cut(s->session, d->history.length - 1);
}

void generate_tell_drafts(const struct decoder *d)
{
    if (!d->draft.runs)
        return;
    (void)fprintf(stderr, "drafts: %lld tokens in %lld runs, %.2f a run; %lld of %lld drafted tokens were kept\n", (long long)d->made - 1,
                  (long long)d->draft.runs, (double)(d->made - 1) / (double)d->draft.runs, (long long)d->draft.kept,
                  (long long)d->draft.all);
}
