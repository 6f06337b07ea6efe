/* What the files of comm_mpi*.c share; no other includes it. */
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
    VEC(int) peers;         /* of each receive */
    struct outbox *outbox;  /* messages that are on their way; NULL: there were none */
    struct buffer head;     /* of a message that arrives: its first piece */
    struct world *whole;    /* which this is a part of, or this one */
    struct watch *watch;    /* of the whole; NULL: a rank alone, or a library's that failed */
    struct watch_wait wait; /* of the whole: where it is */
    bool crowded;           /* this machine has more ranks than cores */
    struct shared *shared;  /* NULL: messages only */
    char **segments;        /* its memory, by rank */
    MPI_Comm alarm;         /* of the whole of a library: where a rank that fails says so; MPI_COMM_NULL: its failure ends the job */
    struct alarm_text *alarm_text;
};

/* comm_mpi.c. An MPI call that failed ends the job. */
void comm_mpi_check(int code, const char *call);
/* Two threads of a rank may call MPI, one at a time. */
extern bool comm_mpi_takes_turns;
/* MPI_Testall, in turn. */
int comm_mpi_test(int n, MPI_Request *, int *done, MPI_Status *);
/* Until they are done; looks for ranks that do not run or failed. */
int comm_mpi_wait(struct world *, int n, MPI_Request *, MPI_Status *);
/* in: what the wait that begins is for. step: it belongs to a graph. */
void comm_mpi_begin_wait(struct world *, const char *in, bool step);
/* Sleeps for so many nanoseconds; returns how long the next nap is. */
long comm_mpi_nap(long ns);
/* Begins to send a block to rank r, or to receive one, and adds to w->requests. Until comm_mpi_wait_all, or longer, it may not change. */
void comm_mpi_post(struct world *, int r, struct block, bool sends);
void comm_mpi_wait_all(struct world *);

/* comm_mpi_messages.c: as a communicator's send_message and receive_message; the end of what is on its way, once it has arrived. */
void comm_mpi_send(struct comm *, int to, const void *at, int64_t bytes);
void *comm_mpi_receive(struct comm *, int from, struct buffer *, int64_t *bytes);
void comm_mpi_outbox_end(struct outbox *);

#endif
