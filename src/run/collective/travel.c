/* travel: sends rows to the ranks of their experts (Dispatch), and the experts' results back (Combine).
 *
 * Every rank has the routing weights of its own rows for all experts, and of all rows for its own experts. A nonzero weight means that the
 * row is sent there, so sender and receiver count the same rows without a message. A block holds whole rows in their order. */
#include "run/collective/collective.h"

#include <string.h>

/* The row numbers, in the global tensor, of a rank's rows along the axis. */
static struct intervals rows_of(struct arena *a, const struct collective_node *c, const struct split *split, int rank,
                                const struct tensor *t, const struct bindings *b)
{
    struct intervals held = intervals_of(a, split, rank, false, b), all = {0};
    int64_t outer, mid, total = intervals_total(a, split, b), rows, n;
    if (c->axis > t->rank - 2)
        fail("collective '%s' (%s): axis %d has no rows of a tensor of %d dimensions", c->name, collective_name(c->kind), c->axis, t->rank);
    bool fits = type_sizes_product(t->dim, c->axis, &outer) && type_sizes_product(t->dim + c->axis + 1, t->rank - c->axis - 2, &mid) &&
        i64_mul(outer, total, &rows) && i64_mul(rows, mid, &rows) && i64_mul(outer, held.n, &n);
    if (!fits)
        fail("collective '%s' (%s): its tensor is too large", c->name, collective_name(c->kind));
    all.at = NEWN(a, struct interval, n + 1);
    for (int64_t o = 0; o < outer; o++)
        for (int i = 0; i < held.n; i++)
            all.at[all.n++] = (struct interval){(o * total + held.at[i].lo) * mid, (o * total + held.at[i].hi) * mid};
    return all;
}

void travel_route(struct arena *a, const struct collective_node *c, const struct comm *comm, const struct tensor *x, const struct tensor *y,
                  const struct bindings *b, struct route *route)
{
    const struct split *split = c->from ? c->from : c->to;
    if (!split || !split->partition || !c->experts || !c->experts->partition)
        fail("collective '%s' (%s): its rows and experts are not on one rank each", c->name, collective_name(c->kind));
    route->rows = NEWN(a, struct intervals, comm->size);
    route->experts = NEWN(a, struct intervals, comm->size);
    route->part = NEWN(a, const void *, comm->size);
    for (int r = 0; r < comm->size; r++) {
        route->rows[r] = rows_of(a, c, split, r, x, b);
        route->experts[r] = intervals_of(a, c->experts, r, false, b);
    }
    (void)y;
}

/* ---- which rows go where ------------------------------------------------------------------------------------------------------- */

/* A Dispatch or Combine on this rank: `own`: its rows; `all`: all rows. */
struct travel {
    const struct route *route;
    struct comm *comm;
    const struct tensor *chosen, *met;
    char *own, *all;
    int64_t bytes, width; /* of a row; elements per row */
};

static bool is_zero_at(const struct tensor *t, int64_t i)
{
    uint32_t whole;
    uint16_t half;
    if (dtype_size(t->dtype) == sizeof half)
        return memcpy(&half, (const char *)t->data + i * (int64_t)sizeof half, sizeof half), (uint16_t)(half << 1) == 0;
    return memcpy(&whole, (const char *)t->data + i * (int64_t)sizeof whole, sizeof whole), whole << 1 == 0;
}

/* Whether this row of the rank is sent to rank r. */
static bool goes(const struct travel *t, int64_t row, int r)
{
    const struct intervals *experts = &t->route->experts[r];
    for (int i = 0; i < experts->n; i++)
        for (int64_t e = experts->at[i].lo; e < experts->at[i].hi; e++)
            if (!is_zero_at(t->chosen, row * t->chosen->dim[1] + e))
                return true;
    return false;
}

/* Whether this rank receives row `row` of all. */
static bool comes(const struct travel *t, int64_t row)
{
    for (int64_t e = 0; e < t->met->dim[1]; e++)
        if (!is_zero_at(t->met, row * t->met->dim[1] + e))
            return true;
    return false;
}

static int64_t rows_going(const struct travel *t, int r)
{
    int64_t n = 0;
    for (int64_t row = 0; row < t->chosen->dim[0]; row++)
        n += goes(t, row, r);
    return n;
}

static int64_t rows_coming(const struct travel *t, int r)
{
    const struct intervals *rows = &t->route->rows[r];
    int64_t n = 0;
    for (int i = 0; i < rows->n; i++)
        for (int64_t row = rows->at[i].lo; row < rows->at[i].hi; row++)
            n += comes(t, row);
    return n;
}

static int64_t first_dims(const struct tensor *t)
{
    int64_t n;
    return type_sizes_product(t->dim, t->rank - 1, &n) ? n : -1;
}

static void check_rows(const struct collective_node *c, const char *what, int64_t has, int64_t expected)
{
    if (has != expected)
        fail("collective '%s' (%s): there are %lld %s, expected %lld", c->name, collective_name(c->kind), (long long)has, what,
             (long long)expected);
}

static struct travel travel_of(const struct collective_node *c, const struct route *route, struct comm *comm, const struct tensor *x,
                               const struct tensor *own, const struct tensor *all)
{
    struct travel t = {.route = route, .comm = comm, .chosen = &x[1], .met = &x[2], .own = own->data, .all = all->data};
    int64_t rows = 0, experts = 0;
    for (int r = 0; r < comm->size; r++) {
        rows += intervals_extent(&route->rows[r]);
        experts += intervals_extent(&route->experts[r]);
    }
    check_rows(c, "rows of the rank", first_dims(own), intervals_extent(&route->rows[comm->rank]));
    check_rows(c, "rows", first_dims(all), rows);
    check_rows(c, "rows of weights of all experts", t.chosen->dim[0], first_dims(own));
    check_rows(c, "weights of a row", t.chosen->dim[1], experts);
    check_rows(c, "rows of weights of the rank's experts", t.met->dim[0], rows);
    check_rows(c, "weights of the rank's experts", t.met->dim[1], intervals_extent(&route->experts[comm->rank]));
    check_rows(c, "numbers in a row of the result", own->dim[own->rank - 1], all->dim[all->rank - 1]);
    t.width = own->dim[own->rank - 1];
    t.bytes = t.width * (int64_t)dtype_size(own->dtype);
    return t;
}

/* Allocates the blocks to and from other ranks, by their numbers of rows. This rank sends itself nothing. */
static void make_blocks(const struct travel *t, struct buffer *scratch, bool back)
{
    int64_t bytes = 0;
    for (int r = 0; r < t->comm->size; r++) {
        bool self = r == t->comm->rank;
        int64_t out = self ? 0 : t->bytes * rows_going(t, r), in = self ? 0 : t->bytes * rows_coming(t, r);
        t->comm->send[r].bytes = back ? in : out;
        t->comm->recv[r].bytes = back ? out : in;
        bytes += out + in;
    }
    char *room = buffer_reserve(scratch, (size_t)bytes + 1);
    for (int r = 0; r < t->comm->size; r++) {
        t->comm->send[r].at = room;
        t->comm->recv[r].at = room + t->comm->send[r].bytes;
        room += t->comm->send[r].bytes + t->comm->recv[r].bytes;
    }
}

static char *pack_row(char *to, const char *row, int64_t bytes)
{
    memcpy(to, row, (size_t)bytes);
    return to + bytes;
}

/* ---- there ---------------------------------------------------------------------------------------------------------------------- */

/* Copies the received row at `from` to row `row` of all. Returns the next received row. */
static const char *place_row(const struct travel *t, const char *from, int64_t row)
{
    char *to = t->all + row * t->bytes;
    if (!comes(t, row)) {
        memset(to, 0, (size_t)t->bytes);
        return from;
    }
    memcpy(to, from, (size_t)t->bytes);
    return from + t->bytes;
}

static void place_rows(const struct travel *t, int r, const char *from)
{
    const struct intervals *rows = &t->route->rows[r];
    bool self = r == t->comm->rank;
    for (int i = 0; i < rows->n; i++)
        for (int64_t row = rows->at[i].lo; row < rows->at[i].hi; row++) {
            const char *next = place_row(t, from, row);
            from = self ? from + t->bytes : next;
        }
}

void travel_dispatch(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                     const struct tensor *x, struct tensor *y)
{
    struct travel t = travel_of(c, route, comm, x, x, y);
    make_blocks(&t, scratch, false);
    for (int r = 0; r < comm->size; r++) {
        char *to = comm->send[r].at;
        for (int64_t row = 0; r != comm->rank && row < t.chosen->dim[0]; row++)
            if (goes(&t, row, r))
                to = pack_row(to, t.own + row * t.bytes, t.bytes);
    }
    comm->exchange(comm, comm->send, comm->recv, comm->seen);
    for (int r = 0; r < comm->size; r++)
        place_rows(&t, r, r == comm->rank ? t.own : comm->seen[r]);
    comm->done(comm);
}

/* ---- and back ------------------------------------------------------------------------------------------------------------------- */

static void pack_rows(const struct travel *t, int r)
{
    const struct intervals *rows = &t->route->rows[r];
    char *to = t->comm->send[r].at;
    for (int i = 0; i < rows->n; i++)
        for (int64_t row = rows->at[i].lo; row < rows->at[i].hi; row++)
            if (comes(t, row))
                to = pack_row(to, t->all + row * t->bytes, t->bytes);
}

/* at: by rank, its next row; advanced. part: scratch, one entry per rank. */
static void add_row(const struct travel *t, int64_t row, int64_t number, enum dtype dtype, const char **at, const void **part)
{
    char *to = t->own + row * t->bytes;
    int n = 0;
    for (int r = 0; r < t->comm->size; r++) {
        if (!goes(t, row, r))
            continue;
        bool self = r == t->comm->rank;
        part[n++] = self ? t->all + number * t->bytes : at[r];
        at[r] = self ? at[r] : at[r] + t->bytes;
    }
    if (n == 0)
        memset(to, 0, (size_t)t->bytes);
    else
        comm_reduce(to, part, n, t->width, dtype, RED_SUM);
}

void travel_combine(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                    const struct tensor *x, struct tensor *y)
{
    struct travel t = travel_of(c, route, comm, x, y, x);
    const struct intervals *rows = &route->rows[comm->rank];
    make_blocks(&t, scratch, true);
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank)
            pack_rows(&t, r);
    comm->exchange(comm, comm->send, comm->recv, comm->seen);
    const char **at = (const char **)comm->seen; /* advanced row by row */
    int64_t row = 0;
    for (int i = 0; i < rows->n; i++)
        for (int64_t number = rows->at[i].lo; number < rows->at[i].hi; number++, row++)
            add_row(&t, row, number, y->dtype, at, route->part);
    comm->done(comm);
}
