/* comm_local: ranks as threads of one process. In an exchange, each rank publishes the addresses of its blocks, and every rank reads its
 * blocks there, between two barriers. */
#include "run/comm/comm.h"

#include <stdlib.h>
#include <string.h>

struct published_blocks {
    int64_t id;
    const char *name;
    const struct block *send;
};
struct arrival_line {
    _Alignas(64) struct arrival arrival;
};
/* A message that has not been received yet. */
struct letter {
    struct letter *next;
    struct arena *arena;
    int from, to;
    int64_t bytes;
    void *at;
};
struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct letter *first, **last;
};
struct thread_group {
    struct arena *arena;
    int size;
    bool crowded;
    struct meeting meeting;
    struct arrival **arrival;      /* by rank */
    struct published_blocks *slot; /* by rank */
    struct mailbox mail;
};
struct thread_rank {
    struct comm comm;
    struct thread_group *group;
    struct barrier barrier;
    struct arena *arena;
    void (*body)(struct comm *, void *);
    void *data;
    pthread_t thread;
    struct comm *around; /* the communicator that it was split from; NULL: none */
    struct scope *scope; /* of the caller that runs the ranks; NULL: none */
};

static struct thread_group *group_new(int size, bool crowded)
{
    struct arena *arena = arena_new();
    struct thread_group *t = NEW(arena, struct thread_group);
    t->arena = arena;
    t->size = size;
    t->crowded = crowded;
    t->arrival = NEWN(arena, struct arrival *, size);
    for (int r = 0; r < size; r++)
        t->arrival[r] = &NEW(arena, struct arrival_line)->arrival;
    t->slot = NEWN(arena, struct published_blocks, size);
    t->mail.last = &t->mail.first;
    if (pthread_mutex_init(&t->mail.lock, NULL) || pthread_cond_init(&t->mail.came, NULL))
        fail("can't create a lock");
    return t;
}

/* Called when no rank is in a barrier of the group. */
static void group_free(struct thread_group *t)
{
    while (t->mail.first) {
        struct letter *m = t->mail.first;
        t->mail.first = m->next;
        arena_free(m->arena);
    }
    pthread_cond_destroy(&t->mail.came);
    pthread_mutex_destroy(&t->mail.lock);
    arena_free(t->arena);
}

static void local_barrier(struct comm *c)
{
    struct thread_rank *m = c->state;
    barrier_wait(&m->barrier, NULL);
}

static void check_in_step(const struct comm *c, const struct published_blocks *other, int r)
{
    struct thread_rank *m = c->state;
    const struct published_blocks *own = &m->group->slot[c->rank];
    if (own->id == other->id)
        return;
    fail_job("ranks are out of step: rank %d is at collective %lld '%s', rank %d at %lld '%s'", c->rank, (long long)own->id,
             own->name ? own->name : "?", r, (long long)other->id, other->name ? other->name : "?");
}

static void local_exchange(struct comm *c, const struct block *send, const struct block *recv, const void **seen)
{
    struct thread_rank *m = c->state;
    struct published_blocks *slot = m->group->slot;
    slot[c->rank] = (struct published_blocks){c->id, c->name, send};
    barrier_wait(&m->barrier, NULL);
    for (int i = 0; i < c->size; i++) {
        int r = (c->rank + i) % c->size;
        check_in_step(c, &slot[r], r);
        struct block from = slot[r].send[c->rank];
        if (from.bytes != recv[r].bytes)
            fail_job("collective '%s': rank %d sends %lld bytes where rank %d expects %lld", c->name ? c->name : "?", r,
                     (long long)from.bytes, c->rank, (long long)recv[r].bytes);
        seen[r] = from.at;
        if (r != c->rank)
            c->bytes_sent += send[r].bytes;
    }
}

/* ---- messages ---- */

static void local_send(struct comm *c, int to, const void *at, int64_t bytes)
{
    struct mailbox *mail = &((struct thread_rank *)c->state)->group->mail;
    struct arena *a = arena_new();
    struct letter *m = NEW(a, struct letter);
    *m = (struct letter){.arena = a, .from = c->rank, .to = to, .bytes = bytes, .at = arena_alloc(a, (size_t)bytes + 1)};
    if (bytes)
        memcpy(m->at, at, (size_t)bytes);
    c->bytes_sent += bytes;
    pthread_mutex_lock(&mail->lock);
    *mail->last = m;
    mail->last = &m->next;
    pthread_cond_broadcast(&mail->came);
    pthread_mutex_unlock(&mail->lock);
}

/* Takes the first message out of the mailbox; NULL: none. */
static struct letter *take_letter(struct mailbox *mail, int from, int to)
{
    for (struct letter **at = &mail->first; *at; at = &(*at)->next) {
        struct letter *m = *at;
        if (m->from != from || m->to != to)
            continue;
        *at = m->next;
        if (mail->last == &m->next)
            mail->last = at;
        return m;
    }
    return NULL;
}

enum { LOOK_EACH = 1000 }; /* ms */

/* Looks periodically for a failed rank of the scope. */
static struct letter *wait_for_letter(struct mailbox *mail, int from, int to)
{
    struct letter *m;
    pthread_mutex_lock(&mail->lock);
    while (!(m = take_letter(mail, from, to))) {
        const struct timespec until = clock_after(LOOK_EACH);
        (void)pthread_cond_timedwait(&mail->came, &mail->lock, &until);
        pthread_mutex_unlock(&mail->lock);
        scope_look();
        pthread_mutex_lock(&mail->lock);
    }
    pthread_mutex_unlock(&mail->lock);
    return m;
}

static void *local_receive(struct comm *c, int from, struct buffer *to, int64_t *bytes)
{
    struct letter *m = wait_for_letter(&((struct thread_rank *)c->state)->group->mail, from, c->rank);
    void *at = buffer_reserve(to, (size_t)m->bytes + 1);
    *bytes = m->bytes;
    if (m->bytes)
        memcpy(at, m->at, (size_t)m->bytes);
    arena_free(m->arena);
    return at;
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

/* The ranks of one color leave the wider communicator's barrier together, so none is in the group's. */
static void local_part_free(struct comm *c)
{
    struct thread_rank *m = c->state;
    m->around->barrier(m->around);
    if (c->rank == 0)
        group_free(m->group);
    comm_release(c);
    arena_free(m->arena);
}

static struct comm *local_split(struct comm *, int color);

static void rank_init(struct thread_rank *m, struct thread_group *t, struct arena *a, int rank)
{
    m->group = t;
    m->arena = a;
    m->barrier = (struct barrier){rank, t->size, t->crowded, false, 0, &t->meeting, {t->arrival, t->arrival}};
    m->comm = (struct comm){.rank = rank,
                            .size = t->size,
                            .local_size = t->size,
                            .kind = "local",
                            .state = m,
                            .barrier = local_barrier,
                            .exchange = local_exchange,
                            .done = local_barrier,
                            .send_message = local_send,
                            .receive_message = local_receive,
                            .split = local_split,
                            .abort = local_abort,
                            .free = local_free};
    comm_setup(&m->comm, a);
}

/* The first rank of each color makes the group. */
static struct comm *local_split(struct comm *c, int color)
{
    struct thread_rank *around = c->state, *m;
    struct arena *a = arena_new();
    static const char splitting[] = "split of the ranks";
    const int *colors = comm_gather(c, a, splitting, &color, sizeof color);
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
    struct thread_group *made = c->rank == first ? group_new(size, around->group->crowded) : NULL;
    struct thread_group *const *groups = comm_gather(c, a, splitting, &made, sizeof made);
    m = NEW(a, struct thread_rank);
    rank_init(m, groups[first], a, rank);
    m->around = c;
    m->comm.free = local_part_free;
    return &m->comm;
}

static void call_body(void *rank)
{
    struct thread_rank *m = rank;
    m->body(&m->comm, m->data);
}

/* In a scope, a rank that fails ends alone, so that all can be joined. */
static void *run_thread_rank(void *rank)
{
    struct thread_rank *m = rank;
    if (m->scope)
        (void)scope_do(m->scope, call_body, m);
    else
        call_body(m);
    return NULL;
}

static void tell_missing(void *rank)
{
    const struct thread_rank *m = rank;
    fail("can't create a thread for rank %d of %d", m->comm.rank, m->comm.size);
}

/* Records that a thread could not be started: the others wait for it. */
static void miss_thread(struct thread_rank *m)
{
    if (!m->scope)
        tell_missing(m);
    (void)scope_do(m->scope, tell_missing, m);
}

void comm_local_run(int size, void (*body)(struct comm *, void *), void *data)
{
    struct arena *arena = arena_new();
    struct thread_group *group = group_new(size, barrier_crowded(size));
    struct thread_rank *member = NEWN(arena, struct thread_rank, size);
    for (int r = 0; r < size; r++) {
        rank_init(&member[r], group, arena_new(), r);
        member[r].body = body;
        member[r].data = data;
        member[r].scope = scope_current();
    }
    int started = 1;
    while (started < size && pthread_create(&member[started].thread, NULL, run_thread_rank, &member[started]) == 0)
        started++;
    if (started < size)
        miss_thread(&member[started]);
    else
        run_thread_rank(&member[0]);
    for (int r = 1; r < started; r++)
        pthread_join(member[r].thread, NULL);
    scope_look();
    for (int r = 0; r < size; r++) {
        comm_release(&member[r].comm);
        arena_free(member[r].arena);
    }
    group_free(group);
    arena_free(arena);
}
