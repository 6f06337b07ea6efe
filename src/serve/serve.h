/* serve: an HTTP server for one model that stays loaded (tpc-run --serve), with the completions of OpenAI's API.
 *
 * On rank 0 a thread of libmicrohttpd reads requests and writes replies; the rank's own thread, the engine, decodes. Between them are
 * calls, under one lock. Other ranks follow the orders of rank 0. */
#ifndef TPC_SERVE_H
#define TPC_SERVE_H

#include "chat/chat.h"
#include "decode/decode.h"
#include "decode/embed/embed.h"
#include "job/adapters/adapters.h"
#include "supervise/supervise.h"

#include <microhttpd.h>
#include <pthread.h>
#include <sys/socket.h>

enum {
    SERVE_BODY = 1 << 20,     /* bytes of a request */
    SERVE_READ = 16 << 20,    /* bytes of one that is too long that are read, so that the client sees the refusal */
    SERVE_WAITING = 256,      /* texts that wait for a row, and requests that wait to be read */
    SERVE_CHOICES = 128,      /* texts of one request */
    SERVE_STOPS = 16,         /* stop sequences of one */
    SERVE_BIASES = 1024,      /* tokens of a logit_bias */
    SERVE_TOOLS = 1024,       /* functions that a model may call */
    SERVE_LOGPROBS = 1 << 22, /* log-probabilities of a reply */
    SERVE_EMBEDDINGS = 2048,  /* vectors of a reply */
    SERVE_NUMBERS = 1 << 22,  /* of them all */
    SERVE_CONNECTIONS = 512,
    SERVE_READ_SECONDS = 20,  /* for a request to come whole, unless --request-timeout says otherwise */
    SERVE_WRITE_SECONDS = 60, /* for a reply to be taken, once it is whole */
    SERVE_WAIT_SECONDS = 600, /* of a text for its row */
    SERVE_END_SECONDS = 10    /* of texts that are made when the server is asked to end */
};

/* serve.c: serves until a request to end. Every rank calls it. Where the job is supervised, for the supervisor. */
void serve_requests(struct arena *, const struct replicas *, const struct job_options *, const struct serve_options *, int threads);
/* The supervisor's part of it. Exit status. */
int serve_supervised(struct arena *, const struct job_options *, const struct serve_options *, struct supervisor *);

/* ---- what threads share ---- */

/* A token in its place: the bytes that it stands for. */
struct token_place {
    struct text bytes;
    double logprob;
};
/* A token of a text that is returned with its log-probability. */
struct shown_token {
    struct token_place own;
    size_t at;       /* where it begins in the text: bytes, */
    int64_t at_char; /* and characters */
    bool scored;     /* false: the first of a prompt */
    int64_t n;       /* the best tokens in its place */
    const struct token_place *best;
};

/* One text of a request. */
struct choice {
    struct call *call;
    int64_t index;
    const int64_t *prompt; /* tokens; the same for all texts of a prompt */
    int64_t prompts;
    struct row_sampling how;
    VEC(int64_t) made;
    VEC(int64_t) decoded; /* the same behind a few tokens of the prompt, for a text may begin with a blank that no text alone has */
    int context;          /* so many */
    struct text_stream stream;
    struct text_builder text;
    size_t echoed;                   /* bytes of it that are the prompt */
    size_t sent;                     /* bytes of it that were streamed */
    struct chat_thoughts thoughts;   /* of a chat */
    size_t sent_thoughts, sent_said; /* bytes of its parts that were streamed */
    struct chat_calls calls;         /* of a chat */
    int sent_calls;
    bool begun; /* its stream has told of the role */
    VEC(struct shown_token) shown;
    int shown_from, shown_to; /* those that the next event has; of a whole reply: all */
    int scored;               /* of its prompt's tokens */
    size_t counted;           /* bytes of it, and their characters */
    int64_t chars;
    const char *finish;   /* "stop", "length"; NULL: it goes on */
    bool started;         /* has a row */
    int64_t stored;       /* tokens of the prompt that did not run, because they were stored */
    double arrived, told; /* when its request came; when its last run had ended */
    double each;          /* seconds that a token of that run took */
    int64_t run;          /* tokens of that run, none of which was added yet; else 0 */
    struct choice *next;  /* that waits */
};

/* What a request for embeddings asks for. */
struct embeddings {
    int64_t n;
    struct token_ids *text;
    int64_t *order;     /* its texts, by length */
    int64_t begun;      /* so many of them run or have vectors */
    float *vector;      /* [n, width] */
    int64_t dimensions; /* numbers of a vector that are returned */
    bool base64;
};

/* An address for texts: how its requests are read and answered. */
struct reading;
struct endpoint {
    void (*read)(struct reading *);
    const char *id, *object, *event;          /* what ids begin with; the kinds of its replies and events */
    json_t *(*choice)(const struct choice *); /* of a reply */
    /* Events of a stream: what a text grew by; the end of all texts. */
    void (*put_event)(struct call *, struct choice *, struct text more, const char *finish);
    void (*put_end)(struct call *);
    void (*put_error)(struct call *, const char *message); /* they can't go on */
    const char *(*whole)(struct call *); /* instead of all that: a reply without texts, JSON in the arena; NULL: it has texts */
};

/* One request. It ends when HTTP is done with it and no text of it is made. */
struct call {
    struct arena *arena;
    struct service *service;
    const struct endpoint *endpoint; /* of texts; NULL: another address, or not known yet */
    const char *model;               /* as the request names it, where that is an adapter; NULL: the service's */
    const struct chat *chat;         /* of a conversation; NULL: it is none */
    json_t *tools;                   /* that its answers may call; NULL: none */
    struct MHD_Connection *connection;
    struct connection *from; /* the same, for its deadlines; while `busy` */
    struct text_builder body;
    size_t dropped; /* bytes of a body that is too long */
    bool too_long, whole, asked;
    bool interim; /* the client knows interim replies: HTTP/1.1 */
    bool probed;  /* one was sent */
    bool unread;  /* the reader has it */
    struct call *next_unread;
    const char *rest;          /* of the path after its route */
    const char *method, *path; /* for the log */
    double began;
    unsigned answered;    /* the status; 0: not yet */
    int64_t bytes;        /* of the body of the answer */
    bool denied;          /* it has no key: its body is dropped */
    struct token_ids ids; /* of a text that is only to become tokens, or the other way round */
    struct text decoded;
    const char *ignored;           /* the fields that have no effect, for a header; NULL: none */
    const char *param;             /* the field that is refused; NULL: none */
    const char *code;              /* of an error, for programs; NULL: none */
    struct embeddings *embeddings; /* NULL: it asks for texts */
    struct call *next_to_embed;
    int64_t number, created;
    bool stream, usage;
    int64_t most; /* tokens of each text; 0: it is empty */
    int stops;
    struct text stop[SERVE_STOPS];
    int64_t choices, open; /* open: texts that are not finished, or have no vector */
    struct choice *choice;
    bool suspended; /* MHD leaves it alone until it is resumed */
    bool streams;   /* its stream has begun */
    bool gone;      /* the client is */
    bool busy;      /* HTTP is not done with it */
    struct text_builder events;
    size_t read;         /* bytes of them that HTTP took */
    const char *refused; /* instead of texts: why */
    unsigned status;     /* of that */
    int64_t remote;      /* its number where a supervisor has it; 0: it is of this process */
    struct call *before, *after;
};

enum { METRICS_BUCKETS = 13 };
struct histogram {
    int64_t in[METRICS_BUCKETS + 1]; /* by bucket; the last one has no limit */
    double seconds;                  /* of all */
};
struct counts {
    int64_t requests, refused, prompt_tokens, made_tokens, prompt_runs, steps, texts, vanished, drafted, kept;
    double step_seconds, prompt_seconds;
    struct histogram first, next; /* until the first token of a text, until each next one */
};

/* Names of fields that the log has named already. */
struct told {
    int n;
    char name[64][64];
};

struct service {
    pthread_mutex_t lock;
    pthread_cond_t wake;                            /* of the engine */
    struct tokenizer *tokenizer, *prompt_tokenizer; /* of the engine, and of the reader: each is for one thread */
    const char *model;
    int adapters; /* that requests may name as the model */
    const struct named_adapters *adapter;
    const struct comm *comm;       /* NULL: the job is another process's: */
    struct supervisor *supervisor; /* that starts it; NULL: it is this one */
    bool local;                    /* it listens on this machine alone */
    const char *host;              /* --host, or its default */
    const struct keys *keys;       /* of --api-key-file; NULL: none is asked for */
    struct text_list cors;         /* origins; "*": any */
    int64_t per_address;           /* connections of one address at most; 0: any number */
    double read_seconds;           /* for a request to come whole, from the connection or the reply before it on */
    struct connection *open;       /* connections */
    int64_t connections;           /* those that are not being closed */
    struct call *first_unread, *last_unread;
    int64_t unread;
    pthread_cond_t wake_reader, wake_guard, wake_terminal;
    pthread_t reader, guard;
    bool over; /* those threads are to end */
    struct told told;
    struct sampling usual; /* where a request says nothing */
    bool seeded;           /* its seed was asked for */
    struct end_tokens ends;
    const struct grammar *form, *form_behind; /* of a conversation's answers, behind thoughts; NULL: they are free */
    struct chat *chat;                        /* NULL: there is none, `no_chat` says why */
    const char *no_chat;
    bool chooses;                /* the graph returns tokens, not scores */
    bool prompt_scores;          /* it returns the scores of all positions of a prompt */
    int64_t vocabulary, context; /* of prompts: tokens below it; tokens of a row, with those that are made */
    int64_t longest;             /* text that a decoder makes behind an encoder, whose prompts have the context; 0: there is no encoder */
    bool known;                  /* all that the model says, from `usual` to `alone`; a supervisor is told by its job */
    const char *no_texts;        /* why the model makes none; NULL: it does */
    const char *no_embeddings;   /* why there are none; NULL: there are */
    int64_t ranks;               /* of the job */
    const char *transport;       /* between them */
    const char *embeds;          /* what they are, for people; NULL: there are none */
    const char *alone;           /* why texts are made one at a time; NULL: they are not */
    int64_t width;               /* of embeddings; 0: there are none */
    struct embedder *embedder;   /* that makes them; NULL: none, or the job of a supervisor does */
    struct call *first_to_embed, *last_to_embed;
    int64_t to_embed; /* calls that wait for vectors */
    int64_t slots, active;
    struct choice *first, *last;
    int64_t waiting, calls;
    struct call *call; /* all that are open */
    bool ending;
    double end;
    struct counts counts;
    struct prefix_counts stored; /* beginnings of texts */
};

/* ---- service.c: what the engine needs to know of tokens for texts with a grammar ---- */
/* Of all tokens; special ones are text where a reply has them, as tags of thoughts. */
struct token_texts service_token_texts(const struct service *, struct arena *);
/* The tokens that end texts, of completions and chats. */
struct end_tokens service_ends(const struct service *, struct arena *);

/* ---- engine.c ---- */
/* Decodes until the service ends. Every rank calls it; service NULL but on rank 0, embedder where there are embeddings. rows: in groups
 * that take turns; pipeline NULL: there are no stages, and one group. */
void engine_run(struct comm *, struct pipeline *, int groups, struct rows **rows, struct embedder *, struct service *);

/* ---- front.c: the supervisor ---- */
/* Serves until a request to end, with a job that it starts. The service is prepared, and knows nothing of the model. Exit status. */
int front_run(struct arena *, struct service *, const struct serve_options *, struct supervisor *);

#endif
