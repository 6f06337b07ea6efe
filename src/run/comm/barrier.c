/* barrier: a barrier of threads, or of processes that share its memory. Every rank publishes its arrival and waits for the others': one
 * cache line moves in each direction. A waiting rank spins for longer than a sleeping one needs to wake, and then sleeps. Meanwhile it
 * yields its core. If another thread took the core, there are more threads than cores, and the rank sleeps at once: this frees its core for
 * the rank that it waits for. With more ranks than cores, ranks spin less and wait only for the last one, which wakes all at once (the
 * central barrier of Mellor-Crummey, Scott 1991).
 *
 * It uses no locks and no condition variables, which contain locks: a process stopped while it holds a lock would stop all others. */
#include "run/comm/comm.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS_CROWDED = 256, SPINS = 2048 };
static const struct timespec look_each = {0, 50000000};  /* 50 ms */
static const double longest_offer = 1e-3, taken = 20e-6; /* seconds of yielding; seconds after which another thread had the core */

bool barrier_crowded(int ranks)
{
    return ranks > cores_of_machine();
}

/* Phases are counted modulo 2^32. */
static bool has_come(const struct arrival *a, unsigned phase)
{
    return atomic_load_explicit(&a->phase, memory_order_acquire) - phase <= INT_MAX;
}

static void arrive(const struct barrier *b, struct arrival *a, unsigned phase)
{
    atomic_store(&a->phase, phase);
    if (atomic_load(&a->sleepers) > 0)
        (void)syscall(SYS_futex, &a->phase, b->processes ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps until woken, or for a while. */
static void sleep_for(const struct barrier *b, struct arrival *a, unsigned phase)
{
    int wait = b->processes ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE;
    atomic_fetch_add(&a->sleepers, 1);
    unsigned now = atomic_load(&a->phase);
    if (!has_come(a, phase))
        (void)syscall(SYS_futex, &a->phase, wait, now, &look_each, NULL, 0);
    atomic_fetch_sub(&a->sleepers, 1);
}

/* Sleeps; looks periodically whether a rank that it waits for failed or stopped. */
static void sleep_until(const struct barrier *b, struct arrival *a, unsigned phase, const struct barrier_look *look)
{
    while (!has_come(a, phase)) {
        sleep_for(b, a, phase);
        if (has_come(a, phase))
            return;
        scope_look();
        if (look)
            look->look(look->data);
    }
}

/* Yields the core. Returns true if the phase is reached. */
static bool offer_core(const struct arrival *a, unsigned phase)
{
    double start = clock_seconds(), before = start, now = start;
    while (now - start < longest_offer && now - before < taken) {
        (void)sched_yield();
        if (has_come(a, phase))
            return true;
        before = now;
        now = clock_seconds();
    }
    return false;
}

static void wait_for(const struct barrier *b, struct arrival *a, unsigned phase, const struct barrier_look *look)
{
    for (int spin = 0; spin < (b->crowded ? SPINS_CROWDED : SPINS); spin++)
        if (has_come(a, phase))
            return;
    if (!offer_core(a, phase))
        sleep_until(b, a, phase, look);
}

static void wait_for_last(const struct barrier *b, const struct barrier_look *look)
{
    struct meeting *m = b->meeting;
    if (atomic_fetch_add_explicit(&m->arrived, 1, memory_order_acq_rel) + 1 < b->size) {
        wait_for(b, &m->last, b->phase, look);
        return;
    }
    atomic_store_explicit(&m->arrived, 0, memory_order_relaxed);
    arrive(b, &m->last, b->phase);
}

void barrier_wait(struct barrier *b, const struct barrier_look *look)
{
    b->phase++;
    if (b->crowded) {
        wait_for_last(b, look);
        return;
    }
    struct arrival **of = b->of[b->phase % 2];
    arrive(b, of[b->rank], b->phase);
    for (int i = 1; i < b->size; i++)
        wait_for(b, of[(b->rank + i) % b->size], b->phase, look);
}
