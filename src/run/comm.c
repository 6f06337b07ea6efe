/* comm: the collectives, written once over a communicator's exchange of blocks. Sums are made in rank order by the rank that owns the
 * piece (Thakur, Rabenseifner, Gropp 2005: reduce-scatter then allgather for long vectors; for short ones everybody gets everything,
 * which costs one message time instead of two). */
#include <string.h>

#include "run/internal.h"

enum { SHORT_BYTES = 16 * 1024 };

static void *scratch_room(struct comm *c, int64_t count, int64_t bytes)
{
    int64_t total;
    if (!mul_i64(count, bytes, &total)) fail("collective '%s': %lld blocks of %lld bytes are too large", c->name ? c->name : "?", (long long)count, (long long)bytes);
    return buffer_reserve(c->scratch, (size_t)total);
}

static void allgatherv(struct comm *c, void *at, const int64_t *bytes)
{
    int64_t offset = 0, own = 0;
    for (int r = 0; r < c->size; r++) {
        c->recv[r] = (struct block){(char *)at + offset, r == c->rank ? 0 : bytes[r]};
        if (r == c->rank) own = offset;
        offset += bytes[r];
    }
    for (int r = 0; r < c->size; r++) c->send[r] = (struct block){(char *)at + own, r == c->rank ? 0 : bytes[c->rank]};
    c->exchange(c, c->send, c->recv);
}

/* Terms of all ranks lie in scratch, bytes apart: reduce them into out. */
static void reduce_scratch(struct comm *c, void *out, int64_t bytes, int64_t n, enum dtype dtype, enum redop op)
{
    enum { MANY = 64 };
    const void *few[MANY], **in = few;
    struct arena *tmp = c->size > MANY ? arena_new() : NULL;
    if (tmp) in = NEWN(tmp, const void *, c->size);
    for (int r = 0; r < c->size; r++) in[r] = (char *)c->scratch->at + r * bytes;
    comm_reduce(out, in, c->size, n, dtype, op);
    if (tmp) arena_free(tmp);
}

static void allreduce_short(struct comm *c, void *at, int64_t n, int64_t bytes, enum dtype dtype, enum redop op)
{
    char *terms = scratch_room(c, c->size, bytes);
    for (int r = 0; r < c->size; r++) {
        c->send[r] = (struct block){at, bytes};
        c->recv[r] = (struct block){terms + r * bytes, bytes};
    }
    c->exchange(c, c->send, c->recv);
    reduce_scratch(c, at, bytes, n, dtype, op);
}

/* Elements of an even deal that come before rank r. */
static int64_t deal_start(int64_t n, int size, int r)
{
    int64_t q = n / size, m = n % size;
    return q * r + (r < m ? r : m);
}

static void allreduce_long(struct comm *c, void *at, int64_t n, int64_t size, enum dtype dtype, enum redop op)
{
    int64_t lo = deal_start(n, c->size, c->rank), mine = deal_start(n, c->size, c->rank + 1) - lo;
    char *terms = scratch_room(c, c->size, mine * size);
    for (int r = 0; r < c->size; r++) {
        int64_t from = deal_start(n, c->size, r), to = deal_start(n, c->size, r + 1);
        c->send[r] = (struct block){(char *)at + from * size, (to - from) * size};
        c->recv[r] = (struct block){terms + r * mine * size, mine * size};
    }
    c->exchange(c, c->send, c->recv);
    reduce_scratch(c, (char *)at + lo * size, mine * size, mine, dtype, op);
    for (int r = 0; r < c->size; r++) {
        int64_t from = deal_start(n, c->size, r), to = deal_start(n, c->size, r + 1);
        c->send[r] = (struct block){(char *)at + lo * size, r == c->rank ? 0 : mine * size};
        c->recv[r] = (struct block){(char *)at + from * size, r == c->rank ? 0 : (to - from) * size};
    }
    c->exchange(c, c->send, c->recv);
}

static void allreduce(struct comm *c, void *at, int64_t n, enum dtype dtype, enum redop op)
{
    int64_t size = (int64_t)dtype_size(dtype), bytes;
    require(size > 0 && n >= 0);
    if (!mul_i64(n, size, &bytes)) fail("collective '%s': %lld elements are too many", c->name ? c->name : "?", (long long)n);
    if (c->size == 1 || n == 0) return;
    if (bytes <= SHORT_BYTES) allreduce_short(c, at, n, bytes, dtype, op);
    else allreduce_long(c, at, n, size, dtype, op);
}

static void reduce_scatterv(struct comm *c, const void *at, void *out, const int64_t *elements, enum dtype dtype, enum redop op)
{
    int64_t size = (int64_t)dtype_size(dtype), mine = elements[c->rank] * size, offset = 0;
    char *terms = scratch_room(c, c->size, mine);
    for (int r = 0; r < c->size; r++) {
        c->send[r] = (struct block){(char *)(uintptr_t)at + offset, elements[r] * size};
        c->recv[r] = (struct block){terms + r * mine, mine};
        offset += elements[r] * size;
    }
    c->exchange(c, c->send, c->recv);
    reduce_scratch(c, out, mine, elements[c->rank], dtype, op);
}

static void alltoallv(struct comm *c, const void *send, const int64_t *send_bytes, void *recv, const int64_t *recv_bytes)
{
    int64_t out = 0, in = 0;
    for (int r = 0; r < c->size; r++) {
        c->send[r] = (struct block){(char *)(uintptr_t)send + out, send_bytes[r]};
        c->recv[r] = (struct block){(char *)recv + in, recv_bytes[r]};
        out += send_bytes[r];
        in += recv_bytes[r];
    }
    c->exchange(c, c->send, c->recv);
}

static void broadcast(struct comm *c, void *at, int64_t bytes, int root)
{
    require(root >= 0 && root < c->size);
    for (int r = 0; r < c->size; r++) {
        c->send[r] = (struct block){at, c->rank == root && r != root ? bytes : 0};
        c->recv[r] = (struct block){at, c->rank != root && r == root ? bytes : 0};
    }
    c->exchange(c, c->send, c->recv);
}

void comm_setup(struct comm *c, struct arena *arena)
{
    c->allgatherv = allgatherv;
    c->allreduce = allreduce;
    c->reduce_scatterv = reduce_scatterv;
    c->alltoallv = alltoallv;
    c->broadcast = broadcast;
    c->scratch = NEW(arena, struct buffer);
    c->send = NEWN(arena, struct block, c->size);
    c->recv = NEWN(arena, struct block, c->size);
}

void comm_release(struct comm *c)
{
    buffer_free(c->scratch);
}
