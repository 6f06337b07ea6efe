/* supervise: a job that starts again when a part of it is lost (tpc-run --restart). The supervisor starts the job as a separate program and
 * is not a rank. Both sides exchange messages and heartbeats over the standard streams of rank 0, which every launcher forwards. */
#ifndef TPC_SUPERVISE_H
#define TPC_SUPERVISE_H

#include "base/base.h"

/* ---- message.c: messages in a stream of text ---- */
struct message_data {
    const char *at;
    size_t n;
};
/* A growable text. */
struct message_text {
    struct arena *arena;
    VEC(char) to;
};
void message_put(struct message_text *, const void *, size_t);
struct message_data message_bytes(const struct message_text *);
enum message_kind {
    MESSAGE_BEAT,
    MESSAGE_READY, /* from a job: it is working */
    MESSAGE_LOST,  /* from a job: it is about to fail */
    MESSAGE_END,   /* to a job: end in order, like SIGTERM */
    MESSAGE_OWN    /* first of the user's kinds */
};
enum { MESSAGE_MOST = 1 << 28 }; /* bytes of one */
struct message {
    int kind;
    struct message_data data;
};
/* The sent form: a line of its own, amid any text. */
const char *message_line(struct arena *, int kind, struct message_data data);
/* Input in pieces. take: gets messages; other: other text; false: a broken message. */
struct message_stream {
    struct message_text line;
    bool within;
};
bool message_take(struct message_stream *, struct message_data part, void (*take)(void *, const struct message *),
                  void (*other)(void *, struct message_data), void *data);

/* ---- cursor.c: consecutive values of a message. A cursor that reads past the end gives zeros, and is bad from then on. ---- */
struct cursor {
    struct message_data left;
    bool bad;
};
void cursor_read(struct cursor *, void *to, size_t n);
int64_t cursor_number(struct cursor *);
/* A count of items of `each` bytes, which follow it; 0 and bad if they do not. */
int64_t cursor_count(struct cursor *, size_t each);
/* The next n bytes, in the arena, aligned. */
void *cursor_copy(struct cursor *, struct arena *, size_t n);

/* ---- family.c ---- */
struct family {
    int n, *pid;
};
/* All living descendants of this process. */
struct family family_find(struct arena *);

/* ---- program.c: the job's processes ---- */
struct program {
    int pid;     /* 0: not running */
    int in, out; /* its standard streams */
    struct arena *arena;
    VEC(char *) shared; /* files of /dev/shm that its processes map */
};
/* Runs a shell command in a process group of its own. */
struct program program_start(const char *command);
/* Notes the memory that its processes share: a killed process leaves it behind. */
void program_note_files(struct program *);
/* Ends it with all its descendants, also detached ones, and removes the noted files. asks: it may first end its processes on other hosts
 * itself. */
void program_end(struct program *, bool asks);
/* The same for a program that leaves nothing behind. */
void program_close(struct program *);
/* Whether it has ended by itself; *status: as in wait. */
bool program_has_ended(struct program *, int *status);
/* As words. */
const char *program_status(struct arena *, int status);

/* ---- supervisor.c ---- */
enum supervision { SUPERVISE_STARTS, SUPERVISE_RUNS, SUPERVISE_RESTARTS };
struct supervisor {
    /* Set by the starter: the shell command; start: 0 for the first time. */
    const char *(*command)(void *start_of, struct arena *, int start);
    void *start_of;
    bool launched;  /* a launcher starts the ranks */
    int64_t most;   /* restarts... */
    double seconds; /* ... in this time */
    /* Set by the user. The first two are called in a separate thread. */
    void (*take)(void *own, const struct message *); /* NULL: the job sends only that it is ready */
    void (*other)(void *own, struct message_data);   /* its other output */
    void (*lost)(void *own);                         /* NULL: nothing to do */
    bool (*tend)(void *own);                         /* waits a moment, and sends; true: end the job in order */
    void *own;
    double end_within; /* seconds for a job to end in order */
    bool endless;      /* a job that ends by itself is lost, even in order */
    /* Kept: */
    pthread_mutex_t lock; /* of the members below, which any thread may read; initialised by PTHREAD_MUTEX_INITIALIZER */
    enum supervision state;
    int restarts;
    char why[256]; /* of the last restart */
    /* Used only by the supervisor's thread: */
    struct program program;
    double *begun; /* times of the last `most` restarts */
    struct message_text unsent;
};
/* Runs the job to its end, and returns its exit status: 0 if it was asked to end, 1 if it would need more restarts than allowed. A failed
 * first start is final. */
int supervisor_run(struct supervisor *);
/* In the supervisor's thread. */
void supervisor_send(struct supervisor *, int kind, struct message_data data);
/* State, restarts and reason. why: at least 256 bytes; NULL: not needed. */
enum supervision supervisor_state(struct supervisor *, int *restarts, char *why);
const char *supervisor_word(enum supervision);

/* ---- supervised.c: rank 0 of the job ---- */
/* Starts a thread that sends heartbeats and receives messages. */
void supervised_start(void);
bool supervised_is(void);
/* From now on messages go to `take`, in that thread, and `tell` is called with each heartbeat. NULL: ignored. */
void supervised_listen(void (*take)(void *, const struct message *), void (*tell)(void *), void *data);
/* Does nothing if the job is not supervised. */
void supervised_send(int kind, struct message_data data);

#endif
