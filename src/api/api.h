/* api: the library (tpc.h): sessions whose ranks are threads or this process of an MPI job, and failures that end no program. */
#ifndef TPC_API_H
#define TPC_API_H

#include "api/tpc.h"
#include "decode/decode.h"

#include <pthread.h>

/* ---- error.c: the status of a call, and its sentence ---- */
int error_invalid(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Of a scope that failed. Wrong usage is TPC_INVALID. */
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
    int finished;   /* ranks that did it */
    bool ends, over;
    void (*order)(struct comm *, void *);
    void *data;
};
/* Runs work(data) on a thread of its own, whose stack has the usual size, in the scope. False: it failed. */
bool crew_run_apart(struct scope *, void (*work)(void *), void *data);
/* False: it failed. */
bool crew_start(struct crew *, struct scope *, int size, bool mpi);
/* Every rank does order(comm, data). False: one failed; then the crew has to end. */
bool crew_do(struct crew *, void (*order)(struct comm *, void *), void *data);
void crew_end(struct crew *);

/* ---- strings.c ---- */
/* TPC_INVALID: an element of t, which has n, can't be a string. */
int strings_check(const struct tpc_session *, const tpc_tensor *t, int64_t n);
/* Texts of the program become numbers, in the current scope, and the other way around. */
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
    int64_t vocabulary, context; /* ids are below it, positions; -1: not known */
    int threads;
};
/* text.c */
struct tokenizer;
struct api_text {
    struct scope *scope; /* NULL: not asked for yet */
    struct tokenizer *tokenizer;
    struct arena *ids, *words; /* of the last results */
};
void api_text_free(struct tpc_session *);

struct tpc_session {
    struct scope *home; /* of what lives until tpc_close */
    struct arena *arena;
    const char *path;
    struct tpc_options options;
    struct job_options job;
    struct crew crew;
    bool runs; /* the crew does; else it is started by the next call */
    bool broken;
    int ranks, rank;
    int nin, nout;
    struct tpc_info *in, *out;
    struct api_rank *at; /* by rank; with mpi, one */
    struct api_text text;
};
struct api_rank *api_rank_of(const struct tpc_session *, const struct comm *);
/* Starts the crew if a failure ended it, and has it do the order. */
int api_do(struct tpc_session *, void (*order)(struct comm *, void *), void *data);

#endif
