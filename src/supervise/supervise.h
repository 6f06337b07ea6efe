/* supervise: a job that starts again when a part of it is lost (tpc-run --restart). The supervisor starts the job as a program of its own
 * and is no rank of it. Each side sends messages to the other, and beats where it has nothing to say: over the standard streams of rank 0,
 * which every launcher passes on. */
#ifndef TPC_SUPERVISE_H
#define TPC_SUPERVISE_H

#include "base/base.h"

/* ---- message.c: messages in a stream of text ---- */
struct message_data {
    const char *at;
    size_t n;
};
/* Bytes that grow. */
struct message_text {
    struct arena *arena;
    VEC(char) to;
};
void message_put(struct message_text *, const void *, size_t);
struct message_data message_bytes(const struct message_text *);
enum message_kind {
    MESSAGE_BEAT,
    MESSAGE_READY, /* of a job: it does what it is for */
    MESSAGE_LOST,  /* of a job: it is about to end with a failure */
    MESSAGE_END,   /* to a job: end in order, as SIGTERM asks for */
    MESSAGE_OWN    /* first of those of the user of this layer */
};
enum { MESSAGE_MOST = 1 << 28 }; /* bytes of one */
struct message {
    int kind;
    struct message_data data;
};
/* As it is sent: a line of its own, wherever it comes in other text. */
const char *message_line(struct arena *, int kind, struct message_data data);
/* What came in parts. take: gets messages; other: other text; false: a message is broken. */
struct message_stream {
    struct message_text line;
    bool within;
};
bool message_take(struct message_stream *, struct message_data part, void (*take)(void *, const struct message *),
                  void (*other)(void *, struct message_data), void *data);

/* ---- cursor.c: values in a message, one behind another. A cursor that reads beyond the end gives zeros, and is bad from then on. ---- */
struct cursor {
    struct message_data left;
    bool bad;
};
void cursor_read(struct cursor *, void *to, size_t n);
int64_t cursor_number(struct cursor *);
/* A count of things of so many bytes, which lie behind it; 0 and bad if they do not. */
int64_t cursor_count(struct cursor *, size_t each);
/* The next n bytes, in the arena, aligned. */
void *cursor_copy(struct cursor *, struct arena *, size_t n);

/* ---- family.c ---- */
struct family {
    int n, *pid;
};
/* All living processes that this one is an ancestor of. */
struct family family_find(struct arena *);

/* ---- program.c: the job's processes ---- */
struct program {
    int pid;     /* 0: it does not run */
    int in, out; /* its standard streams */
    struct arena *arena;
    VEC(char *) shared; /* files of /dev/shm that its processes map */
};
/* Runs a command of the shell in a process group of its own. */
struct program program_start(const char *command);
/* Notes the memory that its processes share: one that is killed leaves it behind. */
void program_note_files(struct program *);
/* Ends it with all that it started, also what has left it behind, and removes what was noted. asks: it may first end its processes on other
 * hosts itself. */
void program_end(struct program *, bool asks);
/* The same of one that leaves nothing behind. */
void program_close(struct program *);
/* Whether it has ended by itself; *status: as of wait. */
bool program_has_ended(struct program *, int *status);
/* In words. */
const char *program_status(struct arena *, int status);

/* ---- supervisor.c ---- */
enum supervision { SUPERVISE_STARTS, SUPERVISE_RUNS, SUPERVISE_RESTARTS };
struct supervisor {
    /* Given by who starts it: the command, of the shell; start: 0 for the first time. */
    const char *(*command)(void *start_of, struct arena *, int start);
    void *start_of;
    bool launched;  /* a launcher starts the ranks */
    int64_t most;   /* restarts... */
    double seconds; /* ... in this time */
    /* Given by who needs it. The first two are called in a thread of their own. */
    void (*take)(void *own, const struct message *); /* NULL: the job says nothing but that it is ready */
    void (*other)(void *own, struct message_data);   /* what it prints besides */
    void (*lost)(void *own);                         /* NULL: nothing is to be done */
    bool (*tend)(void *own);                         /* waits a moment, and sends; true: the job is to end in order */
    void *own;
    double end_within; /* seconds that a job has to end in order */
    bool endless;      /* a job that ends by itself is lost, even in order */
    /* Kept: */
    pthread_mutex_t lock; /* of what follows, which any thread may read; given as PTHREAD_MUTEX_INITIALIZER */
    enum supervision state;
    int restarts;
    char why[256]; /* of the last one */
    /* Of the supervisor's own thread: */
    struct program program;
    double *begun; /* when the last `most` of them were */
    struct message_text unsent;
};
/* Runs the job to its end, and returns its exit status: 0 where it was asked to end, 1 where more restarts would be needed than are
 * allowed. A first start that fails is the end. */
int supervisor_run(struct supervisor *);
/* In its thread. */
void supervisor_send(struct supervisor *, int kind, struct message_data data);
/* State, restarts and reason. why: of at least 256 bytes; NULL: not asked for. */
enum supervision supervisor_state(struct supervisor *, int *restarts, char *why);
const char *supervisor_word(enum supervision);

/* ---- supervised.c: rank 0 of the job ---- */
/* Starts a thread that beats and hears. */
void supervised_start(void);
bool supervised_is(void);
/* Messages go to `take` from now on, in that thread, and `tell` is called with each beat. NULL: nowhere, nothing. */
void supervised_listen(void (*take)(void *, const struct message *), void (*tell)(void *), void *data);
/* Nothing where the job is not supervised. */
void supervised_send(int kind, struct message_data data);

#endif
