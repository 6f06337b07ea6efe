/* Classes of dimensions: which dimensions of which values are the same one, carried along by factors that stand alone.
 *
 * Union-find over value id * MAX_RANK + dimension. Identity is by rule, not by size or symbol: two lengths of 64 in one graph need not be
 * the same dimension, and a dimension may be called differently in two inputs. */
#include "plan/space.h"

int class_of(int *up, int x)
{
    while (up[x] != x)
        x = up[x] = up[up[x]];
    return x;
}

int class_factor(const struct rule_operand *o, int d)
{
    return o->present && d < o->rank && o->dim[d].n == 1 && o->dim[d].part[0].n == 1 ? o->dim[d].part[0].factor[0] : -1;
}

static void join_node(const struct space *s, int node, int *up, int *first)
{
    const struct rule *r = s->rule[node];
    for (int f = 0; f < r->nfactor; f++)
        first[f] = -1;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? r->nout : r->nin); i++) {
            const struct value *v = space_value(s->g->nodes.at[node], side, i);
            for (int d = 0; v && d < v->type.rank; d++) {
                int f = class_factor(side ? &r->out[i] : &r->in[i], d);
                if (f < 0)
                    continue;
                int at = v->id * MAX_RANK + d;
                if (first[f] < 0)
                    first[f] = at;
                else
                    up[class_of(up, at)] = class_of(up, first[f]);
            }
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
    const struct rule *r = s->rule[node];
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? r->nout : r->nin); i++) {
            const struct value *v = space_value(s->g->nodes.at[node], side, i);
            for (int d = 0; v && d < v->type.rank; d++)
                if (class_factor(side ? &r->out[i] : &r->in[i], d) == f)
                    return class_of(up, v->id * MAX_RANK + d);
        }
    return -1;
}

/* Marks the class of factor f wherever it stands alone at the node. */
static bool mark_factor(const struct space *s, int node, int f, int *up, bool *mark)
{
    const struct rule *r = s->rule[node];
    bool changed = false;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? r->nout : r->nin); i++) {
            const struct value *v = space_value(s->g->nodes.at[node], side, i);
            for (int d = 0; v && d < v->type.rank; d++)
                if (class_factor(side ? &r->out[i] : &r->in[i], d) == f) {
                    bool *at = &mark[class_of(up, v->id * MAX_RANK + d)];
                    changed |= !*at;
                    *at = true;
                }
        }
    return changed;
}

typedef bool visit_dim(const struct space *, int node, const struct value *, int d, const struct rule_dim *, int *up, bool *mark);

static bool visit_node(const struct space *s, int node, visit_dim *visit, int *up, bool *mark)
{
    const struct rule *r = s->rule[node];
    bool changed = false;
    for (int side = 0; r && side < 2; side++)
        for (int i = 0; i < (side ? r->nout : r->nin); i++) {
            const struct rule_operand *o = side ? &r->out[i] : &r->in[i];
            const struct value *v = space_value(s->g->nodes.at[node], side, i);
            for (int d = 0; v && o->present && d < o->rank; d++)
                changed |= visit(s, node, v, d, &o->dim[d], up, mark);
        }
    return changed;
}

static bool spread_dim(const struct space *s, int node, const struct value *v, int d, const struct rule_dim *rd, int *up, bool *mark)
{
    bool changed = false;
    for (int p = 0; rd->n > 1 && mark[class_of(up, v->id * MAX_RANK + d)] && p < rd->n; p++)
        if (rd->part[p].n == 1)
            changed |= mark_factor(s, node, rd->part[p].factor[0], up, mark);
    return changed;
}

void classes_spread(struct space *s, int *up, bool *mark)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int node = s->g->nodes.n - 1; node >= 0; node--)
            changed |= visit_node(s, node, spread_dim, up, mark);
    }
}

/* A factor inside a head factor, as d in (h d), is a head size wherever it stands alone. */
static bool head_dim(const struct space *s, int node, const struct value *v, int d, const struct rule_dim *rd, int *up, bool *mark)
{
    const struct rule *r = s->rule[node];
    (void)v;
    (void)d;
    for (int p = 0; p < rd->n; p++) {
        bool inside = false;
        for (int k = 0; k < rd->part[p].n; k++) {
            bool head = (r->factor[rd->part[p].factor[k]].flags & FACTOR_HEADS) != 0;
            if (inside && !head)
                mark_factor(s, node, rd->part[p].factor[k], up, mark);
            inside |= head;
        }
    }
    return false;
}

bool *classes_contracted(struct space *s, int *up)
{
    bool *mark = NEWN(s->arena, bool, s->g->values.n * MAX_RANK + 1);
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
    for (int node = 0; node < s->g->nodes.n; node++) {
        const struct rule *r = s->rule[node];
        for (int side = 0; r && side < 2; side++)
            for (int i = 0; i < (side ? r->nout : r->nin); i++) {
                const struct value *v = space_value(s->g->nodes.at[node], side, i);
                for (int d = 0; v && d < v->type.rank; d++)
                    unmark_merged(s, node, &(side ? &r->out[i] : &r->in[i])->dim[d], class_of(up, v->id * MAX_RANK + d), up, contracted, mark);
            }
    }
}

bool *classes_head_sizes(struct space *s, int *up)
{
    bool *mark = NEWN(s->arena, bool, s->g->values.n * MAX_RANK + 1);
    for (int node = 0; node < s->g->nodes.n; node++)
        visit_node(s, node, head_dim, up, mark);
    unmark_holders(s, up, mark);
    classes_spread(s, up, mark);
    return mark;
}
