/* layout: the memory of each value. Lifetimes (src/op/analysis/lifetime.c) are found once. When symbols change, sizes are evaluated and the
 * slab is planned again, unless everything fits where it was. Constants and inputs are used in place; a shard that is not contiguous in the
 * input is copied. */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "op/runtime/runtime.h"
#include "run/session/session.h"

#include <string.h>

static void find_lifetimes(struct session *s)
{
    bool *sliced = NEWN(s->arena, bool, s->graph->inputs.n);
    for (int i = 0; i < s->graph->inputs.n; i++)
        sliced[i] = s->sig.in[i].place.kind == PLACE_S && !session_is_state(s, i);
    s->slab.elsewhere = NEWN(s->arena, bool, s->graph->values.n + 1);
    s->slab.life = lifetime_items(s->arena, s->graph, sliced, s->gradients.go);
    s->slab.found = NEWN(s->arena, struct slab_item, s->slab.life.nitem + 1);
    memcpy(s->slab.found, s->slab.life.items, (size_t)s->slab.life.nitem * sizeof *s->slab.found);
    batch_blocks_prepare(s);
    gradients_prepare(s);
}

void layout_prepare(struct session *s)
{
    find_lifetimes(s);
    sizes_prepare(s);
}

static int64_t root_bytes(const struct session *s, const struct value *v)
{
    const struct tensor *t = &s->tensor[v->id];
    return t->dtype == DT_NONE || t->room || s->slab.elsewhere[v->id] ? 0 : (int64_t)tensor_bytes(t);
}

static void size_value(struct session *s, const struct value *v)
{
    if (!sizes_of_type(s, &v->type, v->name, &s->tensor[v->id]))
        s->tensor[v->id].dtype = DT_NONE;
}

static void size_input(struct session *s, int i)
{
    const struct value *v = s->graph->inputs.at[i];
    size_value(s, v);
    s->slab.elsewhere[v->id] = placement_is_stretch(&s->sig.in[i].type, s->sig.in[i].place, s->comm->rank, &s->bind);
}

/* Records that a result is smaller than its memory. */
static void keep_room(const struct tensor *memory, struct tensor *t)
{
    for (int d = 0; d < t->rank && t->rank == memory->rank; d++) {
        int64_t size = memory->room && memory->axis == d ? memory->room : memory->dim[d];
        if (t->dim[d] == size)
            continue;
        t->axis = d;
        t->room = size;
    }
}

/* A collective's route needs its operand's size, even on a rank whose part of the result is always empty. */
static bool reads_unsized(const struct session *s, const struct session_step *step)
{
    return step->kind == STEP_COLLECTIVE && s->tensor[step->node->in[0]->id].dtype == DT_NONE;
}

static void size_values(struct session *s)
{
    for (int i = 0; i < s->graph->inputs.n; i++)
        size_input(s, i);
    for (int i = 0; i < s->nstep; i++) {
        struct session_step *step = &s->step[i];
        step->dynamic = !op_resolved(step->node) || reads_unsized(s, step);
        for (int k = 0; k < step->node->nout; k++) {
            const struct value *v = step->node->out[k];
            if (!v)
                continue;
            size_value(s, v);
            if (s->tensor[v->id].dtype == DT_NONE)
                step->dynamic = true;
        }
        if (step->node->op->flags & OP_IN_PLACE)
            keep_room(&s->tensor[step->node->in[0]->id], &s->tensor[step->node->out[0]->id]);
    }
}

/* Bytes for an item that outgrew its place: a size that grew once will grow again, with a cache, so a quarter more saves later plans. */
static int64_t grown_bytes(const struct session *s, int64_t bytes)
{
    int64_t more;
    return s->planned && i64_add(bytes, bytes / 4, &more) ? more : bytes;
}

/* Extends lifetimes of values in steps that run in blocks. True: some changed, now or in the previous plan. */
static bool plan_blocks(struct session *s)
{
    for (int i = 0; i < s->slab.life.nitem; i++) {
        s->slab.life.items[i].first = s->slab.found[i].first;
        s->slab.life.items[i].last = s->slab.found[i].last;
    }
    return overlap_plan(s) || batch_blocks_plan(s);
}

/* True if some item outgrew its place, or lives longer. */
static bool resize_items(struct session *s)
{
    bool grown = plan_blocks(s) || !s->planned;
    for (int i = 0; i < s->graph->values.n; i++) {
        if (s->slab.life.item[i] < 0)
            continue;
        struct slab_item *item = &s->slab.life.items[s->slab.life.item[i]];
        int64_t bytes = batch_blocks_bytes(s, s->slab.life.item[i], root_bytes(s, s->graph->values.at[i]));
        if (bytes <= item->bytes)
            continue;
        grown = true;
        item->bytes = grown_bytes(s, bytes);
    }
    return grown;
}

static void place_values(struct session *s)
{
    for (int i = 0; i < s->graph->values.n; i++)
        if (s->slab.life.item[i] >= 0 && !s->tensor[i].room)
            s->tensor[i].data = (char *)s->slab.memory.at + s->slab.life.items[s->slab.life.item[i]].offset;
}

static void find_routes(struct session *s)
{
    for (int i = 0; i < s->nstep; i++) {
        struct session_step *step = &s->step[i];
        if (step->sum)
            ordered_sum_update(step->sum);
        if (step->kind != STEP_COLLECTIVE || step->dynamic)
            continue;
        step->route = collective_route(s->plan, step->collective, s->comm, &s->tensor[step->node->in[0]->id],
                                       &s->tensor[step->node->out[0]->id], &s->bind, STRIP_BYTES);
    }
}

void layout_update(struct session *s)
{
    arena_reset(s->plan);
    sizes_evaluate(s);
    size_values(s);
    state_place(s);
    if (resize_items(s)) {
        int64_t bytes = slab_assign(s->plan, s->slab.life.items, s->slab.life.nitem);
        if (!s->force && (size_t)bytes > s->slab.memory.bytes)
            room_check(s->comm, s->sig.path, "activations of inputs of these sizes",
                       (struct room_need){.own = bytes, .resident = bytes, .held = (int64_t)s->slab.memory.bytes});
        s->slab.memory.huge = true;
        buffer_reserve(&s->slab.memory, (size_t)bytes);
        if (bytes > s->slab.bytes)
            s->slab.bytes = bytes;
    }
    place_values(s);
    find_routes(s);
    s->planned = true;
}
