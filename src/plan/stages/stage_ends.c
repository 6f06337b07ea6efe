/* stage_ends: which stage has each value, and what stages send each other. */
#include "plan/stages/stages.h"

int stage_at_position(const struct stage_cut *cut, int position)
{
    for (int k = 0; position >= 0 && k < cut->stages; k++)
        if (position < cut->first[k + 1])
            return k;
    require(position < 0);
    return -1;
}

int stage_of(const struct stage_map *m, const struct stage_cut *cut, const struct value *v)
{
    return stage_at_position(cut, m->position[v->id]);
}

int stage_sender(const struct stage_plan *p, const char *value)
{
    const struct value *v = graph_find(p->map.g, value);
    return v ? stage_of(&p->map, &p->cut, v) : -1;
}

static bool reads(const struct node *n, const struct value *v)
{
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] == v)
            return true;
    return false;
}

int stage_readers(struct arena *a, const struct stage_plan *p, const char *value, const int **out)
{
    const struct graph *g = p->map.g;
    const struct value *v = graph_find(g, value);
    int *stages = NEWN(a, int, p->cut.stages), n = 0, from = v ? stage_of(&p->map, &p->cut, v) : -1;
    bool *is = NEWN(a, bool, p->cut.stages);
    for (int i = 0; from >= 0 && i < g->nodes.n; i++)
        if (p->map.place[i] >= 0 && reads(g->nodes.at[i], v))
            is[stage_at_position(&p->cut, p->map.place[i])] = true;
    for (int k = 0; k < p->cut.stages; k++)
        if (is[k] && k != from)
            stages[n++] = k;
    *out = stages;
    return n;
}

/* By value id: whether a node of the stage reads it. */
static const bool *read_in(struct arena *tmp, const struct stage_plan *p, int stage)
{
    bool *read = NEWN(tmp, bool, p->map.g->values.n + 1);
    for (int i = 0; i < p->map.g->nodes.n; i++)
        for (int k = 0; stage_at_position(&p->cut, p->map.place[i]) == stage && k < p->map.g->nodes.at[i]->nin; k++)
            if (p->map.g->nodes.at[i]->in[k])
                read[p->map.g->nodes.at[i]->in[k]->id] = true;
    return read;
}

double stage_receives(const struct stage_plan *p, int stage)
{
    struct arena *tmp = arena_new();
    const bool *read = read_in(tmp, p, stage);
    double seconds = 0;
    bool earlier = false, later = false;
    for (int i = 0; i < p->map.g->values.n; i++) {
        int from = stage_of(&p->map, &p->cut, p->map.g->values.at[i]);
        if (from < 0 || from == stage || !read[i])
            continue;
        seconds += p->prices.crossing[i];
        earlier = earlier || from < stage;
        later = later || from > stage;
    }
    arena_free(tmp);
    return seconds + (earlier + later) * p->prices.message;
}

double stage_received_bytes(const struct stage_plan *p, int stage)
{
    const struct graph *own = p->made[stage].source;
    double bytes = 0;
    for (int i = p->map.g->inputs.n; i < own->inputs.n; i++)
        bytes += p->prices.bytes[graph_find(p->map.g, own->inputs.at[i]->name)->id];
    return bytes;
}
