/* ports: between global tensors and a rank's pieces: inputs are sliced, outputs put together, by the placements in the rank file. */
#include "run/internal.h"

#include <string.h>

/* What this rank holds of the dimension that is dealt out. */
static struct pieces pieces_held(const struct session *s, struct arena *a, const char *kind, const struct formal *f,
                                 const struct tensor *piece)
{
    if (f->place.split->ranks != s->comm->size)
        fail("%s: %s '%s' is split for %d ranks, the run has %d", s->sig.path, kind, f->name, f->place.split->ranks, s->comm->size);
    struct pieces mine = pieces_of(a, f->place.split, s->comm->rank, false, &s->bind);
    if (pieces_extent(&mine) != piece->dim[f->place.dim])
        fail("%s: %s '%s': its split gives rank %d %lld of dimension %d, the graph says %lld", s->sig.path, kind, f->name, s->comm->rank,
             (long long)pieces_extent(&mine), f->place.dim, (long long)piece->dim[f->place.dim]);
    return mine;
}

void port_slice(struct session *s, int input, const struct tensor *global, struct tensor *to)
{
    const struct formal *f = &s->sig.in[input];
    struct pieces mine = pieces_held(s, s->plan, "input", f, to);
    if (own_take(s, input, to))
        return;
    struct region r = region_of(s->plan, global, f->place.dim, &mine, -1, NULL);
    region_pack(&r, global->data, to->data);
}

static struct tensor tensor_new(struct arena *a, const struct tensor *like)
{
    struct tensor t = *like;
    t.data = arena_alloc(a, tensor_bytes(like) + 1);
    return t;
}

static struct tensor dense(struct arena *a, const struct tensor *piece)
{
    struct tensor t = *piece;
    t.room = 0;
    t.data = arena_alloc(a, tensor_bytes(piece) + 1);
    state_copy(&t, piece);
    return t;
}

/* After a run sizes that data decided are bound, too. */
static struct tensor whole_output(struct session *s, struct arena *a, const struct formal *f)
{
    struct tensor t = {.dtype = f->type.dtype, .rank = f->type.rank};
    for (int k = 0; k < t.rank; k++)
        if (!dim_eval(f->type.dim[k], &s->bind, &t.dim[k]) || t.dim[k] < 0)
            fail("%s: the size of output '%s' is not known", s->sig.path, f->name);
    layout_check(s, &t, f->name);
    return tensor_new(a, &t);
}

static struct tensor gather_split(struct session *s, struct arena *a, const struct formal *f, const struct tensor *piece)
{
    struct tensor whole = whole_output(s, a, f);
    struct collective c = {.kind = COLL_ALLGATHER,
                           .name = f->name,
                           .op = "AllGather",
                           .id = s->ncollective + 1,
                           .axis = f->place.dim,
                           .axis2 = -1,
                           .from = f->place.split};
    struct route *route = collective_route(a, &c, s->comm, piece, &whole, &s->bind, STRIP_BYTES);
    collective_run(&c, route, s->comm, &s->scratch, piece, &whole);
    return whole;
}

static struct tensor gather_partial(struct session *s, struct arena *a, const struct formal *f, const struct tensor *piece)
{
    struct tensor whole = tensor_new(a, piece);
    struct collective c = {
        .kind = COLL_ALLREDUCE, .name = f->name, .op = "AllReduce", .id = s->ncollective + 1, .axis2 = -1, .red = f->place.op};
    struct route *route = collective_route(a, &c, s->comm, piece, &whole, &s->bind, STRIP_BYTES);
    collective_run(&c, route, s->comm, &s->scratch, piece, &whole);
    return whole;
}

struct held session_held(struct session *s, struct arena *a, int output, const struct tensor *piece)
{
    const struct formal *f = &s->sig.out[output];
    if (f->place.kind != PLACE_S)
        return (struct held){.kind = f->place.kind};
    struct pieces mine = pieces_held(s, a, "output", f, piece);
    return (struct held){PLACE_S, f->place.dim, mine.n, mine.at};
}

struct tensor session_gather(struct session *s, struct arena *a, int output, const struct tensor *piece)
{
    const struct formal *f = &s->sig.out[output];
    struct tensor own = piece->room ? dense(a, piece) : *piece;
    switch (f->place.kind) {
    case PLACE_S: return gather_split(s, a, f, &own);
    case PLACE_P: return gather_partial(s, a, f, &own);
    case PLACE_R: break;
    }
    return dense(a, piece);
}

struct tensor session_gather_input(struct session *s, struct arena *a, int input, const struct tensor *in)
{
    return s->own && s->own[input].from ? gather_split(s, a, &s->sig.in[input], &s->own[input].piece) : *in;
}

const struct placement *session_output_place(const struct session *s, int output)
{
    return &s->sig.out[output].place;
}
const struct type *session_input_type(const struct session *s, int input)
{
    return &s->sig.in[input].type;
}
const struct type *session_output_type(const struct session *s, int output)
{
    return &s->sig.out[output].type;
}

bool session_input_sizes(struct session *s, const struct bindings *given, int input, int64_t *dim, const char **missing)
{
    struct bindings b = {0};
    for (int i = 0; i < given->list.n; i++)
        bindings_set(s->arena, &b, given->list.at[i].name, given->list.at[i].value);
    signature_complete(s->arena, &s->sig, &b);
    const struct type *t = &s->sig.in[input].type;
    for (int k = 0; k < t->rank; k++) {
        if (dim_eval(t->dim[k], &b, &dim[k]))
            continue;
        const char *name[16];
        int n = dim_symbols(t->dim[k], name, 16);
        for (int i = 0; i < n && i < 16; i++)
            if (!bindings_get(&b, name[i])) {
                *missing = name[i];
                return false;
            }
        fail("%s: size %s of input '%s' can't be computed", s->sig.path, dim_str(s->arena, t->dim[k]), s->sig.in[input].name);
    }
    return true;
}
