/* Classes of dimensions: which dimensions of which values are the same one, carried along by factors that stand alone.
 *
 * Union-find over value id * MAX_RANK + dimension. Identity is by rule, not by size or symbol: two lengths of 64 in one graph need not be
 * the same dimension, and a dimension may be called differently in two inputs. */
#include "plan/space/space.h"

static void join_node(const struct space *s, int node, int *up, int *first)
{
    for (int f = 0; f < s->rule[node]->nfactor; f++)
        first[f] = -1;
    for (struct dim_walk w = dim_walk(node); dim_next(s, &w);) {
        int f = rule_lone_factor(w.rule);
        if (f >= 0 && first[f] < 0)
            first[f] = w.at;
        else if (f >= 0)
            up[class_of(up, w.at)] = class_of(up, first[f]);
    }
}

int *classes_new(struct space *s)
{
    int n = s->g->values.n * MAX_RANK, most = 1;
    int *up = NEWN(s->arena, int, n + 1);
    for (int i = 0; i < n; i++)
        up[i] = i;
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i] && s->rule[i]->nfactor > most)
            most = s->rule[i]->nfactor;
    int *first = NEWN(s->arena, int, most + 1);
    for (int i = 0; i < s->g->nodes.n; i++)
        if (s->rule[i])
            join_node(s, i, up, first);
    return up;
}

int class_of_factor(const struct space *s, int node, int f, int *up)
{
    for (struct dim_walk w = dim_walk(node); dim_next(s, &w);)
        if (rule_lone_factor(w.rule) == f)
            return class_of(up, w.at);
    return -1;
}

/* Marks the class of factor f wherever it stands alone at the node. */
static bool mark_factor(const struct space *s, int node, int f, int *up, bool *mark)
{
    bool changed = false;
    for (struct dim_walk w = dim_walk(node); dim_next(s, &w);)
        if (rule_lone_factor(w.rule) == f) {
            bool *at = &mark[class_of(up, w.at)];
            changed |= !*at;
            *at = true;
        }
    return changed;
}

static bool spread_dim(const struct space *s, const struct dim_walk *w, int *up, bool *mark)
{
    bool changed = false;
    for (int p = 0; w->rule->n > 1 && mark[class_of(up, w->at)] && p < w->rule->n; p++)
        if (w->rule->part[p].n == 1)
            changed |= mark_factor(s, w->node, w->rule->part[p].factor[0], up, mark);
    return changed;
}

void classes_spread(struct space *s, int *up, bool *mark)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int node = s->g->nodes.n - 1; node >= 0; node--)
            for (struct dim_walk w = dim_walk(node); dim_next(s, &w);)
                changed |= spread_dim(s, &w, up, mark);
    }
}

/* Dimensions of weights: features, not rows. */
static bool *classes_weighted(const struct space *s, int *up)
{
    bool *mark = NEWN(s->arena, bool, s->g->values.n *MAX_RANK + 1);
    for (int i = 0; i < s->g->values.n; i++)
        for (int d = 0; s->weight[i] && d < s->g->values.at[i]->type.rank; d++)
            mark[class_of(up, i * MAX_RANK + d)] = true;
    return mark;
}

/* A factor inside a head factor, as d in (h d), is a head size wherever it stands alone. */
static void mark_inside(const struct space *s, int node, const struct rule_part *p, int *up, bool *mark)
{
    bool inside = false;
    for (int k = 0; k < p->n; k++) {
        bool head = (s->rule[node]->factor[p->factor[k]].flags & FACTOR_HEADS) != 0;
        if (inside && !head)
            mark_factor(s, node, p->factor[k], up, mark);
        inside |= head;
    }
}

bool *classes_contracted(struct space *s, int *up)
{
    bool *mark = NEWN(s->arena, bool, s->g->values.n *MAX_RANK + 1);
    for (int node = 0; node < s->g->nodes.n; node++)
        for (int f = 0; s->rule[node] && space_between_activations(s, s->g->nodes.at[node]) && f < s->rule[node]->nfactor; f++)
            if (s->rule[node]->factor[f].flags & FACTOR_CONTRACTED)
                mark_factor(s, node, f, up, mark);
    return mark;
}

/* What holds heads, as each half in (2 (h d)), is no head size: d is contracted. The pairs of a rotary are not. */
static void unmark_merged(struct space *s, int node, const struct rule_dim *rd, int class, int *up, const bool *contracted, bool *mark)
{
    const struct rule *r = s->rule[node];
    const struct rule_part *p = &rd->part[0];
    int inner = rd->n == 1 && p->n > 1 ? class_of_factor(s, node, p->factor[p->n - 1], up) : -1;
    if (inner >= 0 && contracted[inner] && (r->factor[p->factor[p->n - 2]].flags & FACTOR_HEADS))
        mark[class] = false;
}

static void unmark_holders(struct space *s, int *up, bool *mark)
{
    const bool *contracted = classes_contracted(s, up);
    for (int node = 0; node < s->g->nodes.n; node++)
        for (struct dim_walk w = dim_walk(node); dim_next(s, &w);)
            unmark_merged(s, node, w.rule, class_of(up, w.at), up, contracted, mark);
}

/* Rows may be merged like features: (batch head), (batch sequence). What is inside those is no head size. */
bool *classes_head_sizes(struct space *s, int *up)
{
    bool *mark = NEWN(s->arena, bool, s->g->values.n *MAX_RANK + 1), *weighted = classes_weighted(s, up);
    for (int node = 0; node < s->g->nodes.n; node++)
        for (struct dim_walk w = dim_walk(node); dim_next(s, &w);)
            for (int p = 0; weighted[class_of(up, w.at)] && p < w.rule->n; p++)
                mark_inside(s, node, &w.rule->part[p], up, mark);
    unmark_holders(s, up, mark);
    classes_spread(s, up, mark);
    return mark;
}
