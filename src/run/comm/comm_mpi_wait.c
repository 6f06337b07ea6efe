/* comm_mpi_wait: requests to MPI and waiting for them, for the files comm_mpi*.c. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef HAVE_MPI
#include "run/comm/comm_mpi.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { TAGS = 32768 };

void comm_mpi_check(int code, const char *call)
{
    if (code == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    fail_job("%s failed: %s", call, text);
}

/* Two threads of a rank may send messages (behind.c): only one at a time calls MPI. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
bool comm_mpi_takes_turns; /* MPI allows that */

void comm_mpi_begin_wait(struct world *w, const char *in, bool step)
{
    struct watch_wait *wait = &w->whole->wait;
    if (w->comm.behind)
        return;
    wait->number++;
    wait->in = in;
    wait->step = step;
    wait->limit = w->whole->comm.timeout;
}

void comm_mpi_look_around(void *world)
{
    const struct world *w = world;
    if (w->whole->watch && !w->comm.behind)
        watch_look(w->whole->watch, &w->whole->wait);
}

int comm_mpi_test(int n, MPI_Request *requests, int *done, MPI_Status *statuses)
{
    pthread_mutex_lock(&turn);
    int code = MPI_Testall(n, requests, done, statuses);
    pthread_mutex_unlock(&turn);
    return code;
}

/* Sleeps grow with the time waited, by a quarter: waking up takes the core from a computing rank. The longest sleep is shorter than the
 * kernel's buffers last. */
long comm_mpi_nap(long ns)
{
    enum { LONGEST = 200000, PART = 4 };
    (void)nanosleep(&(struct timespec){0, ns}, NULL);
    return ns + ns / PART < LONGEST ? ns + ns / PART : LONGEST;
}

/* Completes requests, and looks for stopped or failed ranks. Yields the core: a message takes longer than a yield. */
int comm_mpi_wait(struct world *w, int n, MPI_Request *requests, MPI_Status *statuses)
{
    enum { POLLS = 1000, OFFER = 16 }; /* polls between two looks at the clock; and between two yields */
    int done = 0, code = MPI_SUCCESS;
    long nap = 20000;
    for (int poll = 0; !done && code == MPI_SUCCESS; poll++) {
        code = comm_mpi_test(n, requests, &done, statuses);
        if (!done && atomic_load_explicit(&w->comm.naps, memory_order_relaxed)) {
            nap = comm_mpi_nap(nap);
            continue;
        }
        if (poll % OFFER == OFFER - 1)
            (void)sched_yield();
        if (poll % POLLS == POLLS - 1) {
            comm_mpi_look_around(w);
            scope_look();
        }
    }
    return code;
}

int comm_mpi_begin_barrier(struct world *w, MPI_Request *request)
{
    pthread_mutex_lock(&turn);
    int code = MPI_Ibarrier(w->mpi, request);
    pthread_mutex_unlock(&turn);
    return code;
}

static int tag_of(const struct comm *c)
{
    return (int)(c->id % TAGS);
}

/* Short messages leave as soon as they are sent: MPI delays a long one until both ranks have called it, and a computing rank seldom
 * does. */
static int64_t piece_bytes(int64_t bytes)
{
    enum { SHORT = 48 << 10, MOST_PIECES = 64, LONGEST = 1 << 30 };
    int64_t piece = bytes / MOST_PIECES + 1;
    return piece < SHORT ? SHORT : piece > LONGEST ? LONGEST : piece;
}

void comm_mpi_post(struct world *w, int r, struct block b, bool sends)
{
    const int64_t piece = piece_bytes(b.bytes);
    for (int64_t at = 0; at < b.bytes; at += piece) {
        int n = (int)(b.bytes - at < piece ? b.bytes - at : piece);
        MPI_Request request;
        pthread_mutex_lock(&turn);
        int code = sends ? MPI_Isend((char *)b.at + at, n, MPI_BYTE, r, tag_of(&w->comm), w->mpi, &request)
                         : MPI_Irecv((char *)b.at + at, n, MPI_BYTE, r, MPI_ANY_TAG, w->mpi, &request);
        pthread_mutex_unlock(&turn);
        comm_mpi_check(code, sends ? "MPI_Isend" : "MPI_Irecv");
        VEC_PUSH(w->arena, &w->requests, request);
        if (!sends)
            VEC_PUSH(w->arena, &w->peers, r);
    }
    w->comm.bytes_sent += sends ? b.bytes : 0;
}

void comm_mpi_wait_all(struct world *w)
{
    while (w->statuses.n < w->requests.n)
        VEC_PUSH(w->arena, &w->statuses, (MPI_Status){0});
    if (comm_mpi_wait(w, w->requests.n, w->requests.at, w->statuses.at) != MPI_SUCCESS)
        fail_job("collective %lld '%s' failed on rank %d: a message has another size than expected", (long long)w->comm.id,
                 w->comm.name ? w->comm.name : "?", w->comm.rank);
    for (int i = 0; i < w->peers.n; i++)
        if (w->statuses.at[i].MPI_TAG != tag_of(&w->comm))
            fail_job("ranks are out of step: rank %d is at collective %lld '%s', rank %d at collective %d", w->comm.rank,
                     (long long)w->comm.id, w->comm.name ? w->comm.name : "?", w->peers.at[i], w->statuses.at[i].MPI_TAG);
}
#endif
