/* member: one collective of a graph: its node's attributes, and its route for the sizes of its operands. */
#include "op/runtime/runtime.h"
#include "ort/ort.h"

#include <string.h>

enum { MOST_SIZES = 32 }; /* of extents */

struct member {
    struct arena *arena;
    struct collective_node node; /* splits and axes as in the node */
    const char *line;            /* compared between ranks */
    bool agreed;
    const struct dim *const *symbol; /* of its splits, if one has several open sizes */
    int symbols;
    /* For the last run's sizes: */
    struct arena *fit;
    struct collective_node fitted;
    struct tensor x, y;
    int64_t extent[MOST_SIZES];
    int nextent;
    struct route *route; /* NULL: none yet */
};

/* ---- a node's attributes ---- */

static const struct split *split_text(struct alg *alg, const struct member_text *t, const char *key, const char *text, int ranks)
{
    const char *error = "it is not given";
    const struct split *s = text ? split_parse(alg, text, &error) : NULL;
    if (!s)
        fail("collective '%s' (%s): attribute %s: %s", t->name, t->op, key, error);
    if (s->ranks != ranks)
        fail("collective '%s' (%s) is for %d ranks, and this job has %d: start it with mpirun -n %d", t->name, t->op, s->ranks, ranks,
             s->ranks);
    return s;
}

/* Another rank's file would run, with wrong results. */
static void check_rank(const struct member_text *t, struct rank_of own)
{
    if (t->ranks > 0 && t->ranks != own.size)
        fail("collective '%s' (%s) is for %lld ranks, and this job has %d: start it with mpirun -n %lld", t->name, t->op,
             (long long)t->ranks, own.size, (long long)t->ranks);
    if (t->rank >= 0 && t->rank != own.rank)
        fail("collective '%s' (%s) is of the file of rank %lld, and this process is rank %d: it opens rank-%d.onnx", t->name, t->op,
             (long long)t->rank, own.rank, own.rank);
}

static bool reduces(enum collective kind)
{
    return kind == COLL_ALLREDUCE || kind == COLL_REDUCESCATTER;
}

static int axis_number(const struct member_text *t, const char *key, int64_t axis)
{
    if (axis < -MAX_RANK || axis >= MAX_RANK)
        fail("collective '%s' (%s): %s is %lld", t->name, t->op, key, (long long)axis);
    return (int)axis;
}

static void read_splits(struct alg *alg, const struct member_text *t, struct rank_of own, struct collective_node *c)
{
    bool both = c->kind == COLL_ALLTOALL || c->kind == COLL_REDISTRIBUTE;
    if (both || c->kind == COLL_ALLGATHER)
        c->from = split_text(alg, t, "from", t->from, own.size);
    if (both || c->kind == COLL_REDUCESCATTER)
        c->to = split_text(alg, t, "to", t->to, own.size);
}

/* tpc-shard puts them before the global size. */
static void find_symbols(struct member *m)
{
    const struct collective_node *c = &m->node;
    const struct split *split[2];
    int n = 0;
    if (c->from)
        split[n++] = c->from;
    if (c->to)
        split[n++] = c->to;
    for (int i = 0; i < n; i++)
        if (split_open_sizes(split[i]) > 1)
            m->symbols = split_symbols(m->arena, n, split, &m->symbol);
}

static void read_rest(const struct member_text *t, struct rank_of own, struct collective_node *c)
{
    if (reduces(c->kind) && (c->red = redop_parse(t->red ? t->red : "sum")) == RED_NONE)
        fail("collective '%s' (%s): op is '%s', expected sum, max, min or prod", t->name, t->op, t->red);
    if (c->kind == COLL_ALLTOALL) {
        c->axis = axis_number(t, "split_axis", t->split_axis);
        c->axis2 = axis_number(t, "concat_axis", t->concat_axis);
    } else if (c->from || c->to)
        c->axis = axis_number(t, "axis", t->axis);
    if (t->root < 0 || t->root >= own.size)
        fail("collective '%s' (%s) has root %lld, and this job has %d ranks", t->name, t->op, (long long)t->root, own.size);
    c->root = (int)t->root;
}

struct member *member_new(const struct member_text *t, struct rank_of own)
{
    struct arena *a = arena_new();
    struct member *m = NEW(a, struct member);
    struct collective_node *c = &m->node;
    m->arena = a;
    m->fit = arena_new();
    *c = (struct collective_node){.kind = collective_parse(t->op), .name = arena_strdup(a, t->name), .axis2 = -1};
    check_rank(t, own);
    if (c->kind == COLL_DISPATCH || c->kind == COLL_COMBINE)
        fail("collective '%s' (%s): rows that travel to their experts run in tpc-run alone", t->name, t->op);
    read_splits(alg_new(a), t, own, c);
    read_rest(t, own, c);
    find_symbols(m);
    m->line = arena_printf(a, "%s '%s' axis %d %d root %d %s from %s to %s", t->op, c->name, c->axis, c->axis2, c->root, redop_name(c->red),
                           t->from ? t->from : "-", t->to ? t->to : "-");
    return m;
}

/* ---- for the sizes of a run ---- */

static int fit_axis(const struct collective_node *c, const struct tensor *x, int axis)
{
    if (axis < -x->rank || axis >= x->rank)
        fail("collective '%s' (%s): axis is %d for a tensor of %d dimensions", c->name, collective_name(c->kind), axis, x->rank);
    return axis < 0 ? axis + x->rank : axis;
}

static const struct split *fit_split(struct alg *alg, const struct collective_node *c, const struct split *s, const struct bindings *b,
                                     int64_t total)
{
    const char *why;
    const struct split *fitted = sizes_split(alg, s, b, total, &why);
    if (!fitted)
        fail("collective '%s' (%s): split %s for %lld indices: %s", c->name, collective_name(c->kind), split_str(alg_arena(alg), s),
             (long long)total, why);
    return fitted;
}

static void check_type(const struct collective_node *c, const struct tensor *x)
{
    if (x->dtype == DT_STRING || dtype_size(x->dtype) == 0 || dtype_is_packed(x->dtype) || (reduces(c->kind) && dtype_is_small(x->dtype)))
        fail("collective '%s' (%s) can't take a tensor of %s", c->name, collective_name(c->kind), dtype_name(x->dtype));
}

static int64_t held_by(struct arena *a, const struct split *s, int rank)
{
    struct intervals held = intervals_of(a, s, rank, false, NULL);
    return intervals_extent(&held);
}

static struct bindings given_symbols(struct member *m)
{
    struct bindings b = {0};
    for (int i = 0; m->nextent > m->symbols && i < m->symbols; i++)
        bindings_set(m->fit, &b, m->symbol[i]->name, m->extent[i]);
    return b;
}

static void fit_sizes(struct member *m, const struct comm *comm)
{
    struct alg *alg = alg_new(m->fit);
    struct collective_node *c = &m->fitted;
    struct bindings b = given_symbols(m);
    int64_t extent = m->nextent ? m->extent[m->nextent - 1] : -1;
    *c = m->node;
    check_type(c, &m->x);
    m->y = m->x;
    if (c->from || c->to)
        c->axis = fit_axis(c, &m->x, c->axis);
    if (c->kind == COLL_ALLTOALL && (c->axis2 = fit_axis(c, &m->x, c->axis2)) == c->axis)
        fail("collective '%s' (%s): split_axis and concat_axis are both %d", c->name, collective_name(c->kind), c->axis);
    if (c->from) {
        c->from = fit_split(alg, c, c->from, &b, extent);
        m->y.dim[c->kind == COLL_ALLTOALL ? c->axis2 : c->axis] = extent;
    }
    if (c->to) {
        c->to = fit_split(alg, c, c->to, &b, c->kind == COLL_ALLTOALL ? m->x.dim[c->axis] : extent);
        m->y.dim[c->axis] = held_by(m->fit, c->to, comm->rank);
    }
    m->route = collective_route(m->fit, c, comm, &m->x, &m->y, NULL, STRIP_BYTES);
}

static bool same_sizes(const struct tensor *a, const struct tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

struct tensor member_result(struct member *m, const struct comm *comm, const struct tensor *x, const int64_t *extent, int n)
{
    if (n > MOST_SIZES)
        fail("collective '%s' (%s) has %d global sizes, at most %d", m->node.name, collective_name(m->node.kind), n, MOST_SIZES);
    bool same = m->route && same_sizes(&m->x, x) && n == m->nextent;
    for (int i = 0; same && i < n; i++)
        same = m->extent[i] == extent[i];
    if (!same) {
        m->route = NULL;
        arena_reset(m->fit);
        m->x = *x;
        m->x.data = NULL;
        for (int i = 0; i < n; i++)
            m->extent[i] = extent[i];
        m->nextent = n;
        fit_sizes(m, comm);
    }
    return m->y;
}

void member_run(struct member *m, struct comm *comm, const struct tensor *x, struct tensor *y)
{
    if (!m->agreed)
        m->node.id = ranks_agree(comm, m->arena, m->line);
    m->agreed = true;
    m->fitted.id = m->node.id;
    collective_run(&m->fitted, m->route, comm, ranks_scratch(), x, y);
}
