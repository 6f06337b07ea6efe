/* serve/queue: the requests that are open. HTTP or the terminal puts them in; the engine takes their texts, here or in the job of a
 * supervisor, and adds tokens to them. */
#ifndef TPC_SERVE_QUEUE_H
#define TPC_SERVE_QUEUE_H

#include "serve/serve.h"

/* ---- call.c ---- */
struct call *call_new(struct service *, struct MHD_Connection *);
/* HTTP is done with it. */
void call_leave(struct call *);
/* The following need the lock. */
/* The reader is done with it. */
void call_read(struct call *);
/* False: enough texts wait already. */
bool call_put(struct call *);
struct choice *call_next_waiting(struct service *);
/* A token was made for it. False: that was the last one, and the choice is no more. */
bool call_add_token(struct choice *, int64_t token, const struct logprobs *, enum form_state);
/* A run made so many tokens for it, which are added next. */
void call_note_run(struct choice *, int64_t tokens);
/* Of further tokens of its prompt, all of which are shown. */
void call_add_prompt_scores(struct choice *, const struct logprobs *, int64_t n);
/* The text ends; a call that nobody waits for is freed with its last one. */
void call_finish(struct choice *, const char *finish);
/* Finds clients that have gone, and drops their waiting texts and those that waited too long; all: everyone's. */
void call_drop_waiting(struct service *, bool all);
/* Texts that were begun wait again, before all others, in this order. */
void call_put_back(struct service *, int64_t n, struct choice **);
/* Lets HTTP go on. */
void call_resume(struct call *);
/* So many of its texts have their vectors, or will have none. */
void call_embedded(struct call *, int64_t n);

/* ---- embeddings.c: requests for vectors; all but the reply need the lock ---- */
/* False: enough wait already. */
bool embeddings_put(struct call *);
/* Texts of one call that run together next, the longest first. */
struct embed_batch {
    struct call *call; /* NULL: none */
    int64_t n, text[EMBED_BATCH];
};
struct embed_batch embeddings_next(struct service *);
/* The first call, with all of its texts; NULL: none waits. And back, as if it had not been taken. */
struct call *embeddings_take(struct service *);
void embeddings_put_back(struct call *);
/* Their vectors are there, in their order; NULL: they are not asked for any more. */
void embeddings_done(const struct embed_batch *, const float *vectors);
/* Drops the calls of clients that have gone; all: everyone's. */
void embeddings_drop(struct service *, bool all);
const char *embeddings_reply(struct call *);

/* ---- reader.c: a thread reads requests, for a long prompt takes a while to become tokens ---- */
void reader_start(struct service *);
/* Hands it one; needs the lock. False: enough of them wait already. */
bool reader_put(struct call *);
void reader_stop(struct service *);

/* ---- relay.c: what a supervisor and rank 0 of its job say to each other ---- */
enum {
    RELAY_TEXT = MESSAGE_OWN, /* a text that is to be made: struct relay_text */
    RELAY_EMBED,              /* a call for vectors: its number, its texts */
    RELAY_LEAVE,              /* its number: nobody wants it any more */
    RELAY_TOKEN,              /* of a text: struct relay_token */
    RELAY_SCORES,             /* of tokens of its prompt: its number, n, n times struct logprobs */
    RELAY_VECTORS,            /* of a call: its number, n, n numbers */
    RELAY_COUNTS              /* since the job began: struct relay_counts */
};
struct relay_text {
    int64_t number, most, tokens; /* tokens: of the prompt, and those that were made so far, which follow */
    bool chat;
    int64_t grammar;         /* bytes of it, which follow biases */
    struct row_sampling how; /* without pointers */
};
struct relay_token {
    int64_t number, token, stored;
    int64_t run; /* the first token of a run that made so many; else 0 */
    enum form_state form;
    bool over, scored; /* it is the last one; struct logprobs follows */
};
struct relay_counts {
    int64_t prompt_runs, steps, drafted, kept;
    double step_seconds, prompt_seconds;
    struct prefix_counts stored;
};
/* What the model says, as the message MESSAGE_READY; false: it can't be. */
void relay_put_facts(struct message_text *, const struct service *);
bool relay_take_facts(struct cursor *, struct arena *, struct service *);

/* ---- back.c: rank 0 of such a job ---- */
/* From now on texts come from the supervisor. repeats: those that go on make their tokens again. */
void back_open(struct service *, bool repeats);
void back_close(void);
/* As the functions of call.c, of calls of the supervisor. All need the lock. */
bool back_add_token(struct choice *, int64_t token, const struct logprobs *, enum form_state);
void back_add_prompt_scores(struct choice *, const struct logprobs *, int64_t n);
void back_resume(struct call *);

#endif
