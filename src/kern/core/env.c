/* env: the state of one rank's kernels: the number of threads, scratch that only grows, kept blocks, packed weights, oneDNN's state.
 *
 * Packed weights are contiguous in a few large areas on huge pages: a decode step streams through all of them, and small pages would cost
 * address translation and stop the prefetcher at every page.
 *
 * Ranks may be threads of one process, each with its own environment; nothing here is global. The only parallel region of the kernels
 * is kenv_parallel_for: it names its number of threads, so it does not depend on settings of the calling thread. */
#include "kern/core/core.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define COST_PER_THREAD 16384 /* operations that pay for waking another thread */

struct room_block {
    void *at;
    size_t bytes;
};
struct kept {
    struct kept *next, *prev;
    void *at;
};
enum { FIRST_AREA = 1 << 18, LAST_AREA = 1 << 25 };
struct area {
    struct area *next;
    char *at;
    size_t used, bytes;
};
struct packed {
    struct packed_key key;
    void *cache;
    UT_hash_handle hh;
};
struct kenv {
    int graphs, threads;
    bool deterministic, narrows, narrows_computed;
    struct room_block room[ROOM_COUNT];
    struct kept kept;     /* a ring */
    struct area *weights; /* the current one first */
    struct packed *packed;
    void *library; /* state of a library, and its free function */
    void (*library_free)(void *);
    struct scope_item *kept_by;
};

static void *aligned_block(size_t bytes)
{
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : 64, rounded = bytes <= SIZE_MAX - align ? (bytes + align - 1) / align * align : 0;
    void *at = rounded >= bytes ? aligned_alloc(align, rounded ? rounded : align) : NULL;
    if (!at)
        fail_here("out of memory: a kernel asked for %zu bytes", bytes);
    huge_pages(at, rounded);
    return at;
}

struct kenv *kenv_share(struct kenv *env)
{
    env->graphs++;
    return env;
}

void *kenv_keep(struct kenv *env, size_t bytes)
{
    size_t head = 64;
    struct kept *kept = aligned_block(head + bytes);
    kept->at = (char *)kept + head;
    memset(kept->at, 0, bytes);
    kept->next = env->kept.next;
    kept->prev = &env->kept;
    kept->next->prev = kept;
    env->kept.next = kept;
    return kept->at;
}

static void drop(struct kept *kept)
{
    kept->next->prev = kept->prev;
    kept->prev->next = kept->next;
    free(kept);
}

/* The next area is twice as large, so that a small model needs little memory. */
static struct area *area_new(const struct area *last, size_t bytes)
{
    size_t size = !last ? FIRST_AREA : last->bytes < LAST_AREA ? 2 * last->bytes : LAST_AREA;
    if (size < bytes)
        size = bytes;
    struct area *area = calloc(1, sizeof *area);
    size_t align = size >= HUGE_PAGE ? HUGE_PAGE : 64, rounded = size <= SIZE_MAX - align ? (size + align - 1) / align * align : 0;
    area = area && rounded ? area : NULL;
    if (!area || !(area->at = aligned_alloc(align, rounded)))
        fail("out of memory: %zu bytes for packed weights", bytes);
    area->bytes = rounded;
    huge_pages(area->at, rounded);
    return area;
}

void *kenv_weights(struct kenv *env, size_t bytes)
{
    size_t rounded = bytes <= SIZE_MAX - 63 ? (bytes + 63) & ~(size_t)63 : SIZE_MAX;
    struct area *area = env->weights;
    if (!area || area->bytes - area->used < rounded) {
        area = area_new(env->weights, rounded);
        area->next = env->weights;
        env->weights = area;
    }
    area->used += rounded;
    return area->at + area->used - rounded;
}

static void areas_free(struct area *area)
{
    while (area) {
        struct area *next = area->next;
        free(area->at);
        free(area);
        area = next;
    }
}

void **kenv_packed(struct kenv *env, const struct packed_key *key)
{
    struct packed *p;
    HASH_FIND(hh, env->packed, key, sizeof *key, p);
    if (p)
        return &p->cache;
    p = kenv_keep(env, sizeof *p);
    p->key = *key;
    HASH_ADD(hh, env->packed, key, sizeof p->key, p);
    return &p->cache;
}

static void drop_env(void *data)
{
    struct kenv *env = data;
    HASH_CLEAR(hh, env->packed);
    if (env->library)
        env->library_free(env->library);
    while (env->kept.next != &env->kept)
        drop(env->kept.next);
    for (int i = 0; i < ROOM_COUNT; i++)
        free(env->room[i].at);
    areas_free(env->weights);
    free(env);
}

struct kenv *kenv_new(int threads, bool deterministic)
{
    (void)isa_runs(ISA_PLAIN); /* rejects a wrong TPC_ISA before any work */
    struct kenv *env = calloc(1, sizeof *env);
    if (!env)
        fail("out of memory: a kernel environment");
    env->graphs = 1;
    env->threads = threads > 0 ? threads : 1;
    env->deterministic = deterministic;
    env->kept.next = env->kept.prev = &env->kept;
    env->kept_by = scope_keep(drop_env, env);
    return env;
}

void kenv_free(struct kenv *env)
{
    if (!env || --env->graphs > 0)
        return;
    scope_forget(env->kept_by);
    drop_env(env);
}

int kenv_threads(const struct kenv *env)
{
    return env->threads;
}

bool kenv_deterministic(const struct kenv *env)
{
    return env->deterministic;
}

void kenv_narrow(struct kenv *env)
{
    env->narrows = true;
}

bool kenv_narrows(const struct kenv *env)
{
    return env->narrows;
}

void kenv_narrow_computed(struct kenv *env)
{
    env->narrows_computed = true;
}

bool kenv_narrows_computed(const struct kenv *env)
{
    return env->narrows || env->narrows_computed;
}

void **kenv_library(struct kenv *env, void (*release)(void *))
{
    env->library_free = release;
    return &env->library;
}

void *kenv_room(struct kenv *env, enum room which, size_t bytes)
{
    struct room_block *room = &env->room[which];
    if (room->at && room->bytes >= bytes)
        return room->at;
    free(room->at);
    room->bytes = bytes > SIZE_MAX - bytes / 4 - 64 ? bytes : bytes + bytes / 4 + 64;
    room->at = aligned_block(room->bytes);
    return room->at;
}

void *kenv_scratch(struct kenv *env, size_t bytes)
{
    return kenv_room(env, ROOM_KERNEL, bytes);
}

/* The number of threads worth using for n items. */
static int useful_threads(const struct kenv *env, int64_t n, int64_t cost)
{
    int64_t work;
    if (!i64_mul(n, cost > 0 ? cost : 1, &work))
        work = INT64_MAX;
    int64_t wanted = work / COST_PER_THREAD;
    if (wanted > n)
        wanted = n;
    return wanted >= env->threads ? env->threads : wanted > 1 ? (int)wanted : 1;
}

struct share {
    share_fn *body;
    void *data;
    int thread;
    int64_t from, to;
};

static void run_share(void *share)
{
    const struct share *s = share;
    s->body(s->data, s->thread, s->from, s->to);
}

/* If a share fails, the others finish, then this thread fails: to other ranks, a rank is one thread. */
void kenv_parallel_shares(struct kenv *env, int64_t n, int64_t cost, share_fn *body, void *data)
{
    enum { SENTENCE = 1024 };
    char sentence[SENTENCE];
    atomic_bool failed = false;
    if (n <= 0)
        return;
    int threads = useful_threads(env, n, cost);
    if (threads == 1) {
        body(data, 0, 0, n);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++) {
        int64_t q = n / threads, m = n % threads, lo = t * q + (t < m ? t : m);
        struct share s = {body, data, t, lo, lo + q + (t < m)};
        char own[SENTENCE];
        if (diag_try_share(own, sizeof own, run_share, &s) != 0 && !atomic_exchange(&failed, true))
            memcpy(sentence, own, sizeof own);
    }
    if (failed)
        fail("%s", sentence);
}

struct range {
    range_fn *body;
    void *data;
};

static void run_range(void *range, int thread, int64_t lo, int64_t hi)
{
    const struct range *r = range;
    (void)thread;
    r->body(r->data, lo, hi);
}

void kenv_parallel_for(struct kenv *env, int64_t n, int64_t cost, range_fn *body, void *data)
{
    kenv_parallel_shares(env, n, cost, run_range, &(struct range){body, data});
}
