/* control: nodes with subgraphs: If, and what Loop and Scan share with it. A subgraph is a session of its own, made when it first runs; it
 * gets captured values as inputs and shares the outer session's threads. */
#include "run/session/session.h"

#include <string.h>

/* ---- bodies -------------------------------------------------------------------------------------------------------------------- */

struct body_run *control_body(struct session *s, struct session_step *step, int body)
{
    struct body_run *b = &step->control->body[body];
    if (b->session)
        return b;
    struct graph *g = node_body(step->node, body)->graph;
    b->session = session_inner(s, g);
    b->in = NEWN(s->arena, struct tensor, g->inputs.n);
    b->out = NEWN(s->arena, struct tensor, g->outputs.n);
    return b;
}

void control_run_body(struct session_step *step, int body)
{
    struct body_run *b = &step->control->body[body];
    const struct graph *g = node_body(step->node, body)->graph;
    int own = g->inputs.n - g->captures, first = node_captured(step->node, body);
    for (int i = 0; i < g->captures; i++)
        b->in[own + i] = step->in[first + i];
    session_run(b->session, b->in, b->out);
}

bool control_condition(const struct session *s, const struct session_step *step, const struct tensor *t)
{
    if (t->dtype != DT_BOOL || tensor_elements(t) != 1)
        fail("%s: %s: its condition has %lld elements of type %s, expected one boolean", s->sig.path, step->node->name,
             (long long)tensor_elements(t), dtype_name(t->dtype));
    return *(const uint8_t *)t->data != 0;
}

/* ---- results ------------------------------------------------------------------------------------------------------------------- */

static void check_result(const struct session *s, const struct value *v, const struct tensor *got, const struct tensor *want, bool sizes)
{
    bool same = got->dtype == want->dtype && got->rank == want->rank;
    for (int d = 0; same && sizes && d < got->rank; d++)
        same = got->dim[d] == want->dim[d];
    if (!same)
        fail("%s: '%s' has another type or size than %s when it is run", s->sig.path, v->name, type_str(s->graph->arena, &v->type));
}

static void place_known(struct session *s, const struct value *v, const struct tensor *t)
{
    struct tensor *out = &s->tensor[v->id];
    out->data = (char *)s->slab.memory.at + s->slab.life.items[s->slab.life.item[v->id]].offset;
    if (tensor_bytes(t))
        memcpy(out->data, t->data, tensor_bytes(t));
}

static void place_dynamic(struct session *s, const struct value *v, const struct tensor *t, bool stays)
{
    struct tensor *out = &s->tensor[v->id];
    sizes_check(s, t, v->name);
    *out = *t;
    dynamic_bind(s, v);
    if (stays)
        return;
    out->data = dynamic_take(s, v, tensor_bytes(t) + 1);
    if (tensor_bytes(t))
        memcpy(out->data, t->data, tensor_bytes(t));
}

void control_set_result(struct session *s, struct session_step *step, int i, const struct tensor *t, bool stays)
{
    const struct value *v = step->node->out[i];
    if (!v)
        return;
    struct tensor known;
    bool is_known = sizes_of_type(s, &v->type, v->name, &known);
    if (!is_known)
        known = (struct tensor){.dtype = v->type.dtype, .rank = v->type.rank};
    check_result(s, v, t, &known, is_known);
    if (is_known)
        place_known(s, v, t);
    else
        place_dynamic(s, v, t, stays);
}

/* Whether the body computed the output itself, so that it stays until its next run; an operand may be freed before. */
static bool made_inside(const struct body_run *b, int output)
{
    const struct graph *g = b->session->graph;
    const struct value *root = g->values.at[b->session->slab.life.root[g->outputs.at[output]->id]];
    return root->producer || root->constant;
}

void control_run_if(struct session *s, struct session_step *step)
{
    int body = control_condition(s, step, &step->in[0]) ? 0 : 1;
    struct body_run *b = control_body(s, step, body);
    control_run_body(step, body);
    for (int i = 0; i < step->node->nout; i++)
        control_set_result(s, step, i, &b->out[i], made_inside(b, i));
}

/* ---- the step -------------------------------------------------------------------------------------------------------------------- */

void control_prepare(struct session *s, struct session_step *step)
{
    struct control *c = NEW(s->arena, struct control);
    c->body = NEWN(s->arena, struct body_run, node_bodies(step->node));
    c->nbuffer = 2 * (step->node->nin + step->node->nout);
    c->buffer = NEWN(s->arena, struct buffer, c->nbuffer);
    step->control = c;
}

void control_free(struct session_step *step)
{
    for (int k = 0; k < node_bodies(step->node); k++)
        if (step->control->body[k].session)
            session_free(step->control->body[k].session);
    for (int i = 0; i < step->control->nbuffer; i++)
        buffer_free(&step->control->buffer[i]);
}

int64_t control_slab(const struct session_step *step)
{
    int64_t bytes = 0;
    for (int k = 0; k < node_bodies(step->node); k++)
        if (step->control->body[k].session)
            bytes += session_slab(step->control->body[k].session);
    return bytes;
}
