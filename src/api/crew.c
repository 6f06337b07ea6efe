/* crew: the ranks of a session wait for orders, and do each of them together. As threads they do not receive the program's signals, and
 * have stacks of normal size. A rank that fails ends; the others notice and end, too. */
#include "api/api.h"

#include <signal.h>

enum { STACK_BYTES = 8 << 20 };

struct apart {
    struct scope *scope;
    void (*work)(void *);
    void *data;
    bool done;
};

static void *run_apart(void *apart)
{
    struct apart *p = apart;
    p->done = scope_do(p->scope, p->work, p->data);
    return NULL;
}

static bool start_thread(pthread_t *thread, void *(*run)(void *), void *data)
{
    sigset_t all, before;
    pthread_attr_t sized;
    (void)sigfillset(&all);
    bool started = pthread_attr_init(&sized) == 0;
    if (!started)
        return false;
    (void)pthread_attr_setstacksize(&sized, STACK_BYTES);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(thread, &sized, run, data) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&sized);
    return started;
}

static void miss_thread(void *unused)
{
    (void)unused;
    fail("can't create a thread");
}

bool crew_run_apart(struct scope *scope, void (*work)(void *), void *data)
{
    struct apart p = {.scope = scope, .work = work, .data = data};
    pthread_t thread;
    if (!start_thread(&thread, run_apart, &p))
        return scope_do(scope, miss_thread, NULL);
    (void)pthread_join(thread, NULL);
    return p.done;
}

/* ---- ranks as threads ---- */

static bool next_order(struct crew *c, int64_t done)
{
    pthread_mutex_lock(&c->lock);
    while (c->number == done && !c->ends && !scope_failed(c->scope))
        (void)pthread_cond_wait(&c->changed, &c->lock);
    bool goes_on = c->number > done && !scope_failed(c->scope);
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static void finish_order(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    if (++c->finished == c->size)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void follow_orders(struct comm *comm, void *crew)
{
    struct crew *c = crew;
    for (int64_t done = 0; next_order(c, done); done++) {
        c->order(comm, c->data);
        finish_order(c);
    }
}

static void wake_all(void *crew, int status)
{
    struct crew *c = crew;
    (void)status;
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void run_ranks(void *crew)
{
    struct crew *c = crew;
    diag_on_failure(wake_all, c);
    comm_local_run(c->size, follow_orders, c);
    diag_forget(wake_all, c);
}

static void *run_crew(void *crew)
{
    struct crew *c = crew;
    (void)scope_do(c->scope, run_ranks, c);
    pthread_mutex_lock(&c->lock);
    c->over = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- for the caller ---- */

static void start_mpi(void *crew)
{
    struct crew *c = crew;
    c->comm = comm_mpi(NULL, NULL);
    if (!c->comm)
        fail_usage("mpi is set, but this library was built without MPI");
    c->size = c->comm->size;
}

bool crew_start(struct crew *c, struct scope *scope, int size, bool mpi)
{
    *c = (struct crew){.scope = scope, .size = size};
    if (mpi)
        return scope_do(scope, start_mpi, c);
    if (pthread_mutex_init(&c->lock, NULL) != 0)
        return scope_do(scope, miss_thread, NULL);
    if (pthread_cond_init(&c->changed, NULL) == 0) {
        if (start_thread(&c->thread, run_crew, c))
            return true;
        (void)pthread_cond_destroy(&c->changed);
    }
    (void)pthread_mutex_destroy(&c->lock);
    return scope_do(scope, miss_thread, NULL);
}

static void do_order(void *crew)
{
    struct crew *c = crew;
    c->order(c->comm, c->data);
}

bool crew_do(struct crew *c, void (*order)(struct comm *, void *), void *data)
{
    c->order = order;
    c->data = data;
    if (c->comm)
        return scope_do(c->scope, do_order, c);
    pthread_mutex_lock(&c->lock);
    c->finished = 0;
    c->number++;
    pthread_cond_broadcast(&c->changed);
    while (c->finished < c->size && !c->over)
        (void)pthread_cond_wait(&c->changed, &c->lock);
    bool done = c->finished == c->size && !scope_failed(c->scope);
    pthread_mutex_unlock(&c->lock);
    return done;
}

static void leave_mpi(void *crew)
{
    struct crew *c = crew;
    c->comm->free(c->comm);
}

void crew_end(struct crew *c)
{
    if (c->comm) {
        if (!scope_failed(c->scope))
            (void)scope_do(c->scope, leave_mpi, c);
        return;
    }
    pthread_mutex_lock(&c->lock);
    c->ends = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
}
