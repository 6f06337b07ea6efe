/* api: the library (tpc.h): sessions whose ranks are threads or this process of an MPI job, and failures that do not end the program. */
#ifndef TPC_API_H
#define TPC_API_H

#include "api/tpc.h"
#include "decode/decode.h"

#include <pthread.h>

/* ---- error.c: the status of a call, and its sentence ---- */
int error_invalid(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Of a failed scope. Wrong usage is TPC_INVALID. */
int error_of_scope(const struct scope *);
int error_memory(void);

/* ---- crew.c: ranks that wait for orders ---- */
struct crew {
    struct scope *scope;
    struct comm *comm; /* this process is one rank; NULL: ranks are threads */
    int size;
    pthread_t thread; /* rank 0, which starts the others */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t number; /* of the order */
    int finished;   /* ranks that finished it */
    bool ends, over;
    void (*order)(struct comm *, void *);
    void *data;
};
/* Runs work(data) on a new thread with a normal stack size, in the scope. False: it failed. */
bool crew_run_apart(struct scope *, void (*work)(void *), void *data);
/* False: it failed. */
bool crew_start(struct crew *, struct scope *, int size, bool mpi);
/* Every rank does order(comm, data). False: one failed; then the crew must end. */
bool crew_do(struct crew *, void (*order)(struct comm *, void *), void *data);
void crew_end(struct crew *);

/* ---- strings.c ---- */
/* TPC_INVALID: one of t's n elements can't be a string. */
int strings_check(const struct tpc_session *, const tpc_tensor *t, int64_t n);
/* Converts the program's texts to string numbers, in the current scope, and back. */
void strings_take(struct arena *, struct tensor *);
const void *strings_give(struct arena *, const struct tensor *);

/* ---- session.c ---- */
struct api_rank {
    struct arena *arena;
    struct graph *graph;
    struct session *session; /* NULL: not run yet */
    struct arena *last;      /* outputs of the last run */
    struct stage *stage;     /* NULL: not decoded yet */
    struct rows *rows;
    int64_t vocabulary, context; /* upper bounds of ids and of positions; -1: unknown */
    int threads;
};
/* text.c */
struct tokenizer;
struct api_text {
    struct scope *scope; /* NULL: not asked for yet */
    struct tokenizer *tokenizer;
    struct arena *ids, *words; /* of the latest results */
};
void api_text_free(struct tpc_session *);

struct tpc_session {
    struct scope *home; /* for data that live until tpc_close */
    struct arena *arena;
    const char *path;
    struct tpc_options options;
    struct job_options job;
    struct crew crew;
    bool runs; /* the crew runs; else the next call starts it */
    bool broken;
    int ranks, rank;
    int nin, nout;
    struct tpc_info *in, *out;
    struct api_rank *at; /* by rank; with mpi, only this process's */
    struct api_text text;
};
struct api_rank *api_rank_of(const struct tpc_session *, const struct comm *);
/* Starts the crew if a failure ended it, and has it do the order. */
int api_do(struct tpc_session *, void (*order)(struct comm *, void *), void *data);

#endif
