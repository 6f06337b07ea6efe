/* ordered_sum: sums with addends on several ranks, for --deterministic. A kernel sums the largest subtrees of chunks that its rank holds
 * (kern/chunk/chunk.h); here ranks exchange these sums and add them along the same tree. As in AllReduce, each rank completes an even share
 * of the elements and gets the other shares from the others; if there are few, every rank completes all.
 *
 * If splits coincide with subtrees, as with 2, 4 or 8 equal shards of a power of two, a rank has one addend and sends as much as AllReduce;
 * other splits of n chunks have up to 2 log2(n) addends. */
#include "kern/chunk/chunk.h"
#include "lower/lower.h"
#include "op/op.h"
#include "run/session/session.h"

#include <string.h>

/* Addend number `at` of a rank. */
struct addend {
    int rank, at;
};
/* A rank's chunks, and its addends, which are sums of chunks. */
struct rank_chunks {
    int n;
    const struct stretch *at;
    int naddend;
    struct subtree *subtree;
};
struct summation {
    struct share share; /* first: passed to the kernel */
    struct session *session;
    struct collective_node *collective; /* from: the split of the dimension */
    struct session_collective *count;
    int axis;
    struct rank_chunks *rank; /* for the sizes of this plan; the addends and the fields below, from the first run on */
    int naddend;
    struct subtree *subtree;
    struct addend *addend;
    const void **in;
};

/* Finds each rank's addends, and the order of all from left to right. */
static void find_addends(struct summation *m, const struct chunks *own)
{
    struct session *s = m->session;
    int n = 0;
    for (int r = 0; r < s->comm->size; r++) {
        struct chunks c = *own;
        c.n = m->rank[r].n;
        c.at = m->rank[r].at;
        m->rank[r].subtree = NEWN(s->plan, struct subtree, chunk_partials(&c, NULL));
        n += m->rank[r].naddend = chunk_partials(&c, m->rank[r].subtree);
    }
    m->naddend = n;
    m->subtree = NEWN(s->plan, struct subtree, n);
    m->addend = NEWN(s->plan, struct addend, n);
    m->in = NEWN(s->plan, const void *, n);
    int *next = NEWN(s->plan, int, s->comm->size);
    for (int i = 0; i < n; i++) {
        int first = -1;
        for (int r = 0; r < s->comm->size; r++)
            if (next[r] < m->rank[r].naddend &&
                (first < 0 || subtree_before(&m->rank[r].subtree[next[r]], &m->rank[first].subtree[next[first]])))
                first = r;
        m->addend[i] = (struct addend){first, next[first]};
        m->subtree[i] = m->rank[first].subtree[next[first]++];
    }
}

/* Adds up, after every rank has sent n numbers of each of its addends. */
static void add_addends(struct summation *m, enum dtype t, int64_t n, void *out)
{
    struct comm *comm = m->session->comm;
    for (int i = 0; i < m->naddend; i++)
        m->in[i] = (const char *)comm->seen[m->addend[i].rank] + m->addend[i].at * n * (int64_t)dtype_size(t);
    if (n)
        chunk_add(m->subtree, m->in, m->naddend, t, n, out);
}

static void receive_addends(struct summation *m, int64_t bytes)
{
    struct comm *comm = m->session->comm;
    char *room = buffer_reserve(comm->scratch, (size_t)(m->naddend * bytes));
    for (int r = 0; r < comm->size; r++) {
        comm->recv[r] = (struct block){room, m->rank[r].naddend * bytes};
        room += comm->recv[r].bytes;
    }
    comm->exchange(comm, comm->send, comm->recv, comm->seen);
}

static void add_short(struct summation *m, enum dtype t, const void *addends, int64_t n, void *out)
{
    struct comm *comm = m->session->comm;
    int64_t bytes = n * (int64_t)dtype_size(t);
    for (int r = 0; r < comm->size; r++)
        comm->send[r] = (struct block){(void *)(uintptr_t)addends, m->rank[comm->rank].naddend * bytes};
    receive_addends(m, bytes);
    add_addends(m, t, n, out);
    comm->done(comm);
}

/* Packs the block for rank r: its share of every addend, one after another. */
static struct block pack_share(struct summation *m, const void *addends, int64_t n, int64_t size, int r, char **room)
{
    struct comm *comm = m->session->comm;
    int count = m->rank[comm->rank].naddend;
    struct block first = comm_share(comm, addends, n, size, r), all = {count == 1 ? first.at : *room, count * first.bytes};
    for (int k = 0; count > 1 && k < count; k++, *room += first.bytes)
        memcpy(*room, (char *)first.at + k * n * size, (size_t)first.bytes);
    return all;
}

static void add_long(struct summation *m, enum dtype t, const void *addends, int64_t n, void *out)
{
    struct comm *comm = m->session->comm;
    int64_t size = (int64_t)dtype_size(t);
    struct block mine = comm_share(comm, out, n, size, comm->rank);
    char *room = buffer_reserve(&m->session->scratch, (size_t)(m->rank[comm->rank].naddend * n * size));
    for (int r = 0; r < comm->size; r++)
        comm->send[r] = pack_share(m, addends, n, size, r, &room);
    receive_addends(m, mine.bytes);
    add_addends(m, t, mine.bytes / size, mine.at);
    comm->done(comm);
    comm_gather_shares(comm, out, n, size);
}

static void complete_sum_of(const struct share *share, const struct chunks *own, enum dtype t, const void *addends, int64_t n, void *out)
{
    struct summation *m = (struct summation *)(uintptr_t)share;
    int64_t bytes, size = (int64_t)dtype_size(t);
    struct traffic_start time = traffic_begin(m->session, m->collective);
    if (!m->addend)
        find_addends(m, own);
    if (!i64_mul(n, m->naddend * size, &bytes))
        fail("sum '%s': %d addends of %lld elements are too large", m->collective->name, m->naddend, (long long)n);
    if (m->naddend == 0)
        memset(out, 0, (size_t)(n * size));
    else if (bytes <= COMM_SHORT_BYTES)
        add_short(m, t, addends, n, out);
    else
        add_long(m, t, addends, n, out);
    traffic_end(m->session, m->count, time);
}

struct summation *ordered_sum_new(struct session *s, const struct node *n)
{
    int axis;
    const struct split *from = n->op->flags & OP_CHUNKS ? complete_sums_split(s->graph, n, &axis) : NULL;
    if (!from || !dtype_is_float(n->out[0]->type.dtype))
        return NULL;
    struct summation *m = NEW(s->arena, struct summation);
    m->session = s;
    m->axis = axis;
    m->collective = NEW(s->arena, struct collective_node);
    *m->collective = (struct collective_node){
        .kind = COLL_ALLREDUCE, .name = n->name, .axis = -1, .axis2 = -1, .red = RED_SUM, .from = from};
    return m;
}

void ordered_sum_register(struct summation *m, struct collective_node *c, struct session_collective *count)
{
    *c = *m->collective;
    m->collective = c;
    m->count = count;
}

const struct share *ordered_sum_share(const struct summation *m)
{
    return &m->share;
}

void ordered_sum_update(struct summation *m)
{
    struct session *s = m->session;
    m->share = (struct share){.axis = m->axis, .complete = complete_sum_of};
    m->rank = NEWN(s->plan, struct rank_chunks, s->comm->size);
    m->addend = NULL;
    for (int r = 0; r < s->comm->size; r++) {
        struct intervals held = intervals_of(s->plan, m->collective->from, r, false, &s->bind);
        m->share.size += intervals_extent(&held);
        struct stretch *at = NEWN(s->plan, struct stretch, held.n);
        m->rank[r] = (struct rank_chunks){.n = chunk_stretches(held.n, held.at, at), .at = at};
    }
    m->share.n = m->rank[s->comm->rank].n;
    m->share.at = m->rank[s->comm->rank].at;
}
