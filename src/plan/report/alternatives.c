/* alternatives: the other strategies of a node, and their local costs: the node plus the reshards around it. */
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/report/report.h"
#include "plan/space/space.h"

/* Cost of the reshards from placement `from` of v to its readers; `read`: how the given node reads it. */
static int64_t cost_of_readers(struct space *s, const struct value *v, struct placement from, int node, const struct strategy *st)
{
    const struct place_uses *uses = &s->uses[v->id];
    const struct placement *read = s->chosen.read[v->id];
    struct placement to[RESHARD_TARGETS];
    int parent[RESHARD_TARGETS], n = 0;
    for (int i = 0; i < uses->list.n; i++) {
        struct place_use u = uses->list.at[i];
        struct placement p = u.node == node ? st->in[u.operand] : space_read_as(s, u);
        bool there = placement_eq(p, read ? *read : from);
        for (int k = 0; k < n; k++)
            there = there || placement_eq(to[k], p);
        require(there || n < RESHARD_TARGETS);
        if (!there)
            to[n++] = p;
    }
    return cost_plus(read ? reshard_find(s, v, from, *read).cost : 0, reshard_tree(s, v, read ? *read : from, n, to, parent));
}

int64_t alternative_around(struct space *s, int node, const struct strategy *st)
{
    const struct node *n = s->g->nodes.at[node];
    int64_t sum = 0;
    for (int i = 0; i < n->nin; i++) {
        bool again = false;
        for (int k = 0; k < i; k++)
            again = again || n->in[k] == n->in[i];
        if (n->in[i] && !again && !s->weight[n->in[i]->id])
            sum = cost_plus(sum, cost_of_readers(s, n->in[i], n->in[i]->place, node, st));
    }
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && s->uses[n->out[i]->id].list.n)
            sum = cost_plus(sum, cost_of_readers(s, n->out[i], st->out[i], -2, NULL));
    return sum;
}

bool alternative_allowed(const struct space *s, int node, const struct strategy *st)
{
    for (int k = 0; k < s->strategies[node].list.n; k++)
        if (s->strategies[node].list.at[k] == st)
            return true;
    return false;
}

/* Classes of dimensions that index attention heads. */
static bool *head_classes(struct space *s)
{
    bool *heads = NEWN(s->arena, bool, s->g->values.n *MAX_RANK + 1);
    for (int i = 0; i < s->g->nodes.n; i++)
        for (int f = 0; s->rule[i] && f < s->rule[i]->nfactor; f++)
            if (s->rule[i]->factor[f].flags & FACTOR_HEADS)
                dim_class_mark_factor(s->roles, i, f, heads);
    return heads;
}

static struct alternative alternative_of(struct space *s, int node, const struct strategy *st)
{
    const struct node *n = s->g->nodes.at[node];
    double steps = cost_steps(s->plan);
    int64_t around = alternative_around(s, node, st);
    return (struct alternative){strategy_outline(s->arena, n, st), (double)cost_of_strategy(s, n, s->rule[node], st) * 1e-12 / steps,
                                around >= COST_NEVER ? -1 : (double)around * 1e-12 / steps, st == n->strategy,
                                !alternative_allowed(s, node, st)};
}

/* Prices nodes outside of layers, and in the first of equal layers. */
void plan_price(struct space *s)
{
    struct alternatives *all = NEW(s->arena, struct alternatives);
    const struct step_parts *step = &s->plan->step;
    const struct near_choice near = s->plan->near;
    all->graph = graph_copy(s->arena, s->g);
    all->node = NEWN(s->arena, struct alternative_list, s->g->nodes.n + 1);
    all->head = head_classes(s);
    all->class = s->roles->class;
    s->plan->near = (struct near_choice){0}; /* only time counts */
    for (int i = 0; i < step->list.n; i++) {
        const struct step_part *part = &step->list.at[i];
        if (part->to || (part->layer >= 0 && step->layer.at[part->layer] != part->layer))
            continue;
        const struct strategies *offered = &s->offered[part->node];
        all->node[part->node].mixes = dim_node_multiplies_activations(s->roles, s->g->nodes.at[part->node]);
        for (int k = 0; k < offered->list.n; k++)
            VEC_PUSH(s->arena, &all->node[part->node].list, alternative_of(s, part->node, offered->list.at[k]));
    }
    s->plan->near = near;
    s->plan->alternatives = all;
}
