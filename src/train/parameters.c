/* parameters: the trained weights of this rank lie one after another in a flat array; their gradients and moments, in arrays of the same
 * order. So replicas may cut it evenly, whatever the weights' sizes (ZeRO stage 1, Rajbhandari et al. 2020). */
#include "run/collective/collective.h"
#include "train/train.h"

#include <string.h>

enum { ALIGN = 16, PIECE = 1 << 16 };

static void read_parameter(const struct graph *g, const struct session *s, int i, struct parameter *p)
{
    const struct trained *t = &g->trained.at[i];
    const struct type *whole = session_output_type(s, t->output);
    int big = 0;
    *p = (struct parameter){.name = t->weight->name, .output = t->output, .rank = whole->rank};
    while (g->inputs.at[p->input] != t->weight)
        p->input++;
    p->local = (struct tensor){.dtype = DT_F32, .rank = t->initial->rank};
    memcpy(p->local.dim, t->initial->dim, sizeof p->local.dim);
    for (int d = 0; d < whole->rank; d++) {
        if (!dim_is_int(whole->dim[d], &p->dim[d]))
            fail("%s: weight '%s' has a size that is not known: %s", graph_file(g), p->name, type_str(g->arena, whole));
        big += p->dim[d] > 1;
    }
    if (whole->dtype != DT_F32 || whole->rank != p->local.rank)
        fail("%s: weight '%s' has the gradient %s, expected one of its own type", graph_file(g), p->name, type_str(g->arena, whole));
    p->count = tensor_elements(&p->local);
    p->decays = big > 1;
}

static void check_sizes(const struct graph *g, struct arena *a, const struct replicas *t, const struct session *s,
                        const struct parameter *p)
{
    const struct placement *place = session_output_placement(s, p->output);
    bool same = place->kind != PLACE_P && (place->kind == PLACE_R || place->split->ranks == t->process_group->size);
    for (int d = 0; same && d < p->rank; d++) {
        int64_t size = p->dim[d];
        if (place->kind == PLACE_S && place->dim == d) {
            struct intervals mine = intervals_of(a, place->split, t->process_group->rank, false, session_bindings(s));
            size = intervals_extent(&mine);
        }
        same = size == p->local.dim[d];
    }
    if (!same)
        fail("%s: weight '%s' is not placed as its gradient, %s", graph_file(g), p->name, placement_str(a, *place));
}

/* ---- pieces that count -------------------------------------------------------------------------------------------------------------- */

struct runs {
    struct arena *arena;
    struct range own;
    VEC(struct range) list;
};

/* What is within the own range, in pieces of a bounded size. */
static void add_run(struct runs *r, int64_t from, int64_t to)
{
    from = from < r->own.from ? r->own.from : from;
    to = to > r->own.to ? r->own.to : to;
    for (; from < to; from += PIECE)
        VEC_PUSH(r->arena, &r->list, ((struct range){from, to - from < PIECE ? to : from + PIECE}));
}

/* Of a split weight, the indices that no lower rank has; of a whole one, all on the first rank. */
static void add_owned(struct runs *r, const struct replicas *t, const struct session *s, const struct parameter *p)
{
    const struct placement *place = session_output_placement(s, p->output);
    int rank = t->process_group->rank;
    if (place->kind == PLACE_R) {
        if (rank == 0)
            add_run(r, p->from, p->from + p->count);
        return;
    }
    struct intervals held = intervals_of(r->arena, place->split, rank, false, session_bindings(s)),
                     first = intervals_of(r->arena, place->split, rank, true, session_bindings(s)),
                     mine = intervals_local(r->arena, &first, &held);
    int64_t size = p->local.dim[place->dim], inner = 1;
    for (int d = place->dim + 1; d < p->rank; d++)
        inner *= p->local.dim[d];
    if (intervals_extent(&first) == size) {
        add_run(r, p->from, p->from + p->count);
        return;
    }
    for (int64_t at = p->from; at < p->from + p->count; at += size * inner)
        for (int k = 0; k < mine.n; k++)
            add_run(r, at + mine.at[k].lo * inner, at + mine.at[k].hi * inner);
}

/* ---- making them -------------------------------------------------------------------------------------------------------------------- */

static struct range own_range(const struct replicas *t, int64_t total)
{
    if (!t->across)
        return (struct range){0, total};
    return (struct range){comm_share_start(total, t->count, t->index), comm_share_start(total, t->count, t->index + 1)};
}

struct parameters parameters_new(struct arena *a, const struct replicas *t, const struct graph *g, struct session *s)
{
    struct parameters p = {.n = g->trained.n, .at = NEWN(a, struct parameter, g->trained.n)};
    for (int i = 0; i < p.n; i++) {
        read_parameter(g, s, i, &p.at[i]);
        check_sizes(g, a, t, s, &p.at[i]);
        p.at[i].from = p.total;
        if (!i64_add(p.total, (p.at[i].count + ALIGN - 1) / ALIGN * ALIGN, &p.total))
            fail("%s: its weights are too large", graph_file(g));
    }
    p.own = own_range(t, p.total);
    p.weight = NEWN(a, float, p.total);
    p.gradient = NEWN(a, float, p.total);
    p.into = NEWN(a, float *, p.n);
    p.moment[0] = NEWN(a, float, p.own.to - p.own.from);
    p.moment[1] = NEWN(a, float, p.own.to - p.own.from);
    struct runs runs = {.arena = a, .own = p.own};
    for (int i = 0; i < p.n; i++) {
        struct constant *initial = g->trained.at[i].initial;
        p.at[i].local.data = p.weight + p.at[i].from;
        p.into[i] = p.gradient + p.at[i].from;
        if (p.at[i].count)
            memcpy(p.at[i].local.data, constant_data(initial, p.at[i].name), (size_t)p.at[i].count * sizeof(float));
        digest_check(initial, p.at[i].name, true);
        constant_release(initial);
        add_owned(&runs, t, s, &p.at[i]);
    }
    p.pieces = runs.list.n;
    p.piece = runs.list.at;
    p.partial = NEWN(a, double, p.pieces);
    return p;
}

void parameters_take_shard(struct arena *a, const struct replicas *t, struct session *s, const struct parameter *p, const void *whole,
                           float *shard)
{
    const struct placement *place = session_output_placement(s, p->output);
    if (place->kind == PLACE_R) {
        memcpy(shard, whole, (size_t)p->count * sizeof *shard);
        return;
    }
    struct tensor global = {.dtype = DT_F32, .rank = p->rank, .data = (void *)(uintptr_t)whole};
    memcpy(global.dim, p->dim, sizeof global.dim);
    struct intervals mine = intervals_of(a, place->split, t->process_group->rank, false, session_bindings(s));
    struct region r = region_of(a, &global, place->dim, &mine, -1, NULL);
    region_pack(&r, whole, shard);
}
