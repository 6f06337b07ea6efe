/* What processes of one machine exchange, through memory that they share. Every rank has a segment: its control block, and two rooms for
 * blocks that take turns. A rank copies what it sends into its room, waits for the others, and reads what they sent where it lies. The
 * next exchange uses the other room; the one after it cannot begin before all ranks have read what is here, so one barrier an exchange is
 * enough. What does not fit into a room goes by messages: every rank sees that in the control blocks. */
#include "run/comm/comm.h"

#include <string.h>

enum { ROOM_BYTES = 8 << 20, ALIGNMENT = 64, NAME_BYTES = 56 };

struct placed {
    int64_t at, bytes; /* at: in the room */
};
struct control { /* of one exchange of one rank */
    int64_t id, need;
    char name[NAME_BYTES];
    struct placed to[]; /* by rank */
};
struct shared {
    int rank, size, turn;
    char **segment; /* by rank */
    struct barrier *barrier;
    struct barrier_look look;
};

static size_t aligned(size_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t control_bytes(int size)
{
    return aligned(sizeof(struct control) + (size_t)size * sizeof(struct placed));
}

static struct control *control_of(const struct shared *s, int r)
{
    return (struct control *)(void *)(s->segment[r] + aligned(sizeof(struct barrier)) + (size_t)s->turn * control_bytes(s->size));
}

static char *room_of(const struct shared *s, int r)
{
    return s->segment[r] + aligned(sizeof(struct barrier)) + 2 * control_bytes(s->size) + (size_t)s->turn * ROOM_BYTES;
}

size_t shared_segment_bytes(int size)
{
    return aligned(sizeof(struct barrier)) + 2 * control_bytes(size) + 2 * (size_t)ROOM_BYTES;
}

struct shared *shared_new(struct arena *arena, char **segment, int rank, int size, bool crowded, struct barrier_look look)
{
    struct shared *s = NEW(arena, struct shared);
    *s = (struct shared){.rank = rank, .size = size, .segment = segment, .barrier = (struct barrier *)(void *)segment[0], .look = look};
    if (rank == 0)
        barrier_init(s->barrier, size, crowded, true);
    return s;
}

void shared_barrier(struct shared *s)
{
    barrier_wait(s->barrier, &s->look);
}

/* Where each block goes in the room; a block for several ranks is there once. Returns the bytes of all. */
static int64_t place_blocks(const struct shared *s, struct control *c, const struct block *send)
{
    int64_t need = 0;
    const struct block *before = NULL;
    for (int r = 0; r < s->size; r++) {
        c->to[r] = (struct placed){0, send[r].bytes};
        if (r == s->rank || send[r].bytes == 0)
            continue;
        if (before && before->at == send[r].at && before->bytes == send[r].bytes) {
            c->to[r].at = c->to[before - send].at;
            continue;
        }
        before = &send[r];
        c->to[r].at = need;
        if (send[r].bytes > INT64_MAX / 2 - need)
            return INT64_MAX;
        need += (int64_t)aligned((size_t)send[r].bytes);
    }
    return need;
}

static void copy_blocks(const struct shared *s, const struct control *c, const struct block *send)
{
    char *room = room_of(s, s->rank);
    int64_t done = -1;
    for (int r = 0; r < s->size; r++) {
        if (r == s->rank || send[r].bytes == 0 || c->to[r].at <= done)
            continue;
        memcpy(room + c->to[r].at, send[r].at, (size_t)send[r].bytes);
        done = c->to[r].at;
    }
}

static void check_in_step(const struct shared *s, const struct control *other, int r)
{
    const struct control *own = control_of(s, s->rank);
    if (own->id != other->id)
        fail("ranks are out of step: rank %d is at collective %lld '%s', rank %d at %lld '%s'", s->rank, (long long)own->id, own->name, r,
             (long long)other->id, other->name);
}

/* Whether all ranks' blocks are in their rooms. */
static bool all_fit(const struct shared *s)
{
    bool fit = true;
    for (int r = 0; r < s->size; r++) {
        check_in_step(s, control_of(s, r), r);
        fit &= control_of(s, r)->need <= ROOM_BYTES;
    }
    return fit;
}

static void publish(struct shared *s, const struct comm *comm, const struct block *send)
{
    s->turn = !s->turn;
    struct control *c = control_of(s, s->rank);
    c->id = comm->id;
    (void)snprintf(c->name, sizeof c->name, "%s", comm->name ? comm->name : "?");
    c->need = place_blocks(s, c, send);
    if (c->need <= ROOM_BYTES)
        copy_blocks(s, c, send);
    barrier_wait(s->barrier, &s->look);
}

bool shared_exchange(struct shared *s, struct comm *comm, const struct block *send, const struct block *recv, const void **seen)
{
    publish(s, comm, send);
    if (!all_fit(s))
        return false;
    for (int r = 0; r < s->size; r++) {
        struct placed from = control_of(s, r)->to[s->rank];
        if (from.bytes != recv[r].bytes)
            fail("collective '%s': rank %d sends %lld bytes where rank %d expects %lld", comm->name ? comm->name : "?", r,
                 (long long)from.bytes, s->rank, (long long)recv[r].bytes);
        seen[r] = r == s->rank ? send[r].at : room_of(s, r) + from.at;
        if (r != s->rank)
            comm->bytes_sent += send[r].bytes;
    }
    return true;
}
