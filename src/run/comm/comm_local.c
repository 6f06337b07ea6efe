/* comm_local: ranks as threads of one process. An exchange publishes where each rank's blocks lie, and every rank reads what is meant for
 * it there, between two barriers. The barrier is the central sense-reversing one. It spins for longer than a sleeper takes to wake, then
 * sleeps: ranks that yield, to each other or to other programs, get their cores back late and keep the one that is waited for from its own.
 * Where ranks are more than cores, it soon sleeps. */
#include "run/comm/comm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPINS_CROWDED = 256, SPINS = 1 << 20 };

struct published {
    int64_t id;
    const char *name;
    const struct block *send;
};
struct team {
    struct arena *arena;
    int size, spins;
    atomic_int arrived, phase;
    pthread_mutex_t lock; /* held while the phase changes */
    pthread_cond_t changed;
    struct published *slot; /* by rank */
};
struct member {
    struct comm comm;
    struct team *team;
    struct arena *arena;
    void (*body)(struct comm *, void *);
    void *data;
    pthread_t thread;
    struct comm *around; /* it was split from; NULL: nothing */
};

static struct team *team_new(int size, int spins)
{
    struct arena *arena = arena_new();
    struct team *t = NEW(arena, struct team);
    t->arena = arena;
    t->size = size;
    t->spins = spins;
    if (pthread_mutex_init(&t->lock, NULL) || pthread_cond_init(&t->changed, NULL))
        fail("the system gave no lock for %d ranks", size);
    t->slot = NEWN(arena, struct published, size);
    return t;
}

/* When no rank is in a barrier of the team. */
static void team_free(struct team *t)
{
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    arena_free(t->arena);
}

static void next_phase(struct team *t, int phase)
{
    atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
    pthread_mutex_lock(&t->lock);
    atomic_store_explicit(&t->phase, phase + 1, memory_order_release);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static bool is_phase(struct team *t, int phase)
{
    return atomic_load_explicit(&t->phase, memory_order_acquire) == phase;
}

static void sleep_through(struct team *t, int phase)
{
    pthread_mutex_lock(&t->lock);
    while (is_phase(t, phase))
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void wait_through(struct team *t, int phase)
{
    for (int spin = 0; spin < t->spins; spin++)
        if (!is_phase(t, phase))
            return;
    sleep_through(t, phase);
}

static void team_wait(struct team *t)
{
    int phase = atomic_load_explicit(&t->phase, memory_order_acquire);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 == t->size)
        next_phase(t, phase);
    else
        wait_through(t, phase);
}

static void local_barrier(struct comm *c)
{
    struct member *m = c->state;
    team_wait(m->team);
}

static void check_same(const struct comm *c, const struct published *other, int r)
{
    struct member *m = c->state;
    const struct published *own = &m->team->slot[c->rank];
    if (own->id == other->id)
        return;
    fail("ranks are out of step: rank %d is at collective %lld '%s', rank %d at %lld '%s'", c->rank, (long long)own->id,
         own->name ? own->name : "?", r, (long long)other->id, other->name ? other->name : "?");
}

static void local_exchange(struct comm *c, const struct block *send, const struct block *recv, const void **seen)
{
    struct member *m = c->state;
    struct published *slot = m->team->slot;
    slot[c->rank] = (struct published){c->id, c->name, send};
    team_wait(m->team);
    for (int i = 0; i < c->size; i++) {
        int r = (c->rank + i) % c->size;
        check_same(c, &slot[r], r);
        struct block from = slot[r].send[c->rank];
        if (from.bytes != recv[r].bytes)
            fail("collective '%s': rank %d sends %lld bytes where rank %d expects %lld", c->name ? c->name : "?", r, (long long)from.bytes,
                 c->rank, (long long)recv[r].bytes);
        seen[r] = from.at;
        if (r != c->rank)
            c->bytes_sent += send[r].bytes;
    }
}

static __attribute__((noreturn)) void local_abort(struct comm *c, int status)
{
    (void)c;
    exit(status);
}

static void local_free(struct comm *c)
{
    (void)c;
}

/* Those of one color leave the wider communicator's barrier together, so nobody is in the team's. */
static void part_free(struct comm *c)
{
    struct member *m = c->state;
    m->around->barrier(m->around);
    if (c->rank == 0)
        team_free(m->team);
    comm_release(c);
    arena_free(m->arena);
}

static struct comm *local_split(struct comm *, int color);

static void member_init(struct member *m, struct team *t, struct arena *a, int rank)
{
    m->team = t;
    m->arena = a;
    m->comm = (struct comm){.rank = rank,
                            .size = t->size,
                            .local_size = t->size,
                            .kind = "local",
                            .state = m,
                            .barrier = local_barrier,
                            .exchange = local_exchange,
                            .done = local_barrier,
                            .split = local_split,
                            .abort = local_abort,
                            .free = local_free};
    comm_setup(&m->comm, a);
}

/* One of bytes each from all ranks, in their order. */
static void *from_all(struct comm *c, struct arena *a, const void *own, size_t bytes)
{
    char *all = arena_array(a, (size_t)c->size, bytes);
    int64_t *each = NEWN(a, int64_t, c->size);
    for (int r = 0; r < c->size; r++)
        each[r] = (int64_t)bytes;
    memcpy(all + (size_t)c->rank * bytes, own, bytes);
    c->id = 0;
    c->name = "split of the ranks";
    c->allgatherv(c, all, each);
    return all;
}

/* The first rank of a color makes the team. */
static struct comm *local_split(struct comm *c, int color)
{
    struct member *around = c->state, *m;
    struct arena *a = arena_new();
    const int *colors = from_all(c, a, &color, sizeof color);
    int rank = 0, size = 0, first = -1;
    for (int r = 0; r < c->size; r++) {
        if (colors[r] != color)
            continue;
        if (first < 0)
            first = r;
        if (r < c->rank)
            rank++;
        size++;
    }
    struct team *made = c->rank == first ? team_new(size, around->team->spins) : NULL;
    struct team *const *teams = from_all(c, a, &made, sizeof made);
    m = NEW(a, struct member);
    member_init(m, teams[first], a, rank);
    m->around = c;
    m->comm.free = part_free;
    return &m->comm;
}

static void *member_main(void *data)
{
    struct member *m = data;
    m->body(&m->comm, m->data);
    return NULL;
}

void comm_local_run(int size, void (*body)(struct comm *, void *), void *data)
{
    struct arena *arena = arena_new();
    struct team *team = team_new(size, size <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS : SPINS_CROWDED);
    struct member *member = NEWN(arena, struct member, size);
    for (int r = 0; r < size; r++) {
        member_init(&member[r], team, arena_new(), r);
        member[r].body = body;
        member[r].data = data;
    }
    for (int r = 1; r < size; r++)
        if (pthread_create(&member[r].thread, NULL, member_main, &member[r]))
            fail("the system gave no thread for rank %d of %d", r, size);
    member_main(&member[0]);
    for (int r = 1; r < size; r++)
        pthread_join(member[r].thread, NULL);
    for (int r = 0; r < size; r++) {
        comm_release(&member[r].comm);
        arena_free(member[r].arena);
    }
    team_free(team);
    arena_free(arena);
}
