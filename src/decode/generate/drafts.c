/* drafts: tokens that --lookup drafts, of all rows alike: caches of a batch have as many columns for each row, so a run keeps what all rows
 * keep. */
#include "decode/generate/generate.h"

/* Several tokens behind a cache must have the scores of steps, at each of them, and the caches must be left with some of their columns. */
void generate_try_drafts(struct decoder *d, struct arena *a)
{
    struct stage *s = &d->stage[d->nstage - 1];
    const struct job_options *o = d->options;
    int tokens = decode_find_input(s, ROLE_TOKENS);
    const struct type *t = tokens < 0 ? NULL : session_input_type(s->session, tokens);
    if (!o->lookup)
        return;
    if (d->nstage > 1 || !t || !s->keeps)
        fail("%s: --lookup is for one graph that reads tokens and has a KV cache", s->path);
    if (s->pipeline)
        fail("%s: it is in pipeline stages, where --lookup drafts nothing yet", s->path);
    if (t->rank != 2 || t->dim[0]->kind != DIM_SYM)
        fail("%s: --lookup needs a batch of any size", s->path);
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (s->role[i] == ROLE_CONSTANT)
            s->in[i] = s->given[i];
    const struct parts_found found = parts_try(a, d->comm, s, t->dim[0]->name, o, decode_vocabulary(a, s),
                                               s->positions > 0 ? s->positions : INT32_MAX);
    if (!found.all_scores || !found.columns)
        fail("%s: --lookup runs several tokens behind a cache, which this graph does not do as it does steps: %s", s->path,
             found.all_scores ? found.why : "their scores are others, or it returns only the last ones");
    d->draft.pace = draft_pace_new(o->lookup);
}

static bool has_ended(const struct decoder *d, int64_t row)
{
    return d->before + d->made > 0 && generate_is_end(d, generate_last_token(&d->history, row));
}

/* A row that has ended repeats its last token. */
static int64_t draft_row(struct decoder *d, int64_t row, int64_t most, int64_t *to)
{
    if (!has_ended(d, row))
        return draft_lookup(&d->history, row, most, to);
    for (int64_t i = 0; i < most; i++)
        to[i] = generate_last_token(&d->history, row);
    return most;
}

/* As many as may still be made, and as positions are left. */
static int64_t most_drafts(struct decoder *d)
{
    const struct stage *s = &d->stage[d->nstage - 1];
    int64_t most = draft_pace_next(&d->draft.pace), left = d->options->generate - d->made - 1;
    for (int64_t b = 0; s->positions > 0 && b < d->history.batch; b++) {
        int64_t more = s->positions - history_next_position(&d->history, b);
        left = more < left ? more : left;
    }
    return left < most ? left : most;
}

void generate_draft(struct decoder *d)
{
    int64_t rows = d->history.batch, n = d->made > 0 && d->draft.pace.most ? most_drafts(d) : 0, row[DRAFT_MOST];
    d->draft.n = 0;
    for (int64_t b = 0; b < rows && n > 0; b++) {
        int64_t found = draft_row(d, b, n, row);
        n = found < n ? found : n;
    }
    for (int64_t b = 0; b < rows && n > 0; b++)
        (void)draft_row(d, b, n, d->draft.token + b * n);
    d->draft.n = n > 0 ? n : 0;
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
    if (!d->draft.pace.most)
        return;
    d->draft.runs += d->made > taken;
    d->draft.all += d->draft.n;
    d->draft.kept += taken - 1;
    draft_pace_note(&d->draft.pace, d->draft.n, taken - 1);
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
