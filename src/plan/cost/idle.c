/* idle: finds where a chosen plan splits a dimension that has fewer elements than there are ranks, so that some ranks are idle. */
#include "plan/cost/cost.h"
#include "plan/plan.h"

/* A node in which ranks are idle, and the value that the other ranks split along dimension dim. */
struct idle {
    int ranks; /* that are idle; 0: none */
    double seconds;
    const struct node *node;
    const struct value *value;
    int dim;
};
/* Idle nodes of a workload: the most expensive one, and the total. */
struct idle_nodes {
    struct idle most;
    int n;
    double seconds;
};

/* Ranks that hold nothing of a value that others hold. Does not count values of experts assigned to one rank: the other ranks then work on
 * their own experts. */
static int without_part(struct space *s, const struct value *v, struct placement place, int w)
{
    int n = 0;
    for (int r = 0; place.kind == PLACE_S && r < s->ranks; r++)
        n += cost_part(s, v, place.split, w, r) == 0;
    return n;
}

/* The first operand or result of which a rank holds nothing. */
static struct idle idle_node(struct space *s, const struct node *n, int w)
{
    const struct strategy *st = n->strategy;
    struct idle found = {.node = n};
    for (int i = 0; i < n->nout + n->nin && !found.ranks; i++) {
        const struct value *v = i < n->nout ? n->out[i] : n->in[i - n->nout];
        struct placement place = i < n->nout ? st->out[i] : st->in[i - n->nout];
        found.ranks = v ? without_part(s, v, place, w) : 0;
        found.value = v;
        found.dim = place.dim;
    }
    return found;
}

static struct idle_nodes idle_at(struct space *s, int w)
{
    struct idle_nodes all = {.n = 0};
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        struct idle one = idle_node(s, n, w);
        if (!one.ranks)
            continue;
        require(one.ranks < s->ranks); /* a split leaves no index to nobody */
        one.seconds = cost_node_seconds(s, n, s->rule[i], n->strategy, w, s->ranks);
        if (!all.n++ || one.seconds > all.most.seconds)
            all.most = one;
        all.seconds += one.seconds;
    }
    return all;
}

static const char *idle_text(struct space *s, int w, const struct idle_nodes *all)
{
    const struct workload *load = &s->plan->workloads.at[w];
    const struct idle *at = &all->most;
    const struct dim *split = at->value->type.dim[at->dim];
    int64_t size = 0;
    (void)dim_eval(split, &load->dims, &size);
    const char *what = split->kind == DIM_INT ? "a dimension of " : arena_printf(s->arena, "%s = ", dim_str(s->arena, split));
    return arena_printf(
        s->arena, "workload %d: %d of %d ranks %s nothing to do in %d node%s, %.0f %% of the step: '%s' (%s) splits %s%lld over %d rank%s",
        w + 1, at->ranks, s->ranks, at->ranks == 1 ? "has" : "have", all->n, all->n == 1 ? "" : "s", 100 * all->seconds / load->seconds,
        at->node->name, at->node->optype, what, (long long)size, s->ranks - at->ranks, s->ranks - at->ranks == 1 ? "" : "s");
}

void plan_note_idle(struct space *s)
{
    const double least = 0.05; /* as a fraction of the step */
    for (int w = 0; w < s->plan->workloads.n; w++) {
        struct idle_nodes all = idle_at(s, w);
        if (all.n && all.seconds >= least * s->plan->workloads.at[w].seconds)
            VEC_PUSH(s->arena, &s->plan->warnings, idle_text(s, w, &all));
    }
}
