/* stage_run: a run of a stage receives what earlier stages send at its start, and sends what later stages read as soon as it is computed.
 * Gradients come from later stages: the run waits for them where it first reads one, and sends its own at the end. */
#include "ir/rank_meta.h"
#include "kern/core/core.h"
#include "run/session/session.h"

#include <string.h>

/* ---- the order of steps ------------------------------------------------------------------------------------------------------ */

/* By node: whether something that later stages read depends on it. */
static const bool *needed_later(struct arena *tmp, const struct session *s)
{
    const struct graph *g = s->graph;
    bool *needed = NEWN(tmp, bool, g->values.n + 1);
    for (int i = 0; i < g->outputs.n; i++)
        needed[g->outputs.at[i]->id] = pipeline_sends(s->pipeline, true, i);
    return graph_leads_to(g, tmp, needed);
}

static bool waits(const struct session *s)
{
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (pipeline_receives_later(s->pipeline, i))
            return true;
    return false;
}

/* Moves nodes that later stages need before those that wait for later stages. */
static void compute_first(struct session *s)
{
    struct arena *tmp = arena_new();
    struct graph *g = s->graph;
    const bool *first = needed_later(tmp, s);
    struct node **rest = NEWN(tmp, struct node *, g->nodes.n + 1);
    int n = 0, at = 0;
    for (int i = 0; i < g->nodes.n; i++)
        if (first[i])
            g->nodes.at[at++] = g->nodes.at[i];
        else
            rest[n++] = g->nodes.at[i];
    for (int i = 0; i < n; i++)
        g->nodes.at[at++] = rest[i];
    arena_free(tmp);
}

static int first_reader(const struct session *s)
{
    const struct graph *g = s->graph;
    bool *late = NEWN(s->arena, bool, g->values.n + 1);
    for (int i = 0; i < g->inputs.n; i++)
        late[g->inputs.at[i]->id] = pipeline_receives_later(s->pipeline, i);
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++)
            if (g->nodes.at[i]->in[k] && late[g->nodes.at[i]->in[k]->id])
                return i;
    return g->nodes.n;
}

/* Values that later stages wait for must not depend on values from these stages. */
static void check_sent(const struct session *s)
{
    for (int i = s->stage.pause; i < s->graph->nodes.n; i++)
        for (int k = 0; k < s->graph->nodes.at[i]->nout; k++) {
            const struct value *v = s->graph->nodes.at[i]->out[k];
            int output = v ? graph_output_number(s->graph, v) : -1;
            if (output >= 0 && pipeline_sends(s->pipeline, true, output))
                fail("%s: '%s', which later stages get, depends on what they send", graph_file(s->graph), v->name);
        }
}

static void check_adds(const struct session *s, bool adds, const struct value *v)
{
    if (adds && v->type.dtype != DT_F32)
        fail("%s: metadata says that '%s' is added up, and it is %s", graph_file(s->graph), v->name, dtype_name(v->type.dtype));
}

void stage_run_free(struct session *s)
{
    pipeline_values_free(s->stage.values);
    for (int i = 0; s->stage.zeros && i < s->graph->inputs.n; i++)
        buffer_free(&s->stage.zeros[i]);
}

void stage_run_prepare(struct session *s)
{
    struct graph *g = s->graph;
    s->stage.taken = NEWN(s->arena, struct tensor, g->inputs.n + 1);
    s->stage.unread = NEWN(s->arena, bool, g->inputs.n + 1);
    s->stage.values = pipeline_values_new(s->arena, s->pipeline);
    s->stage.zeros = NEWN(s->arena, struct buffer, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++)
        check_adds(s, pipeline_adds(s->pipeline, true, i), g->inputs.at[i]);
    for (int i = 0; i < g->outputs.n; i++)
        check_adds(s, pipeline_adds(s->pipeline, false, i), g->outputs.at[i]);
    for (int i = 0; i < g->inputs.n; i++)
        s->stage.unread[i] = rank_meta_kept_elsewhere(g, g->inputs.at[i]->name) || pipeline_receives_later(s->pipeline, i);
    if (waits(s))
        compute_first(s);
    s->stage.pause = first_reader(s);
    check_sent(s);
}

/* ---- what passes ------------------------------------------------------------------------------------------------------------- */

/* Not available yet, or not needed: of any size. */
static struct tensor unread_input(const struct formal *f)
{
    struct tensor t = {.dtype = f->type.dtype, .rank = f->type.rank};
    for (int d = 0; d < t.rank; d++)
        t.dim[d] = -1;
    return t;
}

const struct tensor *stage_run_inputs(struct session *s, const struct tensor *given)
{
    for (int i = 0; i < s->graph->inputs.n; i++)
        s->stage.taken[i] = s->stage.unread[i] && !given[i].data ? unread_input(&s->sig.in[i]) : given[i];
    const struct traffic_start start = traffic_begin_pass(s, s->stage.received);
    pipeline_receive(s->pipeline, false, true, s->stage.values, s->stage.taken);
    traffic_end_pass(s, s->stage.received, start);
    return s->stage.taken;
}

/* Whether inputs that are only added come with the last run of a step, as the sum over all. A fixed order of sums needs each separately. */
static bool sums_go(const struct session *s)
{
    return s->gradients.last || kenv_deterministic(s->env);
}

static void take_zero(struct session *s, int input)
{
    struct tensor *t = &s->stage.taken[input];
    for (int d = 0; d < t->rank; d++)
        if (!dim_eval(s->sig.in[input].type.dim[d], &s->bind, &t->dim[d]))
            fail("%s: input '%s' has a size that is not known", s->sig.path, s->sig.in[input].name);
    sizes_check(s, t, s->sig.in[input].name);
    t->data = buffer_reserve(&s->stage.zeros[input], tensor_bytes(t));
    memset(t->data, 0, tensor_bytes(t));
}

void stage_run_later(struct session *s)
{
    const struct traffic_start start = traffic_begin_pass(s, s->stage.received);
    pipeline_receive(s->pipeline, true, sums_go(s), s->stage.values, s->stage.taken);
    traffic_end_pass(s, s->stage.received, start);
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (!sums_go(s) && pipeline_receives_later(s->pipeline, i) && pipeline_adds(s->pipeline, true, i))
            take_zero(s, i);
    signature_check_inputs(s->arena, &s->sig, s->stage.taken, &s->bind);
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (pipeline_receives_later(s->pipeline, i))
            session_place_input(s, i, &s->stage.taken[i]);
}

/* Adds this run's shard to the sum of the step so far. */
static struct tensor add_up(struct session *s, int output, const struct tensor *own)
{
    struct tensor sum = *own;
    size_t bytes = tensor_bytes(own);
    float *to = buffer_reserve(pipeline_sum(s->pipeline, output), bytes);
    const float *from = own->data;
    sum.data = to;
    if (s->gradients.first)
        memcpy(to, from, bytes);
    for (int64_t i = 0, n = s->gradients.first ? 0 : tensor_elements(own); i < n; i++)
        to[i] += from[i];
    return sum;
}

void stage_run_pass(struct session *s, bool later)
{
    struct arena *tmp = arena_new();
    struct tensor *whole = NEWN(tmp, struct tensor, s->sig.nout + 1);
    bool sums = later || sums_go(s);
    for (int i = 0; i < s->sig.nout; i++) {
        struct tensor own = s->tensor[s->graph->outputs.at[i]->id];
        bool as_it_is = s->sig.out[i].place.kind == PLACE_R && !own.room, adds = !later && pipeline_adds(s->pipeline, false, i);
        if (!pipeline_sends(s->pipeline, later, i))
            continue;
        if (adds && !kenv_deterministic(s->env))
            own = add_up(s, i, &own);
        if (!adds || sums)
            whole[i] = as_it_is ? own : session_gather(s, tmp, i, &own);
    }
    const struct traffic_start start = traffic_begin_pass(s, s->stage.sent);
    pipeline_send(s->pipeline, later, sums, whole);
    traffic_end_pass(s, s->stage.sent, start);
    arena_free(tmp);
}
