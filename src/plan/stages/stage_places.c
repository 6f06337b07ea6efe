/* stage_places: the nodes that every stage has, and the position of each other node in the order in which a graph is cut. In a training
 * step, that is the order of the forward pass. */
#include "op/op.h"
#include "plan/stages/stages.h"

#include <string.h>

/* Whether its attributes contain a data-dependent size. */
static bool reads_data_size(const struct node *n)
{
    for (int i = 0; i < n->nattr; i++)
        for (int k = 0; n->attr[i].kind == ATTR_DIMS && n->attr[i].set && k < n->attr[i].n; k++)
            if (dim_has_data(n->attr[i].dims[k]))
                return true;
    return false;
}

/* Whether it is computed only from constants, sizes and copied nodes, and so equal in every stage. */
static bool is_copied(const struct stage_map *m, const struct node *n)
{
    if (!n->op || (n->op->flags & OP_DRAWS) || node_bodies(n) || reads_data_size(n))
        return false;
    for (int i = 0; i < n->nin; i++) {
        const struct value *v = n->in[i];
        if (v && !v->constant && !(v->producer && m->position[v->id] < 0))
            return false;
    }
    return true;
}

const bool *stage_places_forward(struct arena *a, const struct graph *g)
{
    bool *needed = NEWN(a, bool, g->values.n + 1), *all = NEWN(a, bool, g->nodes.n + 1);
    for (int i = 0; i < g->nodes.n; i++)
        all[i] = true;
    for (int i = 0; g->trained.n && i < g->trained.at[0].output; i++)
        needed[g->outputs.at[i]->id] = true;
    return g->trained.n ? graph_leads_to(g, a, needed) : all;
}

static const int *node_of_values(const struct graph *g, struct arena *a)
{
    int *node = NEWN(a, int, g->values.n + 1);
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nout; k++)
            if (g->nodes.at[i]->out[k])
                node[g->nodes.at[i]->out[k]->id] = i;
    return node;
}

/* The position of a node of the backward pass. It never comes after a gradient that it reads, so gradients go to earlier stages only. A
 * node merged with an equal one has no position of its own. */
static int backward_place(const struct stage_map *m, const bool *forward, const int *node_of, const struct node *n)
{
    int own = n->forward && n->forward->producer ? m->position[n->forward->id] : -1, least = -1, most = 0;
    for (int k = 0; k < n->nin && !n->again; k++) {
        int at = n->in[k] ? m->position[n->in[k]->id] : -1, made = n->in[k] ? node_of[n->in[k]->id] : 0;
        if (at < 0)
            continue;
        most = at > most ? at : most;
        if (!forward[made] && !m->g->nodes.at[made]->again && (least < 0 || at < least))
            least = at;
    }
    if (own >= 0 && least >= 0)
        return own < least ? own : least;
    return own >= 0 ? own : least >= 0 ? least : most;
}

static void set_place(struct stage_map *m, int node, int place)
{
    const struct node *n = m->g->nodes.at[node];
    require(place >= -1 && place < m->g->nodes.n);
    m->place[node] = place;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            m->position[n->out[k]->id] = place;
}

/* A recomputed node is placed where it is first read: that stage receives the kept values from which it is computed. */
static void place_again(struct stage_map *m, struct arena *a)
{
    const struct uses *uses = graph_uses(m->g, a);
    const int *node_of = node_of_values(m->g, a);
    for (int i = m->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = m->g->nodes.at[i];
        int place = m->place[i];
        for (int k = 0; n->again && k < n->nout; k++)
            for (int u = 0; n->out[k] && u < uses[n->out[k]->id].n; u++) {
                const struct node *reader = uses[n->out[k]->id].at[u].node;
                int at = reader->nout && reader->out[0] ? m->place[node_of[reader->out[0]->id]] : -1;
                place = at > place ? at : place;
            }
        if (place > m->place[i])
            set_place(m, i, place);
    }
}

void stage_places_find(struct stage_map *m, struct arena *a)
{
    for (int i = 0; i < m->g->values.n; i++)
        m->position[i] = -1;
    const bool *forward = stage_places_forward(a, m->g);
    const int *node_of = node_of_values(m->g, a);
    for (int i = 0; i < m->g->nodes.n; i++) {
        const struct node *n = m->g->nodes.at[i];
        m->copied[i] = is_copied(m, n);
        set_place(m, i, m->copied[i] ? -1 : forward[i] ? i : backward_place(m, forward, node_of, n));
        m->cut[i] = forward[i];
    }
    m->cut[m->g->nodes.n] = true;
    place_again(m, a);
}

/* ---- trained weights ---------------------------------------------------------------------------------------------------------------- */

/* Marks the positions that read a value, directly or through copied nodes. */
static void mark_readers(const struct stage_map *m, const struct uses *uses, const int *node_of, const struct value *v, bool *reads)
{
    for (int u = 0; u < uses[v->id].n; u++) {
        const struct node *n = uses[v->id].at[u].node;
        for (int k = 0; k < n->nout; k++) {
            if (!n->out[k])
                continue;
            int place = m->place[node_of[n->out[k]->id]];
            if (place < 0)
                mark_readers(m, uses, node_of, n->out[k], reads);
            else
                reads[place] = true;
        }
    }
}

/* The stage that makes a weight's gradient also reads the weight. */
void stage_places_keep_weights(struct stage_map *m, struct arena *a)
{
    const struct uses *uses = graph_uses(m->g, a);
    const int *node_of = node_of_values(m->g, a);
    bool *reads = NEWN(a, bool, m->g->nodes.n + 1);
    EACH (const struct trained, t, m->g->trained) {
        memset(reads, 0, (size_t)m->g->nodes.n * sizeof *reads);
        int at = m->position[m->g->outputs.at[t->output]->id], near = 0;
        mark_readers(m, uses, node_of, t->weight, reads);
        while (at >= 0 && near < m->g->nodes.n && !(at - near >= 0 && reads[at - near]) && !(at + near < m->g->nodes.n && reads[at + near]))
            near++;
        if (at >= 0 && near > 0 && near < m->g->nodes.n)
            stage_map_join(m, at, at - near >= 0 && reads[at - near] ? at - near : at + near);
    }
}

void stage_map_join(struct stage_map *m, int position, int other)
{
    int first = position < other ? position : other, last = position < other ? other : position;
    require(first >= 0 && last < m->g->nodes.n);
    for (int i = first + 1; i <= last; i++)
        m->cut[i] = false;
}
