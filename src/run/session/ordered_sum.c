/* terms: a sum whose terms are on several ranks, for --deterministic. A kernel has added up the largest subtrees of chunks that its rank
 * holds (kern/kern.h); here they are exchanged, and added to those of the others along the same tree. As in AllReduce, each rank completes
 * an even part of the elements and gets the other parts from the others; where that is little, every rank completes all.
 *
 * With bounds of parts on whole subtrees, as 2, 4 or 8 equal parts of a power of two have them, a rank has one term and sends what
 * AllReduce would send; other parts of n chunks have up to 2 log2(n) terms. */
#include "kern/chunk/chunk.h"
#include "run/internal.h"

#include <string.h>

struct term {
    int rank, at;
}; /* at: among the rank's */

/* Which rank has which terms, and all of them from left to right. */
static void find_terms(struct summation *m, const struct chunks *own)
{
    struct session *s = m->session;
    int n = 0;
    for (int r = 0; r < s->comm->size; r++) {
        struct chunks c = *own;
        c.n = m->part[r].n;
        c.at = m->part[r].at;
        m->part[r].subtree = NEWN(s->plan, struct subtree, chunk_terms(&c, NULL));
        n += m->part[r].nterm = chunk_terms(&c, m->part[r].subtree);
    }
    m->nterm = n;
    m->subtree = NEWN(s->plan, struct subtree, n);
    m->term = NEWN(s->plan, struct term, n);
    m->in = NEWN(s->plan, const void *, n);
    int *next = NEWN(s->plan, int, s->comm->size);
    for (int i = 0; i < n; i++) {
        int first = -1;
        for (int r = 0; r < s->comm->size; r++)
            if (next[r] < m->part[r].nterm &&
                (first < 0 || subtree_before(&m->part[r].subtree[next[r]], &m->part[first].subtree[next[first]])))
                first = r;
        m->term[i] = (struct term){first, next[first]};
        m->subtree[i] = m->part[first].subtree[next[first]++];
    }
}

/* Every rank has sent n numbers of each of its terms. */
static void add_terms(struct summation *m, enum dtype t, int64_t n, void *out)
{
    struct comm *comm = m->session->comm;
    for (int i = 0; i < m->nterm; i++)
        m->in[i] = (const char *)comm->seen[m->term[i].rank] + m->term[i].at * n * (int64_t)dtype_size(t);
    if (n)
        chunk_add(m->subtree, m->in, m->nterm, t, n, out);
}

static void receive(struct summation *m, int64_t bytes)
{
    struct comm *comm = m->session->comm;
    char *room = buffer_reserve(comm->scratch, (size_t)(m->nterm * bytes));
    for (int r = 0; r < comm->size; r++) {
        comm->recv[r] = (struct block){room, m->part[r].nterm * bytes};
        room += comm->recv[r].bytes;
    }
    comm->exchange(comm, comm->send, comm->recv, comm->seen);
}

static void add_short(struct summation *m, enum dtype t, const void *terms, int64_t n, void *out)
{
    struct comm *comm = m->session->comm;
    int64_t bytes = n * (int64_t)dtype_size(t);
    for (int r = 0; r < comm->size; r++)
        comm->send[r] = (struct block){(void *)(uintptr_t)terms, m->part[comm->rank].nterm * bytes};
    receive(m, bytes);
    add_terms(m, t, n, out);
    comm->done(comm);
}

/* What goes to rank r: its part of every term, one after another. */
static struct block pack_part(struct summation *m, const void *terms, int64_t n, int64_t size, int r, char **room)
{
    struct comm *comm = m->session->comm;
    int count = m->part[comm->rank].nterm;
    struct block first = comm_deal(comm, terms, n, size, r), all = {count == 1 ? first.at : *room, count * first.bytes};
    for (int k = 0; count > 1 && k < count; k++, *room += first.bytes)
        memcpy(*room, (char *)first.at + k * n * size, (size_t)first.bytes);
    return all;
}

static void add_long(struct summation *m, enum dtype t, const void *terms, int64_t n, void *out)
{
    struct comm *comm = m->session->comm;
    int64_t size = (int64_t)dtype_size(t);
    struct block mine = comm_deal(comm, out, n, size, comm->rank);
    char *room = buffer_reserve(&m->session->scratch, (size_t)(m->part[comm->rank].nterm * n * size));
    for (int r = 0; r < comm->size; r++)
        comm->send[r] = pack_part(m, terms, n, size, r, &room);
    receive(m, mine.bytes);
    add_terms(m, t, mine.bytes / size, mine.at);
    comm->done(comm);
    comm_gather_dealt(comm, out, n, size);
}

static void complete(const struct share *share, const struct chunks *own, enum dtype t, const void *terms, int64_t n, void *out)
{
    struct summation *m = (struct summation *)(uintptr_t)share;
    int64_t bytes, size = (int64_t)dtype_size(t);
    struct timed time = collective_begin(m->session, m->collective);
    if (!m->term)
        find_terms(m, own);
    if (!mul_i64(n, m->nterm * size, &bytes))
        fail("sum '%s': %d terms of %lld elements are too large", m->collective->name, m->nterm, (long long)n);
    if (m->nterm == 0)
        memset(out, 0, (size_t)(n * size));
    else if (bytes <= COMM_SHORT_BYTES)
        add_short(m, t, terms, n, out);
    else
        add_long(m, t, terms, n, out);
    collective_end(m->session, m->count, time);
}

void summation_update(struct summation *m)
{
    struct session *s = m->session;
    m->share = (struct share){.axis = m->axis, .complete = complete};
    m->part = NEWN(s->plan, struct part, s->comm->size);
    m->term = NULL;
    for (int r = 0; r < s->comm->size; r++) {
        struct pieces held = pieces_of(s->plan, m->collective->from, r, false, &s->bind);
        m->share.size += pieces_extent(&held);
        struct stretch *at = NEWN(s->plan, struct stretch, held.n);
        m->part[r] = (struct part){.n = chunk_stretches(held.n, held.at, at), .at = at};
    }
    m->share.n = m->part[s->comm->rank].n;
    m->share.at = m->part[s->comm->rank].at;
}
