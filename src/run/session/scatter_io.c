/* scatter_io: converts between global tensors and this rank's shards, by the placements of the rank file: slices inputs, gathers
 * outputs. */
#include "op/runtime/runtime.h"
#include "run/session/session.h"

#include <string.h>

static int64_t elements_of_dims(const int64_t *dim, int from, int to)
{
    int64_t n;
    return type_sizes_product(dim + from, to - from, &n) ? n : 0;
}

void scatter_copy(struct tensor *to, const struct tensor *from)
{
    int axis = to->room ? to->axis : from->room ? from->axis : 0;
    int64_t size = (int64_t)dtype_size(to->dtype), outer = elements_of_dims(to->dim, 0, axis),
            inner = size * elements_of_dims(to->dim, axis + 1, to->rank);
    int64_t bytes = inner * (to->rank ? to->dim[axis] : 1);
    int64_t to_step = to->room ? to->room * inner : bytes, from_step = from->room ? from->room * inner : bytes;
    for (int64_t i = 0; bytes && i < outer; i++)
        memcpy((char *)to->data + i * to_step, (const char *)from->data + i * from_step, (size_t)bytes);
}

/* The intervals of this rank's shard, checked against its size. */
static struct intervals check_shard(const struct session *s, struct arena *a, const char *kind, const struct formal *f,
                                    const struct tensor *shard)
{
    if (f->place.split->ranks != s->comm->size)
        fail("%s: %s '%s' is split for %d ranks, the run has %d", s->sig.path, kind, f->name, f->place.split->ranks, s->comm->size);
    struct intervals mine = intervals_of(a, f->place.split, s->comm->rank, false, &s->bind);
    if (intervals_extent(&mine) != shard->dim[f->place.dim])
        fail("%s: %s '%s': its split gives rank %d %lld of dimension %d, the graph says %lld", s->sig.path, kind, f->name, s->comm->rank,
             (long long)intervals_extent(&mine), f->place.dim, (long long)shard->dim[f->place.dim]);
    return mine;
}

/* A contiguous shard is read in place: layout.c allocates no memory for it. */
void scatter_input(struct session *s, int input, const struct tensor *global, struct tensor *to)
{
    const struct formal *f = &s->sig.in[input];
    struct arena *tmp = arena_new();
    struct intervals mine = check_shard(s, tmp, "input", f, to);
    const struct tensor *own = sharded_input(s, input, to);
    struct region r = region_of(tmp, global, f->place.dim, &mine, -1, NULL);
    const void *stretch = own ? own->data : region_stretch(&r, global->data);
    if (stretch)
        to->data = (void *)(uintptr_t)stretch;
    else
        region_pack(&r, global->data, to->data);
    arena_free(tmp);
}

static struct tensor alloc_like(struct arena *a, const struct tensor *like)
{
    struct tensor t = *like;
    t.data = arena_alloc(a, tensor_bytes(like) + 1);
    return t;
}

static struct tensor dense_copy_of(struct arena *a, const struct tensor *shard)
{
    struct tensor t = *shard;
    t.room = 0;
    t.data = arena_alloc(a, tensor_bytes(shard) + 1);
    scatter_copy(&t, shard);
    return t;
}

/* After a run, data-dependent sizes are also bound. */
static struct tensor new_output(struct session *s, struct arena *a, const struct formal *f)
{
    struct tensor t;
    if (!sizes_after_run(s, &f->type, &t))
        fail("%s: the size of output '%s' is not known", s->sig.path, f->name);
    sizes_check(s, &t, f->name);
    return alloc_like(a, &t);
}

static void gather_split(struct session *s, struct arena *a, const struct formal *f, const struct tensor *shard, struct tensor *global)
{
    struct collective_node c = {
        .kind = COLL_ALLGATHER, .name = f->name, .id = s->traffic.n + 1, .axis = f->place.dim, .axis2 = -1, .from = f->place.split};
    struct route *route = collective_route(a, &c, s->comm, shard, global, &s->bind, STRIP_BYTES);
    collective_run(&c, route, s->comm, &s->scratch, shard, global);
}

static struct tensor gather_output(struct session *s, struct arena *a, const struct formal *f, const struct tensor *shard)
{
    struct tensor global = new_output(s, a, f);
    gather_split(s, a, f, shard, &global);
    return global;
}

static struct tensor gather_partial(struct session *s, struct arena *a, const struct formal *f, const struct tensor *shard)
{
    struct tensor global = alloc_like(a, shard);
    struct collective_node c = {.kind = COLL_ALLREDUCE, .name = f->name, .id = s->traffic.n + 1, .axis2 = -1, .red = f->place.op};
    struct route *route = collective_route(a, &c, s->comm, shard, &global, &s->bind, STRIP_BYTES);
    collective_run(&c, route, s->comm, &s->scratch, shard, &global);
    return global;
}

struct output_shard session_output_shard(struct session *s, struct arena *a, int output, const struct tensor *shard)
{
    const struct formal *f = &s->sig.out[output];
    if (f->place.kind != PLACE_S)
        return (struct output_shard){.kind = f->place.kind};
    struct intervals mine = check_shard(s, a, "output", f, shard);
    return (struct output_shard){PLACE_S, f->place.dim, mine.n, mine.at};
}

struct tensor session_gather(struct session *s, struct arena *a, int output, const struct tensor *shard)
{
    const struct formal *f = &s->sig.out[output];
    struct tensor own = shard->room ? dense_copy_of(a, shard) : *shard;
    switch (f->place.kind) {
    case PLACE_S: return gather_output(s, a, f, &own);
    case PLACE_P: return gather_partial(s, a, f, &own);
    case PLACE_R: break;
    }
    return dense_copy_of(a, shard);
}

struct tensor session_gather_input(struct session *s, struct arena *a, int input, const struct tensor *in)
{
    return s->shards && s->shards[input].file ? gather_output(s, a, &s->sig.in[input], &s->shards[input].tensor) : *in;
}

struct tensor session_state_sizes(const struct session *s, int input)
{
    const struct state_slot *k = s->states.by_input[input];
    struct tensor t = k->global;
    if (!k->filled)
        fail("%s: state '%s' holds nothing yet", s->sig.path, s->sig.in[input].name);
    t.data = NULL;
    return t;
}

struct tensor session_gather_state(struct session *s, struct arena *a, int input)
{
    const struct formal *f = &s->sig.in[input];
    struct tensor own = dense_copy_of(a, &s->states.by_input[input]->local), global = session_state_sizes(s, input);
    if (f->place.kind != PLACE_S)
        return own;
    sizes_check(s, &global, f->name);
    global = alloc_like(a, &global);
    gather_split(s, a, f, &own, &global);
    return global;
}

const struct placement *session_output_placement(const struct session *s, int output)
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
