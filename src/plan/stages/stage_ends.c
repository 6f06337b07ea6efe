/* stage_ends: which stage has what, and what passes between stages. */
#include "plan/stages/stages.h"

int stage_at_position(const struct stage_cut *cut, int position)
{
    for (int k = 0; position >= 0 && k < cut->stages; k++)
        if (position < cut->first[k + 1])
            return k;
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

static bool stage_reads(const struct stage_plan *p, const struct value *v, int stage)
{
    for (int i = 0; i < p->map.g->nodes.n; i++)
        for (int k = 0; stage_at_position(&p->cut, p->map.place[i]) == stage && k < p->map.g->nodes.at[i]->nin; k++)
            if (p->map.g->nodes.at[i]->in[k] == v)
                return true;
    return false;
}

int stage_readers(struct arena *a, const struct stage_plan *p, const char *value, const int **out)
{
    const struct value *v = graph_find(p->map.g, value);
    int *stages = NEWN(a, int, p->cut.stages), n = 0, from = v ? stage_of(&p->map, &p->cut, v) : -1;
    for (int k = 0; from >= 0 && k < p->cut.stages; k++)
        if (k != from && stage_reads(p, v, k))
            stages[n++] = k;
    *out = stages;
    return n;
}

double stage_receives(const struct stage_plan *p, int stage)
{
    double seconds = 0;
    bool earlier = false, later = false;
    for (int i = 0; i < p->map.g->values.n; i++) {
        int from = stage_of(&p->map, &p->cut, p->map.g->values.at[i]);
        if (from < 0 || from == stage || !stage_reads(p, p->map.g->values.at[i], stage))
            continue;
        seconds += p->prices.crossing[i];
        earlier = earlier || from < stage;
        later = later || from > stage;
    }
    return seconds + (earlier + later) * p->prices.message;
}
