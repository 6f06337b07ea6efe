/* serve/reply: what replies say: texts, events, errors and counts, as JSON or as Prometheus reads it. */
#ifndef TPC_SERVE_REPLY_H
#define TPC_SERVE_REPLY_H

#include "serve/serve.h"

/* ---- reply.c ---- */
/* All texts, as JSON in the arena. */
const char *reply_whole(struct call *);
json_t *reply_completion(const struct choice *);
/* param, code: the field that is refused, and a word for programs; NULL: none. */
const char *reply_error(struct arena *, const char *message, const char *type, const char *param, const char *code);
const char *reply_models(struct arena *, const struct service *);
/* The number of a model as replies write its name: 0: the model, from 1: one of its adapters; -1: there is none. */
int reply_named_model(const struct service *, const char *name);
const char *reply_model(struct arena *, const struct service *, int number);
const char *reply_tokens(struct call *);
const char *reply_detokenized(struct call *);
const char *reply_health(struct arena *, const char *status, const char *message);
/* Of a supervisor; restarts: those so far; why: the last one was needed, "": there was none. */
const char *reply_supervised(struct arena *, const char *status, int restarts, const char *why);

/* ---- metrics.c: what GET /metrics tells ---- */
void metrics_first_token(struct counts *, double seconds);
void metrics_next_token(struct counts *, double seconds);
const char *metrics_text(struct arena *, const struct service *);

/* ---- reply.c: events ---- */
/* An event of the stream: of a choice, which is taken; what a text grew by; the end of all. */
void reply_put_choice(struct call *, json_t *choice);
void reply_put_event(struct call *, struct choice *, struct text more, const char *finish);
void reply_put_end(struct call *);
/* That the texts can't go on, and why. */
void reply_put_error(struct call *, const char *message);

/* ---- chat_reply.c: the same of chats ---- */
json_t *chat_reply(const struct choice *);
/* It has the one call that it may have. */
bool chat_is_done(struct choice *);
void chat_put_event(struct call *, struct choice *, struct text more, const char *finish);

/* ---- reply_tokens.c ---- */
/* A string. What is no UTF-8 in it, as names of files need not be, is replaced. */
json_t *reply_text(struct text);
/* The text of a token; what is no text alone is written as OpenAI does: "bytes:\\xe2\\x80". */
const char *reply_token(struct arena *, struct text bytes);
/* What JSON can hold. */
double reply_logprob(double);
/* Tokens of a choice, from shown_from to shown_to, as completions have them; null: they are not asked for. */
json_t *reply_logprobs(const struct choice *);
json_t *reply_chat_logprobs(const struct choice *); /* as chats have them */

#endif
