/* serve: an HTTP server for one loaded model (tpc-run --serve), with OpenAI's completions API.
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
    SERVE_READ = 16 << 20,    /* bytes read of a request that is too long, so that the client sees the error */
    SERVE_WAITING = 256,      /* texts waiting for a row, and requests waiting to be read */
    SERVE_CHOICES = 128,      /* texts of one request */
    SERVE_STOPS = 16,         /* stop sequences of one */
    SERVE_BIASES = 1024,      /* tokens of a logit_bias */
    SERVE_TOOLS = 1024,       /* functions that a model may call */
    SERVE_LOGPROBS = 1 << 22, /* log-probabilities of a reply */
    SERVE_EMBEDDINGS = 2048,  /* vectors of a reply */
    SERVE_NUMBERS = 1 << 22,  /* of them all */
    SERVE_CONNECTIONS = 512,
    SERVE_READ_SECONDS = 20,  /* for a request to arrive completely, unless --request-timeout is given */
    SERVE_WRITE_SECONDS = 60, /* for a complete reply to be sent */
    SERVE_WAIT_SECONDS = 600, /* for a text to get a row */
    SERVE_END_SECONDS = 10    /* for running texts when the server is asked to stop */
};

/* serve.c: serves until asked to stop. Every rank calls it. In a supervised job, it serves the supervisor. */
void serve_requests(struct arena *, const struct replicas *, const struct job_options *, const struct serve_options *, int threads);
/* The supervisor's side. Returns the exit status. */
int serve_supervised(struct arena *, const struct job_options *, const struct serve_options *, struct supervisor *);

/* ---- shared by threads ---- */

/* A candidate token: its bytes and score. */
struct token_place {
    struct text bytes;
    double logprob;
};
/* A token of a text that is returned with its log-probability. */
struct shown_token {
    struct token_place own;
    size_t at;       /* where it begins in the text: byte offset, */
    int64_t at_char; /* and in characters */
    bool scored;     /* false: the first token of a prompt */
    int64_t n;       /* the best tokens at its position */
    const struct token_place *best;
};

/* One text of a request. */
struct choice {
    struct call *call;
    int64_t index;
    const int64_t *prompt; /* tokens; shared by all texts of a prompt */
    int64_t prompts;
    struct row_sampling how;
    VEC(int64_t) made;
    VEC(int64_t) decoded; /* the same after a few tokens of the prompt, because a text alone may lose its first blank */
    int context;          /* number of these */
    struct text_stream stream;
    struct text_builder text;
    size_t echoed;                   /* bytes of it that are the prompt */
    size_t sent;                     /* bytes of it already streamed */
    struct chat_thoughts thoughts;   /* for a chat */
    size_t sent_thoughts, sent_said; /* bytes of its parts already streamed */
    struct chat_calls calls;         /* for a chat */
    int sent_calls;
    bool begun; /* its stream has sent the role */
    VEC(struct shown_token) shown;
    int shown_from, shown_to; /* range for the next event; for a whole reply: all */
    int scored;               /* number of scored prompt tokens */
    size_t counted;           /* bytes of it that were counted, and their characters */
    int64_t chars;
    const char *finish;   /* "stop", "length"; NULL: not finished */
    bool started;         /* it has a row */
    int64_t stored;       /* prompt tokens that did not run, because they were stored */
    double arrived, told; /* when its request arrived; when its last run ended */
    double each;          /* seconds per token of that run */
    int64_t run;          /* number of that run's tokens, before the first is added; else 0 */
    struct choice *next;  /* next in the queue */
};

/* A request for embeddings. */
struct embeddings {
    int64_t n;
    struct token_ids *text;
    int64_t *order;     /* its texts, sorted by length */
    int64_t begun;      /* number of texts that are running or done */
    float *vector;      /* [n, width] */
    int64_t dimensions; /* elements per returned vector */
    bool base64;
};

/* An address for texts: how its requests are read and answered. */
struct reading;
struct endpoint {
    void (*read)(struct reading *);
    const char *id, *object, *event;          /* prefix of ids; kinds of its replies and events */
    json_t *(*choice)(const struct choice *); /* in a reply */
    /* Events of a stream: growth of a text; the end of all texts. */
    void (*put_event)(struct call *, struct choice *, struct text more, const char *finish);
    void (*put_end)(struct call *);
    void (*put_error)(struct call *, const char *message); /* they cannot continue */
    const char *(*whole)(struct call *); /* instead of all that: a reply without texts, JSON in the arena; NULL: it has texts */
};

/* One request. It ends when HTTP has finished with it and none of its texts is running. */
struct call {
    struct arena *arena;
    struct service *service;
    const struct endpoint *endpoint; /* for texts; NULL: another address, or unknown so far */
    const char *model;               /* the name in the request, for an adapter; NULL: the service's */
    const struct chat *chat;         /* for a conversation; NULL: none */
    json_t *tools;                   /* that its answers may call; NULL: none */
    struct MHD_Connection *connection;
    struct connection *from; /* the same, with its deadlines; while `busy` */
    struct text_builder body;
    size_t dropped; /* bytes of an oversized body */
    bool too_long, whole, asked;
    bool interim; /* the client supports interim replies: HTTP/1.1 */
    bool probed;  /* one was sent */
    bool unread;  /* the reader has it */
    struct call *next_unread;
    const char *rest;          /* of the path after its route */
    const char *method, *path; /* for the log */
    double began;
    unsigned answered;    /* the status; 0: not answered */
    int64_t bytes;        /* of the reply's body */
    bool denied;          /* it has no key: its body is dropped */
    struct token_ids ids; /* for a text to tokenize, or to detokenize */
    struct text decoded;
    const char *ignored;           /* fields without effect, for a header; NULL: none */
    const char *param;             /* the rejected field; NULL: none */
    const char *code;              /* an error code, for programs; NULL: none */
    const char *allowed;           /* methods of this address, where another one is refused; NULL: it is not */
    struct embeddings *embeddings; /* NULL: it is for texts */
    struct call *next_to_embed;
    int64_t number, created;
    bool stream, usage;
    int64_t most; /* tokens per text; 0: empty */
    int stops;
    struct text stop[SERVE_STOPS];
    int64_t choices, open; /* open: texts that are not finished, or have no vector */
    struct choice *choice;
    bool suspended; /* libmicrohttpd leaves it alone until it is resumed */
    bool streams;   /* its stream has started */
    bool gone;      /* the client is gone */
    bool busy;      /* HTTP has not finished with it */
    struct text_builder events;
    size_t read;         /* bytes of them that HTTP has read */
    const char *refused; /* an error instead of texts */
    unsigned status;     /* of that */
    int64_t remote;      /* its number at a supervisor; 0: it is this process's */
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
    struct histogram first, next; /* until the first token of a text, and between tokens */
};

/* Names of fields that were logged already. */
struct told {
    int n;
    char name[64][64];
};

struct service {
    pthread_mutex_t lock;
    pthread_cond_t wake;                            /* wakes the engine */
    struct tokenizer *tokenizer, *prompt_tokenizer; /* of the engine, and of the reader: each for one thread */
    const char *model;
    int adapters; /* number that requests may name as the model */
    const struct named_adapters *adapter;
    const struct comm *comm;       /* NULL: the job is another process: */
    struct supervisor *supervisor; /* that starts it; NULL: this process */
    bool local;                    /* it listens only on this machine */
    const char *host;              /* --host, or its default */
    const struct keys *keys;       /* of --api-key-file; NULL: no key is required */
    struct text_list cors;         /* origins; "*": any */
    int64_t per_address;           /* most connections per address; 0: unlimited */
    double read_seconds;           /* for a request to arrive completely, from the connection or the previous reply on */
    struct connection *open;       /* connections */
    int64_t connections;           /* not counting those that are being closed */
    struct call *first_unread, *last_unread;
    int64_t unread;
    pthread_cond_t wake_reader, wake_guard, wake_terminal;
    pthread_t reader, guard;
    bool over; /* these threads must end */
    struct told told;
    struct sampling usual; /* the defaults of requests */
    bool seeded;           /* its seed was given */
    struct end_tokens ends;
    const struct grammar *form, *form_behind; /* for a conversation's answers, after thoughts; NULL: free */
    struct chat *chat;                        /* NULL: none, with the reason in `no_chat` */
    const char *no_chat;
    bool chooses;                /* the graph returns tokens, not scores */
    bool prompt_scores;          /* it returns the scores of all prompt positions */
    int64_t vocabulary, context; /* of prompts: number of tokens; most tokens of a row, including generated ones */
    int64_t longest;             /* most tokens that a decoder generates with an encoder, whose prompts have the context; 0: no encoder */
    bool known;                  /* the properties of the model, from `usual` to `alone`, are set; a supervisor gets them from its job */
    const char *no_texts;        /* why the model generates none; NULL: it does */
    const char *no_embeddings;   /* why there are none; NULL: there are */
    int64_t ranks;               /* of the job */
    const char *transport;       /* between the ranks */
    const char *embeds;          /* their description; NULL: none */
    const char *alone;           /* why texts run one at a time; NULL: they do not */
    int64_t width;               /* of embeddings; 0: none */
    struct embedder *embedder;   /* NULL: none, or in a supervised job */
    struct call *first_to_embed, *last_to_embed;
    int64_t to_embed; /* calls waiting for embeddings */
    int64_t slots, active;
    struct choice *first, *last;
    int64_t waiting, calls;
    struct call *call; /* all open calls */
    bool ending;
    double end;
    struct counts counts;
    struct prefix_counts stored; /* prefixes of texts */
};

/* ---- service.c: tokens for texts with a grammar ---- */
/* Of all tokens; special ones are text if a reply contains them, such as tags of thoughts. */
struct token_texts service_token_texts(const struct service *, struct arena *);
/* The tokens that end texts, of completions and chats. */
struct end_tokens service_ends(const struct service *, struct arena *);

/* ---- engine.c ---- */
/* Decodes until the service ends. Every rank calls it; service is NULL except on rank 0, embedder if there are no embeddings. rows: in
 * groups that alternate; pipeline NULL: no stages, and one group. */
void engine_run(struct comm *, struct pipeline *, int groups, struct rows **rows, struct embedder *, struct service *);

/* ---- front.c: the supervisor ---- */
/* Serves until asked to stop, with a job that it starts. The service is prepared, without the properties of the model. Returns the exit
 * status. */
int front_run(struct arena *, struct service *, const struct serve_options *, struct supervisor *);

#endif
