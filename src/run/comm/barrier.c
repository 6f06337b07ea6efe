/* A barrier of threads, or of processes that share its memory: the central sense-reversing one (Mellor-Crummey, Scott 1991). A rank that
 * waits spins for longer than a sleeping one needs to wake, and then sleeps. On the way it offers its core to others. If another thread
 * took the core, there are more threads than cores. Then the rank sleeps at once: this frees its core for the rank that it waits for, and
 * it gets a core back as soon as there is work. With more ranks than cores it sleeps soon, too. */
#include "run/comm/comm.h"

#include <sched.h>
#include <unistd.h>

enum { SPINS_CROWDED = 256, SPINS = 2048, LOOK_EACH = 50 }; /* ms */
static const double longest_offer = 1e-3, taken = 20e-6;    /* seconds: of offering the core; of one offer that another took */

bool barrier_crowded(int ranks)
{
    return ranks > sysconf(_SC_NPROCESSORS_ONLN);
}

void barrier_init(struct barrier *b, int size, bool crowded, bool processes)
{
    pthread_mutexattr_t lock;
    pthread_condattr_t changed;
    int share = processes ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;
    b->size = size;
    b->crowded = crowded;
    atomic_init(&b->arrived, 0);
    atomic_init(&b->phase, 0);
    if (pthread_mutexattr_init(&lock) || pthread_condattr_init(&changed) || pthread_mutexattr_setpshared(&lock, share) ||
        pthread_condattr_setpshared(&changed, share) || pthread_mutex_init(&b->lock, &lock) || pthread_cond_init(&b->changed, &changed))
        fail("can't create a lock for %d ranks", size);
    pthread_mutexattr_destroy(&lock);
    pthread_condattr_destroy(&changed);
}

void barrier_destroy(struct barrier *b)
{
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
}

static void next_phase(struct barrier *b, int phase)
{
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
    pthread_mutex_lock(&b->lock);
    atomic_store_explicit(&b->phase, phase + 1, memory_order_release);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static bool is_phase(struct barrier *b, int phase)
{
    return atomic_load_explicit(&b->phase, memory_order_acquire) == phase;
}

/* Now and then it looks whether a rank that it waits for has failed, or does not run. */
static void sleep_through(struct barrier *b, int phase, const struct barrier_look *look)
{
    while (is_phase(b, phase)) {
        const struct timespec until = clock_after(LOOK_EACH);
        pthread_mutex_lock(&b->lock);
        if (is_phase(b, phase))
            (void)pthread_cond_timedwait(&b->changed, &b->lock, &until);
        pthread_mutex_unlock(&b->lock);
        if (!is_phase(b, phase))
            return;
        scope_look();
        if (look)
            look->look(look->data);
    }
}

/* Returns true if the phase ended. */
static bool offer_core(struct barrier *b, int phase)
{
    double start = clock_seconds(), before = start, now = start;
    while (now - start < longest_offer && now - before < taken) {
        (void)sched_yield();
        if (!is_phase(b, phase))
            return true;
        before = now;
        now = clock_seconds();
    }
    return false;
}

static void wait_through(struct barrier *b, int phase, const struct barrier_look *look)
{
    for (int spin = 0; spin < (b->crowded ? SPINS_CROWDED : SPINS); spin++)
        if (!is_phase(b, phase))
            return;
    if (b->crowded || !offer_core(b, phase))
        sleep_through(b, phase, look);
}

void barrier_wait(struct barrier *b, const struct barrier_look *look)
{
    int phase = atomic_load_explicit(&b->phase, memory_order_acquire);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == b->size)
        next_phase(b, phase);
    else
        wait_through(b, phase, look);
}
