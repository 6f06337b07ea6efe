/* layout: which value lives in which memory. Lifetimes (src/op/analysis/lifetime.c) are found once. Sizes are evaluated, and the slab
 * planned, when the symbols change; if everything fits where the last plan put it, the plan stays. Whole inputs and constants are used
 * where they are. */
#include "run/internal.h"

#include <string.h>

static void find_lifetimes(struct session *s)
{
    bool *sliced = NEWN(s->arena, bool, s->graph->inputs.n);
    for (int i = 0; i < s->graph->inputs.n; i++)
        sliced[i] = s->sig.in[i].place.kind == PLACE_S && !session_keeps(s, i);
    s->life = lifetimes_of(s->arena, s->graph, sliced);
}

static void note_sizes(struct session *s, const struct type *t)
{
    for (int k = 0; k < t->rank; k++) {
        const struct dim *d = t->dim[k];
        if (d->kind == DIM_INT || s->size[d->id] == -2)
            continue;
        s->size[d->id] = -2;
        VEC_PUSH(s->arena, &s->sizes, d);
    }
}

static int64_t highest_id(const struct session *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->graph->values.n; i++) {
        const struct type *t = &s->graph->values.at[i]->type;
        for (int k = 0; k < t->rank; k++)
            most = t->dim[k]->id > most ? t->dim[k]->id : most;
    }
    for (int i = 0; i < s->sig.nin + s->sig.nout; i++) {
        const struct type *t = i < s->sig.nin ? &s->sig.in[i].type : &s->sig.out[i - s->sig.nin].type;
        for (int k = 0; k < t->rank; k++)
            most = t->dim[k]->id > most ? t->dim[k]->id : most;
    }
    return most;
}

static void find_sizes(struct session *s)
{
    s->size_ids = highest_id(s) + 1;
    s->size = NEWN(s->arena, int64_t, s->size_ids);
    for (int i = 0; i < s->graph->inputs.n; i++)
        note_sizes(s, &s->graph->inputs.at[i]->type);
    for (int i = 0; i < s->sig.nin; i++)
        note_sizes(s, &s->sig.in[i].type);
    for (int i = 0; i < s->sig.nout; i++)
        note_sizes(s, &s->sig.out[i].type);
    for (int i = 0; i < s->nstep; i++)
        for (int k = 0; k < s->step[i].node->nout; k++)
            if (s->step[i].node->out[k])
                note_sizes(s, &s->step[i].node->out[k]->type);
}

void layout_prepare(struct session *s)
{
    find_lifetimes(s);
    find_sizes(s);
}

static void evaluate_sizes(struct session *s)
{
    for (int i = 0; i < s->sizes.n; i++) {
        const struct dim *d = s->sizes.at[i];
        int64_t x;
        s->size[d->id] = dim_eval(d, &s->bind, &x) ? x : -1;
        if (s->size[d->id] == -1 || x >= 0)
            continue;
        fail("%s: size %s is %lld for these inputs", s->sig.path, dim_str(s->plan, d), (long long)x);
    }
}

void layout_check(const struct session *s, const struct tensor *t, const char *name)
{
    int64_t n, bytes;
    if (!sizes_product(t->dim, t->rank, &n) || (dtype_width(t->dtype) > 0 && !dtype_bytes(t->dtype, n, &bytes)))
        fail("%s: tensor '%s' is too large for these inputs", s->sig.path, name);
}

bool layout_type(const struct session *s, const struct type *t, const char *name, struct tensor *out)
{
    *out = (struct tensor){.dtype = t->dtype, .rank = t->rank};
    for (int k = 0; k < t->rank; k++) {
        const struct dim *d = t->dim[k];
        out->dim[k] = d->kind == DIM_INT ? d->k : s->size[d->id];
        if (out->dim[k] < 0)
            return false;
    }
    layout_check(s, out, name);
    return true;
}

static int64_t root_bytes(const struct session *s, const struct value *v)
{
    const struct tensor *t = &s->tensor[v->id];
    return t->dtype == DT_NONE || t->room ? 0 : (int64_t)tensor_bytes(t);
}

static void size_value(struct session *s, const struct value *v)
{
    if (!layout_type(s, &v->type, v->name, &s->tensor[v->id]))
        s->tensor[v->id].dtype = DT_NONE;
}

static void size_values(struct session *s)
{
    for (int i = 0; i < s->graph->inputs.n; i++)
        size_value(s, s->graph->inputs.at[i]);
    for (int i = 0; i < s->nstep; i++) {
        struct step *step = &s->step[i];
        step->late = false;
        for (int k = 0; k < step->node->nout; k++) {
            const struct value *v = step->node->out[k];
            if (!v)
                continue;
            size_value(s, v);
            if (s->tensor[v->id].dtype == DT_NONE)
                step->late = true;
        }
    }
}

/* Room for an item that outgrew its place: a size that grew once grows on, with a cache, so a quarter more saves the next plans. */
static int64_t with_headroom(const struct session *s, int64_t bytes)
{
    int64_t more;
    return s->planned && add_i64(bytes, bytes / 4, &more) ? more : bytes;
}

/* True when some item outgrew its place. */
static bool resize_items(struct session *s)
{
    bool grown = !s->planned;
    for (int i = 0; i < s->graph->values.n; i++) {
        if (s->life.item[i] < 0)
            continue;
        struct slab_item *item = &s->life.items[s->life.item[i]];
        int64_t bytes = root_bytes(s, s->graph->values.at[i]);
        if (bytes <= item->bytes)
            continue;
        grown = true;
        item->bytes = with_headroom(s, bytes);
    }
    return grown;
}

static void place_values(struct session *s)
{
    for (int i = 0; i < s->graph->values.n; i++)
        if (s->life.item[i] >= 0 && !s->tensor[i].room)
            s->tensor[i].data = (char *)s->slab.at + s->life.items[s->life.item[i]].offset;
}

static void find_routes(struct session *s)
{
    for (int i = 0; i < s->nstep; i++) {
        struct step *step = &s->step[i];
        if (step->sum)
            summation_update(step->sum);
        if (step->kind != STEP_COLLECTIVE || step->late)
            continue;
        step->route = collective_route(s->plan, step->collective, s->comm, &s->tensor[step->node->in[0]->id],
                                       &s->tensor[step->node->out[0]->id], &s->bind, STRIP_BYTES);
    }
}

void layout_update(struct session *s)
{
    arena_reset(s->plan);
    evaluate_sizes(s);
    size_values(s);
    state_place(s);
    if (resize_items(s)) {
        int64_t bytes = slab_assign(s->plan, s->life.items, s->life.nitem);
        buffer_reserve(&s->slab, (size_t)bytes);
        if (bytes > s->slab_bytes)
            s->slab_bytes = bytes;
    }
    place_values(s);
    find_routes(s);
    s->planned = true;
}
