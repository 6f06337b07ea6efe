/* comm_mpi: ranks as MPI processes. Ranks of one machine exchange through shared memory if the system allows it. Otherwise an exchange is
 * nonblocking point-to-point messages whose tag is the number of the collective. A message with another number means that the ranks are out
 * of step, and stops the job with both numbers. Messages over 1 GiB are sent in parts, since MPI counts are ints. A failure on any rank
 * ends the job by MPI_Abort; ranks report in turn, so that an error that all of them find (a missing file) is reported once. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "run/comm/comm.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef HAVE_MPI
#include "run/comm/comm_mpi.h"

enum { TURN = 300, LAST_IN_TURN = 8 }; /* TURN: ms for an abort to reach the next rank */
enum { ABORT_WITHIN = 150000 };        /* us */

static volatile sig_atomic_t abort_status;

static void leave_now(int number)
{
    (void)number;
    _exit(abort_status);
}

/* MPICH's MPI_Abort waits for peers that may be late; every launcher ends the job when a process exits. */
static void abort_job(void *data, int status)
{
    struct world *w = data;
    int done = 0;
    MPI_Finalized(&done);
    if (done)
        return;
    if (w->watch)
        watch_leave(w->watch);
    abort_status = status;
    (void)signal(SIGALRM, leave_now);
    (void)setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, ABORT_WITHIN}}, NULL);
    MPI_Abort(w->mpi, status);
}

static void end_watch(struct world *w)
{
    if (w->watch)
        watch_stop(w->watch);
    w->watch = NULL;
}

/* ---- a library's ranks ---- */

/* A failing rank's message. It may stay in flight for long, so it is never freed. */
enum { ALARM_BYTES = 512 };
struct alarm_text {
    char sentence[ALARM_BYTES];
};

static void sound_alarm(void *data, int status)
{
    struct world *w = data;
    MPI_Request request;
    end_watch(w);
    (void)status;
    (void)snprintf(w->alarm_text->sentence, ALARM_BYTES, "%s", scope_sentence(scope_current()));
    for (int r = 0; r < w->comm.size; r++)
        if (r != w->comm.rank)
            (void)MPI_Isend(w->alarm_text->sentence, ALARM_BYTES, MPI_CHAR, r, 0, w->alarm, &request);
}

static void hear_alarm(void *world)
{
    const struct world *w = world;
    char sentence[ALARM_BYTES];
    MPI_Status status;
    int heard = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, w->alarm, &heard, &status);
    if (!heard)
        return;
    MPI_Recv(sentence, ALARM_BYTES, MPI_CHAR, status.MPI_SOURCE, 0, w->alarm, &status);
    sentence[ALARM_BYTES - 1] = '\0';
    fail_job("rank %d failed: %s", status.MPI_SOURCE, sentence);
}

/* ---- waiting ---- */

static void mpi_look(struct comm *c, const char *in)
{
    struct world *w = c->state;
    if (in)
        comm_mpi_begin_wait(w->whole, in, false);
    comm_mpi_look_around(w->whole);
}

static bool mpi_silent(const struct comm *c, char *sentence, size_t room)
{
    const struct world *w = c->state;
    return w->whole->watch && watch_finds_silent(w->whole->watch, sentence, room);
}

static void mpi_insist(struct comm *c)
{
    struct world *w = c->state;
    if (w->whole->watch)
        watch_insist(w->whole->watch);
}

static void mpi_barrier(struct comm *c)
{
    struct world *w = c->state;
    MPI_Request request;
    MPI_Status status;
    comm_mpi_begin_wait(w, NULL, false);
    if (w->shared) {
        shared_barrier(w->shared);
        return;
    }
    comm_mpi_check(comm_mpi_begin_barrier(w, &request), "MPI_Ibarrier");
    comm_mpi_check(comm_mpi_wait(w, 1, &request, &status), "MPI_Ibarrier");
}

static void exchange_messages(struct world *w, const struct block *send, const struct block *recv, const void **seen)
{
    struct comm *c = &w->comm;
    w->requests.n = w->peers.n = 0;
    for (int i = 1; i < c->size; i++) {
        int r = (c->rank + c->size - i) % c->size;
        comm_mpi_post(w, r, recv[r], false);
        seen[r] = recv[r].at;
    }
    for (int i = 1; i < c->size; i++) {
        int r = (c->rank + i) % c->size;
        comm_mpi_post(w, r, send[r], true);
    }
    require(send[c->rank].bytes == recv[c->rank].bytes);
    seen[c->rank] = send[c->rank].at;
    comm_mpi_wait_all(w);
}

static void mpi_exchange(struct comm *c, const struct block *send, const struct block *recv, const void **seen)
{
    struct world *w = c->state;
    comm_mpi_begin_wait(w, c->name ? c->name : "?", c->id > 0);
    if (w->shared)
        shared_exchange(w->shared, c, send, recv, seen);
    else
        exchange_messages(w, send, recv, seen);
}

/* Nothing to do: blocks were copied in flight. */
static void mpi_done(struct comm *c)
{
    (void)c;
}

static __attribute__((noreturn)) void mpi_abort(struct comm *c, int status)
{
    abort_job(c->state, status);
    exit(status);
}

/* Finds the number of ranks on this machine, and the lowest of them. If a rank has fewer cores, as in a container, all ranks adopt that. */
static void find_machine(struct world *w, int *machine)
{
    MPI_Comm here;
    comm_mpi_check(MPI_Comm_split_type(w->mpi, MPI_COMM_TYPE_SHARED, w->comm.rank, MPI_INFO_NULL, &here), "MPI_Comm_split_type");
    MPI_Comm_size(here, &w->comm.local_size);
    const int own[2] = {w->comm.rank, barrier_crowded(w->comm.local_size) ? 0 : 1};
    int least[2];
    comm_mpi_check(MPI_Allreduce(own, least, 2, MPI_INT, MPI_MIN, here), "MPI_Allreduce");
    MPI_Comm_free(&here);
    *machine = least[0];
    w->crowded = least[1] == 0;
}

static void share_memory(struct world *w)
{
    int size = w->comm.size;
    if (size == 1 || w->comm.local_size < size)
        return;
    w->segments = shared_segments_make(w->arena, &w->comm, shared_segment_bytes(size), &w->comm.unshared);
    if (!w->segments)
        return;
    w->shared = shared_new(w->arena, w->segments, w->comm.rank, size, w->crowded, (struct barrier_look){comm_mpi_look_around, w});
    comm_mpi_check(MPI_Barrier(w->mpi), "MPI_Barrier");
}

/* Detects a stopped rank before MPI waits for it. */
static void world_free(struct world *w)
{
    if (w->outbox)
        comm_mpi_outbox_end(w->outbox);
    mpi_barrier(&w->comm);
    buffer_free(&w->head);
    machines_release(&w->comm);
    comm_release(&w->comm);
    if (w->segments)
        shared_segments_free(w->segments, w->comm.size, shared_segment_bytes(w->comm.size));
    MPI_Comm_free(&w->mpi);
    arena_free(w->arena);
}

static struct comm *mpi_split(struct comm *, int color);

/* around: the communicator that it is a part of; NULL: none. */
static struct world *world_new(struct arena *arena, MPI_Comm mpi, struct world *around)
{
    int machine;
    struct world *w = NEW(arena, struct world);
    w->arena = arena;
    w->mpi = mpi;
    w->alarm = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
    w->comm = (struct comm){.kind = "mpi",
                            .state = w,
                            .barrier = mpi_barrier,
                            .exchange = mpi_exchange,
                            .done = mpi_done,
                            .send_message = comm_mpi_send,
                            .receive_message = comm_mpi_receive,
                            .split = mpi_split,
                            .look = mpi_look,
                            .silent = mpi_silent,
                            .insist = mpi_insist,
                            .abort = mpi_abort};
    MPI_Comm_rank(mpi, &w->comm.rank);
    MPI_Comm_size(mpi, &w->comm.size);
    find_machine(w, &machine);
    w->whole = around ? around->whole : w;
    if (around)
        w->crowded = around->crowded;
    comm_setup(&w->comm, arena);
    share_memory(w);
    w->comm.step = w->shared ? SHARED_STEP_BYTES : 0;
    w->comm.polls = w->comm.size > 1 && !w->shared;
    w->comm.overlaps = w->comm.polls && comm_mpi_takes_turns;
    machines_setup(&w->comm, machine);
    return w;
}

static void mpi_part_free(struct comm *c)
{
    world_free(c->state);
}

static struct comm *mpi_split(struct comm *c, int color)
{
    struct world *around = c->state;
    MPI_Comm part;
    mpi_barrier(c);
    comm_mpi_check(MPI_Comm_split(around->mpi, color, c->rank, &part), "MPI_Comm_split");
    struct world *w = world_new(arena_new(), part, around);
    w->comm.free = mpi_part_free;
    return &w->comm;
}

static struct watch *leaving; /* of a program that may end without freeing its communicator */

static void leave_at_exit(void)
{
    if (leaving)
        watch_leave(leaving);
}

static void leave_with(struct world *w)
{
    leaving = w->watch;
    (void)atexit(leave_at_exit);
    signal_farewell(watch_leave, w->watch);
}

static void mpi_free(struct comm *c)
{
    struct world *w = c->state;
    diag_forget(abort_job, w);
    diag_place(NULL);
    mpi_barrier(c);
    signal_farewell(NULL, NULL);
    leaving = NULL;
    end_watch(w);
    world_free(w);
    MPI_Finalize();
}

/* Crash handlers of Open MPI and of transports (UCX) can hang in a crashed process, and the job with it; every launcher notices a process
 * ended by a signal. Asks Open MPI to install none. */
static void die_at_once(void)
{
    (void)setenv("OMPI_MCA_opal_signal", "", 0);
    static const int crash[] = {SIGSEGV, SIGILL, SIGFPE};
    for (size_t i = 0; i < sizeof crash / sizeof *crash; i++)
        (void)signal(crash[i], SIG_DFL);
}

static void name_host(char host[MPI_MAX_PROCESSOR_NAME])
{
    int n = 0;
    snprintf(host, MPI_MAX_PROCESSOR_NAME, "?");
    MPI_Get_processor_name(host, &n);
}

static void begin_watch(struct world *w, bool speaks)
{
    char host[MPI_MAX_PROCESSOR_NAME];
    name_host(host);
    if (w->comm.size > 1)
        w->watch = watch_start(w->arena, &w->comm, host, speaks);
}

/* Messages name the ranks other than rank 0; with several hosts, also the host. */
static void name_place(const struct world *w)
{
    char host[MPI_MAX_PROCESSOR_NAME];
    name_host(host);
    if (w->comm.local_size < w->comm.size)
        diag_place(arena_printf(w->arena, "rank %d on %s", w->comm.rank, host));
    else if (w->comm.rank)
        diag_place(arena_printf(w->arena, "rank %d", w->comm.rank));
}

static void finalize(void)
{
    int done = 0;
    MPI_Finalized(&done);
    if (!done)
        MPI_Finalize();
}

/* For a library: MPI may belong to the program, and ends after this. */
static void library_free(struct comm *c)
{
    struct world *w = c->state;
    diag_forget(sound_alarm, w);
    scope_listen(NULL, NULL);
    mpi_barrier(c);
    end_watch(w);
    MPI_Comm_free(&w->alarm);
    world_free(w);
}

static struct comm *join_library(void)
{
    int started = 0, ended = 0, level;
    MPI_Comm all;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (ended)
        fail_usage("mpi is set, but the program has already ended MPI");
    if (!started && (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS || atexit(finalize) != 0))
        fail("MPI_Init_thread failed");
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    struct world *w = world_new(arena_new(), all, NULL);
    w->comm.free = library_free;
    struct scope *user = scope_swap(NULL);
    w->alarm_text = NEW(arena_new(), struct alarm_text);
    (void)scope_swap(user);
    MPI_Comm_dup(MPI_COMM_WORLD, &w->alarm);
    MPI_Comm_set_errhandler(w->alarm, MPI_ERRORS_RETURN);
    diag_on_failure(sound_alarm, w);
    scope_listen(hear_alarm, w);
    begin_watch(w, false);
    return &w->comm;
}

/* Open MPI 4 writes seven lines about MPI_Abort after the error message. On one machine it has nothing else to report, for example about
 * networks; its launcher's messages stay. */
static void say_once(void)
{
    const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (all && here && strcmp(all, here) == 0)
        (void)setenv("OMPI_MCA_orte_execute_quiet", "1", 0);
}

struct comm *comm_mpi(int *argc, char ***argv)
{
    int level;
    if (scope_current())
        return join_library();
    die_at_once();
    say_once();
    if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
        fail("MPI_Init_thread failed");
    comm_mpi_takes_turns = level >= MPI_THREAD_SERIALIZED;
    MPI_Comm all;
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    struct world *w = world_new(arena_new(), all, NULL);
    w->comm.free = mpi_free;
    w->comm.timeout = COMM_TIMEOUT;
    name_place(w);
    begin_watch(w, true);
    if (w->watch)
        leave_with(w);
    diag_on_failure(abort_job, w);
    diag_give_way(w->comm.rank < LAST_IN_TURN ? w->comm.rank * TURN : LAST_IN_TURN * TURN);
    return &w->comm;
}

bool comm_mpi_lives(void)
{
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    return started && !ended;
}

static char library[MPI_MAX_LIBRARY_VERSION_STRING];
static pthread_once_t library_asked = PTHREAD_ONCE_INIT;

/* The first line of the library's version string. */
static void ask_library(void)
{
    int n = 0;
    MPI_Get_library_version(library, &n);
    library[strcspn(library, "\n")] = '\0';
    for (char *c = library; *c; c++)
        if (*c == '\t')
            *c = ' ';
}

const char *comm_mpi_library(void)
{
    pthread_once(&library_asked, ask_library);
    return library;
}

#else

struct comm *comm_mpi(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return NULL;
}

bool comm_mpi_lives(void)
{
    return false;
}

const char *comm_mpi_library(void)
{
    return NULL;
}

#endif
