/* shared_memory: the exchange between processes of one machine through shared memory. Every rank has a segment. It writes its blocks there,
 * waits for the others, and reads theirs in place. An exchange overwrites the blocks of the one before the last, which all ranks have left,
 * so one barrier is enough.
 *
 * A rank alternates between two slots. A slot begins with the rank's arrival at the barrier and the positions of its blocks; short blocks
 * follow, so few cache lines move. Longer blocks are in a ring buffer larger than a core's cache, because a line that another core still
 * holds is slow to write. Blocks too long for one step take several steps, with a part of each block per step. */
#include "run/comm/comm.h"

#include <stddef.h>
#include <string.h>

enum { LINE = 64, PAIR = 2 * LINE, NAME_BYTES = LINE, SHORT_BYTES = 4096, STEP = SHARED_STEP_BYTES, RING_BYTES = 4 * STEP };

struct placed {
    int64_t at, bytes; /* at: offset in the record; bytes: over all steps */
};
struct control { /* one exchange of one rank; two ranks per cache line */
    struct arrival arrival;
    int64_t id, steps;
    int32_t record, part; /* record: its offset in the segment, in the first step; part: bytes of a block per step */
    struct placed to[];   /* by rank */
};
struct shared {
    int rank, size;
    char **segment;         /* by rank */
    struct barrier barrier; /* its next phase is the next exchange's, and selects the slot */
    struct barrier_look look;
    int64_t ring;        /* where its next record begins */
    int64_t *record;     /* by rank: of this step */
    struct placed *from; /* by rank: what it sends to this rank */
    int64_t *part;       /* by rank: per step */
    struct copier copier;
    struct control *own; /* of its next exchange, without the arrival */
};

static int64_t aligned(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t control_bytes(int size)
{
    return aligned((int64_t)sizeof(struct control) + size * (int64_t)sizeof(struct placed), LINE);
}

/* The offsets of the slots of odd and even phases, and of their contents. */
static int64_t slot_start(int size, unsigned phase)
{
    return aligned(sizeof(struct meeting), PAIR) + (int64_t)(phase % 2) * aligned(control_bytes(size) + SHORT_BYTES + NAME_BYTES, PAIR);
}

static int64_t short_start(int size, unsigned phase)
{
    return slot_start(size, phase) + control_bytes(size);
}

static int64_t name_start(int size, unsigned phase)
{
    return short_start(size, phase) + SHORT_BYTES;
}

static int64_t ring_start(int size)
{
    return aligned(name_start(size, 1) + NAME_BYTES, PAIR);
}

static struct control *control_in(const struct shared *s, int r, unsigned phase)
{
    return (struct control *)(void *)(s->segment[r] + slot_start(s->size, phase));
}

size_t shared_segment_bytes(int size)
{
    return (size_t)(ring_start(size) + RING_BYTES);
}

struct shared *shared_new(struct arena *arena, char **segment, int rank, int size, bool crowded, struct barrier_look look)
{
    struct shared *s = NEW(arena, struct shared);
    *s = (struct shared){.rank = rank, .size = size, .segment = segment, .look = look, .ring = ring_start(size)};
    s->record = NEWN(arena, int64_t, size);
    s->from = NEWN(arena, struct placed, size);
    s->part = NEWN(arena, int64_t, size);
    s->own = arena_alloc(arena, (size_t)control_bytes(size));
    memset(segment[rank], 0, (size_t)ring_start(size));
    s->barrier = (struct barrier){.rank = rank, .size = size, .crowded = crowded, .processes = true};
    s->barrier.meeting = (struct meeting *)(void *)segment[0];
    for (unsigned phase = 0; phase < 2; phase++) {
        s->barrier.of[phase] = NEWN(arena, struct arrival *, size);
        for (int r = 0; r < size; r++)
            s->barrier.of[phase][r] = &control_in(s, r, phase)->arrival;
    }
    return s;
}

void shared_barrier(struct shared *s)
{
    barrier_wait(&s->barrier, &s->look);
}

/* ---- sending ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Places the parts of each block; a block for several ranks is stored once. Returns the total bytes. */
static int64_t place_parts(const struct shared *s, struct placed *to, int64_t part, const struct block *send)
{
    int64_t used = 0;
    const struct block *before = NULL;
    for (int r = 0; r < s->size; r++) {
        to[r] = (struct placed){0, send[r].bytes};
        if (r == s->rank || send[r].bytes == 0)
            continue;
        if (before && before->at == send[r].at && before->bytes == send[r].bytes) {
            to[r].at = to[before - send].at;
            continue;
        }
        before = &send[r];
        to[r].at = used;
        used += aligned(least(send[r].bytes, part), LINE);
    }
    return used;
}

/* The record after one at `at` of this many bytes: it has space for a step. Consecutive records do not overlap. */
static int64_t next_record(const struct shared *s, int64_t at, int64_t bytes)
{
    return at + bytes + STEP <= ring_start(s->size) + RING_BYTES ? at + bytes : ring_start(s->size);
}

static int64_t steps_of(const struct shared *s, const struct block *send, int64_t part)
{
    int64_t most = 0;
    for (int r = 0; r < s->size; r++)
        if (r != s->rank && send[r].bytes > most)
            most = send[r].bytes;
    return most <= part ? 1 : (most - 1) / part + 1;
}

static void place_blocks(struct shared *s, struct control *c, unsigned phase, const struct block *send)
{
    int64_t part = STEP, need = place_parts(s, c->to, part, send);
    if (need > STEP) {
        part = STEP / (s->size - 1) / LINE * LINE;
        need = place_parts(s, c->to, part, send);
    }
    c->steps = steps_of(s, send, part);
    c->part = (int32_t)part;
    c->record = (int32_t)(need <= SHORT_BYTES ? short_start(s->size, phase) : s->ring);
    if (need > SHORT_BYTES)
        s->ring = next_record(s, s->ring, need);
}

/* The part of a block in one step. */
static struct block part_of(struct block whole, int64_t part, int64_t step)
{
    int64_t rest = whole.bytes - step * part;
    return rest > 0 ? (struct block){(char *)whole.at + step * part, least(rest, part)} : (struct block){NULL, 0};
}

static void write_parts(struct shared *s, const struct control *c, int64_t record, const struct block *send, int64_t step)
{
    int64_t written = -1;
    for (int r = 0; r < s->size; r++) {
        struct block b = part_of(send[r], c->part, step);
        if (r == s->rank || b.bytes == 0 || c->to[r].at <= written)
            continue;
        copier_copy(&s->copier, s->segment[s->rank] + record + c->to[r].at, b.at, (size_t)b.bytes);
        written = c->to[r].at;
    }
}

static void write_name(const struct shared *s, unsigned phase, const char *name)
{
    char *to = s->segment[s->rank] + name_start(s->size, phase);
    size_t n = strnlen(name, NAME_BYTES - 1);
    memcpy(to, name, n);
    to[n] = '\0';
}

/* Writes it all at once and last: other ranks poll this line for the arrival, and would take it away meanwhile. */
static void write_control(const struct shared *s, unsigned phase)
{
    const size_t start = offsetof(struct control, id);
    memcpy((char *)control_in(s, s->rank, phase) + start, (char *)s->own + start, (size_t)control_bytes(s->size) - start);
}

/* ---- receiving ---- */

static void read_parts(const struct shared *s, const struct block *recv, int64_t step)
{
    for (int i = 1; i < s->size; i++) {
        int r = (s->rank + i) % s->size;
        struct block b = part_of(recv[r], s->part[r], step);
        if (b.bytes)
            memcpy(b.at, s->segment[r] + s->record[r] + s->from[r].at, (size_t)b.bytes);
    }
}

static __attribute__((noreturn)) void tell_out_of_step(const struct shared *s, unsigned phase, int r)
{
    fail_job("ranks are out of step: rank %d is at collective %lld '%s', rank %d at %lld '%s'", s->rank,
             (long long)control_in(s, s->rank, phase)->id, s->segment[s->rank] + name_start(s->size, phase), r,
             (long long)control_in(s, r, phase)->id, s->segment[r] + name_start(s->size, phase));
}

/* Reads the positions of all ranks' blocks. Returns the number of steps. */
static int64_t read_controls(struct shared *s, const struct comm *comm, unsigned phase, const struct block *recv)
{
    int64_t steps = 1;
    for (int r = 0; r < s->size; r++) {
        const struct control *c = control_in(s, r, phase);
        if (c->id != comm->id)
            tell_out_of_step(s, phase, r);
        s->from[r] = c->to[s->rank];
        s->record[r] = c->record;
        s->part[r] = c->part;
        if (s->from[r].bytes != recv[r].bytes)
            fail_job("collective '%s': rank %d sends %lld bytes where rank %d expects %lld", comm->name ? comm->name : "?", r,
                     (long long)s->from[r].bytes, s->rank, (long long)recv[r].bytes);
        steps = c->steps > steps ? c->steps : steps;
    }
    return steps;
}

/* Runs the steps after the first: all ranks know where a rank's next record is. */
static void take_steps(struct shared *s, const struct control *own, int64_t steps, const struct block *send, const struct block *recv)
{
    read_parts(s, recv, 0);
    for (int64_t step = 1; step < steps; step++) {
        for (int r = 0; r < s->size; r++)
            s->record[r] = next_record(s, s->record[r], STEP);
        write_parts(s, own, s->record[s->rank], send, step);
        barrier_wait(&s->barrier, &s->look);
        read_parts(s, recv, step);
    }
    if (own->steps > 1)
        s->ring = next_record(s, s->record[s->rank], STEP);
}

void shared_exchange(struct shared *s, struct comm *comm, const struct block *send, const struct block *recv, const void **seen)
{
    unsigned phase = s->barrier.phase + 1;
    struct control *own = s->own;
    own->id = comm->id;
    write_name(s, phase, comm->name ? comm->name : "?");
    place_blocks(s, own, phase, send);
    write_parts(s, own, own->record, send, 0);
    write_control(s, phase);
    barrier_wait(&s->barrier, &s->look);
    int64_t steps = read_controls(s, comm, phase, recv);
    for (int r = 0; r < s->size; r++) {
        seen[r] = r == s->rank ? send[r].at : steps > 1 ? recv[r].at : s->segment[r] + s->record[r] + s->from[r].at;
        if (r != s->rank)
            comm->bytes_sent += send[r].bytes;
    }
    if (steps > 1)
        take_steps(s, own, steps, send, recv);
}
