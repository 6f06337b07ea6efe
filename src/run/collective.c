/* collective: one collective node between two placements. Splits say, without a message, what every rank holds for the sizes of this
 * run; a route lists for every pair of ranks the box that moves. Uneven, empty, segmented, permuted and overlapping splits are one
 * case: an index is sent by the lowest rank that holds it, and by nobody to a rank that holds it already.
 *
 *   AllGather       own pieces to everybody
 *   ReduceScatter   to each rank the pieces it keeps, summed there in rank order
 *   AllToAll        own pieces of the concatenated axis x the receiver's pieces of the split axis
 *   Redistribute    what the receiver keeps and does not hold, from its owner
 *
 * A collective is skipped only when its global size is 0, which every rank sees alike. */
#include <string.h>
#include <xxhash.h>

#include "run/internal.h"

struct route {
    bool empty;
    int64_t elements;                /* AllReduce, Broadcast */
    int64_t send_total, recv_total;
    struct region *send, *recv;      /* by rank: of x, of y */
    int64_t *send_bytes, *recv_bytes;
    bool direct;                     /* AllGather: the blocks lie in y in rank order */
};

static const struct split *split_attr(struct graph *g, const struct node *n, const char *name)
{
    const char *error = NULL;
    const struct split *s = split_parse(g->alg, attr_string(n, name), &error);
    if (!s) fail("%s: attribute %s: %s", node_where(g, n), name, error);
    return s;
}

static int axis_attr(const struct graph *g, const struct node *n, const char *name)
{
    int rank = n->in[0]->type.rank;
    int64_t axis = attr_int(n, name);
    if (axis < -rank || axis >= rank) fail("%s: %s is %lld for a tensor of %d dimensions", node_where(g, n), name, (long long)axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

static enum collective_kind kind_of(const struct graph *g, const struct node *n)
{
    static const char *const name[] = {"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Redistribute", "Broadcast"};
    for (int i = 0; i < 6; i++)
        if (!strcmp(n->op->name, name[i])) return (enum collective_kind)i;
    fail("%s: this program does not know the collective %s", node_where(g, n), n->op->name);
}

static enum redop red_attr(const struct graph *g, const struct node *n)
{
    enum redop red = redop_parse(attr_string(n, "op"));
    if (red == RED_NONE) fail("%s: op is '%s', expected sum, max, min or prod", node_where(g, n), attr_string(n, "op"));
    return red;
}

void collective_read(struct graph *g, const struct node *n, struct collective *c)
{
    c->kind = kind_of(g, n);
    c->name = n->name;
    c->op = n->op->name;
    c->axis2 = -1;
    if (c->kind == COLL_ALLREDUCE || c->kind == COLL_REDUCESCATTER) c->red = red_attr(g, n);
    if (c->kind == COLL_BROADCAST) c->root = (int)attr_int(n, "root");
    if (c->kind == COLL_ALLREDUCE || c->kind == COLL_BROADCAST) return;
    if (c->kind != COLL_REDUCESCATTER) c->from = split_attr(g, n, "from");
    if (c->kind != COLL_ALLGATHER) c->to = split_attr(g, n, "to");
    c->axis = axis_attr(g, n, c->kind == COLL_ALLTOALL ? "split_axis" : "axis");
    if (c->kind == COLL_ALLTOALL) c->axis2 = axis_attr(g, n, "concat_axis");
    if (c->axis == c->axis2) fail("%s: split_axis and concat_axis are both %d", node_where(g, n), c->axis);
    const struct dim **extent = NULL;
    c->nextent = attr_dims(n, "extent", &extent);
    c->extent = extent;
}

/* ---- routes -------------------------------------------------------------------------------------------------------------- */

static int64_t split_total(struct arena *a, const struct collective *c, const struct split *s, const struct bindings *b)
{
    int64_t n = 0;
    for (int r = 0; r < s->ranks; r++) {
        struct pieces p = pieces_of(a, s, r, true, b);
        n += pieces_extent(&p);
    }
    require(n >= 0 && c->name);
    return n;
}

static void check_extent(const struct collective *c, const struct tensor *t, int axis, int64_t size, const char *what)
{
    if (t->dim[axis] != size)
        fail("collective '%s' (%s): dimension %d of its %s is %lld, its split says %lld", c->name, c->op, axis, what, (long long)t->dim[axis], (long long)size);
}

static struct route *route_new(struct arena *a, const struct comm *comm)
{
    struct route *route = NEW(a, struct route);
    route->send = NEWN(a, struct region, comm->size);
    route->recv = NEWN(a, struct region, comm->size);
    route->send_bytes = NEWN(a, int64_t, comm->size);
    route->recv_bytes = NEWN(a, int64_t, comm->size);
    return route;
}

static void route_finish(struct route *route, int size)
{
    for (int r = 0; r < size; r++) {
        route->send_total += route->send_bytes[r] = region_bytes(&route->send[r]);
        route->recv_total += route->recv_bytes[r] = region_bytes(&route->recv[r]);
    }
}

/* Every rank's pieces lie one after another in y, so blocks need no packing. */
static bool in_rank_order(struct arena *a, const struct collective *c, const struct comm *comm, const struct tensor *y, const struct bindings *b)
{
    int64_t at = 0;
    for (int k = 0; k < c->axis; k++)
        if (y->dim[k] != 1) return false;
    for (int r = 0; r < comm->size; r++) {
        struct pieces p = pieces_of(a, c->from, r, true, b), held = pieces_of(a, c->from, r, false, b);
        if (p.n == 0 && held.n == 0) continue;
        if (p.n != 1 || held.n != 1 || p.at[0].lo != at || held.at[0].lo != at || held.at[0].hi != p.at[0].hi) return false;
        at = p.at[0].hi;
    }
    return true;
}

static void route_allgather(struct arena *a, const struct collective *c, const struct comm *comm, const struct tensor *x, const struct tensor *y,
                            const struct bindings *b, struct route *route)
{
    struct pieces held = pieces_of(a, c->from, comm->rank, false, b), own = pieces_of(a, c->from, comm->rank, true, b);
    struct pieces local = pieces_local(a, &own, &held);
    check_extent(c, x, c->axis, pieces_extent(&held), "operand");
    check_extent(c, y, c->axis, split_total(a, c, c->from, b), "result");
    for (int r = 0; r < comm->size; r++) {
        struct pieces theirs = pieces_of(a, c->from, r, true, b);
        route->send[r] = region_of(a, x, c->axis, &local, -1, NULL);
        route->recv[r] = region_of(a, y, c->axis, &theirs, -1, NULL);
    }
    route->direct = in_rank_order(a, c, comm, y, b);
}

static void route_reducescatter(struct arena *a, const struct collective *c, const struct comm *comm, const struct tensor *x, const struct tensor *y,
                                const struct bindings *b, struct route *route)
{
    struct pieces mine = pieces_of(a, c->to, comm->rank, false, b), all = pieces_range(a, 0, pieces_extent(&mine));
    check_extent(c, x, c->axis, split_total(a, c, c->to, b), "operand");
    check_extent(c, y, c->axis, pieces_extent(&mine), "result");
    for (int r = 0; r < comm->size; r++) {
        struct pieces theirs = pieces_of(a, c->to, r, false, b);
        route->send[r] = region_of(a, x, c->axis, &theirs, -1, NULL);
        route->recv[r] = region_of(a, y, c->axis, &all, -1, NULL);
    }
}

static void route_alltoall(struct arena *a, const struct collective *c, const struct comm *comm, const struct tensor *x, const struct tensor *y,
                           const struct bindings *b, struct route *route)
{
    struct pieces held = pieces_of(a, c->from, comm->rank, false, b), own = pieces_of(a, c->from, comm->rank, true, b);
    struct pieces local = pieces_local(a, &own, &held), mine = pieces_of(a, c->to, comm->rank, false, b);
    struct pieces all = pieces_range(a, 0, pieces_extent(&mine));
    check_extent(c, x, c->axis2, pieces_extent(&held), "operand");
    check_extent(c, x, c->axis, split_total(a, c, c->to, b), "operand");
    check_extent(c, y, c->axis, pieces_extent(&mine), "result");
    check_extent(c, y, c->axis2, split_total(a, c, c->from, b), "result");
    for (int r = 0; r < comm->size; r++) {
        struct pieces to = pieces_of(a, c->to, r, false, b), from = pieces_of(a, c->from, r, true, b);
        route->send[r] = region_of(a, x, c->axis, &to, c->axis2, &local);
        route->recv[r] = region_of(a, y, c->axis, &all, c->axis2, &from);
    }
}

/* What rank `giver` sends to rank `taker`: to itself all it holds of what it keeps, to others what it owns and they lack. */
static struct pieces moving(struct arena *a, const struct collective *c, int giver, int taker, const struct bindings *b)
{
    struct pieces want = pieces_of(a, c->to, taker, false, b), has = pieces_of(a, c->from, taker, false, b);
    if (giver == taker) return pieces_meet(a, &want, &has);
    struct pieces lacks = pieces_without(a, &want, &has), own = pieces_of(a, c->from, giver, true, b);
    return pieces_meet(a, &lacks, &own);
}

static void route_redistribute(struct arena *a, const struct collective *c, const struct comm *comm, const struct tensor *x, const struct tensor *y,
                               const struct bindings *b, struct route *route)
{
    struct pieces held = pieces_of(a, c->from, comm->rank, false, b), mine = pieces_of(a, c->to, comm->rank, false, b);
    check_extent(c, x, c->axis, pieces_extent(&held), "operand");
    check_extent(c, y, c->axis, pieces_extent(&mine), "result");
    for (int r = 0; r < comm->size; r++) {
        struct pieces out = moving(a, c, comm->rank, r, b), in = moving(a, c, r, comm->rank, b);
        struct pieces from = pieces_local(a, &out, &held), to = pieces_local(a, &in, &mine);
        route->send[r] = region_of(a, x, c->axis, &from, -1, NULL);
        route->recv[r] = region_of(a, y, c->axis, &to, -1, NULL);
    }
}

static int64_t elements(const struct collective *c, const struct tensor *t)
{
    int64_t n;
    if (!sizes_product(t->dim, t->rank, &n)) fail("collective '%s' (%s): its tensor is too large", c->name, c->op);
    return n;
}

static void check_ranks(const struct collective *c, const struct comm *comm)
{
    const struct split *s = c->from ? c->from : c->to;
    if (s && s->ranks != comm->size) fail("collective '%s' (%s) is for %d ranks, the run has %d", c->name, c->op, s->ranks, comm->size);
    if (c->from && c->to && c->from->ranks != c->to->ranks) fail("collective '%s' (%s) is from %d to %d ranks", c->name, c->op, c->from->ranks, c->to->ranks);
    if (c->root < 0 || c->root >= comm->size) fail("collective '%s' (%s) has root %d, the run has %d ranks", c->name, c->op, c->root, comm->size);
}

/* The global number of elements is 0: seen alike by every rank. */
static bool globally_empty(struct arena *a, const struct collective *c, const struct tensor *x, const struct bindings *b)
{
    for (int k = 0; k < x->rank; k++) {
        int64_t size = x->dim[k];
        if (c->kind == COLL_ALLTOALL ? k == c->axis2 : c->from && k == c->axis) size = split_total(a, c, c->from, b);
        if (size == 0) return true;
    }
    return false;
}

struct route *collective_route(struct arena *a, const struct collective *c, const struct comm *comm, const struct tensor *x, const struct tensor *y,
                               const struct bindings *b)
{
    struct route *route = route_new(a, comm);
    check_ranks(c, comm);
    route->elements = elements(c, x);
    route->empty = globally_empty(a, c, x, b);
    if (route->empty) return route;
    switch (c->kind) {
    case COLL_ALLREDUCE: case COLL_BROADCAST: return route;
    case COLL_ALLGATHER: route_allgather(a, c, comm, x, y, b, route); break;
    case COLL_REDUCESCATTER: route_reducescatter(a, c, comm, x, y, b, route); break;
    case COLL_ALLTOALL: route_alltoall(a, c, comm, x, y, b, route); break;
    case COLL_REDISTRIBUTE: route_redistribute(a, c, comm, x, y, b, route); break;
    }
    route_finish(route, comm->size);
    return route;
}

/* ---- running --------------------------------------------------------------------------------------------------------------- */

static void pack_all(const struct route *route, int size, const void *x, char *block)
{
    for (int r = 0; r < size; r++) {
        region_pack(&route->send[r], x, block);
        block += route->send_bytes[r];
    }
}

static void unpack_all(const struct route *route, int size, void *y, const char *block)
{
    for (int r = 0; r < size; r++) {
        region_unpack(&route->recv[r], y, block);
        block += route->recv_bytes[r];
    }
}

static void run_allgather(const struct route *route, struct comm *comm, struct buffer *scratch, const struct tensor *x, struct tensor *y)
{
    char *at = route->direct ? y->data : buffer_reserve(scratch, (size_t)route->recv_total), *own = at;
    for (int r = 0; r < comm->rank; r++) own += route->recv_bytes[r];
    region_pack(&route->send[comm->rank], x->data, own);
    comm->allgatherv(comm, at, route->recv_bytes);
    if (!route->direct) unpack_all(route, comm->size, y->data, at);
}

static void run_reducescatter(const struct collective *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                              const struct tensor *x, struct tensor *y)
{
    char *block = buffer_reserve(scratch, (size_t)route->send_total + (size_t)comm->size * sizeof(int64_t) + 64);
    int64_t *count = (int64_t *)(void *)block;
    char *data = block + ((size_t)comm->size * sizeof(int64_t) + 63) / 64 * 64;
    for (int r = 0; r < comm->size; r++) count[r] = route->send_bytes[r] / (int64_t)dtype_size(x->dtype);
    pack_all(route, comm->size, x->data, data);
    comm->reduce_scatterv(comm, data, y->data, count, x->dtype, c->red);
}

static void run_exchange(const struct route *route, struct comm *comm, struct buffer *scratch, const struct tensor *x, struct tensor *y)
{
    char *send = buffer_reserve(scratch, (size_t)(route->send_total + route->recv_total)), *recv = send + route->send_total;
    pack_all(route, comm->size, x->data, send);
    comm->alltoallv(comm, send, route->send_bytes, recv, route->recv_bytes);
    unpack_all(route, comm->size, y->data, recv);
}

static void copy_whole(const struct route *route, const struct tensor *x, struct tensor *y)
{
    if (x->data != y->data) memcpy(y->data, x->data, (size_t)route->elements * dtype_size(x->dtype));
}

void collective_run(const struct collective *c, const struct route *route, struct comm *comm, struct buffer *scratch, const struct tensor *x, struct tensor *y)
{
    if (route->empty) return;
    comm->id = c->id;
    comm->name = c->name;
    switch (c->kind) {
    case COLL_ALLREDUCE:
        copy_whole(route, x, y);
        comm->allreduce(comm, y->data, route->elements, x->dtype, c->red);
        return;
    case COLL_BROADCAST:
        copy_whole(route, x, y);
        comm->broadcast(comm, y->data, route->elements * (int64_t)dtype_size(x->dtype), c->root);
        return;
    case COLL_ALLGATHER: run_allgather(route, comm, scratch, x, y); return;
    case COLL_REDUCESCATTER: run_reducescatter(c, route, comm, scratch, x, y); return;
    case COLL_ALLTOALL: case COLL_REDISTRIBUTE: run_exchange(route, comm, scratch, x, y); return;
    }
    bug("no such collective");
}

/* ---- agreement at load -------------------------------------------------------------------------------------------------------- */

static const char *list_line(struct arena *a, const struct collective *c)
{
    return arena_printf(a, "%lld %s '%s' axis %d %d root %d %s from %s to %s", (long long)c->id, c->op, c->name, c->axis, c->axis2, c->root,
                        redop_name(c->red), c->from ? split_str(a, c->from) : "-", c->to ? split_str(a, c->to) : "-");
}

static uint64_t *all_ranks(struct comm *comm, struct arena *a, uint64_t own)
{
    uint64_t *all = NEWN(a, uint64_t, comm->size);
    int64_t *bytes = NEWN(a, int64_t, comm->size);
    for (int r = 0; r < comm->size; r++) bytes[r] = sizeof own;
    all[comm->rank] = own;
    comm->allgatherv(comm, all, bytes);
    return all;
}

/* Rank 0 shows its list line by line; the first that differs is named. */
static _Noreturn void first_difference(struct comm *comm, struct arena *a, const char *path, const char *const *line, int n)
{
    const uint64_t *count = all_ranks(comm, a, (uint64_t)n);
    int most = 0;
    for (int r = 0; r < comm->size; r++) most = (int)count[r] > most ? (int)count[r] : most;
    for (int i = 0; i < most; i++) {
        char theirs[256] = "nothing";
        if (i < n && comm->rank == 0) snprintf(theirs, sizeof theirs, "%s", line[i]);
        comm->broadcast(comm, theirs, sizeof theirs, 0);
        const char *mine = i < n ? line[i] : "nothing";
        if (comm->rank && strncmp(theirs, mine, sizeof theirs - 1))
            fail("%s: rank %d and rank 0 would run out of step: collective %s here, %s there", path, comm->rank, mine, theirs);
    }
    comm->barrier(comm);
    fail("%s: the ranks' files are not of one plan", path);
}

void collective_agree(struct comm *comm, struct arena *a, const char *path, const struct collective *c, int n, uint64_t plan)
{
    const char **line = NEWN(a, const char *, n);
    uint64_t hash = plan;
    for (int i = 0; i < n; i++) {
        line[i] = list_line(a, &c[i]);
        hash = XXH3_64bits_withSeed(line[i], strlen(line[i]), hash);
    }
    comm->id = 0;
    comm->name = "comparison of the ranks' lists of collectives";
    const uint64_t *all = all_ranks(comm, a, hash);
    for (int r = 1; r < comm->size; r++)
        if (all[r] != all[0]) first_difference(comm, a, path, line, n);
}
