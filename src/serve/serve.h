/* serve: an HTTP server for one model that stays loaded (tpc-run --serve), with the completions of OpenAI's API.
 *
 * On rank 0 a thread of libmicrohttpd reads requests and writes replies; the rank's own thread, the engine, decodes. Between them are
 * calls, under one lock. Other ranks follow the orders of rank 0. */
#ifndef TPC_SERVE_H
#define TPC_SERVE_H

#include "decode/decode.h"
#include "tokenizer/tokenizer.h"

#include <microhttpd.h>
#include <pthread.h>

enum {
    SERVE_BODY = 1 << 20,  /* bytes of a request */
    SERVE_READ = 64 << 20, /* bytes of one that is too long that are read, so that the client sees the refusal */
    SERVE_WAITING = 256,   /* texts that wait for a row */
    SERVE_PART = 32,       /* tokens of a prompt that run between two steps of other rows */
    SERVE_CHOICES = 128,   /* texts of one request */
    SERVE_STOPS = 16,      /* stop sequences of one */
    SERVE_IDLE_SECONDS = 30,
    SERVE_WAIT_SECONDS = 600, /* of a text for its row */
    SERVE_END_SECONDS = 10    /* of texts that are made when the server is asked to end */
};

/* serve.c: serves until a request to end. Every rank calls it. */
void serve_requests(struct arena *, const struct replicas *, const struct job_options *, const struct serve_options *, int threads);

/* ---- what threads share ---- */

/* One text of a request. */
struct choice {
    struct call *call;
    int64_t index;
    const int64_t *prompt; /* tokens; the same for all texts of a prompt */
    int64_t prompts;
    struct row_sampling how;
    VEC(int64_t) made;
    struct text_stream stream;
    struct text_builder text;
    size_t sent;        /* bytes of it that were streamed */
    const char *finish; /* "stop", "length"; NULL: it goes on */
    bool started;       /* has a row */
    double arrived;
    struct choice *next; /* that waits */
};

/* One request. It ends when HTTP is done with it and no text of it is made. */
struct call {
    struct arena *arena;
    struct service *service;
    struct MHD_Connection *connection;
    struct text_builder body;
    bool too_long, asked;
    int64_t number, created;
    bool stream, usage;
    int64_t most; /* tokens of each text */
    int stops;
    struct text stop[SERVE_STOPS];
    int64_t choices, open; /* open: texts that are not finished */
    struct choice *choice;
    bool suspended; /* MHD leaves it alone until it is resumed */
    bool gone;      /* the client is */
    bool busy;      /* HTTP is not done with it */
    struct text_builder events;
    size_t read;         /* bytes of them that HTTP took */
    const char *refused; /* instead of texts: the server ends */
    struct call *before, *after;
};

struct counts {
    int64_t requests, refused, prompt_tokens, made_tokens, prompt_runs, steps, texts, vanished;
    double step_seconds, prompt_seconds, first_seconds;
    int64_t firsts;
};

struct service {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* of the engine */
    struct tokenizer *tokenizer;
    pthread_mutex_t tokenizer_lock;
    const char *model;
    struct sampling usual; /* where a request says nothing */
    bool seeded;           /* its seed was asked for */
    struct end_tokens ends;
    int64_t vocabulary, context; /* of prompts: tokens below it; tokens of a row, with those that are made */
    int64_t longest;             /* text that a decoder makes behind an encoder, whose prompts have the context; 0: there is no encoder */
    int64_t slots, active;
    struct choice *first, *last;
    int64_t waiting, calls;
    struct call *call; /* all that are open */
    bool ending;
    double end;
    struct counts counts;
};

/* ---- call.c ---- */
struct call *call_new(struct service *, struct MHD_Connection *);
/* HTTP is done with it. */
void call_leave(struct call *);
/* The following need the lock. */
/* True: enough texts wait already. */
bool call_put(struct call *);
struct choice *call_next_waiting(struct service *);
/* A token was made for it. False: that was the last one, and the choice is no more. */
bool call_add_token(struct choice *, int64_t token);
/* The text ends; a call that nobody waits for is freed with its last one. */
void call_finish(struct choice *, const char *finish);
/* Finds clients that have gone, and drops their waiting texts and those that waited too long; all: everyone's. */
void call_drop_waiting(struct service *, bool all);
/* Lets HTTP go on. */
void call_resume(struct call *);

/* ---- request.c: what is asked, from the body. NULL, or what is wrong with it, in the call's arena. ---- */
const char *request_read(struct call *);

/* ---- reply.c ---- */
/* JSON in the arena. */
const char *reply_completion(struct call *);
const char *reply_error(struct arena *, const char *message, const char *type);
const char *reply_models(struct arena *, const struct service *);
const char *reply_metrics(struct arena *, const struct service *);
/* An event of the stream: what a text grew by. */
void reply_put_event(struct call *, const struct choice *, struct text more, const char *finish);
void reply_put_end(struct call *);

/* ---- listen.c: a socket that listens. Port 0 takes one that is free; *taken: the port. ---- */
int listen_open(const char *host, int port, int *taken);

/* ---- http.c ---- */
struct MHD_Daemon *http_start(struct service *, int listening);
void http_stop(struct MHD_Daemon *);
/* The client of a suspended call has closed its end. */
bool http_is_closed(struct MHD_Connection *);

/* ---- engine.c ---- */
/* Decodes until the service ends. Every rank calls it; service NULL but on rank 0. */
void engine_run(struct comm *, struct rows *, struct service *);

#endif
