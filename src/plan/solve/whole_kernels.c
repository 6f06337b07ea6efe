/* whole_kernels: a kernel that is found as a pattern (attention that is written out) runs as a whole, or its parts run alone, if one of its
 * inner values is resharded. A variable for each tells which. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

enum { WHOLE, APART, CHOICES };

/* What the strategies of a part cost more where the kernel is apart. */
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

/* No kernel is whole that has a reshard inside. */
static void forbid_reshard(struct choice_problem *e, int var, const struct value *v, struct place_use use)
{
    int from = e->s->producer[v->id];
    const struct strategies *made = &e->s->strategies[from], *read = &e->s->strategies[use.node];
    int64_t *cost = problem_table(e->p, 3, (int[]){var, e->node_var[from], e->node_var[use.node]});
    for (int i = 0; i < made->list.n; i++)
        for (int k = 0; k < read->list.n; k++)
            if (!placement_eq(made->list.at[i]->out[v->index], read->list.at[k]->in[use.operand]))
                cost[(WHOLE * made->list.n + i) * read->list.n + k] = COST_NEVER;
}

void whole_kernels_make(struct choice_problem *e)
{
    struct space *s = e->s;
    int *var = NEWN(e->arena, int, s->fused.wholes + 1);
    for (int i = 0; i < s->g->values.n; i++) {
        int whole = s->fused.whole[i];
        const struct place_uses *uses = &s->uses[i];
        if (!whole)
            continue;
        if (!var[whole])
            var[whole] = solve_variable(e, CHOICES, WHOLE) + 1;
        for (int k = 0; k < uses->list.n; k++)
            if (uses->list.at[k].node >= 0)
                forbid_reshard(e, var[whole] - 1, s->g->values.at[i], uses->list.at[k]);
    }
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct fused_part *part = fused_part(s, s->g->nodes.at[i]);
        if (part && part->whole && var[part->whole])
            price_part(e, var[part->whole] - 1, part->whole, i);
    }
}
