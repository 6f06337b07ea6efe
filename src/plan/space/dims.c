/* dims: what the files of this folder ask of a space: its values, their dimensions and candidates. */
#include "plan/facts/facts.h"
#include "plan/space/space.h"

enum { CANDIDATES_MAX = 24 }; /* per dimension: far above what real graphs reach, a guard against hostile ones */

int class_of(int *up, int x)
{
    while (up[x] != x)
        x = up[x] = up[up[x]];
    return x;
}

struct value *space_value(const struct node *n, bool result, int i)
{
    return result ? (i < n->nout ? n->out[i] : NULL) : (i < n->nin ? n->in[i] : NULL);
}

bool dim_next(const struct space *s, struct dim_walk *w)
{
    const struct rule *r = s->rule[w->node];
    for (int side = w->result; r && side < 2; side++, w->i = 0)
        for (w->result = side; w->i < (side ? r->nout : r->nin); w->i++, w->d = -1) {
            const struct rule_operand *o = side ? &r->out[w->i] : &r->in[w->i];
            w->value = space_value(s->g->nodes.at[w->node], side, w->i);
            if (w->value && o->present && ++w->d < o->rank) {
                w->rule = &o->dim[w->d];
                w->at = w->value->id * MAX_RANK + w->d;
                return true;
            }
        }
    return false;
}

bool space_add(struct space *s, const struct value *v, int d, struct candidate new)
{
    struct candidates *c = &s->dim[v->id][d];
    if (new.node < 0)
        s->head_size[class_of(s->class, v->id * MAX_RANK + d)] = false;
    if (!new.split || new.split->whole || c->list.n >= CANDIDATES_MAX || !weight_divides(v, placement_split(d, new.split)))
        return false;
    for (int i = 0; i < c->list.n; i++)
        if (c->list.at[i].split == new.split) {
            bool changed = c->list.at[i].sequence && !new.sequence;
            c->list.at[i].sequence &= new.sequence;
            return changed;
        }
    VEC_PUSH(s->arena, &c->list, new);
    return true;
}

int space_placements(struct space *s, const struct value *v, struct placement **out)
{
    int n = 1;
    for (int d = 0; d < v->type.rank; d++)
        n += s->dim[v->id][d].list.n;
    *out = NEWN(s->arena, struct placement, n);
    (*out)[0] = placement_whole;
    n = 1;
    for (int d = 0; d < v->type.rank; d++)
        for (int i = 0; i < s->dim[v->id][d].list.n; i++)
            (*out)[n++] = placement_split(d, s->dim[v->id][d].list.at[i].split);
    return n;
}

bool space_state(const struct space *s, const struct value *v)
{
    return graph_state(s->g, v);
}

bool space_has_weight(const struct space *s, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->weight[n->in[i]->id])
            return true;
    return false;
}

bool space_between_activations(const struct space *s, const struct node *n)
{
    int count = 0;
    for (int i = 0; i < n->nin; i++)
        count += n->in[i] && !s->weight[n->in[i]->id];
    return (n->op->flags & OP_PRODUCT) && (count > 1 || (n->op->flags & OP_GROWS));
}

bool space_sums_nothing(const struct space *s, int node)
{
    const struct rule *r = s->rule[node];
    for (int f = 0; r && f < r->nfactor; f++)
        if ((r->factor[f].flags & FACTOR_CONTRACTED) && !dim_equals(r->factor[f].size, 1))
            return false;
    return r && (s->g->nodes.at[node]->op->flags & OP_PRODUCT) != 0;
}

struct assignment assignment_none(struct space *s, const struct rule *r)
{
    return (struct assignment){.factor = NEWN(s->arena, const struct split *, r->nfactor + 1)};
}
