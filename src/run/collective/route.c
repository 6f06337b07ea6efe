/* route: the blocks that every rank sends to every other in a collective, for the sizes of this run.
 *
 * Uneven, empty, segmented, permuted and overlapping splits are one case: the lowest rank that holds an index sends it, to the ranks that
 * lack it. A large tensor is sent in strips along the dimensions before the split one, so that packed blocks take little memory; all ranks
 * cut the same strips. */
#include "run/collective/collective.h"

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

static int64_t elements(const struct collective_node *c, const struct tensor *t)
{
    int64_t n;
    if (!type_sizes_product(t->dim, t->rank, &n))
        fail("collective '%s' (%s): its tensor is too large", c->name, collective_name(c->kind));
    return n;
}

static void check_ranks(const struct collective_node *c, const struct comm *comm)
{
    const struct split *s = c->from ? c->from : c->to;
    if (s && s->ranks != comm->size)
        fail("collective '%s' (%s) is for %d ranks, the run has %d", c->name, collective_name(c->kind), s->ranks, comm->size);
    if (c->from && c->to && c->from->ranks != c->to->ranks)
        fail("collective '%s' (%s) is from %d to %d ranks", c->name, collective_name(c->kind), c->from->ranks, c->to->ranks);
    if (c->experts && c->experts->ranks != comm->size)
        fail("collective '%s' (%s) has experts on %d ranks, the run has %d", c->name, collective_name(c->kind), c->experts->ranks,
             comm->size);
    if (c->root < 0 || c->root >= comm->size)
        fail("collective '%s' (%s) has root %d, the run has %d ranks", c->name, collective_name(c->kind), c->root, comm->size);
}

/* Whether the global number of elements is 0; all ranks agree. */
static bool globally_empty(struct arena *a, const struct collective_node *c, const struct tensor *x, const struct bindings *b)
{
    for (int k = 0; k < x->rank; k++) {
        int64_t size = x->dim[k];
        if (c->axis2 >= 0 ? k == c->axis2 : c->from && k == c->axis)
            size = intervals_total(a, c->from, b);
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
    const struct collective_kind *kind = collective_kind(c->kind);
    if (!kind->route)
        return route;
    kind->route(a, c, comm, x, y, b, route);
    route_finish(route, comm->size);
    return route;
}

/* ---- strips ----------------------------------------------------------------------------------------------------------------- */

static int64_t rows_of(const struct tensor *t, int axes)
{
    int64_t n;
    require(type_sizes_product(t->dim, axes, &n));
    return n;
}

/* Rows per strip, computed from the unsplit side, so that all ranks agree. */
static int64_t strip_rows(int64_t rows, const struct tensor *x, const struct tensor *y, int64_t strip)
{
    int64_t bytes = (int64_t)(tensor_bytes(x) > tensor_bytes(y) ? tensor_bytes(x) : tensor_bytes(y)), strips = (bytes - 1) / strip + 1;
    return rows / strips > 0 ? rows / strips : 1;
}

/* Tensor t with its first dimensions merged, and `rows` rows of these. */
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
    int axes = collective_kind(c->kind)->leading(c, x);
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

struct route *collective_route_parts(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x,
                                     const struct tensor *y, const struct interval *part)
{
    bool scatter = c->kind == COLL_REDUCESCATTER;
    const struct tensor *all = scatter ? x : y, *own = scatter ? y : x;
    struct intervals mine = intervals_range(a, 0, own->dim[c->axis]);
    struct route *route = route_new(a, comm);
    route->strips = 1;
    for (int r = 0; r < comm->size; r++) {
        struct intervals theirs = intervals_range(a, part[r].lo, part[r].hi);
        struct region of_all = region_of(a, all, c->axis, &theirs, -1, NULL), of_own = region_of(a, own, c->axis, &mine, -1, NULL);
        route->send[r] = scatter ? of_all : of_own;
        route->recv[r] = scatter ? of_own : of_all;
    }
    route_finish(route, comm->size);
    return route;
}
