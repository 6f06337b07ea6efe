/* gradients: training wants the gradients of its weights in arrays of its own (train/parameters.c). If a step is one run, each gradient is
 * made there. If it is several runs, each gradient is added there as soon as it is made, so the slab never holds more than one of them for
 * long. */
#include "kern/core/core.h"
#include "op/op.h"
#include "run/session/session.h"

#include <string.h>

/* The value that is complete when the gradient is: views follow it. */
static const struct value *made_as(const struct session *s, int number)
{
    const struct value *v = s->graph->outputs.at[s->graph->trained.at[number].output];
    while (v->producer && (v->producer->op->flags & OP_VIEW))
        v = v->producer->in[0];
    return v;
}

/* By value id: the last step that touches its bytes; -1: none. */
static int *last_touches(struct session *s)
{
    int *last = NEWN(s->arena, int, s->graph->values.n);
    for (int i = 0; i < s->graph->values.n; i++)
        last[i] = -1;
    for (int i = 0; i < s->nstep; i++) {
        const struct node *n = s->step[i].node;
        for (int k = 0; k < n->nin; k++)
            if (n->in[k])
                last[s->slab.life.root[n->in[k]->id]] = i;
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                last[s->slab.life.root[n->out[k]->id]] = i;
    }
    return last;
}

/* What gradients_finish copies, and what it copies from, is complete after it. */
static void find_ready(struct session *s)
{
    const int *last = last_touches(s);
    s->gradients.ready = NEWN(s->arena, int, s->nstep + 1);
    s->gradients.later = NEWN(s->arena, int, s->graph->trained.n);
    for (int i = 0; i <= s->nstep; i++)
        s->gradients.ready[i] = -1;
    for (int i = s->graph->trained.n - 1; i >= 0; i--) {
        const struct value *v = made_as(s, i);
        bool alone = s->gradients.owner[v->id] == i && s->gradients.next[i] < 0;
        int *first = &s->gradients.ready[alone ? last[s->slab.life.root[v->id]] : s->nstep];
        s->gradients.later[i] = *first;
        *first = i;
    }
}

static void tell_ready(struct session *s, int step)
{
    for (int i = s->gradients.made ? s->gradients.ready[step] : -1; i >= 0; i = s->gradients.later[i])
        s->gradients.made(s->gradients.data, i);
}

void session_gradients_made(struct session *s, void (*made)(void *, int), void *data)
{
    s->gradients.made = made;
    s->gradients.data = data;
}

void gradients_prepare(struct session *s)
{
    if (s->gradients.go == GRADIENTS_STAY)
        return;
    s->gradients.owner = NEWN(s->arena, int, s->graph->values.n);
    s->gradients.next = NEWN(s->arena, int, s->graph->trained.n);
    for (int i = 0; i < s->graph->values.n; i++)
        s->gradients.owner[i] = -1;
    for (int i = s->graph->trained.n - 1; i >= 0; i--) {
        const struct value *v = made_as(s, i);
        s->gradients.next[i] = s->gradients.owner[v->id];
        if (v->producer)
            s->gradients.owner[v->id] = i;
    }
    find_ready(s);
}

void session_gradients_to(struct session *s, float *const *to, bool first)
{
    require(s->gradients.go == GRADIENTS_ADD || (s->gradients.go == GRADIENTS_LEAVE && first));
    s->gradients.to = to;
    s->gradients.first = first;
}

void gradients_place(struct session *s)
{
    for (int i = 0; s->gradients.go == GRADIENTS_LEAVE && i < s->graph->trained.n; i++)
        if (s->gradients.owner[made_as(s, i)->id] == i)
            s->tensor[s->slab.life.root[made_as(s, i)->id]].data = s->gradients.to[i];
}

struct addition {
    float *to;
    const float *from;
    bool first;
};

static void add_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct addition *x = data;
    (void)thread;
    if (x->first)
        memcpy(x->to + lo, x->from + lo, (size_t)(hi - lo) * sizeof *x->to);
    else
        for (int64_t i = lo; i < hi; i++)
            x->to[i] += x->from[i];
}

static void add_gradient(struct session *s, int number, const struct tensor *from)
{
    struct addition x = {s->gradients.to[number], from->data, s->gradients.first};
    if (x.from != x.to)
        kenv_parallel_for(s->env, tensor_elements(from), 2, add_range, &x);
}

void gradients_take(struct session *s, int step)
{
    const struct node *n = s->step[step].node;
    for (int k = 0; k < n->nout && s->gradients.go == GRADIENTS_ADD; k++)
        for (int i = n->out[k] ? s->gradients.owner[n->out[k]->id] : -1; i >= 0; i = s->gradients.next[i])
            add_gradient(s, i, &s->tensor[n->out[k]->id]);
    tell_ready(s, step);
}

/* Two weights may have one gradient, which is made for the first, and a gradient may be an input. */
void gradients_finish(struct session *s)
{
    for (int i = 0; s->gradients.go != GRADIENTS_STAY && i < s->graph->trained.n; i++) {
        int owner = s->gradients.owner[made_as(s, i)->id];
        if (owner < 0 || (s->gradients.go == GRADIENTS_LEAVE && owner != i))
            add_gradient(s, i, &s->tensor[s->graph->outputs.at[s->graph->trained.at[i].output]->id]);
    }
    tell_ready(s, s->nstep);
}
