/* stage_given: the stages that the model's device configuration gives to nodes. They order the nodes, and tell where stages may begin. */
#include "plan/constrain/config_stages.h"
#include "plan/stages/stages.h"

#include <string.h>

/* ---- by node ------------------------------------------------------------------------------------------------------------------------ */

/* Canonicalisation names the replacements of node N N or N/...: they are in N's stage if N is gone. */
static int stage_by_name(struct arena *tmp, const struct config_stages *all, const struct name_index *nodes, const char *name)
{
    char *part = arena_strdup(tmp, name);
    int stage = config_stages_of(all, name);
    for (char *end = strrchr(part, '/'); stage < 0 && end && end > part; end = strrchr(part, '/')) {
        *end = 0;
        stage = name_index_find(nodes, part) < 0 ? config_stages_of(all, part) : -1;
    }
    return stage;
}

const int *stage_given_find(struct arena *a, const struct graph *g, const struct configuration *c, int ranks, int stages)
{
    struct arena *tmp = arena_new();
    struct config_stages all = {.list = {NULL, 0, 0}};
    struct name_index nodes = {0};
    int *stage = NEWN(a, int, g->nodes.n + 1);
    const char *fault = config_stages_read(tmp, c, ranks, stages, &all);
    const bool *forward = stage_places_forward(tmp, g);
    require(!fault);
    for (int i = 0; i < g->nodes.n; i++)
        name_index_put(tmp, &nodes, g->nodes.at[i]->name, i);
    for (int i = 0; i < g->nodes.n; i++)
        stage[i] = forward[i] ? stage_by_name(tmp, &all, &nodes, g->nodes.at[i]->name) : -1;
    arena_free(tmp);
    return stage;
}

/* ---- the order of nodes ------------------------------------------------------------------------------------------------------------- */

/* least: the latest given stage among a node's ancestors, a lower bound; by: the ancestor with that stage. most: the earliest given stage
 * among its descendants. */
struct order {
    const struct graph *g;
    const int *given;
    int stages;
    int *stage, *by, *most; /* by node */
    int *made;              /* by value id: the node; -1: none */
};

static void find_makers(struct order *o)
{
    for (int i = 0; i < o->g->values.n; i++)
        o->made[i] = -1;
    for (int i = 0; i < o->g->nodes.n; i++)
        for (int k = 0; k < o->g->nodes.at[i]->nout; k++)
            if (o->g->nodes.at[i]->out[k])
                o->made[o->g->nodes.at[i]->out[k]->id] = i;
}

static void find_most(struct order *o)
{
    for (int i = 0; i < o->g->nodes.n; i++)
        o->most[i] = o->stages - 1;
    for (int i = o->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = o->g->nodes.at[i];
        o->most[i] = o->given[i] >= 0 ? o->given[i] : o->most[i];
        for (int k = 0; k < n->nin; k++) {
            int from = n->in[k] ? o->made[n->in[k]->id] : -1;
            if (from >= 0 && o->most[from] > o->most[i])
                o->most[from] = o->most[i];
        }
    }
}

/* A node without a stage gets the stage of the nodes before it, within its bounds by operands and readers. */
static void place_node(struct order *o, int i, int running, const struct configuration *c)
{
    const struct node *n = o->g->nodes.at[i];
    int least = 0, by = -1;
    for (int k = 0; k < n->nin; k++) {
        int from = n->in[k] ? o->made[n->in[k]->id] : -1;
        if (from < 0 || o->stage[from] <= least)
            continue;
        least = o->stage[from];
        by = o->by[from];
    }
    if (o->given[i] >= 0 && least > o->given[i])
        fail("%s: device configuration '%s': %s is in pipeline stage %d and reads what node '%s' of stage %d makes: --configuration '' "
             "follows none",
             graph_file(o->g), c->name, node_label(o->g, n), o->given[i], by < 0 ? "" : o->g->nodes.at[by]->name, least);
    int free = running < least ? least : running > o->most[i] ? o->most[i] : running;
    o->stage[i] = o->given[i] >= 0 ? o->given[i] : free > least ? free : least;
    o->by[i] = o->given[i] >= 0 ? i : by;
}

static void sort_nodes(struct graph *g, const int *stage, int stages, struct arena *tmp)
{
    struct node **sorted = NEWN(tmp, struct node *, g->nodes.n + 1);
    int n = 0;
    for (int k = 0; k <= stages; k++)
        for (int i = 0; i < g->nodes.n; i++)
            if (stage[i] == k)
                sorted[n++] = g->nodes.at[i];
    require(n == g->nodes.n);
    memcpy(g->nodes.at, sorted, (size_t)n * sizeof *sorted);
}

void stage_given_order(struct graph *g, const struct configuration *c, int ranks, int stages)
{
    struct arena *tmp = arena_new();
    int nodes = g->nodes.n, running = 0;
    const bool *forward = stage_places_forward(tmp, g);
    struct order o = {.g = g, .given = stage_given_find(tmp, g, c, ranks, stages), .stages = stages};
    o.stage = NEWN(tmp, int, nodes + 1);
    o.by = NEWN(tmp, int, nodes + 1);
    o.most = NEWN(tmp, int, nodes + 1);
    o.made = NEWN(tmp, int, g->values.n + 1);
    find_makers(&o);
    find_most(&o);
    for (int i = 0; i < nodes; i++) {
        place_node(&o, i, running, c);
        running = o.given[i] >= 0 ? o.given[i] : running;
    }
    for (int i = 0; i < nodes; i++)
        o.stage[i] = forward[i] ? o.stage[i] : stages;
    sort_nodes(g, o.stage, stages, tmp);
    arena_free(tmp);
}

/* ---- where stages may begin --------------------------------------------------------------------------------------------------------- */

static bool may_begin(const struct stage_map *m, int least, int most)
{
    for (int at = least; at <= most; at++)
        if (m->cut[at] || at == 0 || at == m->g->nodes.n)
            return true;
    return false;
}

/* Fails if no legal cut from `least` to `most` can begin stage k. */
static void check_begin(struct stage_map *m, const struct configuration *c, int k, int least, int most, const bool *parted)
{
    if (may_begin(m, least, most))
        return;
    memcpy(m->cut + least, parted + least, (size_t)(most - least + 1) * sizeof *parted);
    if (!may_begin(m, least, most))
        fail("%s: device configuration '%s': pipeline stage %d begins between node '%s' and node '%s', which a state or a data-dependent "
             "size keeps in one stage: --configuration '' follows none",
             graph_file(m->g), c->name, k, m->g->nodes.at[least - 1]->name, m->g->nodes.at[most]->name);
}

void stage_given_bound(struct stage_map *m, struct arena *a, const struct configuration *c, int ranks, int stages, const bool *parted)
{
    const int *given = stage_given_find(a, m->g, c, ranks, stages);
    int *least = NEWN(a, int, stages + 1), *most = NEWN(a, int, stages + 1);
    for (int k = 0; k < stages; k++) {
        most[k] = k ? m->g->nodes.n : 0;
        for (int i = m->g->nodes.n - 1; i >= 0 && k > 0; i--) {
            if (m->place[i] < 0 || given[i] < 0)
                continue;
            least[k] = given[i] < k && i + 1 > least[k] ? i + 1 : least[k];
            most[k] = given[i] >= k ? i : most[k];
        }
        check_begin(m, c, k, least[k], most[k], parted);
    }
    m->least = least;
    m->most = most;
}
