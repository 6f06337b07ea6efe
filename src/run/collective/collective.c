/* collective: one collective node between two placements. Splits say, without a message, what every rank holds for the sizes of this
 * run; a route (route.c) lists for every pair of ranks the box that moves.
 *
 *   AllGather       own pieces to everybody
 *   ReduceScatter   to each rank the pieces it keeps, summed there in rank order
 *   AllToAll        own pieces of the concatenated axis x the receiver's pieces of the split axis
 *   Redistribute    what the receiver keeps and does not hold, from its owner
 *
 * A collective is skipped only when its global size is 0, which every rank sees alike. */
#include "run/collective/collective.h"

#include "ir/rank_meta.h"

#include <string.h>
#include <xxhash.h>

static const struct split *split_attr(struct graph *g, const struct node *n, const char *name)
{
    const char *error = NULL;
    const struct split *s = split_parse(g->alg, attr_string(n, name), &error);
    if (!s)
        fail("%s: attribute %s: %s", node_where(g, n), name, error);
    return s;
}

static int axis_attr(const struct graph *g, const struct node *n, const char *name)
{
    int rank = n->in[0]->type.rank;
    int64_t axis = attr_int(n, name);
    if (axis < -rank || axis >= rank)
        fail("%s: %s is %lld for a tensor of %d dimensions", node_where(g, n), name, (long long)axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

static enum collective kind_of(const struct graph *g, const struct node *n)
{
    enum collective kind = collective_parse(n->op->name);
    if (!kind)
        fail("%s: this program does not know the collective %s", node_where(g, n), n->op->name);
    return kind;
}

static enum redop red_attr(const struct graph *g, const struct node *n)
{
    enum redop red = redop_parse(attr_string(n, "op"));
    if (red == RED_NONE)
        fail("%s: op is '%s', expected sum, max, min or prod", node_where(g, n), attr_string(n, "op"));
    return red;
}

void collective_read(struct graph *g, const struct node *n, struct collective_node *c)
{
    c->kind = kind_of(g, n);
    c->name = n->name;
    c->op = n->op->name;
    c->axis2 = -1;
    if (c->kind == COLL_ALLREDUCE || c->kind == COLL_REDUCESCATTER)
        c->red = red_attr(g, n);
    if (c->kind == COLL_BROADCAST)
        c->root = (int)attr_int(n, "root");
    const struct node *maker = n->in[0]->producer;
    c->bits = c->kind == COLL_ALLREDUCE && c->red == RED_SUM && maker && rank_meta_sum(g, maker).kind == RANK_SUM_ONCE;
    if (c->kind == COLL_ALLREDUCE || c->kind == COLL_BROADCAST)
        return;
    if (c->kind != COLL_REDUCESCATTER)
        c->from = split_attr(g, n, "from");
    if (c->kind != COLL_ALLGATHER)
        c->to = split_attr(g, n, "to");
    c->axis = axis_attr(g, n, c->kind == COLL_ALLTOALL ? "split_axis" : "axis");
    if (c->kind == COLL_ALLTOALL)
        c->axis2 = axis_attr(g, n, "concat_axis");
    if (c->axis == c->axis2)
        fail("%s: split_axis and concat_axis are both %d", node_where(g, n), c->axis);
    const struct dim **extent = NULL;
    c->nextent = attr_dims(n, "extent", &extent);
    c->extent = extent;
}

/* ---- running --------------------------------------------------------------------------------------------------------------- */

/* What goes to every rank lies in x, or is packed for the way; AllGather sends everybody the same. Returns the room behind it. */
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

/* Blocks that are one stretch of y arrive there; the others are unpacked from where they are seen. */
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

static void copy_whole(const struct route *route, const struct tensor *x, struct tensor *y)
{
    if (x->data != y->data)
        memcpy(y->data, x->data, (size_t)route->elements * dtype_size(x->dtype));
}

/* The unsigned type of as many bits. */
static enum dtype bits_of(enum dtype t)
{
    return dtype_size(t) == 2 ? DT_U16 : dtype_size(t) == 4 ? DT_U32 : dtype_size(t) == 8 ? DT_U64 : DT_U8;
}

static void run_strip(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                      const struct tensor *x, struct tensor *y)
{
    switch (c->kind) {
    case COLL_ALLREDUCE: comm->allreduce(comm, x->data, y->data, route->elements, c->bits ? bits_of(x->dtype) : x->dtype, c->red); return;
    case COLL_BROADCAST:
        copy_whole(route, x, y);
        comm->broadcast(comm, y->data, route->elements * (int64_t)dtype_size(x->dtype), c->root);
        return;
    case COLL_ALLGATHER: run_moves(route, true, comm, scratch, x, y); return;
    case COLL_REDUCESCATTER: run_reducescatter(c, route, comm, scratch, x, y); return;
    case COLL_ALLTOALL:
    case COLL_REDISTRIBUTE: run_moves(route, false, comm, scratch, x, y); return;
    case COLL_NONE: bug("no such collective");
    }
}

void collective_run(const struct collective_node *c, const struct route *route, struct comm *comm, struct buffer *scratch,
                    const struct tensor *x, struct tensor *y)
{
    struct tensor from = *x, to = *y;
    comm->id = c->id;
    comm->name = c->name;
    for (int64_t i = 0; i < route->strips; i++) {
        run_strip(c, route, comm, scratch, &from, &to);
        from.data = (char *)from.data + route->x_step;
        to.data = (char *)to.data + route->y_step;
    }
    if (route->last)
        run_strip(c, route->last, comm, scratch, &from, &to);
}

/* ---- agreement at load -------------------------------------------------------------------------------------------------------- */

static const char *list_line(struct arena *a, const struct collective_node *c)
{
    return arena_printf(a, "%lld %s '%s' axis %d %d root %d %s from %s to %s", (long long)c->id, c->op, c->name, c->axis, c->axis2, c->root,
                        redop_name(c->red), c->from ? split_str(a, c->from) : "-", c->to ? split_str(a, c->to) : "-");
}

static uint64_t *all_ranks(struct comm *comm, struct arena *a, uint64_t own)
{
    uint64_t *all = NEWN(a, uint64_t, comm->size);
    int64_t *bytes = NEWN(a, int64_t, comm->size);
    for (int r = 0; r < comm->size; r++)
        bytes[r] = sizeof own;
    all[comm->rank] = own;
    comm->allgatherv(comm, all, bytes);
    return all;
}

/* Rank 0 shows its list line by line; the first that differs is named. */
static _Noreturn void first_difference(struct comm *comm, struct arena *a, const char *path, const char *const *line, int n)
{
    const uint64_t *count = all_ranks(comm, a, (uint64_t)n);
    int most = 0;
    for (int r = 0; r < comm->size; r++)
        most = (int)count[r] > most ? (int)count[r] : most;
    for (int i = 0; i < most; i++) {
        char theirs[256] = "nothing";
        if (i < n && comm->rank == 0)
            snprintf(theirs, sizeof theirs, "%s", line[i]);
        comm->broadcast(comm, theirs, sizeof theirs, 0);
        const char *mine = i < n ? line[i] : "nothing";
        if (comm->rank && strncmp(theirs, mine, sizeof theirs - 1))
            fail("%s: rank %d and rank 0 would run out of step: collective %s here, %s there", path, comm->rank, mine, theirs);
    }
    comm->barrier(comm);
    fail("%s: the ranks' files are not of one plan", path);
}

void collective_agree(struct comm *comm, struct arena *a, const char *path, const struct collective_node *c, int n, uint64_t plan)
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
        if (all[r] != all[0])
            first_difference(comm, a, path, line, n);
}
