/* ends: the outputs and states of a graph. Each value knows which output or state end it is, so that nothing searches the lists. */
#include "ir/ir.h"

#include <string.h>

/* ---- outputs --------------------------------------------------------------------------------------------------------------- */

void graph_add_output(struct graph *g, struct value *v)
{
    require(!v->output);
    VEC_PUSH(g->arena, &g->outputs, v);
    v->output = g->outputs.n;
}

void graph_clear_outputs(struct graph *g)
{
    for (int i = 0; i < g->outputs.n; i++)
        g->outputs.at[i]->output = 0;
    g->outputs.n = 0;
}

void graph_set_output(struct graph *g, int output, struct value *to)
{
    struct value *old = g->outputs.at[output];
    require(old->output == output + 1 && !to->output);
    g->outputs.at[output] = to;
    to->output = old->output;
    old->output = 0;
    if (!graph_is_present(g, old))
        return;
    struct state *s = graph_state(g, old);
    s->present = to;
    to->state = old->state;
    if (s->past != old)
        old->state = 0;
}

int graph_weight_inputs(const struct graph *g)
{
    int n = g->inputs.n - g->followed.n;
    EACH (const struct trained, t, g->trained) {
        n -= t->initial != NULL;
    }
    return n;
}

int graph_output_number(const struct graph *g, const struct value *v)
{
    require(v->output <= g->outputs.n);
    return v->output - 1;
}

/* ---- states ---------------------------------------------------------------------------------------------------------------- */

static void set_state(struct value *end, int state)
{
    if (end && (!end->state || !state))
        end->state = state;
}

void graph_add_state(struct graph *g, struct state s)
{
    VEC_PUSH(g->arena, &g->states, s);
    set_state(s.past, g->states.n);
    set_state(s.present, g->states.n);
}

void graph_clear_states(struct graph *g)
{
    for (int i = 0; i < g->states.n; i++) {
        set_state(g->states.at[i].past, 0);
        set_state(g->states.at[i].present, 0);
    }
    g->states.n = 0;
}

struct state *graph_state(const struct graph *g, const struct value *end)
{
    return end && end->state ? &g->states.at[end->state - 1] : NULL;
}

bool graph_is_present(const struct graph *g, const struct value *v)
{
    return v->state && g->states.at[v->state - 1].present == v;
}

static int number_of(int n, struct value *const *at, const char *name)
{
    int i = 0;
    while (i < n && strcmp(at[i]->name, name) != 0)
        i++;
    return i < n ? i : -1;
}

int graph_input_named(const struct graph *g, const char *name)
{
    return number_of(g->inputs.n, g->inputs.at, name);
}

int graph_output_named(const struct graph *g, const char *name)
{
    return number_of(g->outputs.n, g->outputs.at, name);
}
