/* serve/reply: the content of replies: texts, events, errors and counts, as JSON or for Prometheus. */
#ifndef TPC_SERVE_REPLY_H
#define TPC_SERVE_REPLY_H

#include "serve/serve.h"

/* ---- reply.c ---- */
/* All texts, as JSON in the arena. */
const char *reply_whole(struct call *);
json_t *reply_completion(const struct choice *);
/* param, code: the rejected field, and a code for programs; NULL: none. */
const char *reply_error(struct arena *, const char *message, const char *type, const char *param, const char *code);
const char *reply_models(struct arena *, const struct service *);
/* The number of a model by its name in replies: 0: the model, from 1: one of its adapters; -1: none. */
int reply_named_model(const struct service *, const char *name);
const char *reply_model(struct arena *, const struct service *, int number);
const char *reply_tokens(struct call *);
const char *reply_detokenized(struct call *);
const char *reply_health(struct arena *, const char *status, const char *message);
/* For a supervisor; restarts: so far; why: reason of the last one, "": none. */
const char *reply_supervised(struct arena *, const char *status, int restarts, const char *why);

/* ---- metrics.c: the reply to GET /metrics ---- */
void metrics_first_token(struct counts *, double seconds);
void metrics_next_token(struct counts *, double seconds);
const char *metrics_text(struct arena *, const struct service *);

/* ---- reply.c: events ---- */
/* Events of the stream: of a choice, which is consumed; growth of a text; the end of all. */
void reply_put_choice(struct call *, json_t *choice);
void reply_put_event(struct call *, struct choice *, struct text more, const char *finish);
void reply_put_end(struct call *);
/* The texts cannot continue, and why. */
void reply_put_error(struct call *, const char *message);

/* ---- chat_reply.c: the same for chats ---- */
json_t *chat_reply(const struct choice *);
/* It has the only call that it may have. */
bool chat_is_done(struct choice *);
void chat_put_event(struct call *, struct choice *, struct text more, const char *finish);

/* ---- reply_tokens.c ---- */
/* A string. Invalid UTF-8, possible for example in file names, is replaced. */
json_t *reply_text(struct text);
/* The text of a token; a partial character is written as in OpenAI's API: "bytes:\\xe2\\x80". */
const char *reply_token(struct arena *, struct text bytes);
/* A value that JSON can represent. */
double reply_logprob(double);
/* Tokens of a choice, from shown_from to shown_to, in the form of completions; null: not requested. */
json_t *reply_logprobs(const struct choice *);
json_t *reply_chat_logprobs(const struct choice *); /* in the form of chats */

#endif
