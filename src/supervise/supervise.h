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
    MESSAGE_BEAT,  /* from a job: the process of rank 0 */
    MESSAGE_READY, /* from a job: it is working */
    MESSAGE_LOST,  /* from any rank of a job: it is about to fail: exit status and sentence */
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
bool family_has(int pid);
bool family_member_ended(int pid);

/* ---- program.c: the job's processes ---- */
struct program {
    int pid;     /* 0: not running */
    int error;   /* errno, if it could not be started */
    int in, out; /* its standard streams */
    struct arena *arena;
    VEC(char *) shared; /* files of /dev/shm that its processes map */
};
/* Runs a shell command in a process group of its own. If it could not be started, pid is 0 and error is set. */
struct program program_start(const char *command);
/* Notes the memory that its processes share: a killed process leaves it behind. */
void program_note_files(struct program *);
/* Ends it with all its descendants, also detached ones, and removes the noted files. WAIT and ASK give it a moment to end its processes on
 * other hosts first; ASK sends it SIGTERM, which makes Open MPI's launcher crash if it is ending already. */
enum program_end { PROGRAM_KILL, PROGRAM_WAIT, PROGRAM_ASK };
void program_end(struct program *, enum program_end);
/* The same for a program that leaves nothing behind. */
void program_close(struct program *);
/* Whether it has ended by itself; *status: as in wait. */
bool program_has_ended(struct program *, int *status);
/* As words. */
const char *program_status(struct arena *, int status);

/* ---- life.c: a thread that receives what a running program sends ---- */
struct life {
    struct arena *arena;
    int out;
    /* Called in the thread. take: gets messages; NULL: good, else the reason why the job is lost. other: other output. */
    const char *(*take)(void *own, const struct message *);
    void (*other)(void *own, struct message_data text);
    void *own;
    /* Kept: */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    double heard, fails;  /* times of the last heartbeat and of the first MESSAGE_LOST; 0: none yet */
    bool ready, over;
    int pid;                      /* of rank 0, on its host */
    int status;                   /* exit status of MESSAGE_LOST */
    char said[DIAG_SAID];         /* sentence of the first MESSAGE_LOST that has one */
    const char *bad;              /* reason why a message is unusable; NULL: none */
    struct message_stream stream; /* of the thread */
};
struct life_signs {
    double heard, fails;
    bool ready;
    int pid, status;
    const char *bad, *said; /* as of life */
};
/* Starts the thread. False: failed. */
bool life_hear(struct life *);
struct life_signs life_look(struct life *);
/* After the end of the program: reads its last messages, and closes its stream. True: it was ready. */
bool life_end(struct life *);

/* ---- supervisor.c ---- */
enum supervision { SUPERVISE_STARTS, SUPERVISE_RUNS, SUPERVISE_RESTARTS };
struct supervisor {
    /* Set by the starter: the shell command; start: 0 for the first time. NULL: there is none, for the reason *why. */
    const char *(*command)(void *start_of, struct arena *, int start, const char **why);
    void *start_of;
    bool launched;  /* a launcher starts the ranks */
    int64_t most;   /* restarts... */
    double seconds; /* ... in this time */
    /* Set by the user. The first two are called in a separate thread. */
    const char *(*take)(void *own, const struct message *); /* NULL: the job sends only that it is ready. Returns as life.take */
    void (*other)(void *own, struct message_data);          /* its other output */
    void (*lost)(void *own);                                /* NULL: nothing to do */
    bool (*tend)(void *own);                                /* waits a moment, and sends; true: end the job in order */
    void *own;
    double end_within; /* seconds for a job to end in order */
    bool endless;      /* a job that ends by itself is lost, even in order */
    /* Kept: */
    pthread_mutex_t lock; /* of the members below, which any thread may read; initialised by PTHREAD_MUTEX_INITIALIZER */
    enum supervision state;
    int restarts;
    char why[DIAG_SAID]; /* of the last restart */
    /* Used only by the supervisor's thread: */
    struct program program;
    bool asked;     /* to end */
    bool served;    /* the last program was ready */
    double slowest; /* start, in seconds to the first heartbeat */
    double *begun;  /* times of the last `most` restarts */
    struct message_text unsent;
};
/* Runs the job to its end, and returns its exit status: 0 if it was asked to end, 1 if it would need more restarts than allowed. A failed
 * first start is final. */
int supervisor_run(struct supervisor *);
/* In the supervisor's thread. */
void supervisor_send(struct supervisor *, int kind, struct message_data data);
/* In the supervisor's thread, while a command is prepared: waits a moment. True: the job is to end. */
bool supervisor_rest(struct supervisor *);
/* State, restarts and reason. why: DIAG_SAID bytes; NULL: not needed. */
enum supervision supervisor_state(struct supervisor *, int *restarts, char *why);
const char *supervisor_word(enum supervision);

/* ---- supervised.c: the ranks of the job ---- */
/* From now on a failure is reported to the supervisor. first: rank 0, which gets a thread that sends heartbeats and receives messages. */
void supervised_start(bool first);
/* This is rank 0 of a supervised job. */
bool supervised_is(void);
/* From now on messages go to `take`, in that thread, and `tell` is called with each heartbeat. NULL: ignored. */
void supervised_listen(void (*take)(void *, const struct message *), void (*tell)(void *), void *data);
/* Nothing where this is not rank 0 of a supervised job. */
void supervised_send(int kind, struct message_data data);

#endif
