/* control: nodes that own graphs. A body is a session inside the session, made when it is first run; it takes the values of the graph
 * around as inputs and shares its threads. Here is If, and what all of them need: what the body leaves becomes results of the node. */
#include "op/op.h"
#include "run/internal.h"

#include <string.h>

/* ---- bodies -------------------------------------------------------------------------------------------------------------------- */

struct inner *control_inner(struct session *s, struct step *step, int body)
{
    struct inner *b = &step->control->body[body];
    if (b->session)
        return b;
    struct graph *g = node_body(step->node, body)->graph;
    b->session = session_inner(s, g);
    b->in = NEWN(s->arena, struct tensor, g->inputs.n);
    b->out = NEWN(s->arena, struct tensor, g->outputs.n);
    return b;
}

void control_run_body(struct step *step, int body)
{
    struct inner *b = &step->control->body[body];
    const struct graph *g = node_body(step->node, body)->graph;
    int own = g->inputs.n - g->captures, first = node_captured(step->node, body);
    for (int i = 0; i < g->captures; i++)
        b->in[own + i] = step->in[first + i];
    session_run(b->session, b->in, b->out);
}

bool control_truth(const struct session *s, const struct step *step, const struct tensor *t)
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
    out->data = (char *)s->slab.at + s->life.items[s->life.item[v->id]].offset;
    if (tensor_bytes(t))
        memcpy(out->data, t->data, tensor_bytes(t));
}

static void place_late(struct session *s, const struct value *v, const struct tensor *t, bool stays)
{
    struct tensor *out = &s->tensor[v->id];
    *out = *t;
    late_bind(s, v);
    if (stays)
        return;
    out->data = arena_alloc(session_scratch(s), tensor_bytes(t) + 1);
    if (tensor_bytes(t))
        memcpy(out->data, t->data, tensor_bytes(t));
}

void control_give(struct session *s, struct step *step, int i, const struct tensor *t, bool stays)
{
    const struct value *v = step->node->out[i];
    if (!v)
        return;
    struct tensor known;
    bool is_known = layout_type(s, &v->type, v->name, &known);
    if (!is_known)
        known = (struct tensor){.dtype = v->type.dtype, .rank = v->type.rank};
    check_result(s, v, t, &known, is_known);
    if (is_known)
        place_known(s, v, t);
    else
        place_late(s, v, t, stays);
}

/* What the session made itself is there until its next run; what it was given may be gone before. */
static bool made_inside(const struct inner *b, int output)
{
    const struct graph *g = b->session->graph;
    const struct value *root = g->values.at[b->session->life.root[g->outputs.at[output]->id]];
    return root->producer || root->constant;
}

static void run_if(struct session *s, struct step *step)
{
    int body = control_truth(s, step, &step->in[0]) ? 0 : 1;
    struct inner *b = control_inner(s, step, body);
    control_run_body(step, body);
    for (int i = 0; i < step->node->nout; i++)
        control_give(s, step, i, &b->out[i], made_inside(b, i));
}

/* ---- the step -------------------------------------------------------------------------------------------------------------------- */

void control_prepare(struct session *s, struct step *step)
{
    struct control *c = NEW(s->arena, struct control);
    c->body = NEWN(s->arena, struct inner, node_bodies(step->node));
    c->nbuffer = 2 * (step->node->nin + step->node->nout);
    c->buffer = NEWN(s->arena, struct buffer, c->nbuffer);
    step->control = c;
}

void control_run(struct session *s, struct step *step)
{
    if (op_is_onnx(step->node, "If"))
        run_if(s, step);
    else if (op_is_onnx(step->node, "Loop"))
        turns_loop(s, step);
    else
        turns_scan(s, step);
}

void control_free(struct step *step)
{
    for (int k = 0; k < node_bodies(step->node); k++)
        if (step->control->body[k].session)
            session_free(step->control->body[k].session);
    for (int i = 0; i < step->control->nbuffer; i++)
        buffer_free(&step->control->buffer[i]);
}

int64_t control_slab(const struct step *step)
{
    int64_t bytes = 0;
    for (int k = 0; k < node_bodies(step->node); k++)
        if (step->control->body[k].session)
            bytes += session_slab(step->control->body[k].session);
    return bytes;
}
