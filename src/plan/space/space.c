/* space: queries of the files of this folder to a space: values, dimensions, candidates. */
#include "plan/space/space.h"

#include "op/rule/rule.h"
#include "plan/facts/facts.h"

enum { CANDIDATES_MAX = 24 }; /* per dimension: far above what real graphs reach; a guard against hostile files */

bool space_add(struct space *s, const struct value *v, int d, struct candidate new)
{
    struct candidates *c = &s->candidates[v->id][d];
    require(d >= 0 && d < v->type.rank && new.node < s->g->nodes.n);
    require(!new.split || new.split->ranks == s->ranks);
    if (new.node < 0)
        s->head_size[dim_class_of(s->roles->class, v->id * MAX_RANK + d)] = false;
    if (!new.split || new.split->replicated || c->list.n >= CANDIDATES_MAX || !weight_divides(v, placement_split(d, new.split)))
        return false;
    for (int i = 0; i < c->list.n; i++)
        if (c->list.at[i].split == new.split) {
            bool changed = c->list.at[i].sequence && !new.sequence;
            c->list.at[i].sequence &= new.sequence;
            return changed;
        }
    require(dim_rewrite(s->g->alg, split_size(s->g->alg, new.split)) == dim_rewrite(s->g->alg, v->type.dim[d]));
    VEC_PUSH(s->arena, &c->list, new);
    return true;
}

int space_placements(struct space *s, const struct value *v, struct placement **out)
{
    int n = 1;
    for (int d = 0; d < v->type.rank; d++)
        n += s->candidates[v->id][d].list.n;
    *out = NEWN(s->arena, struct placement, n);
    (*out)[0] = placement_replicated;
    n = 1;
    for (int d = 0; d < v->type.rank; d++)
        for (int i = 0; i < s->candidates[v->id][d].list.n; i++)
            (*out)[n++] = placement_split(d, s->candidates[v->id][d].list.at[i].split);
    return n;
}

struct names *space_names(struct space *s)
{
    if (!s->names)
        s->names = names_new(s->arena, s->g);
    return s->names;
}

bool space_state(const struct space *s, const struct value *v)
{
    return graph_state(s->g, v);
}

struct placement space_read_as(const struct space *s, struct place_use u)
{
    require(u.operand >= 0 && (u.node >= 0 || u.operand < s->g->outputs.n));
    if (u.node < 0)
        return s->chosen.output[u.operand];
    const struct strategy *st = s->g->nodes.at[u.node]->strategy;
    require(st && u.operand < s->g->nodes.at[u.node]->nin);
    return st->in[u.operand];
}
