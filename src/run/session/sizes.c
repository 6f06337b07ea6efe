/* sizes: sizes of a session's values under its bindings. Every expression of a live type is evaluated once per plan. */
#include "run/session/session.h"

static void note_sizes(struct session *s, const struct type *t)
{
    for (int k = 0; k < t->rank; k++) {
        const struct dim *d = t->dim[k];
        if (d->kind == DIM_INT || s->sizes.value[d->id] == -2)
            continue;
        s->sizes.value[d->id] = -2;
        VEC_PUSH(s->arena, &s->sizes.dims, d);
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

void sizes_prepare(struct session *s)
{
    s->sizes.ids = highest_id(s) + 1;
    s->sizes.value = NEWN(s->arena, int64_t, s->sizes.ids);
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

void sizes_evaluate(struct session *s)
{
    for (int i = 0; i < s->sizes.dims.n; i++) {
        const struct dim *d = s->sizes.dims.at[i];
        int64_t x;
        s->sizes.value[d->id] = dim_eval(d, &s->bind, &x) ? x : -1;
        if (s->sizes.value[d->id] == -1 || x >= 0)
            continue;
        fail("%s: size %s is %lld for these inputs", s->sig.path, dim_str(s->plan, d), (long long)x);
    }
}

static const char *sizes_text(struct arena *a, const struct tensor *t)
{
    const char *text = dtype_name(t->dtype);
    for (int k = 0; k < t->rank; k++)
        text = arena_printf(a, "%s%s%lld", text, k ? ", " : "[", (long long)t->dim[k]);
    return arena_printf(a, "%s%s", text, t->rank ? "]" : "[]");
}

void sizes_check(const struct session *s, const struct tensor *t, const char *name)
{
    int64_t n, bytes;
    if (!type_sizes_product(t->dim, t->rank, &n) || (dtype_size(t->dtype) > 0 && !dtype_bytes(t->dtype, n, &bytes)))
        fail("%s: tensor '%s' is too large for these inputs: %s", s->sig.path, name, sizes_text(s->plan, t));
}

void sizes_need_room(const struct session *s, const char *name, size_t bytes, size_t held)
{
    int64_t all = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    if (s->force)
        return;
    struct arena *tmp = arena_new();
    room_check(s->comm, s->sig.path, arena_printf(tmp, "elements of '%s'", name),
               (struct room_need){.own = all, .resident = all, .held = (int64_t)held});
    arena_free(tmp);
}

int64_t sizes_of_dim(const struct session *s, const struct dim *d)
{
    return d->kind == DIM_INT ? d->k : s->sizes.value[d->id];
}

bool sizes_of_type(const struct session *s, const struct type *t, const char *name, struct tensor *out)
{
    *out = (struct tensor){.dtype = t->dtype, .rank = t->rank};
    for (int k = 0; k < t->rank; k++) {
        out->dim[k] = sizes_of_dim(s, t->dim[k]);
        if (out->dim[k] < 0)
            return false;
    }
    sizes_check(s, out, name);
    return true;
}

bool sizes_after_run(const struct session *s, const struct type *t, struct tensor *out)
{
    *out = (struct tensor){.dtype = t->dtype, .rank = t->rank};
    for (int d = 0; d < t->rank; d++)
        if (!dim_eval(t->dim[d], &s->bind, &out->dim[d]) || out->dim[d] < 0)
            return false;
    return true;
}
