/* behind: a thread runs collectives, one after another, while its rank computes. It has its own communicator. If ranks exchange through
 * shared memory there is no such thread, because the computing core does the addition; the work is then done when the rank waits for it.
 * Order and bits are the same. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run/comm/comm.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOOK_EACH = 250 }; /* ms */

struct task {
    void (*work)(struct comm *, void *);
    void *data;
};
struct behind {
    struct arena *arena;
    struct comm *comm;
    bool threaded, ends;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    VEC(struct task) tasks; /* the first one has number `first` */
    int64_t first, done, added;
};

static void set_behind(struct comm *c, bool behind)
{
    c->behind = behind;
}

static void set_naps(struct comm *c, bool naps)
{
    atomic_store_explicit(&c->naps, naps, memory_order_relaxed);
}

/* Sets a flag in a communicator and its parts. */
static void set_all(struct comm *c, void (*set)(struct comm *, bool), bool to)
{
    set(c, to);
    if (c->host) {
        set_all(c->host, set, to);
        set_all(c->across, set, to);
    }
}

/* Runs the next task. Called with the lock, which it releases meanwhile. */
static void do_next(struct behind *b, bool behind)
{
    struct task t = b->tasks.at[b->done - b->first];
    pthread_mutex_unlock(&b->lock);
    set_all(b->comm, set_behind, behind);
    t.work(b->comm, t.data);
    set_all(b->comm, set_behind, false);
    pthread_mutex_lock(&b->lock);
    b->done++;
    pthread_cond_broadcast(&b->changed);
}

/* Asks for short time slices, so that the thread soon gets a busy core: since Linux 6.12; otherwise without effect. */
static void take_short_turns(void)
{
#ifdef SYS_sched_setattr
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t turn, deadline, period; /* ns */
    } attributes = {.size = sizeof attributes, .turn = 100000};
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

static void *work_off(void *behind)
{
    struct behind *b = behind;
    take_short_turns();
    pthread_mutex_lock(&b->lock);
    while (!b->ends || b->done < b->added)
        if (b->done < b->added)
            do_next(b, true);
        else
            (void)pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Signals are handled by the rank's thread. */
static bool start_thread(struct behind *b)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&b->thread, NULL, work_off, b) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct behind *behind_start(struct arena *a, struct comm *c)
{
    struct behind *b = NEW(a, struct behind);
    *b = (struct behind){.arena = a, .comm = c};
    if (pthread_mutex_init(&b->lock, NULL) || pthread_cond_init(&b->changed, NULL))
        fail("no memory for a lock");
    b->threaded = c->overlaps && start_thread(b);
    set_all(c, set_naps, b->threaded);
    return b;
}

int64_t behind_add(struct behind *b, void (*work)(struct comm *, void *), void *data)
{
    pthread_mutex_lock(&b->lock);
    if (b->done == b->added) {
        b->tasks.n = 0;
        b->first = b->added;
    }
    VEC_PUSH(b->arena, &b->tasks, ((struct task){work, data}));
    int64_t number = ++b->added;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return number;
}

/* Waits; looks periodically for stopped ranks, because the thread does not. */
static void wait_for_thread(struct behind *b, const char *in)
{
    const struct timespec until = clock_after(LOOK_EACH);
    (void)pthread_cond_timedwait(&b->changed, &b->lock, &until);
    pthread_mutex_unlock(&b->lock);
    b->comm->look(b->comm, in);
    pthread_mutex_lock(&b->lock);
}

void behind_wait(struct behind *b, int64_t number, const char *in)
{
    pthread_mutex_lock(&b->lock);
    set_all(b->comm, set_naps, false);
    for (const char *begins = in; b->done < number; begins = NULL)
        if (b->threaded)
            wait_for_thread(b, begins);
        else
            do_next(b, false);
    set_all(b->comm, set_naps, b->threaded);
    pthread_mutex_unlock(&b->lock);
}

bool behind_goes_on(const struct behind *b)
{
    return b->threaded;
}

void behind_end(struct behind *b)
{
    pthread_mutex_lock(&b->lock);
    b->ends = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    if (b->threaded)
        (void)pthread_join(b->thread, NULL);
    (void)pthread_cond_destroy(&b->changed);
    (void)pthread_mutex_destroy(&b->lock);
}
