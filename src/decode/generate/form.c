/* form: texts that follow a grammar (--grammar, --json-schema): at each step a row takes only tokens after which its text can still be
 * completed, and it ends when nothing may follow. */
#include "decode/generate/generate.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

static const char *file_of(const struct job_options *o)
{
    return o->grammar ? o->grammar : o->json_schema;
}

/* Rank 0's, on all ranks. */
static const struct grammar *read_grammar(struct arena *a, struct comm *comm, const struct job_options *o)
{
    const struct grammar *own = comm->rank ? NULL : grammar_file(a, file_of(o), o->json_schema, NULL);
    int64_t bytes = own ? (int64_t)grammar_size(own) : 0;
    comm_from_first(comm, "a grammar", &bytes, sizeof bytes);
    void *all = arena_alloc(a, (size_t)bytes);
    if (own)
        memcpy(all, own, (size_t)bytes);
    comm_from_first(comm, "a grammar", all, bytes);
    return all;
}

void generate_read_form(struct decoder *d, struct arena *a)
{
    const struct job_options *o = d->options;
    const struct stage *last = &d->stage[d->nstage - 1];
    struct token_texts texts = {0};
    struct end_tokens ends = {0};
    if (!file_of(o))
        return;
    if (last->chosen)
        fail("%s: its graph chooses tokens itself: %s takes no part in that", last->path, o->grammar ? "--grammar" : "--json-schema");
    if (d->comm->rank == 0) {
        texts = prompt_text_tokens(a, o, decode_vocabulary(a, last));
        ends = o->eos.list.n ? o->eos : config_ends(a, o);
    }
    d->form.grammar = read_grammar(a, d->comm, o);
    d->form.all = forms_new(d->comm, &texts, &ends);
}

void generate_start_form(struct decoder *d, struct arena *a)
{
    int64_t rows = d->history.batch;
    if (!d->form.all)
        return;
    d->form.whole = NEWN(a, int64_t, rows);
    for (int64_t b = 0; b < rows; b++)
        d->how[b].form = form_new(d->form.all, d->form.grammar, true);
}

void generate_take_form(struct decoder *d, int64_t row)
{
    enum form_state state = d->how[row].form ? form_take(d->how[row].form, &d->next[row]) : FORM_GOES_ON;
    if (state == FORM_STUCK)
        fail("%s: the text can't go on: the model has no token that it allows", file_of(d->options));
    if (state == FORM_SLOW)
        fail("%s: the text can't go on: there are too many ways to read it, and that takes too long", file_of(d->options));
    if (state == FORM_WHOLE)
        d->form.whole[row] = d->made + 1;
}

bool generate_is_whole(const struct decoder *d, int64_t row)
{
    return d->form.whole && d->form.whole[row];
}

void generate_end_form(struct decoder *d)
{
    if (!d->form.all)
        return;
    for (int64_t b = 0; d->form.whole && b < d->history.batch; b++)
        form_free(d->how[b].form);
    forms_free(d->form.all);
}

bool generate_is_end(const struct decoder *d, int64_t token)
{
    return config_is_end(&d->options->eos, token);
}

int64_t generate_last_token(const struct history *h, int64_t row)
{
    return h->token[row * h->room + h->length - 1];
}
