/* merge_small: merges small reductions into one of their concatenated operands (bucket.c), and small gathers likewise.
 *
 * Two independent collectives merge once both operands are available. One that depends on another may still join it: for a linear f, the
 * sum of f(addends) is f of the sum of the addends. So an AllReduce after linear nodes moves up to the addends themselves, if these do not
 * depend on the other. Example: in a loss mean(log(sum) - score), the label's score joins the sum of exponentials, and nothing is left to
 * reduce after the mean. */
#include "op/canon/canon.h"
#include "op/op.h"
#include "plan/apply/apply.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"

#include <string.h>

/* Facts about the graph, valid until it changes. */
struct merger_view {
    const struct uses *uses;
    int *last;    /* by value id: its last reader; -1: none */
    int *live;    /* by node: number of live values, without constants */
    int *partial; /* number of live partial values */
    bool *late;   /* by value id: in a training stage, it depends on the gradients of later stages */
    bool *after;  /* by value id: it depends on the reduction that others may join */
    VEC(const struct value *) waiting;
    signed char *small; /* by id of a collective's operand: 1 small, -1 not, 0 unknown */
};

struct merger {
    struct graph *g;
    const struct machine *machine;
    const struct plan *plan;
    struct arena *tmp; /* for the view */
    struct merger_view view;
    struct buckets buckets;
    bool changed; /* the graph changed: renew the view */
};

static bool is_sum_reduction(const struct value *v)
{
    return v && v->placed && v->place.kind == PLACE_P && v->place.op == RED_SUM;
}

static bool payload_is_small(const struct merger *m, const struct node *reduction)
{
    for (int w = 0; w < m->plan->workloads.n; w++)
        if ((double)cost_payload(m->g, reduction, &m->plan->workloads.at[w].dims, m->g->ranks) * 4 >
            collective_overhead(m->machine, m->g->ranks) * m->machine->memory_bandwidth)
            return false;
    return true;
}

/* Whether the fixed cost of the collective exceeds the cost of copying its bytes four times. */
static bool is_small(const struct merger *m, const struct node *reduction)
{
    signed char *known = &m->view.small[reduction->in[0]->id];
    if (*known == 0)
        *known = payload_is_small(m, reduction) ? 1 : -1;
    return *known > 0;
}

static bool waits(const struct merger *m, const struct value *v)
{
    return m->view.after[v->id];
}

static bool reads(const struct merger *m, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && waits(m, n->in[i]))
            return true;
    return false;
}

/* Whether the value is available from the start: a graph input, or computed from nothing. */
static bool is_early(const struct value *v)
{
    for (int i = 0; v->producer && i < v->producer->nin; i++)
        if (v->producer->in[i] && !v->producer->in[i]->constant)
            return false;
    return !v->constant;
}

/* Counts a value as live from node `from` to the node before its last reader. */
static void count_live(struct merger_view *w, const struct value *v, int from)
{
    int last = w->last[v->id];
    if (last <= from)
        return;
    w->live[from]++;
    w->live[last]--;
    if (is_sum_reduction(v)) {
        w->partial[from]++;
        w->partial[last]--;
    }
}

static bool *find_late(const struct graph *g, struct arena *a)
{
    bool *late = NEWN(a, bool, g->values.n);
    for (int i = g->late; g->in_flight && i < g->inputs.n; i++)
        late[g->inputs.at[i]->id] = true;
    for (int i = 0; g->in_flight && i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        bool reads = false;
        for (int k = 0; k < n->nin; k++)
            reads = reads || (n->in[k] && late[n->in[k]->id]);
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                late[n->out[k]->id] = reads;
    }
    return late;
}

static void view_graph(struct merger *m)
{
    struct graph *g = m->g;
    struct merger_view *w = &m->view;
    arena_reset(m->tmp);
    *w = (struct merger_view){.uses = graph_uses(g, m->tmp),
                              .last = NEWN(m->tmp, int, g->values.n),
                              .live = NEWN(m->tmp, int, g->nodes.n + 1),
                              .partial = NEWN(m->tmp, int, g->nodes.n + 1),
                              .late = find_late(g, m->tmp),
                              .after = NEWN(m->tmp, bool, g->values.n),
                              .small = NEWN(m->tmp, signed char, g->values.n)};
    for (int i = 0; i < g->values.n; i++)
        w->last[i] = -1;
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++)
            if (g->nodes.at[i]->in[k])
                w->last[g->nodes.at[i]->in[k]->id] = i;
    for (int i = 0; i < g->values.n; i++)
        if (is_early(g->values.at[i]))
            count_live(w, g->values.at[i], 0);
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nout; k++)
            if (g->nodes.at[i]->out[k] && !is_early(g->nodes.at[i]->out[k]))
                count_live(w, g->nodes.at[i]->out[k], i);
    for (int i = 1; i < g->nodes.n; i++) {
        w->live[i] += w->live[i - 1];
        w->partial[i] += w->partial[i - 1];
        require(w->partial[i] >= 0 && w->partial[i] <= w->live[i]);
    }
}

/* Whether an earlier operand is the same value. */
static bool reads_before(const struct node *n, int operand)
{
    for (int i = 0; i < operand; i++)
        if (n->in[i] == n->in[operand])
            return true;
    return false;
}

/* Marks what depends on the reduction. Returns the last node to consider: from there on, all live values depend on it and none is
 * partial. */
static int look(struct merger *m, int first)
{
    struct graph *g = m->g;
    int waiting = 0;
    for (int i = 0; i < m->view.waiting.n; i++)
        m->view.after[m->view.waiting.at[i]->id] = false;
    m->view.waiting.n = 0;
    for (int i = first; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        bool wait = i == first || reads(m, n);
        for (int k = 0; k < n->nin; k++)
            waiting -= n->in[k] && waits(m, n->in[k]) && m->view.last[n->in[k]->id] == i && !reads_before(n, k);
        for (int k = 0; wait && k < n->nout; k++)
            if (n->out[k]) {
                m->view.after[n->out[k]->id] = true;
                VEC_PUSH(m->tmp, &m->view.waiting, n->out[k]);
                waiting += m->view.last[n->out[k]->id] > i;
            }
        require(waiting >= 0 && waiting <= m->view.live[i]);
        if (waiting == m->view.live[i] && m->view.partial[i] == 0)
            return i;
    }
    return g->nodes.n - 1;
}

static bool alike(const struct merger *m, const struct node *a, const struct node *b)
{
    return bucket_alike(a, b) && m->view.late[a->in[0]->id] == m->view.late[b->in[0]->id] && is_small(m, b);
}

static bool can_join(const struct merger *m, const struct node *a, const struct node *b)
{
    return !waits(m, b->in[0]) && alike(m, a, b);
}

/* ---- a sum after linear nodes ---------------------------------------------------------------------------------------------------- */

/* Linear nodes, and the partial values before them. */
struct linear {
    VEC(struct node *) nodes;
    VEC(struct node *) sums;
}; /* sums: of those values, not inserted yet */

/* Whether the node keeps a partial operand partial. A product of shards makes new partial values, whatever its bias is. */
static bool passes_partial(const struct node *n)
{
    bool any = false;
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i] && n->in[i]->placed && n->in[i]->place.kind == PLACE_S)
            return false;
        any |= is_sum_reduction(n->in[i]);
    }
    return any;
}

/* Adds a partial value that is made here to the sum, if it may join reduction a. */
static bool find_partial(struct merger *m, const struct node *a, struct value *v, struct linear *found)
{
    for (int i = 0; i < found->sums.n; i++)
        if (found->sums.at[i]->in[0] == v)
            return true;
    struct node *sum = graph_node(m->g, op_find("tpc", "AllReduce"), arena_printf(m->g->arena, "%s/AllReduce", v->name), 1, &v, 1);
    attr_set_string(sum, "op", attr_string(a, "op"));
    VEC_PUSH(m->tmp, &found->sums, sum);
    m->changed = waits(m, v) && alike(m, a, sum) && canon_hoist_row_scalar(m->g, v, m->view.after);
    return can_join(m, a, sum);
}

/* Finds the partial values from which v is computed by nodes that nothing else reads. False: not all of them may join a. */
static bool find_linear(struct merger *m, const struct node *a, struct value *v, struct linear *found)
{
    struct node *n = v->producer;
    if (!n)
        return false;
    if (op_is_tpc(n, "Term"))
        return true;
    if (!passes_partial(n))
        return find_partial(m, a, v, found);
    if (n->nout != 1 || m->view.uses[v->id].n != 1)
        return false;
    VEC_PUSH(m->tmp, &found->nodes, n);
    for (int i = 0; i < n->nin; i++)
        if (is_sum_reduction(n->in[i]) && !find_linear(m, a, n->in[i], found))
            return false;
    return true;
}

static struct value *sum_of(const struct linear *found, struct value *v)
{
    for (int i = 0; i < found->sums.n; i++)
        if (found->sums.at[i]->in[0] == v)
            return found->sums.at[i]->out[0];
    return op_is_tpc(v->producer, "Term") ? v->producer->in[0] : v;
}

static void append_sum(struct graph *g, struct node *sum)
{
    struct value *v = graph_value(g, sum->name, &sum->in[0]->type);
    v->place = placement_replicated;
    v->placed = true;
    node_output(g, sum, 0, v);
    graph_append(g, sum);
}

static void move_up(struct graph *g, const struct linear *found, const struct node *late)
{
    for (int i = 0; i < found->sums.n; i++)
        append_sum(g, found->sums.at[i]);
    for (int i = 0; i < found->nodes.n; i++) {
        struct node *n = found->nodes.at[i];
        for (int k = 0; k < n->nin; k++)
            if (is_sum_reduction(n->in[k]))
                n->in[k] = sum_of(found, n->in[k]);
    }
    for (int i = 0; i < found->nodes.n; i++)
        found->nodes.at[i]->out[0]->place = placement_replicated;
    graph_replace(g, late->out[0], late->in[0], true);
    graph_sort(g);
    graph_prune(g);
}

/* Replaces a reduction that depends on reduction a by one of earlier partial values that do not. */
static bool hasten(struct merger *m, const struct node *a, const struct node *late)
{
    struct linear found = {.nodes = {NULL, 0, 0}};
    bool fits = is_sum_reduction(late->in[0]) && strcmp(attr_string(a, "op"), "sum") == 0 && waits(m, late->in[0]);
    m->changed = false;
    if (!fits || !find_linear(m, a, late->in[0], &found) || !found.nodes.n)
        return m->changed;
    move_up(m->g, &found, late);
    return true;
}

/* ---- all of them -------------------------------------------------------------------------------------------------------------------- */

/* Lets a later collective join the first, or moves it up so that it can. */
static bool join_next(struct merger *m, int first)
{
    struct graph *g = m->g;
    const struct node *a = g->nodes.at[first];
    if (!bucket_takes(g, a) || !(is_small(m, a) || bucket_of(&m->buckets, a)))
        return false;
    int last = look(m, first);
    for (int k = first + 1; k <= last; k++) {
        const struct node *b = g->nodes.at[k];
        if (!bucket_takes(g, b))
            continue;
        if (can_join(m, a, b)) {
            bucket_merge(g, &m->buckets, first, k);
            return true;
        }
        if (op_is_tpc(a, "AllReduce") && op_is_tpc(b, "AllReduce") && hasten(m, a, b))
            return true;
    }
    return false;
}

void plan_merge_small(struct graph *g, const struct machine *machine, const struct plan *plan)
{
    struct merger m = {.g = g, .machine = machine, .plan = plan, .tmp = arena_new()};
    view_graph(&m);
    for (int i = 0; i < g->nodes.n; i++)
        if (join_next(&m, i)) {
            view_graph(&m);
            i = -1;
        }
    arena_free(m.tmp);
}
