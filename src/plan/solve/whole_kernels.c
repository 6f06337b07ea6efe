/* whole_kernels: a kernel found as a pattern (such as written-out attention) runs whole, or its parts run alone if one of its inner values
 * is resharded. If strategies allow both, a variable per kernel decides. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

enum { WHOLE, APART, CHOICES };

static bool reshards(const struct space *s, const struct value *v, struct place_use use, int from, int to)
{
    return !placement_eq(s->strategies[s->producer[v->id]].list.at[from]->out[v->index],
                         s->strategies[use.node].list.at[to]->in[use.operand]);
}

/* Whether some strategies at both ends reshard the value, and whether all do. */
static void judge_edge(const struct space *s, const struct value *v, struct place_use use, bool *some, bool *all)
{
    *all = true;
    for (int i = 0; i < s->strategies[s->producer[v->id]].list.n; i++)
        for (int k = 0; k < s->strategies[use.node].list.n; k++) {
            *some |= reshards(s, v, use, i, k);
            *all &= reshards(s, v, use, i, k);
        }
}

bool *whole_kernels_open(struct space *s, struct arena *a)
{
    bool *open = NEWN(a, bool, s->fused.wholes + 1);
    fused_join(s);
    for (int i = 0; i < s->g->values.n; i++)
        require(s->fused.whole[i] <= s->fused.wholes && (!s->fused.whole[i] || s->producer[i] >= 0));
    for (int i = 0; i < s->g->values.n; i++)
        for (int k = 0; s->fused.whole[i] && k < s->uses[i].list.n; k++) {
            bool all = false;
            if (s->uses[i].list.at[k].node >= 0)
                judge_edge(s, s->g->values.at[i], s->uses[i].list.at[k], &open[s->fused.whole[i]], &all);
            s->fused.apart[s->fused.whole[i]] |= all;
        }
    for (int k = 1; k <= s->fused.wholes; k++)
        open[k] = open[k] && !s->fused.apart[k];
    return open;
}

/* Adds the further cost of a part's strategies if the kernel is apart. */
static void price_part(struct choice_problem *e, int var, int whole, int i)
{
    struct space *s = e->s;
    const struct strategies *all = &s->strategies[i];
    const struct node *n = s->g->nodes.at[i];
    int64_t *cost = problem_pair(e->p, var, e->node_var[i]);
    for (int k = 0; k < all->list.n; k++) {
        int64_t part = cost_of_strategy(s, n, s->rule[i], all->list.at[k]);
        s->fused.apart[whole] = true;
        int64_t alone = cost_of_strategy(s, n, s->rule[i], all->list.at[k]);
        s->fused.apart[whole] = false;
        cost[APART * all->list.n + k] = alone > part ? alone - part : 0;
    }
}

/* Forbids a whole kernel with a reshard inside. */
static void forbid_reshard(struct choice_problem *e, int var, const struct value *v, struct place_use use)
{
    const struct space *s = e->s;
    int from = s->producer[v->id], n = s->strategies[use.node].list.n;
    int64_t *cost = problem_table(e->p, 3, (int[]){var, e->node_var[from], e->node_var[use.node]});
    for (int i = 0; i < s->strategies[from].list.n; i++)
        for (int k = 0; k < n; k++)
            if (reshards(s, v, use, i, k))
                cost[(WHOLE * s->strategies[from].list.n + i) * n + k] = COST_NEVER;
}

void whole_kernels_make(struct choice_problem *e, const bool *open)
{
    struct space *s = e->s;
    int *var = NEWN(e->arena, int, s->fused.wholes + 1);
    for (int i = 1; i <= s->fused.wholes; i++)
        var[i] = open[i] ? solve_variable(e, CHOICES, WHOLE) : -1;
    for (int i = 0; i < s->g->values.n; i++)
        for (int k = 0; open[s->fused.whole[i]] && k < s->uses[i].list.n; k++)
            if (s->uses[i].list.at[k].node >= 0)
                forbid_reshard(e, var[s->fused.whole[i]], s->g->values.at[i], s->uses[i].list.at[k]);
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct fused_part *part = fused_part(s, s->g->nodes.at[i]);
        require(!part || part->whole <= s->fused.wholes);
        if (part && open[part->whole])
            price_part(e, var[part->whole], part->whole, i);
    }
}
