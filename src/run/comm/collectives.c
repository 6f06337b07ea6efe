/* collectives: all collectives, over a communicator's exchange of blocks. The rank that owns a share reduces it, in rank order (Thakur,
 * Rabenseifner, Gropp 2005: reduce-scatter, then all-gather, for long vectors). For short ones every rank gets everything, which costs one
 * latency instead of two. No rings or trees: ranks are few, and every pair has a link. */
#include "run/comm/comm.h"

#include <string.h>

static void alltoall(struct comm *c)
{
    c->exchange(c, c->send, c->recv, c->seen);
    for (int r = 0; r < c->size; r++)
        if (c->recv[r].bytes && c->seen[r] != c->recv[r].at)
            memcpy(c->recv[r].at, c->seen[r], (size_t)c->recv[r].bytes);
    c->done(c);
}

static void allgatherv(struct comm *c, void *at, const int64_t *bytes)
{
    int64_t offset = 0, own = 0;
    for (int r = 0; r < c->size; r++) {
        c->recv[r] = (struct block){(char *)at + offset, r == c->rank ? 0 : bytes[r]};
        if (r == c->rank)
            own = offset;
        offset += bytes[r];
    }
    for (int r = 0; r < c->size; r++)
        c->send[r] = (struct block){(char *)at + own, r == c->rank ? 0 : bytes[c->rank]};
    alltoall(c);
}

static void reduce_blocks(struct comm *c, void *out, int64_t n, enum dtype dtype, enum redop op)
{
    int64_t bytes = n * (int64_t)dtype_size(dtype);
    char *addends = buffer_reserve(c->scratch, (size_t)(c->size * bytes));
    for (int r = 0; r < c->size; r++)
        c->recv[r] = (struct block){addends + r * bytes, bytes};
    c->exchange(c, c->send, c->recv, c->seen);
    comm_reduce(out, c->seen, c->size, n, dtype, op);
    c->done(c);
}

/* Reduces the first `most` bytes of every block; the rest remains. */
static void reduce_parts(struct comm *c, void *out, int64_t n, int64_t most, enum dtype dtype, enum redop op)
{
    for (int r = 0; r < c->size; r++) {
        c->rest[r] = c->send[r];
        c->send[r].bytes = c->send[r].bytes < most ? c->send[r].bytes : most;
    }
    reduce_blocks(c, out, n, dtype, op);
    for (int r = 0; r < c->size; r++) {
        int64_t sent = c->send[r].bytes;
        c->send[r] = (struct block){(char *)c->rest[r].at + sent, c->rest[r].bytes - sent};
    }
}

/* The largest blocks of all ranks in one exchange. */
static int64_t most_at_once(const struct comm *c)
{
    enum { MULTIPLE = 64 };
    return c->step && c->size > 1 ? c->step / (c->size - 1) / MULTIPLE * MULTIPLE : INT64_MAX;
}

void comm_reduce_scatter(struct comm *c, void *out, int64_t n, enum dtype dtype, enum redop op)
{
    int64_t size = (int64_t)dtype_size(dtype), most = most_at_once(c), bytes, total, longest = 0;
    if (comm_wire_shortens(c, dtype, op)) {
        comm_wire_reduce_scatter(c, out, n);
        return;
    }
    if (!i64_mul(n, size, &bytes) || !i64_mul(c->size, bytes, &total))
        fail("collective '%s': %d blocks of %lld elements are too large", c->name ? c->name : "?", c->size, (long long)n);
    for (int r = 0; r < c->size; r++)
        longest = c->send[r].bytes > longest ? c->send[r].bytes : longest;
    while (longest > most) {
        int64_t part = n * size < most ? n * size : most;
        reduce_parts(c, out, part / size, most, dtype, op);
        out = (char *)out + part;
        n -= part / size;
        longest -= most;
    }
    reduce_blocks(c, out, n, dtype, op);
}

static void allreduce_short(struct comm *c, const void *x, void *y, int64_t n, int64_t bytes, enum dtype dtype, enum redop op)
{
    for (int r = 0; r < c->size; r++)
        c->send[r] = (struct block){(void *)(uintptr_t)x, bytes};
    comm_reduce_scatter(c, y, n, dtype, op);
}

void comm_gather_shares(struct comm *c, void *at, int64_t n, int64_t size)
{
    for (int r = 0; r < c->size; r++) {
        c->send[r] = comm_share(c, at, n, size, c->rank);
        c->recv[r] = comm_share(c, at, n, size, r);
    }
    c->send[c->rank].bytes = c->recv[c->rank].bytes = 0;
    alltoall(c);
}

static void allreduce_long(struct comm *c, const void *x, void *y, int64_t n, int64_t size, enum dtype dtype, enum redop op)
{
    struct block mine = comm_share(c, y, n, size, c->rank);
    for (int r = 0; r < c->size; r++)
        c->send[r] = comm_share(c, x, n, size, r);
    comm_reduce_scatter(c, mine.at, mine.bytes / size, dtype, op);
    if (comm_wire_shortens(c, dtype, op))
        comm_wire_gather_shares(c, y, n);
    else
        comm_gather_shares(c, y, n, size);
}

/* Whether every rank sends its whole vector. Between two machines that takes no more bytes and one latency less; for long messages, sending
 * halves is faster. */
static bool sends_all(const struct comm *c, int64_t bytes)
{
    enum { PAIR_BYTES = 1 << 19 };
    return c->size == 1 || bytes <= COMM_SHORT_BYTES || (c->size == 2 && c->polls && bytes <= PAIR_BYTES);
}

void comm_allreduce(struct comm *c, const void *x, void *y, int64_t n, enum dtype dtype, enum redop op)
{
    int64_t size = (int64_t)dtype_size(dtype), bytes;
    require(size > 0 && n >= 0 && (x != y || n == 0));
    if (!i64_mul(n, size, &bytes))
        fail("collective '%s': %lld elements are too many", c->name ? c->name : "?", (long long)n);
    if (n == 0)
        return;
    if (sends_all(c, bytes)) {
        allreduce_short(c, x, y, n, bytes, dtype, op);
        return;
    }
    int64_t most = most_at_once(c) / size, part = comm_wire_shortens(c, dtype, op) || most > n / c->size ? n : most * c->size;
    for (int64_t at = 0; at < n; at += part)
        allreduce_long(c, (const char *)x + at * size, (char *)y + at * size, n - at < part ? n - at : part, size, dtype, op);
}

static void broadcast(struct comm *c, void *at, int64_t bytes, int root)
{
    require(root >= 0 && root < c->size);
    for (int r = 0; r < c->size; r++) {
        c->send[r] = (struct block){at, c->rank == root && r != root ? bytes : 0};
        c->recv[r] = (struct block){at, c->rank != root && r == root ? bytes : 0};
    }
    alltoall(c);
}

void comm_setup(struct comm *c, struct arena *arena)
{
    c->allgatherv = allgatherv;
    c->allreduce = comm_allreduce;
    c->broadcast = broadcast;
    c->reduce_scatter = comm_reduce_scatter;
    c->alltoall = alltoall;
    c->scratch = NEW(arena, struct buffer);
    c->send = NEWN(arena, struct block, c->size);
    c->rest = NEWN(arena, struct block, c->size);
    c->recv = NEWN(arena, struct block, c->size);
    c->seen = NEWN(arena, const void *, c->size);
}

void comm_release(struct comm *c)
{
    buffer_free(c->scratch);
}

void *comm_gather(struct comm *c, struct arena *a, const char *name, const void *own, size_t bytes)
{
    char *all = arena_array(a, (size_t)c->size, bytes);
    int64_t *each = NEWN(a, int64_t, c->size);
    for (int r = 0; r < c->size; r++)
        each[r] = (int64_t)bytes;
    memcpy(all + (size_t)c->rank * bytes, own, bytes);
    c->id = 0;
    c->name = name;
    c->allgatherv(c, all, each);
    return all;
}

char *comm_gather_texts(struct comm *c, struct arena *a, const char *name, const char *own, int64_t **bytes)
{
    int64_t total = 0, from = 0, length = (int64_t)strlen(own), *of = comm_gather(c, a, name, &length, sizeof length);
    for (int r = 0; r < c->size; r++) {
        from = r == c->rank ? total : from;
        total += of[r];
    }
    char *all = arena_alloc(a, (size_t)total + 1);
    memcpy(all + from, own, (size_t)length);
    all[total] = '\0';
    c->allgatherv(c, all, of);
    *bytes = of;
    return all;
}

void comm_from_first(struct comm *c, const char *name, void *at, int64_t bytes)
{
    c->id = 0;
    c->name = name;
    if (c->size > 1)
        c->broadcast(c, at, bytes, 0);
}

double comm_slowest(struct comm *comm, double seconds)
{
    double most;
    comm->id = 0;
    comm->name = "calibration";
    comm->allreduce(comm, &seconds, &most, 1, DT_F64, RED_MAX);
    return most;
}
