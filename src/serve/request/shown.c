/* shown: tokens of a text that are returned with their log-probabilities: of the prompt and of the generated text. */
#include "serve/request/request.h"

static struct token_place place_of(struct arena *a, const struct tokenizer *t, struct scored_token o)
{
    return (struct token_place){tokenizer_token(t, a, o.token), o.score};
}

void shown_score(struct choice *o, struct shown_token *t, const struct logprobs *p)
{
    struct arena *a = o->call->arena;
    struct token_place *best = NEWN(a, struct token_place, p->n + 1);
    for (int64_t i = 0; i < p->n; i++)
        best[i] = place_of(a, o->call->service->tokenizer, p->best[i]);
    t->scored = true;
    t->own.logprob = p->token;
    t->n = p->n;
    t->best = best;
}

void shown_add(struct choice *o, const struct tokenizer *tokenizer, int64_t token, size_t at)
{
    struct text t = text_built(&o->text);
    struct arena *a = o->call->arena;
    for (; o->counted < at && o->counted < t.n; o->counted++)
        o->chars += ((unsigned char)t.at[o->counted] & 0xc0) != 0x80;
    const struct shown_token shown = {.own = place_of(a, tokenizer, (struct scored_token){0, token}), .at = at, .at_char = o->chars};
    VEC_PUSH(a, &o->shown, shown);
}
