/* merge_small: small reductions become one of their concatenated operands (bucket.c), and so do small gathers.
 *
 * Two that do not depend on each other become one once both operands are available. One that depends on another may still join it: for a
 * linear f, the sum of f(addends) is f of the sum of the addends. So an AllReduce after linear nodes moves up to the addends themselves, if
 * these do not depend on the other. Example: in a loss mean(log(sum) - score), the label's score joins the sum of exponentials, and nothing
 * is left to reduce after the mean. */
#include "op/canon/canon.h"
#include "op/op.h"
#include "plan/apply/apply.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"

#include <string.h>

struct merger {
    struct graph *g;
    const struct machine *machine;
    const struct plan *plan;
    struct arena *tmp; /* what follows is in it, and of the graph as it is */
    const struct uses *uses;
    struct buckets buckets;
    bool *after;  /* by value id: it waits for the reduction that others may join */
    bool changed; /* the graph is another one: look again */
};

static bool is_sum_reduction(const struct value *v)
{
    return v && v->placed && v->place.kind == PLACE_P && v->place.op == RED_SUM;
}

/* The fixed price of a collective is more than the price of copying its bytes four times. */
static bool is_small(const struct merger *m, const struct node *reduction)
{
    for (int w = 0; w < m->plan->workloads.n; w++)
        if ((double)cost_payload(m->g, reduction, &m->plan->workloads.at[w].dims, m->g->ranks) * 4 >
            m->machine->collective_overhead * m->machine->memory_bandwidth)
            return false;
    return true;
}

static bool reads(const struct merger *m, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && m->after[n->in[i]->id])
            return true;
    return false;
}

/* Looks at the graph as it is, for those that may join the reduction. */
static void look(struct merger *m, int first)
{
    struct graph *g = m->g;
    arena_reset(m->tmp);
    m->uses = graph_uses(g, m->tmp);
    m->after = NEWN(m->tmp, bool, g->values.n);
    m->after[g->nodes.at[first]->out[0]->id] = true;
    for (int i = first + 1; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        bool waits = reads(m, n);
        for (int k = 0; waits && k < n->nout; k++)
            if (n->out[k])
                m->after[n->out[k]->id] = true;
    }
}

static bool alike(const struct merger *m, const struct node *a, const struct node *b)
{
    return bucket_alike(a, b) && is_small(m, b);
}

static bool can_join(const struct merger *m, const struct node *a, const struct node *b)
{
    return !m->after[b->in[0]->id] && alike(m, a, b);
}

/* ---- a sum after linear nodes ---------------------------------------------------------------------------------------------------- */

/* The linear nodes, and the partial values before them. */
struct linear {
    VEC(struct node *) nodes;
    VEC(struct node *) sums;
}; /* sums: of those values, inserted nowhere */

/* Partial in, partial out; a product of shards makes partial values of its own, whatever its bias is. */
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

/* Terms that are made here: their sum, if it may join a. */
static bool find_partial(struct merger *m, const struct node *a, struct value *v, struct linear *found)
{
    for (int i = 0; i < found->sums.n; i++)
        if (found->sums.at[i]->in[0] == v)
            return true;
    struct node *sum = graph_node(m->g, op_find("tpc", "AllReduce"), arena_printf(m->g->arena, "%s/AllReduce", v->name), 1, &v, 1);
    attr_set_string(sum, "op", attr_string(a, "op"));
    VEC_PUSH(m->tmp, &found->sums, sum);
    m->changed = m->after[v->id] && alike(m, a, sum) && canon_hoist_row_scalar(m->g, v, m->after);
    return can_join(m, a, sum);
}

/* The partial values that v comes from, by nodes that nothing else reads. False: not all of them may join a. */
static bool find_linear(struct merger *m, const struct node *a, struct value *v, struct linear *found)
{
    struct node *n = v->producer;
    if (!n)
        return false;
    if (op_is_tpc(n, "Term"))
        return true;
    if (!passes_partial(n))
        return find_partial(m, a, v, found);
    if (n->nout != 1 || m->uses[v->id].n != 1)
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

/* The sum, which waits for reduction a, is made of partial values that do not. */
static bool hasten(struct merger *m, const struct node *a, const struct node *late)
{
    struct linear found = {.nodes = {NULL, 0, 0}};
    bool fits = is_sum_reduction(late->in[0]) && strcmp(attr_string(a, "op"), "sum") == 0 && m->after[late->in[0]->id];
    m->changed = false;
    if (!fits || !find_linear(m, a, late->in[0], &found) || !found.nodes.n)
        return m->changed;
    move_up(m->g, &found, late);
    return true;
}

/* ---- all of them -------------------------------------------------------------------------------------------------------------------- */

/* One of the later collectives joins the first, or moves up so that it can. */
static bool join_next(struct merger *m, int first)
{
    struct graph *g = m->g;
    const struct node *a = g->nodes.at[first];
    if (!bucket_takes(g, a) || !(is_small(m, a) || bucket_of(&m->buckets, a)))
        return false;
    look(m, first);
    for (int k = first + 1; k < g->nodes.n; k++) {
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
    for (int i = 0; i < g->nodes.n; i++)
        if (join_next(&m, i))
            i = -1;
    arena_free(m.tmp);
}
