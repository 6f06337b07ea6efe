/* comm: the ranks of a run and how they exchange blocks of bytes: one rank alone, threads of one process, or MPI processes. */
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
    bool huge; /* on huge pages: all of it is used */
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
    /* The current collective, which the caller sets before a call: its number in file order, and its name for messages. Ranks whose
     * numbers differ fail with both names. */
    int64_t id;
    const char *name;
    int64_t bytes_sent;   /* to other ranks, since the start */
    const char *kind;     /* "self", "local", "mpi" */
    const char *unshared; /* why ranks of one machine share no memory; NULL: they do, or there is no need */
    bool polls;           /* a rank that waits keeps its core busy */
    bool overlaps;        /* its exchanges are messages, which go on while a rank computes, and a thread of its own may send them */
    bool behind;          /* such a thread does so now, and others look for ranks that do not run */
    atomic_bool naps;     /* it leaves its core between looks, for its rank computes */
    enum wire wire;       /* what float32 addends of the current collective become on their way: set by the caller, as its number */
    double timeout;       /* seconds for which a rank that others wait for may not run; 0: for ever. Of all ranks, under MPI */
    void *state;
    /* All of these block until done on this rank. */
    void (*barrier)(struct comm *);
    /* Every rank contributes bytes[rank]; at: all ranks' blocks one after another, the own block already in place. */
    void (*allgatherv)(struct comm *, void *at, const int64_t *bytes);
    /* y = sum/max/min/prod of every rank's x, n elements, in rank order, at least in f32. x and y don't overlap. */
    void (*allreduce)(struct comm *, const void *x, void *y, int64_t n, enum dtype, enum redop);
    void (*broadcast)(struct comm *, void *at, int64_t bytes, int root);
    /* send[r], set by the caller, goes to rank r; out = sum/max/min/prod of the n elements that arrive from every rank. */
    void (*reduce_scatter)(struct comm *, void *out, int64_t n, enum dtype, enum redop);
    /* send[r] goes to rank r and recv[r] arrives from it; the caller sets both. */
    void (*alltoall)(struct comm *);
    /* The primitive of all collectives: send[r] goes to rank r, recv[r].bytes arrive from it (both have an entry for the own rank). seen[r]
     * points to what arrived: at recv[r].at, or in the sender's own memory. Until done() no sent block may change; after it, seen blocks
     * may not be read. */
    void (*exchange)(struct comm *, const struct block *send, const struct block *recv, const void **seen);
    void (*done)(struct comm *);
    /* Messages of one rank to another, in their order. The first returns at once: `at` may change. The second waits for the next message of
     * a rank; it is valid until the buffer's next use. A communicator that sends messages has no other calls between its first one and its
     * free. NULL: one rank. */
    void (*send_message)(struct comm *, int to, const void *at, int64_t bytes);
    void *(*receive_message)(struct comm *, int from, struct buffer *, int64_t *bytes);
    /* A communicator for the ranks that pass the same color, in their order here. All ranks call it, and all free the result before this
     * communicator is freed. */
    struct comm *(*split)(struct comm *, int color);
    /* For a rank that waits by other means: looks now and then for ranks that do not run. in: a wait for this begins; NULL: it goes on. */
    void (*look)(struct comm *, const char *in);
    /* Another rank does not run: a sentence says which. Any thread may ask, and only rank 0 knows of all. NULL: none is watched. */
    bool (*silent)(const struct comm *, char *sentence, size_t room);
    /* From now on a rank that does not run for 2 s is the end of the job, whatever this one does. NULL: none is watched. */
    void (*insist)(struct comm *);
    __attribute__((noreturn)) void (*abort)(struct comm *, int status);
    void (*free)(struct comm *);
    /* Of several machines with as many ranks each: those on this one, and those with the same index there. NULL: one machine, or others. */
    struct comm *host, *across;
    int64_t step;              /* bytes from each rank that an exchange brings at once; 0: any */
    struct buffer *scratch;    /* grows only */
    struct block *send, *recv; /* [size], set by the caller of an exchange */
    struct block *rest;        /* [size]: what a reduce_scatter has still to send */
    const void **seen;
};
struct comm *comm_self(void);
/* Runs body(comm, data) on size threads of this process and returns when all are done. */
void comm_local_run(int size, void (*body)(struct comm *, void *), void *data);
/* NULL: built without MPI. The caller detects processes that a launcher started as separate singletons (size 1). */
struct comm *comm_mpi(int *argc, char ***argv);
/* The linked MPI library, one line; NULL: built without MPI. Needs no initialisation. */
const char *comm_mpi_library(void);
/* The MPI library that the build is for: "Open MPI", "MPICH" or "MPI"; NULL: built without. Callers need not be linked with it. */
const char *comm_mpi_kind(void);
/* MPI was started and has not ended. */
bool comm_mpi_lives(void);

enum { COMM_TIMEOUT = 300 };           /* the usual one */
enum { COMM_SHORT_BYTES = 16 * 1024 }; /* up to this size all ranks exchange everything: one latency instead of two */

/* ---- barrier.c: of threads, or of processes that share its memory ------------------------------------------------------- */
struct arrival {
    atomic_uint phase;   /* in which its rank has arrived */
    atomic_int sleepers; /* who waits for it in the kernel, or is about to */
};
struct meeting { /* of more ranks than cores */
    _Alignas(64) struct arrival last;
    atomic_int arrived;
};
/* What a rank knows of it. All that it points to is of all ranks, and zero at the start. */
struct barrier {
    int rank, size;
    bool crowded, processes; /* more ranks than cores; not threads of one process */
    unsigned phase;
    struct meeting *meeting;
    struct arrival **of[2]; /* in odd and even phases, by rank: it may be the same one */
};
bool barrier_crowded(int ranks);
/* look: while it sleeps, now and then; NULL: nothing to look for. */
struct barrier_look {
    void (*look)(void *);
    void *data;
};
void barrier_wait(struct barrier *, const struct barrier_look *);

/* ---- behind.c: collectives that go on while a rank computes ------------------------------------------------------------------ */
struct behind;
/* Nobody else may use the communicator, but when all is done. */
struct behind *behind_start(struct arena *, struct comm *);
/* Returns its number. All ranks add the same, in the same order. */
int64_t behind_add(struct behind *, void (*work)(struct comm *, void *), void *data);
/* Until this one and those before it are done. in: for messages. */
void behind_wait(struct behind *, int64_t number, const char *in);
/* Whether it goes on before it is waited for. */
bool behind_goes_on(const struct behind *);
void behind_end(struct behind *);

/* ---- shared_segments.c: memory that the processes of one machine share ----------------------------------------------------------- */
/* A segment of each rank, by rank: `bytes` bytes, zero, at the beginning of a page. NULL, on all ranks: some rank can't take part, or
 * TPC_MESSAGES is 1 on it; *why says so. All ranks call it; they are on one machine. */
char **shared_segments_make(struct arena *, struct comm *, size_t bytes, const char **why);
void shared_segments_free(char **segment, int ranks, size_t bytes);

/* ---- shared_memory.c: exchanges of processes that share memory ------------------------------------------------------------------ */
struct shared;
/* What every rank brings to it. */
size_t shared_segment_bytes(int size);
/* segment: of each rank, where this one sees it, at a multiple of 128. Each rank prepares its own: the others wait, by other
 * means, until it is back. */
struct shared *shared_new(struct arena *, char **segment, int rank, int size, bool crowded, struct barrier_look);
void shared_barrier(struct shared *);
/* As the communicator's exchange. */
void shared_exchange(struct shared *, struct comm *, const struct block *send, const struct block *recv, const void **seen);
enum { SHARED_STEP_BYTES = 1 << 19 }; /* more than this from one rank takes more than one step */

/* ---- copier.c: copies into memory that other cores read ------------------------------------------------------------------------- */
enum { COPIER_SIZES = 3 };
struct copier {
    double cost[COPIER_SIZES][2]; /* seconds a byte, by size: through the cache, and around it; 0: not known */
    unsigned copies;
};
/* to: aligned to 16 bytes. */
void copier_copy(struct copier *, void *to, const void *from, size_t bytes);

/* ---- collectives.c ------------------------------------------------------------------------------------------------------------ */
/* Sets the collectives of *c, which use its exchange, and allocates its scratch. Called by the makers of communicators. */
void comm_setup(struct comm *, struct arena *);
void comm_release(struct comm *);
/* The collectives of one machine. */
void comm_allreduce(struct comm *, const void *x, void *y, int64_t n, enum dtype, enum redop);
void comm_reduce_scatter(struct comm *, void *out, int64_t n, enum dtype, enum redop);
/* n elements are split evenly over `size` ranks: how many come before rank r. */
int64_t comm_share_start(int64_t n, int size, int r);
/* Rank r's share of n elements of elem_bytes each from `at` on. */
struct block comm_share(const struct comm *, const void *at, int64_t n, int64_t elem_bytes, int r);
/* Every rank has its own share in place; afterwards it has all shares. */
void comm_gather_shares(struct comm *, void *at, int64_t n, int64_t elem_bytes);
/* One block of `bytes` bytes of each rank, in their order. name: for messages, as comm->name. */
void *comm_gather(struct comm *, struct arena *, const char *name, const void *own, size_t bytes);
/* The texts of all ranks, one after another; *bytes: their lengths. */
char *comm_gather_texts(struct comm *, struct arena *, const char *name, const char *own, int64_t **bytes);
/* Rank 0's bytes, for all. */
void comm_from_first(struct comm *, const char *name, void *at, int64_t bytes);
/* The longest time of any rank. */
double comm_slowest(struct comm *, double seconds);
/* machines.c: gives a communicator the collectives of several machines, if there are several with as many ranks each, one after another.
 * machine: the lowest rank on this one. All ranks call both. */
void machines_setup(struct comm *, int machine);
void machines_release(struct comm *);
/* comm_wire.c: shorter messages for sums. */
bool comm_wire_shortens(const struct comm *, enum dtype, enum redop);
/* As the communicator's reduce_scatter and comm_gather_shares. */
void comm_wire_reduce_scatter(struct comm *, float *out, int64_t n);
void comm_wire_gather_shares(struct comm *, float *at, int64_t n);
/* n floats into sum_wire_bytes, and floats lo to lo + m of them back; lo: a multiple of SUM_WIRE_BLOCK. Not WIRE_F32. */
void comm_wire_encode(enum wire, const float *x, int64_t n, void *code);
void comm_wire_decode(enum wire, const void *code, int64_t n, int64_t lo, int m, float *x);
/* reduce.c: out = in[0] op in[1] op ... in this order, n elements; at least float32 for floats. out may be one of in. */
void comm_reduce(void *out, const void *const *in, int nin, int64_t n, enum dtype, enum redop);
/* room.c: fails if the ranks of this machine cannot take this memory for what is named. Less than 1 MiB on a rank is not checked. */
struct room_need {
    int64_t own, mapped, resident; /* bytes of a process's own memory, of mapped files, and of both that must be in memory */
    int64_t held;                  /* bytes of its own memory that a rank has now and frees before it takes these */
};
void room_check(const struct comm *, const char *path, const char *what, struct room_need);
/* Bytes of memory that are available to this rank. */
int64_t room_left(const struct comm *);
/* connections.c: a connection of every rank with rank 0. All ranks offer theirs, which sends messages; a thread then tries now and then.
 * near: all are on this machine. of: file descriptors by rank, -1 where there is none yet. */
struct connections;
struct connections *connections_offer(struct arena *, struct comm *, bool near);
bool connections_try(struct connections *, int *of);
void connections_end(struct connections *);
/* watch.c: sees that another rank does not run, or that its host has vanished, while this one waits. */
struct watch;
struct watch_wait {
    int64_t number; /* of the collective that waits */
    const char *in; /* its name; NULL: a barrier */
    bool step;      /* it belongs to a graph: no rank is expected to be late */
    double limit;   /* seconds for which a rank may not run; 0: it may for ever */
};
/* All ranks call it; host: the name of this rank's. speaks: a rank that ended without a word is told of as soon as that is known, and soon
 * ends the program. Otherwise that is a failure of who looks. */
struct watch *watch_start(struct arena *, struct comm *, const char *host, bool speaks);
/* Before this process ends by a failure or a signal: the others need not tell of it. May be called in a signal handler; takes less than a
 * second. */
void watch_leave(void *watch);
/* A rank that does not run is told of, and is a failure at the limit. So is at once a connection that has failed. Looks once a second,
 * however often it is called. */
void watch_look(struct watch *, const struct watch_wait *);
/* A rank that has been heard of has not run for some seconds, or has ended: a sentence says which. Any thread may ask. */
bool watch_finds_silent(const struct watch *, char *sentence, size_t room);
/* From now on such a rank ends the program, after 2 s. */
void watch_insist(struct watch *);
void watch_stop(struct watch *);

#endif
