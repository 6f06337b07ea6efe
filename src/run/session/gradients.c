/* gradients: training needs the gradients of its weights in its own arrays (train/parameters.c). If a step is one run, each gradient is
 * computed there. If it is several runs, each gradient is added there as soon as it is computed, so the slab never holds more than one of
 * them for long. */
#include "kern/core/core.h"
#include "op/op.h"
#include "run/session/session.h"

#include <string.h>

/* The value with which the gradient is complete: views follow it. */
static const struct value *made_as(const struct session *s, int number)
{
    const struct value *v = s->graph->outputs.at[s->graph->trained.at[number].output];
    while (v->producer && (v->producer->op->flags & OP_VIEW))
        v = v->producer->in[0];
    return v;
}

/* ---- calls, and when they are made ---- */

/* By value id: the first and last step that access its bytes; -1: none. */
struct touches {
    int *first, *last;
};

static void touch(const struct session *s, const struct touches *t, const struct value *v, int step)
{
    int root = v ? s->slab.life.root[v->id] : 0;
    if (!v)
        return;
    t->last[root] = step;
    if (t->first[root] < 0)
        t->first[root] = step;
}

static struct touches find_touches(struct session *s)
{
    struct touches t = {NEWN(s->arena, int, s->graph->values.n), NEWN(s->arena, int, s->graph->values.n)};
    for (int i = 0; i < s->graph->values.n; i++)
        t.first[i] = t.last[i] = -1;
    for (int i = 0; i < s->nstep; i++) {
        const struct node *n = s->step[i].node;
        for (int k = 0; k < n->nin; k++)
            touch(s, &t, n->in[k], i);
        for (int k = 0; k < n->nout; k++)
            touch(s, &t, n->out[k], i);
    }
    return t;
}

static struct due due_new(struct session *s)
{
    struct due d = {.first = NEWN(s->arena, int, s->nstep + 2), .next = NEWN(s->arena, int, s->graph->trained.n)};
    for (int i = 0; i < s->nstep + 2; i++)
        d.first[i] = -1;
    return d;
}

static void due_add(struct due *d, int steps, int number)
{
    d->next[number] = d->first[steps];
    d->first[steps] = number;
}

static void due_tell(const struct due *d, int steps)
{
    for (int i = d->tell ? d->first[steps] : -1; i >= 0; i = d->next[i])
        d->tell(d->data, i);
}

/* Finds when each gradient is complete. Those that gradients_finish copies, and their sources, are complete after the run. */
static void find_due(struct session *s)
{
    const struct touches t = find_touches(s);
    s->gradients.ready = due_new(s);
    s->gradients.needed = due_new(s);
    for (int i = s->graph->trained.n - 1; i >= 0; i--) {
        const struct value *v = made_as(s, i);
        bool alone = s->gradients.owner[v->id] == i && s->gradients.next[i] < 0;
        int reader = t.first[s->graph->trained.at[i].weight->id];
        due_add(&s->gradients.ready, alone ? t.last[s->slab.life.root[v->id]] + 1 : s->nstep + 1, i);
        due_add(&s->gradients.needed, reader < 0 ? 0 : reader, i);
    }
}

void session_gradients_made(struct session *s, void (*made)(void *, int), void *data)
{
    s->gradients.ready.tell = made;
    s->gradients.ready.data = data;
}

void session_weights_needed(struct session *s, void (*needed)(void *, int), void *data)
{
    s->gradients.needed.tell = needed;
    s->gradients.needed.data = data;
}

void gradients_need(struct session *s, int step)
{
    double start = s->gradients.needed.tell && s->gradients.needed.first[step] >= 0 ? clock_seconds() : 0;
    due_tell(&s->gradients.needed, step);
    if (start > 0)
        s->stats.comm_seconds += clock_seconds() - start;
}

/* ---- destinations ---- */

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
    find_due(s);
}

void session_gradients_to(struct session *s, float *const *to, bool first, bool last)
{
    s->gradients.last = last;
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

static void add_range(void *data, int64_t lo, int64_t hi)
{
    const struct addition *x = data;
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

/* A gradient that is to be computed in the caller's memory is elsewhere if its node has results of data-dependent size: they get memory
 * when it runs. */
void gradients_take(struct session *s, int step)
{
    const struct node *n = s->step[step].node;
    bool adds = s->gradients.go == GRADIENTS_ADD;
    for (int k = 0; k < n->nout; k++)
        for (int i = n->out[k] ? s->gradients.owner[n->out[k]->id] : -1; i >= 0; i = adds ? s->gradients.next[i] : -1)
            add_gradient(s, i, &s->tensor[n->out[k]->id]);
    due_tell(&s->gradients.ready, step + 1);
}

/* Two weights may share one gradient, which is made for the first; a gradient may also be an input. */
void gradients_finish(struct session *s)
{
    for (int i = 0; s->gradients.go != GRADIENTS_STAY && i < s->graph->trained.n; i++) {
        int owner = s->gradients.owner[made_as(s, i)->id];
        if (owner < 0 || (s->gradients.go == GRADIENTS_LEAVE && owner != i))
            add_gradient(s, i, &s->tensor[s->graph->outputs.at[s->graph->trained.at[i].output]->id]);
    }
    due_tell(&s->gradients.ready, s->nstep + 1);
}
