/* comm_mpi_messages: messages from one MPI process to another that do not block the sender: one piece that begins with the length, then the
 * rest. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef HAVE_MPI
#include "run/comm/comm_mpi.h"

#include <signal.h>
#include <string.h>

enum { FIRST_PIECE = 48 << 10, FIRST_ROOM = FIRST_PIECE - (int)sizeof(int64_t) };

/* A message in flight. */
struct letter {
    struct letter *next;
    struct arena *arena;
    int n;
    MPI_Request *requests;
};
/* MPI progresses long messages only during calls: a thread makes these, as long as messages are in flight. */
struct outbox {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct letter *first;
    bool ends;
};

static bool has_left(struct letter *m)
{
    int done = 1;
    comm_mpi_check(comm_mpi_test(m->n, m->requests, &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    return done;
}

/* Called with the lock held. */
static void drop_arrived(struct outbox *o)
{
    for (struct letter **at = &o->first; *at;) {
        struct letter *m = *at;
        if (!has_left(m)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        arena_free(m->arena);
    }
}

static void *see_off(void *outbox)
{
    struct outbox *o = outbox;
    long nap = 20000;
    pthread_mutex_lock(&o->lock);
    while (!o->ends || o->first) {
        if (!o->first) {
            (void)pthread_cond_wait(&o->changed, &o->lock);
            nap = 20000;
            continue;
        }
        pthread_mutex_unlock(&o->lock);
        nap = comm_mpi_nap(nap);
        pthread_mutex_lock(&o->lock);
        drop_arrived(o);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* Signals are handled by the rank's thread. */
static struct outbox *outbox_start(struct arena *a)
{
    struct outbox *o = NEW(a, struct outbox);
    sigset_t all, before;
    if (pthread_mutex_init(&o->lock, NULL) || pthread_cond_init(&o->changed, NULL))
        fail("no memory for a lock");
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&o->thread, NULL, see_off, o))
        fail("can't create a thread for messages");
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return o;
}

static void outbox_add(struct outbox *o, struct letter *m)
{
    pthread_mutex_lock(&o->lock);
    m->next = o->first;
    o->first = m;
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

/* Waits until all have arrived. */
void comm_mpi_outbox_end(struct outbox *o)
{
    pthread_mutex_lock(&o->lock);
    o->ends = true;
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
    (void)pthread_join(o->thread, NULL);
    (void)pthread_cond_destroy(&o->changed);
    (void)pthread_mutex_destroy(&o->lock);
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* If MPI allows no second thread, the rank itself waits for the message. */
void comm_mpi_send(struct comm *c, int to, const void *at, int64_t bytes)
{
    struct world *w = c->state;
    struct arena *a = arena_new();
    struct letter *m = NEW(a, struct letter);
    int64_t first = least(bytes, FIRST_ROOM);
    char *copy = arena_alloc(a, sizeof bytes + (size_t)bytes);
    memcpy(copy, &bytes, sizeof bytes);
    if (bytes)
        memcpy(copy + sizeof bytes, at, (size_t)bytes);
    c->id = 0;
    w->requests.n = w->peers.n = 0;
    comm_mpi_post(w, to, (struct block){copy, (int64_t)sizeof bytes + first}, true);
    comm_mpi_post(w, to, (struct block){copy + sizeof bytes + first, bytes - first}, true);
    *m = (struct letter){.arena = a, .n = w->requests.n, .requests = NEWN(a, MPI_Request, w->requests.n)};
    memcpy(m->requests, w->requests.at, (size_t)w->requests.n * sizeof *m->requests);
    if (!comm_mpi_takes_turns)
        comm_mpi_check(comm_mpi_wait(w, m->n, m->requests, MPI_STATUSES_IGNORE), "MPI_Testall");
    else if (!has_left(m)) {
        w->outbox = w->outbox ? w->outbox : outbox_start(w->arena);
        outbox_add(w->outbox, m);
        return;
    }
    arena_free(a);
}

static void receive_piece(struct world *w, int from, void *at, int64_t bytes)
{
    w->requests.n = w->peers.n = 0;
    comm_mpi_post(w, from, (struct block){at, bytes}, false);
    comm_mpi_wait_all(w);
}

void *comm_mpi_receive(struct comm *c, int from, struct buffer *to, int64_t *bytes)
{
    struct world *w = c->state;
    char *head = buffer_reserve(&w->head, FIRST_PIECE);
    comm_mpi_begin_wait(w, c->name ? c->name : "?", false);
    c->id = 0;
    receive_piece(w, from, head, FIRST_PIECE);
    memcpy(bytes, head, sizeof *bytes);
    int64_t first = least(*bytes, FIRST_ROOM);
    char *at = buffer_reserve(to, (size_t)*bytes + 1);
    memcpy(at, head + sizeof *bytes, (size_t)first);
    receive_piece(w, from, at + first, *bytes - first);
    return at;
}
#endif
