/* kinds: the kinds of collectives: the box of x sent to every rank and the box of y received from it, how each kind runs, and the
 * dimensions along which it can be cut into strips.
 *
 *   AllGather       own intervals to every rank
 *   ReduceScatter   to each rank its intervals, reduced there in rank order
 *   AllToAll        own intervals of the concatenated axis x the receiver's intervals of the split axis
 *   Redistribute    what the receiver needs and lacks, from its owner
 *   Dispatch        own rows to the ranks that hold an expert of theirs (travel.c)
 *   Combine         the experts' results back, added there in rank order */
#include "run/collective/collective.h"

#include <string.h>

/* ---- routes ---- */

static void check_extent(const struct collective_node *c, const struct tensor *t, int axis, int64_t size, const char *what)
{
    if (t->dim[axis] != size)
        fail("collective '%s' (%s): dimension %d of its %s is %lld, its split says %lld", c->name, collective_name(c->kind), axis, what,
             (long long)t->dim[axis], (long long)size);
}

static void route_allgather(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x,
                            const struct tensor *y, const struct bindings *b, struct route *route)
{
    struct intervals held = intervals_of(a, c->from, comm->rank, false, b), own = intervals_of(a, c->from, comm->rank, true, b);
    struct intervals local = intervals_local(a, &own, &held);
    check_extent(c, x, c->axis, intervals_extent(&held), "operand");
    check_extent(c, y, c->axis, intervals_total(a, c->from, b), "result");
    for (int r = 0; r < comm->size; r++) {
        struct intervals theirs = intervals_of(a, c->from, r, true, b);
        route->send[r] = region_of(a, x, c->axis, &local, -1, NULL);
        route->recv[r] = region_of(a, y, c->axis, &theirs, -1, NULL);
    }
}

static void route_reducescatter(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x,
                                const struct tensor *y, const struct bindings *b, struct route *route)
{
    struct intervals mine = intervals_of(a, c->to, comm->rank, false, b), all = intervals_range(a, 0, intervals_extent(&mine));
    check_extent(c, x, c->axis, intervals_total(a, c->to, b), "operand");
    check_extent(c, y, c->axis, intervals_extent(&mine), "result");
    for (int r = 0; r < comm->size; r++) {
        struct intervals theirs = intervals_of(a, c->to, r, false, b);
        route->send[r] = region_of(a, x, c->axis, &theirs, -1, NULL);
        route->recv[r] = region_of(a, y, c->axis, &all, -1, NULL);
    }
}

static void route_alltoall(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x,
                           const struct tensor *y, const struct bindings *b, struct route *route)
{
    struct intervals held = intervals_of(a, c->from, comm->rank, false, b), own = intervals_of(a, c->from, comm->rank, true, b);
    struct intervals local = intervals_local(a, &own, &held), mine = intervals_of(a, c->to, comm->rank, false, b);
    struct intervals all = intervals_range(a, 0, intervals_extent(&mine));
    check_extent(c, x, c->axis2, intervals_extent(&held), "operand");
    check_extent(c, x, c->axis, intervals_total(a, c->to, b), "operand");
    check_extent(c, y, c->axis, intervals_extent(&mine), "result");
    check_extent(c, y, c->axis2, intervals_total(a, c->from, b), "result");
    for (int r = 0; r < comm->size; r++) {
        struct intervals to = intervals_of(a, c->to, r, false, b), from = intervals_of(a, c->from, r, true, b);
        route->send[r] = region_of(a, x, c->axis, &to, c->axis2, &local);
        route->recv[r] = region_of(a, y, c->axis, &all, c->axis2, &from);
    }
}

/* What rank `giver` sends to rank `taker`: to itself all that it holds and needs, to others what it owns and they lack. */
static struct intervals moving(struct arena *a, const struct collective_node *c, int giver, int taker, const struct bindings *b)
{
    struct intervals want = intervals_of(a, c->to, taker, false, b), has = intervals_of(a, c->from, taker, false, b);
    if (giver == taker)
        return intervals_meet(a, &want, &has);
    struct intervals lacks = intervals_without(a, &want, &has), own = intervals_of(a, c->from, giver, true, b);
    return intervals_meet(a, &lacks, &own);
}

static void route_redistribute(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x,
                               const struct tensor *y, const struct bindings *b, struct route *route)
{
    struct intervals held = intervals_of(a, c->from, comm->rank, false, b), mine = intervals_of(a, c->to, comm->rank, false, b);
    check_extent(c, x, c->axis, intervals_extent(&held), "operand");
    check_extent(c, y, c->axis, intervals_extent(&mine), "result");
    for (int r = 0; r < comm->size; r++) {
        struct intervals out = moving(a, c, comm->rank, r, b), in = moving(a, c, r, comm->rank, b);
        struct intervals from = intervals_local(a, &out, &held), to = intervals_local(a, &in, &mine);
        route->send[r] = region_of(a, x, c->axis, &from, -1, NULL);
        route->recv[r] = region_of(a, y, c->axis, &to, -1, NULL);
    }
}

/* ---- running ---- */

/* Sets the blocks to send: in x, or packed; AllGather sends all ranks the same one. Returns the free space after them. */
static char *send_blocks(const struct route *route, bool same, struct comm *comm, const void *x, char *room)
{
    for (int r = 0; r < comm->size; r++) {
        if (same && r > 0) {
            comm->send[r] = comm->send[0];
            continue;
        }
        const void *there = region_stretch(&route->send[r], x);
        comm->send[r] = (struct block){there ? (void *)(uintptr_t)there : room, route->send_bytes[r]};
        if (there)
            continue;
        region_pack(&route->send[r], x, room);
        room += route->send_bytes[r];
    }
    return room;
}

static size_t room_bytes(const struct route *route, bool same, int64_t arriving)
{
    return (size_t)((same ? route->send_bytes[0] : route->send_total) + arriving);
}

static void run_reducescatter(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                              const struct tensor *x, struct tensor *y)
{
    if (c->complete) {
        region_pack(&route->send[comm->rank], x->data, y->data);
        return;
    }
    send_blocks(route, false, comm, x->data, buffer_reserve(scratch, room_bytes(route, false, 0)));
    comm->reduce_scatter(comm, y->data, route->recv_bytes[comm->rank] / (int64_t)dtype_size(x->dtype), x->dtype, c->red);
}

/* Blocks that are contiguous in y are received in place; the others are unpacked from where they are received. */
static void run_moves(const struct route *route, bool same, struct comm *comm, struct buffer *scratch, const struct tensor *x,
                      struct tensor *y)
{
    char *room = buffer_reserve(scratch, room_bytes(route, same, route->recv_total));
    room = send_blocks(route, same, comm, x->data, room);
    for (int r = 0; r < comm->size; r++) {
        const void *there = region_stretch(&route->recv[r], y->data);
        comm->recv[r] = (struct block){there ? (void *)(uintptr_t)there : room, route->recv_bytes[r]};
        if (!there)
            room += route->recv_bytes[r];
    }
    comm->exchange(comm, comm->send, comm->recv, comm->seen);
    for (int r = 0; r < comm->size; r++)
        if (comm->seen[r] != region_stretch(&route->recv[r], y->data))
            region_unpack(&route->recv[r], y->data, comm->seen[r]);
    comm->done(comm);
}

/* The unsigned type of the same width. */
static enum dtype bits_of(enum dtype t)
{
    return dtype_size(t) == 2 ? DT_U16 : dtype_size(t) == 4 ? DT_U32 : dtype_size(t) == 8 ? DT_U64 : DT_U8;
}

static void run_allreduce(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                          const struct tensor *x, struct tensor *y)
{
    (void)scratch;
    comm->allreduce(comm, x->data, y->data, route->elements, c->bits ? bits_of(x->dtype) : x->dtype, c->red);
}

static void run_broadcast(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                          const struct tensor *x, struct tensor *y)
{
    (void)scratch;
    if (x->data != y->data)
        memcpy(y->data, x->data, (size_t)route->elements * dtype_size(x->dtype));
    comm->broadcast(comm, y->data, route->elements * (int64_t)dtype_size(x->dtype), c->root);
}

static void run_allgather(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                          const struct tensor *x, struct tensor *y)
{
    (void)c;
    run_moves(route, true, comm, scratch, x, y);
}

static void run_alltoall(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                         const struct tensor *x, struct tensor *y)
{
    (void)c;
    run_moves(route, false, comm, scratch, x, y);
}

/* ---- the dimensions that can be cut into strips ---- */

static int lead_all(const struct collective_node *c, const struct tensor *x)
{
    (void)c;
    return x->rank;
}

static int lead_before_axis(const struct collective_node *c, const struct tensor *x)
{
    (void)x;
    return c->axis;
}

/* No rank sees the global tensor, so ranks might choose different cuts. */
static int lead_none(const struct collective_node *c, const struct tensor *x)
{
    (void)c;
    (void)x;
    return 0;
}

const struct collective_kind *collective_kind(enum collective kind)
{
    static const struct collective_kind kinds[] = {
        [COLL_ALLREDUCE] = {NULL, lead_all, run_allreduce},
        [COLL_ALLGATHER] = {route_allgather, lead_before_axis, run_allgather},
        [COLL_REDUCESCATTER] = {route_reducescatter, lead_before_axis, run_reducescatter},
        [COLL_ALLTOALL] = {route_alltoall, lead_none, run_alltoall},
        [COLL_REDISTRIBUTE] = {route_redistribute, lead_none, run_alltoall},
        [COLL_BROADCAST] = {NULL, lead_all, run_broadcast},
        [COLL_DISPATCH] = {travel_route, lead_none, travel_dispatch},
        [COLL_COMBINE] = {travel_route, lead_none, travel_combine},
    };
    require(kind > COLL_NONE && (size_t)kind < sizeof kinds / sizeof *kinds && kinds[kind].run);
    return &kinds[kind];
}
