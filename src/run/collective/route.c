/* route: where every block of a collective lies, for the sizes of this run. For every pair of ranks it lists the box that moves.
 *
 * Uneven, empty, segmented, permuted and overlapping splits are one case: an index is sent by the lowest rank that holds it, and by nobody
 * to a rank that holds it already. A large tensor goes strip by strip along the dimensions before the split one, so that blocks, which
 * are packed for the way, never take much memory; every rank makes the same strips. */
#include "run/collective/collective.h"

static int64_t split_total(struct arena *a, const struct collective_node *c, const struct split *s, const struct bindings *b)
{
    int64_t n = 0;
    for (int r = 0; r < s->ranks; r++) {
        struct intervals p = intervals_of(a, s, r, true, b);
        n += intervals_extent(&p);
    }
    require(n >= 0 && c->name);
    return n;
}

static void check_extent(const struct collective_node *c, const struct tensor *t, int axis, int64_t size, const char *what)
{
    if (t->dim[axis] != size)
        fail("collective '%s' (%s): dimension %d of its %s is %lld, its split says %lld", c->name, c->op, axis, what,
             (long long)t->dim[axis], (long long)size);
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

static void route_allgather(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x,
                            const struct tensor *y, const struct bindings *b, struct route *route)
{
    struct intervals held = intervals_of(a, c->from, comm->rank, false, b), own = intervals_of(a, c->from, comm->rank, true, b);
    struct intervals local = intervals_local(a, &own, &held);
    check_extent(c, x, c->axis, intervals_extent(&held), "operand");
    check_extent(c, y, c->axis, split_total(a, c, c->from, b), "result");
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
    check_extent(c, x, c->axis, split_total(a, c, c->to, b), "operand");
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
    check_extent(c, x, c->axis, split_total(a, c, c->to, b), "operand");
    check_extent(c, y, c->axis, intervals_extent(&mine), "result");
    check_extent(c, y, c->axis2, split_total(a, c, c->from, b), "result");
    for (int r = 0; r < comm->size; r++) {
        struct intervals to = intervals_of(a, c->to, r, false, b), from = intervals_of(a, c->from, r, true, b);
        route->send[r] = region_of(a, x, c->axis, &to, c->axis2, &local);
        route->recv[r] = region_of(a, y, c->axis, &all, c->axis2, &from);
    }
}

/* What rank `giver` sends to rank `taker`: to itself all it holds of what it keeps, to others what it owns and they lack. */
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

static int64_t elements(const struct collective_node *c, const struct tensor *t)
{
    int64_t n;
    if (!type_sizes_product(t->dim, t->rank, &n))
        fail("collective '%s' (%s): its tensor is too large", c->name, c->op);
    return n;
}

static void check_ranks(const struct collective_node *c, const struct comm *comm)
{
    const struct split *s = c->from ? c->from : c->to;
    if (s && s->ranks != comm->size)
        fail("collective '%s' (%s) is for %d ranks, the run has %d", c->name, c->op, s->ranks, comm->size);
    if (c->from && c->to && c->from->ranks != c->to->ranks)
        fail("collective '%s' (%s) is from %d to %d ranks", c->name, c->op, c->from->ranks, c->to->ranks);
    if (c->root < 0 || c->root >= comm->size)
        fail("collective '%s' (%s) has root %d, the run has %d ranks", c->name, c->op, c->root, comm->size);
}

/* The global number of elements is 0: seen alike by every rank. */
static bool globally_empty(struct arena *a, const struct collective_node *c, const struct tensor *x, const struct bindings *b)
{
    for (int k = 0; k < x->rank; k++) {
        int64_t size = x->dim[k];
        if (c->kind == COLL_ALLTOALL ? k == c->axis2 : c->from && k == c->axis)
            size = split_total(a, c, c->from, b);
        if (size == 0)
            return true;
    }
    return false;
}

static struct route *route_of(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x,
                              const struct tensor *y, const struct bindings *b)
{
    struct route *route = route_new(a, comm);
    route->elements = elements(c, x);
    route->strips = 1;
    switch (c->kind) {
    case COLL_NONE: bug("no such collective");
    case COLL_ALLREDUCE:
    case COLL_BROADCAST: return route;
    case COLL_ALLGATHER: route_allgather(a, c, comm, x, y, b, route); break;
    case COLL_REDUCESCATTER: route_reducescatter(a, c, comm, x, y, b, route); break;
    case COLL_ALLTOALL: route_alltoall(a, c, comm, x, y, b, route); break;
    case COLL_REDISTRIBUTE: route_redistribute(a, c, comm, x, y, b, route); break;
    }
    route_finish(route, comm->size);
    return route;
}

/* ---- strips ----------------------------------------------------------------------------------------------------------------- */

/* The dimensions that can be cut anywhere: all where nothing is split, else those before the split one. None where no rank sees the whole
 * tensor, so that ranks might cut differently. */
static int leading(const struct collective_node *c, const struct tensor *x)
{
    switch (c->kind) {
    case COLL_ALLREDUCE:
    case COLL_BROADCAST: return x->rank;
    case COLL_ALLGATHER:
    case COLL_REDUCESCATTER: return c->axis;
    case COLL_NONE:
    case COLL_ALLTOALL:
    case COLL_REDISTRIBUTE: break;
    }
    return 0;
}

static int64_t rows_of(const struct tensor *t, int axes)
{
    int64_t n;
    require(type_sizes_product(t->dim, axes, &n));
    return n;
}

/* Rows that make a strip, by the side that is whole, and so alike on every rank. */
static int64_t strip_rows(int64_t rows, const struct tensor *x, const struct tensor *y, int64_t strip)
{
    int64_t bytes = (int64_t)(tensor_bytes(x) > tensor_bytes(y) ? tensor_bytes(x) : tensor_bytes(y)), strips = (bytes - 1) / strip + 1;
    return rows / strips > 0 ? rows / strips : 1;
}

/* t with its first dimensions taken together, and of them these many rows. */
static struct tensor strip_of(const struct tensor *t, int axes, int64_t rows)
{
    struct tensor s = {.dtype = t->dtype, .rank = 1 + t->rank - axes, .dim = {rows}, .data = t->data};
    for (int k = axes; k < t->rank; k++)
        s.dim[1 + k - axes] = t->dim[k];
    return s;
}

static struct route *route_strip(struct arena *a, struct collective_node c, const struct comm *comm, const struct tensor *x,
                                 const struct tensor *y, const struct bindings *b, int axes, int64_t rows)
{
    struct tensor xs = strip_of(x, axes, rows), ys = strip_of(y, axes, rows);
    c.axis = 1;
    return route_of(a, &c, comm, &xs, &ys, b);
}

struct route *collective_route(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x,
                               const struct tensor *y, const struct bindings *b, int64_t strip)
{
    check_ranks(c, comm);
    if (globally_empty(a, c, x, b))
        return NEW(a, struct route);
    int axes = leading(c, x);
    int64_t rows = rows_of(x, axes), each = strip_rows(rows, x, y, strip);
    if (axes == 0 || each >= rows)
        return route_of(a, c, comm, x, y, b);
    struct route *route = route_strip(a, *c, comm, x, y, b, axes, each);
    route->strips = rows / each;
    route->x_step = each * ((int64_t)tensor_bytes(x) / rows);
    route->y_step = each * ((int64_t)tensor_bytes(y) / rows);
    if (rows % each)
        route->last = route_strip(a, *c, comm, x, y, b, axes, rows % each);
    return route;
}
