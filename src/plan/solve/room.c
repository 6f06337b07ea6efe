/* room: a lower bound of a rank's memory over time, as limits of the choice's problem. A plan may hold more: reshards, collectives and
 * kernels that are taken apart need further memory, and the slab has gaps.
 *
 * Points are the nodes of the graph that runs, in order, and its end, for each kind of rank. Lifetimes are those of the graph on one rank
 * as it runs (src/op/analysis/lifetime.c): values inside a kernel, views and values folded at load take nothing.
 *
 *     weights     at all points, as their reader reads them
 *     states      at all points what the workload with the most state adds to the counted one; the counted one's from when it is made
 *     results     as made until first read; as the last reader reads them while it runs; in between, the smaller of both
 *
 * Counts one workload, the one with the largest results. */
#include "op/analysis/analysis.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

#include <math.h>

enum { MOST_KINDS = 16 };

/* A value at one end of an edge, during steps from..to-1. */
struct hold {
    const struct value *v;
    struct endpoint end;
    int from, to, workload, less; /* less: without what it takes in that workload; -1: everything */
    double width;                 /* bytes of an element */
    bool in_place;                /* only if it is contiguous in an input */
    bool least;                   /* in the placement that takes least */
};
struct room {
    struct choice_problem *e;
    struct arena *tmp;
    const struct graph *runs;
    int steps, workload, fullest; /* the workload that is counted; the one with the most state */
    struct lifetimes life;        /* of the graph that runs */
    int *step;                    /* by value id: its producer in the graph that runs; -1: none */
    bool *used;                   /* by value id: whether the graph that runs reads it */
    VEC(struct hold) holds;
    VEC(const struct split *) splits;
    int kinds, rank[MOST_KINDS];
};

/* ---- sizes -------------------------------------------------------------------------------------------------------------------------- */

/* Whether the size is known; data-dependent sizes count as 0. */
static bool is_sized(const struct room *r, const struct value *v, int workload)
{
    int64_t size;
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_eval(v->type.dim[d], &r->e->s->plan->workloads.at[workload].dims, &size) || size < 0)
            return false;
    return true;
}

/* Rounds down, with a tolerance for quotients of integers. */
static int64_t whole_bytes(double bytes)
{
    return plan_possible_bytes((int64_t)floor(fmin(bytes, 0x1p60) * (1 + 1e-14) + 1e-3));
}

static int64_t bytes_at(const struct room *r, const struct hold *h, struct placement p, int rank, int workload)
{
    return whole_bytes(h->width * cost_local_elements(r->e->s, h->v, p, workload, rank));
}

static int64_t bytes_of(const struct room *r, const struct hold *h, struct placement p, int rank)
{
    if (h->in_place && !placement_is_stretch(&h->v->type, p, rank, &r->e->s->plan->workloads.at[h->workload].dims))
        return 0;
    int64_t bytes = bytes_at(r, h, p, rank, h->workload), less = h->less >= 0 ? bytes_at(r, h, p, rank, h->less) : 0;
    return bytes > less ? bytes - less : 0;
}

static void add_hold(struct room *r, const struct hold *h)
{
    require(h->from >= 0 && h->to <= r->steps + 1);
    if (h->from < h->to && is_sized(r, h->v, h->workload))
        VEC_PUSH(r->tmp, &r->holds, *h);
}

/* ---- the graph that runs ------------------------------------------------------------------------------------------------------------ */

static struct lifetimes lives_of(struct room *r)
{
    const struct graph *g = r->runs;
    r->step = NEWN(r->tmp, int, g->values.n + 1);
    r->used = NEWN(r->tmp, bool, g->values.n + 1);
    for (int i = 0; i < g->values.n; i++)
        r->step[i] = -1;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                r->step[n->out[k]->id] = i;
        for (int k = 0; k < n->nin; k++)
            if (n->in[k])
                r->used[n->in[k]->id] = true;
    }
    return lifetime_items(r->tmp, g, NEWN(r->tmp, bool, g->inputs.n + 1), GRADIENTS_LEAVE);
}

static const struct slab_item *item_of(const struct room *r, const struct value *v)
{
    return r->life.item[v->id] >= 0 ? &r->life.items[r->life.item[v->id]] : NULL;
}

/* The step at which a node of the model has run, in its kernel; -1: unknown. */
static int step_of(const struct room *r, const struct node *n)
{
    const struct fused_part *part = fused_part(r->e->s, n);
    int step = -1;
    for (int k = 0; part && part->into && k < part->into->nout; k++)
        if (part->into->out[k] && r->step[part->into->out[k]->id] > step)
            step = r->step[part->into->out[k]->id];
    return step;
}

/* ---- weights and states ------------------------------------------------------------------------------------------------------------- */

/* A weight that one node reads in part is cut where it is left whole. */
static void hold_weights(struct room *r)
{
    struct space *s = r->e->s;
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        if (!v->constant || !r->runs->values.at[i]->constant || !r->used[i] || !s->uses[i].list.n)
            continue;
        struct endpoint end = s->uses[i].list.n == 1 ? edge_reader(r->e, s->uses[i].list.at[0]) : r->e->source[i];
        add_hold(
            r,
            &(struct hold){
                .v = v, .end = end, .to = r->steps + 1, .less = -1, .width = cost_copies(s->g, v) * value_width(r->runs->values.at[i])});
    }
}

/* A state that a step makes is in the slab with the results, and counts once. */
static void hold_states(struct room *r)
{
    struct space *s = r->e->s;
    for (int i = 0; i < s->g->states.n; i++) {
        const struct state *st = &s->g->states.at[i];
        const struct value *v = st->present ? st->present : st->past;
        int out = st->present ? graph_output_number(s->g, st->present) : -1;
        if (st->present && out < 0)
            continue;
        struct hold h = {
            .v = v, .end = st->past ? r->e->source[st->past->id] : r->e->sink[out], .to = r->steps + 1, .width = value_width(v)};
        const struct slab_item *made = st->present ? item_of(r, r->runs->values.at[v->id]) : NULL;
        h.workload = r->fullest;
        h.less = st->present ? r->workload : -1;
        h.in_place = !st->present;
        add_hold(r, &h);
        if (!st->present)
            continue;
        h.from = made ? made->first : r->steps;
        h.workload = r->workload;
        h.less = -1;
        add_hold(r, &h);
    }
}

/* ---- results ------------------------------------------------------------------------------------------------------------------------ */

/* The readers of a result, or of a view of it. */
struct reads {
    int first, last;
    const struct value *v; /* the value that the last one reads, and how */
    struct endpoint end;
};

static void add_read(struct reads *reads, const struct value *v, struct endpoint end, int step)
{
    reads->first = step < reads->first ? step : reads->first;
    if (step < reads->last)
        return;
    reads->last = step;
    reads->v = v;
    reads->end = end;
}

static bool is_view(const struct room *r, const struct node *n, int root)
{
    return n->nout > 0 && n->out[0] && n->out[0]->id != root && r->life.root[n->out[0]->id] == root;
}

static void add_reads(struct room *r, const struct value *v, int root, struct reads *reads)
{
    struct space *s = r->e->s;
    for (int i = 0; i < s->uses[v->id].list.n; i++) {
        struct place_use u = s->uses[v->id].list.at[i];
        const struct node *n = u.node >= 0 ? s->g->nodes.at[u.node] : NULL;
        if (n && is_view(r, n, root))
            add_reads(r, n->out[0], root, reads);
        else
            add_read(reads, v, edge_reader(r->e, u), n ? step_of(r, n) : r->steps);
    }
}

static void hold_result(struct room *r, const struct value *v)
{
    const struct slab_item *item = item_of(r, r->runs->values.at[v->id]);
    struct reads reads = {.first = r->steps + 1, .last = -1};
    if (!item || graph_is_present(r->e->s->g, v))
        return;
    add_reads(r, v, v->id, &reads);
    struct hold h = {
        .v = v, .end = edge_source(r->e, v), .workload = r->workload, .less = -1, .width = value_width(r->runs->values.at[v->id])};
    h.from = item->first;
    h.to = reads.first > item->first ? reads.first : item->first + 1;
    add_hold(r, &h);
    h.from = h.to;
    h.to = item->last;
    h.least = true;
    add_hold(r, &h);
    if (reads.last < h.from || reads.last != item->last)
        return;
    h.v = reads.v;
    h.end = reads.end;
    h.from = item->last;
    h.to = item->last + 1;
    h.least = false;
    add_hold(r, &h);
}

static void hold_results(struct room *r)
{
    struct space *s = r->e->s;
    for (int i = 0; i < s->g->values.n; i++)
        if (s->producer[i] >= 0 && !r->runs->values.at[i]->constant)
            hold_result(r, s->g->values.at[i]);
}

/* ---- ranks -------------------------------------------------------------------------------------------------------------------------- */

static void add_split(struct room *r, struct placement p)
{
    for (int i = 0; i < r->splits.n; i++)
        if (p.kind != PLACE_S || r->splits.at[i] == p.split)
            return;
    if (p.kind == PLACE_S)
        VEC_PUSH(r->tmp, &r->splits, p.split);
}

static void find_splits(struct room *r)
{
    const struct space *s = r->e->s;
    for (int i = 0; i < s->g->nodes.n; i++)
        for (int k = 0; k < s->strategies[i].list.n; k++) {
            const struct strategy *st = s->strategies[i].list.at[k];
            for (int j = 0; j < s->g->nodes.at[i]->nin; j++)
                add_split(r, st->in[j]);
            for (int j = 0; j < s->g->nodes.at[i]->nout; j++)
                add_split(r, st->out[j]);
        }
    for (int i = 0; i < r->holds.n; i++)
        for (int k = 0; k < r->holds.at[i].end.n; k++)
            add_split(r, r->holds.at[i].end.at[k]);
}

/* The rank's part of its own limit, scaled to a limit that all ranks share. */
static double weighed_part(const struct room *r, const struct split *q, int workload, int rank)
{
    return limit_weight(r->e->s->options, rank) * cost_fraction(r->e->s, q, workload, rank);
}

/* Whether rank a fills at least as much of its limit as rank b with every split. */
static bool holds_all_of(const struct room *r, int a, int b)
{
    for (int i = 0; i < r->splits.n; i++)
        if (weighed_part(r, r->splits.at[i], r->workload, a) < weighed_part(r, r->splits.at[i], r->workload, b) ||
            weighed_part(r, r->splits.at[i], r->fullest, a) < weighed_part(r, r->splits.at[i], r->fullest, b))
            return false;
    return limit_of(r->e->s->options, a) <= limit_of(r->e->s->options, b);
}

/* Chooses ranks that no other rank dominates; if there are many, some of them. */
static void choose_ranks(struct room *r)
{
    for (int b = 0; b < r->e->s->ranks; b++) {
        bool other = false;
        int n = 0;
        for (int i = 0; i < r->kinds && !other; i++)
            other = holds_all_of(r, r->rank[i], b);
        for (int i = 0; i < r->kinds && !other; i++)
            if (!holds_all_of(r, b, r->rank[i]))
                r->rank[n++] = r->rank[i];
        r->kinds = other ? r->kinds : n;
        if (!other && r->kinds < MOST_KINDS)
            r->rank[r->kinds++] = b;
    }
    require(r->kinds > 0); /* of ranks that are alike, one is counted */
}

/* ---- the problem -------------------------------------------------------------------------------------------------------------------- */

/* The workload with the most elements in all results, or in all states. */
static int largest_workload(const struct room *r, bool states)
{
    const struct space *s = r->e->s;
    double most = -1;
    int largest = 0;
    for (int w = 0; w < s->plan->workloads.n; w++) {
        double bytes = 0;
        for (int i = 0; i < s->g->values.n; i++)
            if (!s->g->values.at[i]->constant && is_sized(r, s->g->values.at[i], w) &&
                (!states || graph_is_present(s->g, s->g->values.at[i])))
                bytes += cost_local_elements(r->e->s, s->g->values.at[i], placement_replicated, w, 0);
        largest = bytes > most ? w : largest;
        most = fmax(most, bytes);
    }
    return largest;
}

static double least_share(const struct room *r, int rank)
{
    double least = 1;
    for (int i = 0; i < r->splits.n; i++)
        least = fmin(least, cost_fraction(r->e->s, r->splits.at[i], r->workload, rank));
    return least;
}

/* Bytes at one end in one placement; scaled if limits differ. */
static int64_t amount_of(const struct room *r, const struct hold *h, struct placement p, int rank)
{
    int64_t bytes = h->least ? whole_bytes(least_share(r, rank) * (double)bytes_of(r, h, placement_replicated, rank))
                             : bytes_of(r, h, p, rank);
    return plan_possible_bytes(limit_weighed(r->e->s->options, rank, bytes, false));
}

static void take_hold(const struct room *r, const struct hold *h, int kind)
{
    int at = kind * (r->steps + 1);
    int64_t *amount = problem_take(r->e->p, h->end.var, at + h->from, at + h->to);
    for (int k = 0; k < h->end.n; k++)
        amount[k] = amount_of(r, h, h->end.at[k], r->rank[kind]);
}

/* Marks the variables that decide what is emitted: nodes and ends of the graph. A weight that one node reads follows that node, and other
 * variables follow, too. */
static bool *deciding(struct room *r)
{
    const struct choice_problem *e = r->e;
    const struct graph *g = e->s->g;
    bool *is = NEWN(r->tmp, bool, e->p->size.n + 1);
    for (int i = 0; i < g->nodes.n; i++)
        is[e->node_var[i]] = true;
    for (int i = 0; i < g->outputs.n; i++)
        is[e->sink[i].var] |= e->sink[i].at != NULL;
    for (int i = 0; i < g->values.n; i++) {
        is[e->source[i].var] |= e->source[i].at && (!g->values.at[i]->constant || e->s->uses[i].list.n > 1);
        is[e->read_place[i].var] |= e->read_place[i].at != NULL;
    }
    for (int v = 0; v < e->p->size.n; v++)
        is[v] = is[v] && e->p->size.at[v] > 1;
    return is;
}

/* Adds a point that forbids the combination of values of a plan that does not fit: all but one of the variables may keep theirs. */
static void bar(struct room *r, const bool *decides, const int *value, int point)
{
    struct problem *p = r->e->p;
    for (int v = 0; v < p->size.n; v++)
        if (decides[v]) {
            problem_take(p, v, point, point + 1)[value[v]] = 1;
            p->limit[point]++;
        }
    p->limit[point]--;
}

static int sizes_of(const struct problem *p)
{
    int all = 0;
    for (int v = 0; v < p->size.n; v++)
        all += p->size.at[v];
    return all;
}

bool room_knows(const struct choice_problem *e)
{
    const struct plan_room *room = &e->s->plan->room;
    return room->bytes > 0 && room->n == e->p->size.n && room->sizes == sizes_of(e->p);
}

void room_limit(struct choice_problem *e)
{
    struct room r = {.e = e, .tmp = arena_new(), .runs = e->s->fused.runs};
    const struct plan_room *room = &e->s->plan->room;
    int barred = room_knows(e) ? room->barred.n : 0;
    require(r.runs->values.n >= e->s->g->values.n); /* values keep their ids */
    r.steps = r.runs->nodes.n;
    r.life = lives_of(&r);
    r.workload = largest_workload(&r, false);
    r.fullest = largest_workload(&r, true);
    hold_weights(&r);
    hold_states(&r);
    hold_results(&r);
    find_splits(&r);
    choose_ranks(&r);
    int counted = r.kinds * (r.steps + 1);
    int64_t *limit = problem_limits(e->p, counted + barred);
    for (int i = 0; i < counted; i++)
        limit[i] = room->bytes;
    for (int k = 0; k < r.kinds; k++)
        for (int i = 0; i < r.holds.n; i++)
            take_hold(&r, &r.holds.at[i], k);
    for (int i = 0; i < barred; i++)
        bar(&r, deciding(&r), room->barred.at[i], counted + i);
    arena_free(r.tmp);
}

void room_note(const struct choice_problem *e, const int *value)
{
    struct plan *plan = e->s->plan;
    struct arena *tmp = arena_new();
    int n = e->p->size.n, *values = NEWN(e->s->arena, int, n + 1);
    int64_t *taken = NEWN(tmp, int64_t, e->p->points + 1);
    problem_taken(e->p, value, taken);
    plan->counted = 0;
    for (int i = 0; i < e->p->points; i++)
        plan->counted = taken[i] > plan->counted ? taken[i] : plan->counted;
    require(!plan->room.bytes || plan->counted <= plan->room.bytes);
    for (int v = 0; v < n; v++)
        values[v] = value[v];
    plan->values = values;
    plan->combinations = 1;
    for (int i = 0; i < e->s->g->nodes.n; i++)
        plan->combinations *= e->s->strategies[i].list.n;
    plan->room.n = n;
    plan->room.sizes = sizes_of(e->p);
    arena_free(tmp);
}
