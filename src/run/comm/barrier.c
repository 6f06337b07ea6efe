/* A barrier of threads, or of processes that share its memory: the central sense-reversing one (Mellor-Crummey, Scott 1991). A rank that
 * waits spins for longer than a sleeping one needs to wake, and then sleeps. On the way it offers its core to others. If another thread
 * took the core, there are more threads than cores. Then the rank sleeps at once: this frees its core for the rank that it waits for, and
 * it gets a core back as soon as there is work. With more ranks than cores it spins less.
 *
 * There is no lock, and no condition variable, which has locks within: a process that is stopped while it holds one would stop all. */
#include "run/comm/comm.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS_CROWDED = 256, SPINS = 2048 };
static const struct timespec look_each = {0, 50000000};  /* 50 ms */
static const double longest_offer = 1e-3, taken = 20e-6; /* seconds: of offering the core; of one offer that another took */

bool barrier_crowded(int ranks)
{
    return ranks > sysconf(_SC_NPROCESSORS_ONLN);
}

void barrier_init(struct barrier *b, int size, bool crowded, bool processes)
{
    b->size = size;
    b->crowded = crowded;
    b->processes = processes;
    atomic_init(&b->arrived, 0);
    atomic_init(&b->phase, 0);
    atomic_init(&b->sleepers, 0);
}

/* Sleeps while the phase is this one, until woken or for a while. */
static void sleep_in(struct barrier *b, int phase)
{
    int wait = b->processes ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE;
    atomic_fetch_add(&b->sleepers, 1);
    (void)syscall(SYS_futex, &b->phase, wait, phase, &look_each, NULL, 0);
    atomic_fetch_sub(&b->sleepers, 1);
}

static void next_phase(struct barrier *b, int phase)
{
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
    atomic_store(&b->phase, phase + 1);
    if (atomic_load(&b->sleepers) > 0)
        (void)syscall(SYS_futex, &b->phase, b->processes ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static bool is_phase(struct barrier *b, int phase)
{
    return atomic_load_explicit(&b->phase, memory_order_acquire) == phase;
}

/* Now and then it looks whether a rank that it waits for has failed, or does not run. */
static void sleep_through(struct barrier *b, int phase, const struct barrier_look *look)
{
    while (is_phase(b, phase)) {
        sleep_in(b, phase);
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
    if (!offer_core(b, phase))
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
