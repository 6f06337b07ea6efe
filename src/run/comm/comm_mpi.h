/* comm_mpi: shared by comm_mpi*.c; no other file includes it. */
#ifndef TPC_RUN_COMM_MPI_H
#define TPC_RUN_COMM_MPI_H

#include "run/comm/comm.h"

#include <mpi.h>

struct outbox;
struct world {
    struct comm comm;
    struct arena *arena;
    MPI_Comm mpi;
    VEC(MPI_Request) requests;
    VEC(MPI_Status) statuses;
    VEC(int) peers;         /* of each receive request */
    struct outbox *outbox;  /* messages in flight; NULL: none so far */
    struct buffer head;     /* first piece of an arriving message */
    struct world *whole;    /* the world that this is a part of, or this one */
    struct watch *watch;    /* of the whole; NULL: a single rank, or a library's that failed */
    struct watch_wait wait; /* of the whole: the current wait */
    bool crowded;           /* this machine has more ranks than cores */
    struct shared *shared;  /* NULL: messages only */
    char **segments;        /* its memory, by rank */
    MPI_Comm alarm;         /* for a library, of the whole: failing ranks send a message here; MPI_COMM_NULL: a failure ends the job */
    struct alarm_text *alarm_text;
};

/* ---- comm_mpi_wait.c ---- */
/* Ends the job if an MPI call failed. */
void comm_mpi_check(int code, const char *call);
/* Two threads of a rank may call MPI, one at a time. */
extern bool comm_mpi_takes_turns;
/* MPI_Testall, under the lock. */
int comm_mpi_test(int n, MPI_Request *, int *done, MPI_Status *);
/* Waits until they are done; looks for stopped or failed ranks. */
int comm_mpi_wait(struct world *, int n, MPI_Request *, MPI_Status *);
/* in: the purpose of the wait that begins. step: it belongs to a graph. */
void comm_mpi_begin_wait(struct world *, const char *in, bool step);
/* Looks for stopped or failed ranks. */
void comm_mpi_look_around(void *world);
/* MPI_Ibarrier, under the lock. */
int comm_mpi_begin_barrier(struct world *, MPI_Request *);
/* Sleeps for this many nanoseconds; returns the length of the next sleep. */
long comm_mpi_nap(long ns);
/* Starts to send a block to rank r, or to receive one, and adds it to w->requests. The block may not change until comm_mpi_wait_all, or
 * longer. */
void comm_mpi_post(struct world *, int r, struct block, bool sends);
void comm_mpi_wait_all(struct world *);

/* ---- comm_mpi_messages.c ---- */
/* A communicator's send_message and receive_message; ends the outbox once everything has arrived. */
void comm_mpi_send(struct comm *, int to, const void *at, int64_t bytes);
void *comm_mpi_receive(struct comm *, int from, struct buffer *, int64_t *bytes);
void comm_mpi_outbox_end(struct outbox *);

#endif
