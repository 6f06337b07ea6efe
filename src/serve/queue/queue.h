/* serve/queue: open requests. HTTP or the terminal adds them; the engine takes their texts, here or in a supervised job, and adds tokens to
 * them. */
#ifndef TPC_SERVE_QUEUE_H
#define TPC_SERVE_QUEUE_H

#include "serve/serve.h"

/* ---- call.c ---- */
struct call *call_new(struct service *, struct MHD_Connection *);
/* HTTP has finished with it. */
void call_leave(struct call *);
/* The following need the lock. */
/* The reader has finished with it. */
void call_read(struct call *);
/* False: the queue is full. */
bool call_put(struct call *);
struct choice *call_next_waiting(struct service *);
/* Adds a generated token. False: it was the last one, and the choice no longer exists. */
bool call_add_token(struct choice *, int64_t token, const struct logprobs *, enum form_state);
/* A run generated this many tokens for it, which are added next. */
void call_note_run(struct choice *, int64_t tokens);
/* For further tokens of its prompt, all of which are returned. */
void call_add_prompt_scores(struct choice *, const struct logprobs *, int64_t n);
/* Ends the text; a call without a client is freed with its last text. */
void call_finish(struct choice *, const char *finish);
/* Finds disconnected clients, and drops their waiting texts and those that waited too long; all: everyone's. */
void call_drop_waiting(struct service *, bool all);
/* Texts that were started wait again, before all others, in this order. */
void call_put_back(struct service *, int64_t n, struct choice **);
/* Resumes the HTTP connection. */
void call_resume(struct call *);
/* This many of its texts have their vectors, or will get none. */
void call_embedded(struct call *, int64_t n);

/* ---- embeddings.c: requests for embeddings; all functions except the reply need the lock ---- */
/* False: the queue is full. */
bool embeddings_put(struct call *);
/* The next texts of one call that run together, longest first. */
struct embed_batch {
    struct call *call; /* NULL: none */
    int64_t n, text[EMBED_BATCH];
};
struct embed_batch embeddings_next(struct service *);
/* The first call, with all of its texts; NULL: none waits. And back, as if it had not been taken. */
struct call *embeddings_take(struct service *);
void embeddings_put_back(struct call *);
/* Their vectors, in order; NULL: they are no longer needed. */
void embeddings_done(const struct embed_batch *, const float *vectors);
/* Drops the calls of disconnected clients; all: everyone's. */
void embeddings_drop(struct service *, bool all);
const char *embeddings_reply(struct call *);

/* ---- reader.c: a thread reads requests, because tokenizing a long prompt takes a while ---- */
void reader_start(struct service *);
/* Adds a call; needs the lock. False: the queue is full. */
bool reader_put(struct call *);
void reader_stop(struct service *);

/* ---- relay.c: messages between a supervisor and rank 0 of its job ---- */
enum {
    RELAY_TEXT = MESSAGE_OWN, /* a text to generate: struct relay_text */
    RELAY_EMBED,              /* a call to embed: its number, its texts */
    RELAY_LEAVE,              /* its number: it is no longer needed */
    RELAY_TOKEN,              /* of a text: struct relay_token */
    RELAY_SCORES,             /* of tokens of its prompt: its number, n, n times struct logprobs */
    RELAY_VECTORS,            /* of a call: its number, n, n numbers */
    RELAY_COUNTS              /* since the job started: struct relay_counts */
};
struct relay_text {
    int64_t number, most, tokens; /* tokens: of the prompt, and those generated so far, which follow */
    bool chat;
    int64_t grammar;         /* bytes, which follow the biases */
    struct row_sampling how; /* without pointers */
};
struct relay_token {
    int64_t number, token, stored;
    int64_t run; /* for the first token of a run, the number of its tokens; else 0 */
    enum form_state form;
    bool over, scored; /* it is the last one; struct logprobs follows */
};
struct relay_counts {
    int64_t prompt_runs, steps, drafted, kept;
    double step_seconds, prompt_seconds;
    struct prefix_counts stored;
};
/* The properties of the model, as message MESSAGE_READY; false: invalid. */
void relay_put_facts(struct message_text *, const struct service *);
bool relay_take_facts(struct cursor *, struct arena *, struct service *);

/* ---- back.c: rank 0 of such a job ---- */
/* From now on texts come from the supervisor. repeats: continued texts make their tokens again. */
void back_open(struct service *, bool repeats);
void back_close(void);
/* Like the functions of call.c, for calls of the supervisor. All need the lock. */
bool back_add_token(struct choice *, int64_t token, const struct logprobs *, enum form_state);
void back_add_prompt_scores(struct choice *, const struct logprobs *, int64_t n);
void back_resume(struct call *);

#endif
