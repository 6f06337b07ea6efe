/* comm: the ranks of a run and their exchange of byte blocks: one rank alone, threads of one process, or MPI processes. */
#ifndef TPC_RUN_COMM_H
#define TPC_RUN_COMM_H

#include "algebra/algebra.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- buffer.c: one block that only grows; growing discards the content ------------------------------------------------ */
struct buffer {
    struct arena *arena;
    void *at;
    size_t bytes;
    bool huge; /* on huge pages: the whole buffer is used */
};
void *buffer_reserve(struct buffer *, size_t bytes);
void buffer_free(struct buffer *);

/* ---- communicators ---------------------------------------------------------------------------------------------------- */
struct block {
    void *at;
    int64_t bytes;
};
struct comm {
    int rank, size;
    int local_size; /* ranks on this machine */
    /* The current collective, set by the caller: its number in file order, and its name for messages. Ranks with different numbers fail
     * with both names. */
    int64_t id;
    const char *name;
    int64_t bytes_sent;   /* to other ranks, since the start */
    const char *kind;     /* "self", "local", "mpi" */
    const char *unshared; /* why ranks of one machine share no memory; NULL: they do, or need not */
    bool polls;           /* a waiting rank keeps its core busy */
    bool overlaps;        /* exchanges are messages that proceed while a rank computes; a thread may send them */
    bool behind;          /* such a thread is sending, and other threads look for stopped ranks */
    atomic_bool naps;     /* it sleeps between polls, because its rank computes */
    enum wire wire;       /* type of float32 addends in the messages of the current collective: set by the caller, like its number */
    double timeout;       /* seconds that a stopped rank is tolerated while others wait for it; 0: for ever. Under MPI, for all ranks */
    void *state;
    /* Each of these blocks until it is done on this rank. */
    void (*barrier)(struct comm *);
    /* Every rank contributes bytes[rank]; at: the blocks of all ranks in order; this rank's block is already in place. */
    void (*allgatherv)(struct comm *, void *at, const int64_t *bytes);
    /* y = sum/max/min/prod of every rank's x, n elements, in rank order, at least in f32. x and y don't overlap. */
    void (*allreduce)(struct comm *, const void *x, void *y, int64_t n, enum dtype, enum redop);
    void (*broadcast)(struct comm *, void *at, int64_t bytes, int root);
    /* send[r], set by the caller, is sent to rank r; out = sum/max/min/prod of the n elements received from every rank. */
    void (*reduce_scatter)(struct comm *, void *out, int64_t n, enum dtype, enum redop);
    /* send[r] is sent to rank r and recv[r] is received from it; the caller sets both. */
    void (*alltoall)(struct comm *);
    /* The primitive of all collectives: sends send[r] to rank r and receives recv[r].bytes from it (both have an entry for this rank).
     * seen[r] points to the received block: at recv[r].at, or in the sender's memory. Until done(), no sent block may change; after it,
     * seen blocks may not be read. */
    void (*exchange)(struct comm *, const struct block *send, const struct block *recv, const void **seen);
    void (*done)(struct comm *);
    /* Ordered messages from one rank to another. send_message returns at once: `at` may change. receive_message waits for the next message
     * of a rank; it is valid until the buffer's next use. A communicator that sends messages has no other calls between its first message
     * and its free. NULL: one rank. */
    void (*send_message)(struct comm *, int to, const void *at, int64_t bytes);
    void *(*receive_message)(struct comm *, int from, struct buffer *, int64_t *bytes);
    /* A communicator for the ranks that pass the same color, in the order of their ranks. All ranks call it, and all free the result before
     * this communicator. */
    struct comm *(*split)(struct comm *, int color);
    /* For a rank that waits by other means: looks periodically for stopped ranks. in: a wait for this begins; NULL: it continues. */
    void (*look)(struct comm *, const char *in);
    /* Whether another rank has stopped: the sentence says which. Any thread may call it; only rank 0 knows about all ranks. NULL: ranks are
     * not watched. */
    bool (*silent)(const struct comm *, char *sentence, size_t room);
    /* From now on, a rank that is stopped for 2 s ends the job. NULL: ranks are not watched. */
    void (*insist)(struct comm *);
    __attribute__((noreturn)) void (*abort)(struct comm *, int status);
    void (*free)(struct comm *);
    /* For several machines with equal numbers of ranks: the ranks on this machine; the ranks with the same index on each machine. NULL: one
     * machine, or unequal numbers. */
    struct comm *host, *across;
    int64_t step;              /* bytes from each rank per exchange; 0: any number */
    struct buffer *scratch;    /* grows only */
    struct block *send, *recv; /* [size], set by the caller of an exchange */
    struct block *rest;        /* [size]: what a reduce_scatter still has to send */
    const void **seen;
};
struct comm *comm_self(void);
/* Runs body(comm, data) on `size` threads of this process; returns when all are done. */
void comm_local_run(int size, void (*body)(struct comm *, void *), void *data);
/* NULL: built without MPI. The caller detects a launcher that started the processes as separate singletons (size 1). */
struct comm *comm_mpi(int *argc, char ***argv);
/* The linked MPI library, one line; NULL: built without MPI. Needs no initialisation. */
const char *comm_mpi_library(void);
/* The MPI library of the build: "Open MPI", "MPICH" or "MPI"; NULL: built without. Callers need not link it. */
const char *comm_mpi_kind(void);
/* MPI was started and has not been finalised. */
bool comm_mpi_lives(void);

enum { COMM_TIMEOUT = 300 };           /* the default */
enum { COMM_SHORT_BYTES = 16 * 1024 }; /* up to this size all ranks exchange everything: one latency instead of two */

/* ---- barrier.c: of threads, or of processes that share its memory ------------------------------------------------------- */
struct arrival {
    atomic_uint phase;   /* the phase in which its rank arrived */
    atomic_int sleepers; /* ranks that sleep until it arrives, or are about to */
};
struct meeting { /* for more ranks than cores */
    _Alignas(64) struct arrival last;
    atomic_int arrived;
};
/* A rank's view. Everything that it points to is shared by all ranks, and initially zero. */
struct barrier {
    int rank, size;
    bool crowded, processes; /* more ranks than cores; not threads of one process */
    unsigned phase;
    struct meeting *meeting;
    struct arrival **of[2]; /* in odd and even phases, by rank; both may be the same */
};
bool barrier_crowded(int ranks);
/* look: called periodically while it sleeps; NULL: nothing to look for. */
struct barrier_look {
    void (*look)(void *);
    void *data;
};
void barrier_wait(struct barrier *, const struct barrier_look *);

/* ---- behind.c: collectives that run while a rank computes ------------------------------------------------------------------ */
struct behind;
/* Until all are done, no other code may use the communicator. */
struct behind *behind_start(struct arena *, struct comm *);
/* Returns the number of the task. All ranks add the same tasks in the same order. */
int64_t behind_add(struct behind *, void (*work)(struct comm *, void *), void *data);
/* Waits until this task and earlier ones are done. in: for messages. */
void behind_wait(struct behind *, int64_t number, const char *in);
/* Whether tasks run before they are waited for. */
bool behind_goes_on(const struct behind *);
void behind_end(struct behind *);

/* ---- shared_segments.c: memory that the processes of one machine share ----------------------------------------------------------- */
/* A segment of each rank, by rank: `bytes` zero bytes, page-aligned. NULL, on all ranks, if some rank cannot take part or has
 * TPC_MESSAGES=1; *why is the reason. All ranks call it; they must be on one machine. */
char **shared_segments_make(struct arena *, struct comm *, size_t bytes, const char **why);
void shared_segments_free(char **segment, int ranks, size_t bytes);

/* ---- shared_memory.c: exchanges of processes that share memory ------------------------------------------------------------------ */
struct shared;
/* Size of every rank's segment. */
size_t shared_segment_bytes(int size);
/* segment: by rank, its address in this process, a multiple of 128. Each rank prepares its own; the others wait, by other means, until it
 * returns. */
struct shared *shared_new(struct arena *, char **segment, int rank, int size, bool crowded, struct barrier_look);
void shared_barrier(struct shared *);
/* Like the communicator's exchange. */
void shared_exchange(struct shared *, struct comm *, const struct block *send, const struct block *recv, const void **seen);
enum { SHARED_STEP_BYTES = 1 << 19 }; /* larger blocks of one rank take several steps */

/* ---- copier.c: copies into memory that other cores read ------------------------------------------------------------------------- */
enum { COPIER_SIZES = 3 };
struct copier {
    double cost[COPIER_SIZES][2]; /* seconds per byte, by size: through the cache, and non-temporal; 0: not known */
    unsigned copies;
};
/* to: aligned to 16 bytes. */
void copier_copy(struct copier *, void *to, const void *from, size_t bytes);

/* ---- even shares ---------------------------------------------------------------------------------------------------------------- */
/* Of n elements split evenly over `size` ranks: the number before rank r's. */
static inline int64_t comm_share_start(int64_t n, int size, int r)
{
    int64_t q = n / size, m = n % size;
    return q * r + (r < m ? r : m);
}
/* Rank r's share of n elements of elem_bytes each, starting at `at`. */
static inline struct block comm_share(const struct comm *c, const void *at, int64_t n, int64_t elem_bytes, int r)
{
    int64_t lo = comm_share_start(n, c->size, r);
    return (struct block){(char *)(uintptr_t)at + lo * elem_bytes, (comm_share_start(n, c->size, r + 1) - lo) * elem_bytes};
}

/* ---- collectives.c ------------------------------------------------------------------------------------------------------------ */
/* Sets the collectives of *c, which use its exchange, and allocates its scratch. For makers of communicators. */
void comm_setup(struct comm *, struct arena *);
void comm_release(struct comm *);
/* The collectives of one machine. */
void comm_allreduce(struct comm *, const void *x, void *y, int64_t n, enum dtype, enum redop);
void comm_reduce_scatter(struct comm *, void *out, int64_t n, enum dtype, enum redop);
/* Every rank has its own share in place; afterwards every rank has all shares. */
void comm_gather_shares(struct comm *, void *at, int64_t n, int64_t elem_bytes);
/* Gathers one block of `bytes` bytes per rank, in rank order. name: for messages, like comm->name. */
void *comm_gather(struct comm *, struct arena *, const char *name, const void *own, size_t bytes);
/* Gathers the texts of all ranks, concatenated; *bytes: their lengths. */
char *comm_gather_texts(struct comm *, struct arena *, const char *name, const char *own, int64_t **bytes);
/* Broadcasts rank 0's bytes. */
void comm_from_first(struct comm *, const char *name, void *at, int64_t bytes);
/* The maximum over all ranks. */
double comm_slowest(struct comm *, double seconds);
/* machines.c: gives a communicator the collectives of several machines, if they have equal numbers of ranks, in consecutive order. machine:
 * the lowest rank on this machine. All ranks call both. */
void machines_setup(struct comm *, int machine);
void machines_release(struct comm *);
/* comm_wire.c: shorter messages for sums. */
bool comm_wire_shortens(const struct comm *, enum dtype, enum redop);
/* Like the communicator's reduce_scatter and comm_gather_shares. */
void comm_wire_reduce_scatter(struct comm *, float *out, int64_t n);
void comm_wire_gather_shares(struct comm *, float *at, int64_t n);
/* Encodes n floats into sum_wire_bytes; decodes floats lo to lo + m of them; lo: a multiple of SUM_WIRE_BLOCK. Not WIRE_F32. */
void comm_wire_encode(enum wire, const float *x, int64_t n, void *code);
void comm_wire_decode(enum wire, const void *code, int64_t n, int64_t lo, int m, float *x);
/* reduce.c: out = in[0] op in[1] op ... in this order, n elements; at least float32 for floats. out may be one of in. */
void comm_reduce(void *out, const void *const *in, int nin, int64_t n, enum dtype, enum redop);
/* room.c: fails if the ranks of this machine cannot allocate this much memory for the named purpose. Less than 1 MiB per rank is not
 * checked. */
struct room_need {
    int64_t own, mapped, resident; /* bytes of a process's own memory; of mapped files; of both that must be in memory */
    int64_t held;                  /* bytes of its own memory that a rank frees before it allocates these */
};
void room_check(const struct comm *, const char *path, const char *what, struct room_need);
/* Bytes of memory that are available to this rank. */
int64_t room_left(const struct comm *);
/* connections.c: a connection of every rank with rank 0. All ranks exchange offers by messages; a thread then tries to connect from time to
 * time. near: all are on this machine. of: file descriptors by rank, -1: none yet. */
struct connections;
struct connections *connections_offer(struct arena *, struct comm *, bool near);
bool connections_try(struct connections *, int *of);
void connections_end(struct connections *);
/* watch.c: detects that another rank has stopped, or that its host has vanished, while this one waits. */
struct watch;
struct watch_wait {
    int64_t number; /* of the collective in progress */
    const char *in; /* its name; NULL: a barrier */
    bool step;      /* it belongs to a graph, in which no rank is expected to be late */
    double limit;   /* seconds that a rank may be stopped; 0: for ever */
};
/* All ranks call it; host: the name of this rank's. speaks: a rank that ended silently is reported as soon as that is known, and soon ends
 * the program. Otherwise the rank that looks fails. */
struct watch *watch_start(struct arena *, struct comm *, const char *host, bool speaks);
/* Before this process ends by a failure or a signal: the others then do not report it. Safe in a signal handler; takes less than a
 * second. */
void watch_leave(void *watch);
/* Reports a stopped rank, and fails at the limit. Fails at once for a connection that has failed. Looks once a second, however often it is
 * called. */
void watch_look(struct watch *, const struct watch_wait *);
/* Whether a connected rank has been stopped for some seconds, or has ended; the sentence says which. Any thread may call it. */
bool watch_finds_silent(const struct watch *, char *sentence, size_t room);
/* From now on, such a rank ends the program after 2 s. */
void watch_insist(struct watch *);
void watch_stop(struct watch *);

#endif
