/* dim_class: equivalence classes of dimensions: dimensions of values that rules identify, through factors that form a dimension alone.
 *
 * Union-find over value id * MAX_RANK + dimension. Identity is by rule, not by size or symbol: two lengths of 64 in one graph need not be
 * the same dimension, and a dimension may be called differently in two inputs. */
#include "op/rule/rule.h"
#include "plan/facts/facts.h"

struct value *dim_node_value(const struct node *n, bool result, int i)
{
    return result ? node_result(n, i) : node_operand(n, i);
}

bool dim_next(const struct dim_roles *all, struct dim_walk *w)
{
    const struct rule *r = all->rule[w->node];
    for (int side = w->result; r && side < 2; side++, w->i = 0)
        for (w->result = side; w->i < (side ? r->nout : r->nin); w->i++, w->d = -1) {
            const struct rule_operand *o = side ? &r->out[w->i] : &r->in[w->i];
            w->value = dim_node_value(all->g->nodes.at[w->node], side, w->i);
            if (w->value && o->present && ++w->d < o->rank) {
                w->rule = &o->dim[w->d];
                w->at = w->value->id * MAX_RANK + w->d;
                return true;
            }
        }
    return false;
}

int dim_class_of(int *up, int x)
{
    while (up[x] != x)
        x = up[x] = up[up[x]];
    return x;
}

static void join_node(struct dim_roles *all, int node, int *first)
{
    int *up = all->class;
    for (int f = 0; f < all->rule[node]->nfactor; f++)
        first[f] = -1;
    for (struct dim_walk w = dim_walk(node); dim_next(all, &w);) {
        int f = rule_lone_factor(w.rule);
        require(f < all->rule[node]->nfactor);
        if (f >= 0 && first[f] < 0)
            first[f] = w.at;
        else if (f >= 0)
            up[dim_class_of(up, w.at)] = dim_class_of(up, first[f]);
    }
}

void dim_class_find_all(struct dim_roles *all)
{
    int n = all->g->values.n * MAX_RANK, most = 1;
    require(!all->class);
    all->class = NEWN(all->arena, int, n + 1);
    for (int i = 0; i < n; i++)
        all->class[i] = i;
    for (int i = 0; i < all->g->nodes.n; i++)
        if (all->rule[i] && all->rule[i]->nfactor > most)
            most = all->rule[i]->nfactor;
    int *first = NEWN(all->arena, int, most + 1);
    for (int i = 0; i < all->g->nodes.n; i++)
        if (all->rule[i])
            join_node(all, i, first);
}

int dim_class_of_factor(const struct dim_roles *all, int node, int f)
{
    for (struct dim_walk w = dim_walk(node); dim_next(all, &w);)
        if (rule_lone_factor(w.rule) == f)
            return dim_class_of(all->class, w.at);
    return -1;
}

bool dim_class_mark_factor(const struct dim_roles *all, int node, int f, bool *mark)
{
    bool changed = false;
    for (struct dim_walk w = dim_walk(node); dim_next(all, &w);)
        if (rule_lone_factor(w.rule) == f) {
            bool *at = &mark[dim_class_of(all->class, w.at)];
            changed |= !*at;
            *at = true;
        }
    return changed;
}

static bool spread_dim(const struct dim_roles *all, const struct dim_walk *w, bool *mark)
{
    bool changed = false;
    for (int p = 0; w->rule->n > 1 && mark[dim_class_of(all->class, w->at)] && p < w->rule->n; p++)
        if (w->rule->part[p].n == 1)
            changed |= dim_class_mark_factor(all, w->node, w->rule->part[p].factor[0], mark);
    return changed;
}

void dim_class_spread(const struct dim_roles *all, bool *mark)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int node = all->g->nodes.n - 1; node >= 0; node--)
            for (struct dim_walk w = dim_walk(node); dim_next(all, &w);)
                changed |= spread_dim(all, &w, mark);
    }
}
