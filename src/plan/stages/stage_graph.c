/* stage_graph: the graph of one stage: a copy of the whole graph without the nodes of other stages. */
#include "plan/stages/stages.h"

struct stage_part {
    const struct stage_map *map;
    const struct stage_cut *cut;
    int stage;
    const struct graph *whole;
    struct graph *g;
    bool *kept;   /* by node: it is in this stage */
    bool *needed; /* by value id: a node of this stage reads it, or it is an output here */
};

static bool is_in(const struct stage_part *p, int node, int stage)
{
    return stage_at_position(p->cut, p->map->place[node]) == stage;
}

static int stage_of_output(const struct stage_part *p, const struct value *v)
{
    int stage = stage_of(p->map, p->cut, v);
    return stage < 0 ? 0 : stage;
}

static void need_operands(struct stage_part *p, int node)
{
    p->kept[node] = true;
    for (int k = 0; k < p->whole->nodes.at[node]->nin; k++)
        if (p->whole->nodes.at[node]->in[k])
            p->needed[p->whole->nodes.at[node]->in[k]->id] = true;
}

static bool makes_needed(const struct stage_part *p, const struct node *n)
{
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && p->needed[n->out[k]->id])
            return true;
    return false;
}

/* Copied nodes are in the stage if one of its nodes reads them. */
static void find_nodes(struct stage_part *p)
{
    for (int i = 0; i < p->whole->outputs.n; i++)
        if (stage_of_output(p, p->whole->outputs.at[i]) == p->stage)
            p->needed[p->whole->outputs.at[i]->id] = true;
    for (int i = p->whole->nodes.n - 1; i >= 0; i--)
        if (is_in(p, i, p->stage) || (p->map->copied[i] && makes_needed(p, p->whole->nodes.at[i])))
            need_operands(p, i);
}

static void drop_nodes(struct stage_part *p)
{
    int kept = 0;
    for (int i = 0; i < p->whole->nodes.n; i++) {
        struct node *n = p->g->nodes.at[i];
        if (p->kept[i])
            p->g->nodes.at[kept++] = n;
        for (int k = 0; !p->kept[i] && k < n->nout; k++)
            if (n->out[k])
                n->out[k]->producer = NULL;
    }
    p->g->nodes.n = kept;
}

/* Adds what earlier or later stages send, in value order. The sizes of these values have no known bounds here. */
static void add_received(struct stage_part *p, bool later)
{
    for (int i = 0; i < p->whole->values.n; i++) {
        struct value *v = p->g->values.at[i];
        int stage = stage_of(p->map, p->cut, v);
        if (!p->needed[i] || stage < 0 || stage == p->stage || (stage > p->stage) != later)
            continue;
        v->dims = NULL;
        VEC_PUSH(p->g->arena, &p->g->inputs, v);
    }
}

/* Every operand comes from a node of the stage, from another stage, or from outside. */
static void require_sources(const struct stage_part *p)
{
    bool *given = NEWN(p->g->arena, bool, p->g->values.n + 1);
    for (int i = 0; i < p->g->inputs.n; i++)
        given[p->g->inputs.at[i]->id] = true;
    for (int i = 0; i < p->g->nodes.n; i++)
        for (int k = 0; k < p->g->nodes.at[i]->nin; k++) {
            const struct value *v = p->g->nodes.at[i]->in[k];
            require(!v || v->constant || v->producer || given[v->id]);
        }
}

/* By value id: whether another stage reads it. */
static const bool *sent_values(const struct stage_part *p)
{
    bool *sent = NEWN(p->g->arena, bool, p->whole->values.n + 1);
    for (int i = 0; i < p->whole->nodes.n; i++)
        for (int k = 0; k < p->whole->nodes.at[i]->nin; k++) {
            const struct value *v = p->whole->nodes.at[i]->in[k];
            if (v && !p->map->copied[i] && stage_of(p->map, p->cut, v) == p->stage && !is_in(p, i, p->stage))
                sent[v->id] = true;
        }
    return sent;
}

static void set_outputs(struct stage_part *p)
{
    const bool *sent = sent_values(p);
    graph_clear_outputs(p->g);
    for (int i = 0; i < p->whole->outputs.n; i++)
        if (stage_of_output(p, p->whole->outputs.at[i]) == p->stage)
            graph_add_output(p->g, p->g->values.at[p->whole->outputs.at[i]->id]);
    for (int i = 0; i < p->whole->values.n; i++)
        if (sent[i] && graph_output_number(p->g, p->g->values.at[i]) < 0)
            graph_add_output(p->g, p->g->values.at[i]);
}

/* The stage that makes its gradient trains a weight. */
static void set_trained(struct stage_part *p)
{
    p->g->trained.n = 0;
    EACH (const struct trained, t, p->whole->trained) {
        int output = graph_output_number(p->g, p->g->values.at[p->whole->outputs.at[t->output]->id]);
        if (output >= 0)
            VEC_PUSH(p->g->arena, &p->g->trained, ((struct trained){p->g->values.at[t->weight->id], output, t->initial}));
    }
}

/* A state belongs to the stage that makes its next value, or else to the one that reads it. */
static void set_states(struct stage_part *p)
{
    graph_clear_states(p->g);
    EACH (const struct state, s, p->whole->states) {
        const struct value *end = s->present ? s->present : s->past;
        bool here = s->present ? stage_of_output(p, end) == p->stage : p->needed[end->id];
        if (here)
            graph_add_state(p->g,
                            (struct state){s->past ? p->g->values.at[s->past->id] : NULL,
                                           s->present ? p->g->values.at[s->present->id] : NULL, s->dim, s->from});
    }
}

struct graph *stage_graph(struct arena *a, const struct stage_map *map, const struct stage_cut *cut, int stage)
{
    struct stage_part p = {.map = map, .cut = cut, .stage = stage, .whole = map->g, .g = graph_copy(a, map->g)};
    require(stage >= 0 && stage < cut->stages);
    p.kept = NEWN(a, bool, map->g->nodes.n + 1);
    p.needed = NEWN(a, bool, map->g->values.n + 1);
    find_nodes(&p);
    drop_nodes(&p);
    add_received(&p, false);
    p.g->late = p.g->inputs.n;
    add_received(&p, true);
    require_sources(&p);
    set_outputs(&p);
    set_trained(&p);
    p.g->in_flight = map->g->trained.n ? cut->stages - stage : 0;
    set_states(&p);
    return p.g;
}
