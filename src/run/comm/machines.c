/* machines: collectives over several machines with the same number of ranks each: within each machine, which is fast, and between the ranks
 * with the same index on each machine. So data crosses between machines once, not once per rank. */
#include "run/comm/comm.h"

#include <string.h>

/* Up to this size each rank sends everything between machines, which saves an exchange within the machine. */
enum { ALL_BYTES = 1024 };

/* Starts a collective in both parts of a communicator, under its number and name. Messages within a machine are not compressed. */
static void begin(struct comm *c)
{
    c->host->id = c->across->id = c->id;
    c->host->name = c->across->name = c->name;
    c->across->wire = c->wire;
    c->host->bytes_sent = c->across->bytes_sent = 0;
}

static void end(struct comm *c)
{
    c->bytes_sent += c->host->bytes_sent + c->across->bytes_sent;
}

/* The rank with number `index` on a machine. */
static int rank_on(const struct comm *c, int machine, int index)
{
    return machine * c->host->size + index;
}

static void allreduce_short(struct comm *c, const void *x, void *y, int64_t n, enum dtype dtype, enum redop op)
{
    void *here = buffer_reserve(c->scratch, (size_t)n * dtype_size(dtype));
    c->host->allreduce(c->host, x, here, n, dtype, op);
    c->across->allreduce(c->across, here, y, n, dtype, op);
}

static void allreduce_long(struct comm *c, const void *x, void *y, int64_t n, enum dtype dtype, enum redop op)
{
    int64_t size = (int64_t)dtype_size(dtype);
    struct comm *host = c->host;
    struct block mine = comm_share(host, y, n, size, host->rank);
    void *here = buffer_reserve(c->scratch, (size_t)mine.bytes);
    for (int i = 0; i < host->size; i++)
        host->send[i] = comm_share(host, x, n, size, i);
    host->reduce_scatter(host, here, mine.bytes / size, dtype, op);
    c->across->allreduce(c->across, here, mine.at, mine.bytes / size, dtype, op);
    comm_gather_shares(host, y, n, size);
}

static void allreduce(struct comm *c, const void *x, void *y, int64_t n, enum dtype dtype, enum redop op)
{
    int64_t bytes;
    if (dtype_is_half(dtype) || n == 0) { /* rounded once, so one sum must include all ranks */
        comm_allreduce(c, x, y, n, dtype, op);
        return;
    }
    if (!i64_mul(n, (int64_t)dtype_size(dtype), &bytes))
        fail("collective '%s': %lld elements are too many", c->name ? c->name : "?", (long long)n);
    begin(c);
    (bytes <= ALL_BYTES ? allreduce_short : allreduce_long)(c, x, y, n, dtype, op);
    end(c);
}

/* Rank r's block. */
static struct block block_of(void *at, const int64_t *bytes, int r)
{
    int64_t offset = 0;
    for (int i = 0; i < r; i++)
        offset += bytes[i];
    return (struct block){(char *)at + offset, bytes[r]};
}

static void allgatherv(struct comm *c, void *at, const int64_t *bytes)
{
    struct comm *host = c->host, *across = c->across;
    begin(c);
    for (int m = 0; m < across->size; m++) {
        across->send[m] = block_of(at, bytes, c->rank);
        across->recv[m] = block_of(at, bytes, rank_on(c, m, host->rank));
    }
    across->send[across->rank].bytes = across->recv[across->rank].bytes = 0;
    across->alltoall(across);
    for (int m = 0; m < across->size; m++) {
        for (int i = 0; i < host->size; i++) {
            host->send[i] = block_of(at, bytes, rank_on(c, m, host->rank));
            host->recv[i] = block_of(at, bytes, rank_on(c, m, i));
        }
        host->send[host->rank].bytes = host->recv[host->rank].bytes = 0;
        host->alltoall(host);
    }
    end(c);
}

static void reduce_scatter(struct comm *c, void *out, int64_t n, enum dtype dtype, enum redop op)
{
    struct comm *host = c->host, *across = c->across;
    int64_t size = (int64_t)dtype_size(dtype), total = 0;
    if (dtype_is_half(dtype)) {
        comm_reduce_scatter(c, out, n, dtype, op);
        return;
    }
    for (int m = 0; m < across->size; m++)
        if (!i64_add(total, c->send[rank_on(c, m, host->rank)].bytes, &total))
            fail("collective '%s': blocks of %lld elements are too large", c->name ? c->name : "?", (long long)n);
    char *here = buffer_reserve(c->scratch, (size_t)total);
    begin(c);
    for (int m = 0; m < across->size; m++) {
        int64_t bytes = c->send[rank_on(c, m, host->rank)].bytes;
        for (int i = 0; i < host->size; i++)
            host->send[i] = c->send[rank_on(c, m, i)];
        host->reduce_scatter(host, here, bytes / size, dtype, op);
        across->send[m] = (struct block){here, bytes};
        here += bytes;
    }
    across->reduce_scatter(across, out, n, dtype, op);
    end(c);
}

/* Whether each machine has the same number of ranks, consecutive, and both numbers are above one. */
static bool even_layout(struct comm *c, int machine, int *ranks)
{
    struct arena *a = arena_new();
    const int *machines = comm_gather(c, a, "machines of the ranks", &machine, sizeof machine);
    int here = 0;
    while (here < c->size && machines[here] == machines[0])
        here++;
    bool even = here > 1 && here < c->size && c->size % here == 0;
    for (int r = 0; r < c->size; r++)
        even &= machines[r] == r / here * here;
    arena_free(a);
    *ranks = here;
    return even;
}

void machines_setup(struct comm *c, int machine)
{
    int here;
    if (!even_layout(c, machine, &here))
        return;
    c->host = c->split(c, c->rank / here);
    c->across = c->split(c, c->rank % here);
    c->allreduce = allreduce;
    c->allgatherv = allgatherv;
    c->reduce_scatter = reduce_scatter;
}

void machines_release(struct comm *c)
{
    if (!c->host)
        return;
    c->across->free(c->across);
    c->host->free(c->host);
    c->host = c->across = NULL;
}
