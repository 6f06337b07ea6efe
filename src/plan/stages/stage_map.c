/* stage_map: where a graph may be cut.
 *
 * A state stays with its stage: no cut separates the nodes that read it from the one that makes its next value. A data-dependent size is a
 * symbol that no input determines, so no cut separates the first node that knows it from the last. */
#include "plan/cost/cost.h"
#include "plan/stages/stages.h"

static bool reads(const struct node *n, const struct value *v)
{
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] == v)
            return true;
    return false;
}

static void keep_states(struct stage_map *m)
{
    EACH (const struct state, s, m->g->states) {
        int made = s->present ? m->position[s->present->id] : -1, first = made, last = made;
        for (int i = 0; s->past && made >= 0 && i < m->g->nodes.n; i++) {
            if (!reads(m->g->nodes.at[i], s->past))
                continue;
            first = i < first ? i : first;
            last = i > last ? i : last;
        }
        if (made >= 0)
            stage_map_join(m, first, last);
    }
}

/* ---- sizes that only data decides ------------------------------------------------------------------------------------------------ */

/* The first and the last position of a node that knows a symbol. */
struct known {
    const struct dim *symbol;
    int first, last;
};
struct known_list {
    struct arena *arena;
    int place; /* of the current node */
    VEC(struct known) list;
};

static void note_symbol(void *known_list, const struct dim *symbol)
{
    struct known_list *all = known_list;
    if (!dim_has_data(symbol))
        return;
    EACH (struct known, k, all->list) {
        if (k->symbol == symbol) {
            k->first = all->place < k->first ? all->place : k->first;
            k->last = all->place > k->last ? all->place : k->last;
            return;
        }
    }
    VEC_PUSH(all->arena, &all->list, ((struct known){symbol, all->place, all->place}));
}

static void note_dims(struct known_list *all, int n, const struct dim *const *at)
{
    for (int i = 0; i < n; i++)
        if (at[i])
            dim_each_symbol(at[i], note_symbol, all);
}

static void note_value(struct known_list *all, const struct value *v)
{
    if (!v)
        return;
    if (v->type.dtype != DT_NONE)
        note_dims(all, v->type.rank, v->type.dim);
    if (v->dims)
        note_dims(all, v->dims->n, v->dims->at);
}

static void note_node(struct known_list *all, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        note_value(all, n->in[i]);
    for (int i = 0; i < n->nout; i++)
        note_value(all, n->out[i]);
    for (int i = 0; i < n->nattr; i++)
        if (n->attr[i].kind == ATTR_DIMS && n->attr[i].set)
            note_dims(all, n->attr[i].n, n->attr[i].dims);
}

static void keep_sizes(struct stage_map *m, struct arena *a)
{
    struct known_list all = {.arena = a};
    for (int i = 0; i < m->g->nodes.n; i++) {
        all.place = m->place[i] < 0 ? i : m->place[i];
        note_node(&all, m->g->nodes.at[i]);
    }
    EACH (const struct known, k, all.list) {
        stage_map_join(m, k->first, k->last);
    }
}

void stage_map_join_kernels(struct stage_map *m, const struct space *s)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct fused_part *part = fused_part(s, s->g->nodes.at[i]);
        const struct value *made = part && part->into && part->into->nout ? part->into->out[0] : NULL;
        if (made && m->place[i] == i && m->position[made->id] >= 0)
            stage_map_join(m, i, m->position[made->id]);
    }
}

struct stage_map stage_map_of(struct arena *a, const struct graph *g)
{
    struct stage_map m = {.g = g};
    int n = g->nodes.n;
    m.copied = NEWN(a, bool, n + 1);
    m.cut = NEWN(a, bool, n + 1);
    m.place = NEWN(a, int, n + 1);
    m.position = NEWN(a, int, g->values.n + 1);
    stage_places_find(&m, a);
    keep_states(&m);
    keep_sizes(&m, a);
    stage_places_keep_weights(&m, a);
    return m;
}
