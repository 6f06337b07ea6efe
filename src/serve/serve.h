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

/* ---- head.c: what is wrong with the head of a request. Status 0: nothing. ---- */
struct refusal {
    unsigned status;
    const char *message;
};
extern const char head_body_too_long[];
struct refusal head_fault(struct MHD_Connection *, const char *version);

/* ---- reader.c: a thread reads requests, for a long prompt takes a while to become tokens ---- */
void reader_start(struct service *);
/* Hands it one; needs the lock. False: enough of them wait already. */
bool reader_put(struct call *);
void reader_stop(struct service *);

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

/* ---- listen.c: a socket that listens. Port 0 takes one that is free. ---- */
struct listening {
    int fd, port;
    bool local; /* at an address of this machine alone */
};
struct listening listen_open(const char *host, int port);
/* It is a loopback address. */
bool listen_is_local(const struct sockaddr *);

/* ---- connections.c: who is connected, and until when ---- */
struct connection;
/* Starts the thread that closes connections whose time is over. */
void connections_start(struct service *);
void connections_stop(struct service *);
/* As libmicrohttpd wants it; data: the service. */
void connections_notify(void *data, struct MHD_Connection *, void **own, enum MHD_ConnectionNotificationCode);
/* It is closed unless it gets on within these seconds; 0: no deadline. Needs the lock. */
void connection_set_deadline(struct connection *, double seconds);
/* Sends a whole reply directly, while libmicrohttpd sends nothing. The caller closes the connection. */
void connection_refuse(struct connection *, struct refusal);
/* The client of a suspended call will take no answer. One that has only ended its own side takes it: it is probed. Needs the lock. */
bool connection_is_gone(struct call *);

/* ---- origin.c: which pages of a browser may use the server ---- */
/* Why a request is refused, in the arena; host, origin: headers; NULL: not given. */
const char *origin_fault(struct arena *, const struct service *, const char *host, const char *origin);
/* What it may be told that other pages may read the answer: the origin, "*", or NULL: nothing. */
const char *origin_allowed(const struct service *, const char *origin);
/* An origin that --cors names. */
bool origin_is_valid(const char *);

/* ---- keys.c: who may use the server ---- */
struct keys;
/* Of a file with a key on each line, which only its owner may use. */
struct keys *keys_read(struct arena *, const char *path);
/* authorization: the header; NULL: not given. */
bool keys_admit(const struct keys *, const char *authorization);

/* ---- access.c: a line for each request, with -v ---- */
void access_begin(struct call *, const char *method, const char *path);
/* Once it is answered, or its client has gone. Needs the lock. */
void access_tell(const struct call *);

/* ---- page.c: the web client ---- */
struct page_file {
    const char *path, *type;
    const char *const *line; /* NULL ends */
};
/* NULL: the path is none of its files. */
const struct page_file *page_named(const char *path);
const char *page_text(struct arena *, const struct page_file *);

/* ---- http.c ---- */
struct MHD_Daemon *http_start(struct service *, int listening);
void http_stop(struct MHD_Daemon *);

/* ---- doors.c: all that clients see of a server ---- */
struct doors {
    struct MHD_Daemon *daemon;
    int port;
};
/* From now on requests come. */
struct doors doors_open(struct service *, const struct serve_options *);
/* Where the server is, and what it makes. */
void doors_tell(struct arena *, const struct service *, const struct doors *);
/* Once no text is made any more. */
void doors_close(struct service *, struct doors *);

/* ---- engine.c ---- */
/* Decodes until the service ends. Every rank calls it; service NULL but on rank 0, embedder where there are embeddings. rows: in groups
 * that take turns; pipeline NULL: there are no stages, and one group. */
void engine_run(struct comm *, struct pipeline *, int groups, struct rows **rows, struct embedder *, struct service *);

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

/* ---- front.c: the supervisor ---- */
/* Serves until a request to end, with a job that it starts. The service is prepared, and knows nothing of the model. Exit status. */
int front_run(struct arena *, struct service *, const struct serve_options *, struct supervisor *);

/* ---- back.c: rank 0 of such a job ---- */
/* From now on texts come from the supervisor. repeats: those that go on make their tokens again. */
void back_open(struct service *, bool repeats);
void back_close(void);
/* As the functions of call.c, of calls of the supervisor. All need the lock. */
bool back_add_token(struct choice *, int64_t token, const struct logprobs *, enum form_state);
void back_add_prompt_scores(struct choice *, const struct logprobs *, int64_t n);
void back_resume(struct call *);

#endif
