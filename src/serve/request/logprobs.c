/* logprobs: requested log-probabilities: for completions a number, and with `echo` also those of prompts; for chats two fields. */
#include "serve/request/request.h"

static void take(struct reading *r, const char *key, int64_t alternatives)
{
    if (r->call->service->chooses)
        request_blame(r, key, "the model's graph chooses tokens itself: it has no log-probabilities");
    r->how.logprobs = true;
    r->how.alternatives = alternatives;
}

static bool asks(const json_t *v)
{
    return v && !json_is_false(v) && !(json_is_integer(v) && json_integer_value(v) == 0);
}

void logprobs_of_completion(struct reading *r)
{
    const json_t *v = request_given(r, "logprobs");
    if (v && !json_is_false(v))
        take(r, "logprobs", request_integer(r, "logprobs", 0, LOGPROBS_MOST, 0));
    if (asks(request_given(r, "top_logprobs")))
        request_blame(r, "top_logprobs", "'top_logprobs' is a field of chats: /v1/completions takes the number in 'logprobs'");
    r->echo = request_flag(r, "echo", false);
    r->how.prompt_logprobs = r->echo && r->how.logprobs;
    if (r->how.prompt_logprobs && !r->call->service->prompt_scores)
        request_blame(r, "echo",
                      "this model returns no scores of all tokens of a prompt, or runs prompts whole: leave out 'echo' or 'logprobs'");
}

void logprobs_of_chat(struct reading *r)
{
    if (asks(request_given(r, "echo")))
        request_blame(r, "echo", "'echo' is a field of /v1/completions: this server does not support it in chats");
    if (request_flag(r, "logprobs", false))
        take(r, "logprobs", request_integer(r, "top_logprobs", 0, LOGPROBS_MOST, 0));
    else if (asks(request_given(r, "top_logprobs")))
        request_refuse(r, "top_logprobs", "'logprobs' to be true beside it");
}

void logprobs_limit(struct reading *r)
{
    struct call *c = r->call;
    int64_t room = c->service->longest ? c->service->longest : c->service->context, all = 0;
    for (int64_t i = 0; r->how.logprobs && i < c->choices; i++) {
        int64_t prompt = r->how.prompt_logprobs ? c->choice[i].prompts : 0;
        all += (prompt + (c->most < room ? c->most : room)) * (1 + r->how.alternatives);
    }
    if (all > SERVE_LOGPROBS)
        request_blame(r, "logprobs",
                      arena_printf(c->arena,
                                   "this request may have %lld log-probabilities, and a reply has at most %d: lower the number of tokens, "
                                   "of texts or of log-probabilities",
                                   (long long)all, SERVE_LOGPROBS));
}
