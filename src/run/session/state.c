/* state: values kept on their rank between runs, as shards. The output of one run is the input of the next.
 *
 * If one op appends rows to the input to make the output, both share memory with spare capacity along that axis (struct tensor), and the op
 * writes only the new rows. When the capacity is used up, the content moves to memory that is 1.5 times as large. Any other output is
 * copied after the run. An op that can't read such memory gets a dense copy, made by a Transpose with the identity permutation. */
#include "ir/rank_meta.h"
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "run/session/session.h"

#include <string.h>

/* ---- what is kept --------------------------------------------------------------------------------------------------------------- */

/* Checks that both ends have one type and placement: the next run takes what this one leaves. */
static void check_ends(const struct session *s, const struct state_slot *k)
{
    const struct formal *past = &s->sig.in[k->input], *present = k->output < 0 ? past : &s->sig.out[k->output];
    if (past->type.dtype != present->type.dtype || past->type.rank != present->type.rank || !placement_eq(past->place, present->place))
        fail("%s: state '%s' becomes '%s', which has another type or placement: %s, %s and %s, %s", s->sig.path, past->name, present->name,
             type_str(s->arena, &past->type), placement_str(s->arena, past->place), type_str(s->arena, &present->type),
             placement_str(s->arena, present->place));
    if (past->place.kind == PLACE_S && past->place.dim == k->axis)
        fail("%s: state '%s' is split along dimension %d, along which it grows", s->sig.path, past->name, k->axis);
}

static struct state_slot *add_slot(struct session *s, int input, int output, int axis)
{
    const struct type *t = &s->sig.in[input].type;
    struct state_slot *k = &s->states.at[s->states.n++];
    if (s->states.by_input[input])
        fail("%s: state '%s' is named twice", s->sig.path, s->sig.in[input].name);
    if (axis < -1 || axis >= t->rank)
        fail("%s: state '%s' grows along dimension %d of %d", s->sig.path, s->sig.in[input].name, axis, t->rank);
    *k = (struct state_slot){.input = input, .output = output, .axis = axis, .global = {.dtype = t->dtype, .rank = t->rank}};
    state_empty(k);
    check_ends(s, k);
    s->states.by_input[input] = k;
    return k;
}

/* Adds a state of the rank file; one without an input is for another graph only. */
static void add_named(struct session *s, const struct rank_state *state)
{
    const struct graph *g = s->graph;
    int input = graph_input_named(g, state->past), output = graph_output_named(g, state->present);
    if ((input < 0 && *state->past) || (output < 0 && *state->present))
        fail("%s: state '%s|%s' names no input or no output", s->sig.path, state->past, state->present);
    if (input >= 0)
        add_slot(s, input, output, state->dim)->source = state->from;
}

static void find_states(struct session *s)
{
    const struct graph *g = s->graph;
    const struct rank_meta *m = g->rank_meta;
    s->states.at = NEWN(s->arena, struct state_slot, m ? m->nstate : g->states.n);
    for (int i = 0; m && i < m->nstate; i++)
        add_named(s, &m->state[i]);
    for (int i = 0; !m && i < g->states.n; i++) {
        const struct state *state = &g->states.at[i];
        if (state->past)
            add_slot(s, graph_input_named(g, state->past->name), state->present ? graph_output_named(g, state->present->name) : -1,
                     state->dim);
    }
}

/* ---- sharing memory --------------------------------------------------------------------------------------------------------------- */

static struct value *past_of(const struct session *s, const struct state_slot *k)
{
    return s->graph->inputs.at[k->input];
}
static struct value *present_of(const struct session *s, const struct state_slot *k)
{
    return s->graph->outputs.at[k->output];
}

static bool grows_in_place(struct session *s, const struct state_slot *k, const struct uses *uses)
{
    if (k->output < 0 || k->axis < 0)
        return false;
    const struct value *past = past_of(s, k), *present = present_of(s, k);
    const struct node *n = present->producer;
    int axis, operand = n ? op_appends_to(n, present->index, &axis) : -1;
    if (operand < 0 || n->in[operand] != past || axis != k->axis || uses[past->id].n != 1)
        return false;
    for (int d = 0; d < past->type.rank; d++)
        if (d != axis && dim_rewrite(s->graph->alg, past->type.dim[d]) != dim_rewrite(s->graph->alg, present->type.dim[d]))
            return false;
    return true;
}

static struct node *dense_state_copy(struct session *s, struct value *v)
{
    int64_t perm[MAX_RANK];
    for (int d = 0; d < v->type.rank; d++)
        perm[d] = d;
    struct node *n = op_node(s->graph, "", "Transpose", arena_printf(s->arena, "%s/dense", v->name), 1, &v);
    attr_set_ints(s->graph, n, "perm", v->type.rank, perm);
    op_infer(s->graph, n);
    return n;
}

static void read_dense(struct session *s, struct value *v)
{
    struct node *copy = NULL;
    for (int i = 0; i < s->graph->nodes.n; i++) {
        struct node *n = s->graph->nodes.at[i];
        for (int k = 0; k < n->nin && !(n->op->flags & OP_CAPACITY); k++) {
            if (n->in[k] != v)
                continue;
            if (!copy)
                copy = dense_state_copy(s, v);
            n->in[k] = copy->out[0];
        }
    }
    if (!copy)
        return;
    explain("%s: state '%s' is copied for an op that can't read it in place", s->sig.path, v->name);
    graph_insert_before_use(s->graph, 1, &copy);
}

void state_prepare(struct session *s)
{
    struct arena *tmp = arena_new();
    const struct uses *uses = graph_uses(s->graph, tmp);
    s->states.by_input = NEWN(s->arena, struct state_slot *, s->graph->inputs.n);
    find_states(s);
    EACH (struct state_slot, k, s->states) {
        k->in_place = grows_in_place(s, k, uses);
        k->recurrent = k->output >= 0 && k->axis < 0 && op_recurrent_past(present_of(s, k)) == past_of(s, k);
    }
    for (int i = 0; i < s->states.n; i++)
        if (s->states.at[i].in_place)
            read_dense(s, present_of(s, &s->states.at[i]));
    arena_free(tmp);
}

/* ---- memory --------------------------------------------------------------------------------------------------------------------- */

static size_t capacity_bytes(const struct session *s, const struct state_slot *k, struct tensor t, int64_t rows, int64_t *room)
{
    int64_t n, bytes;
    if (!i64_add(rows, rows / 2 + 16, room))
        *room = rows;
    t.dim[k->axis] = *room;
    if (!type_sizes_product(t.dim, t.rank, &n) || !i64_mul(n, (int64_t)dtype_size(t.dtype), &bytes))
        fail("%s: state '%s' is too large for these inputs", s->sig.path, s->sig.in[k->input].name);
    return (size_t)bytes;
}

/* Moves content, NULL: none, into memory for this many rows and half as many more. */
static void move_state(struct session *s, struct state_slot *k, const struct tensor *like, int64_t rows, const struct tensor *content)
{
    struct buffer bigger = {0};
    struct tensor t = *like;
    t.data = buffer_reserve(&bigger, capacity_bytes(s, k, *like, rows, &t.room));
    t.axis = k->axis;
    if (content)
        scatter_copy(&t, content);
    if (content)
        s->stats.state_moved += (int64_t)tensor_bytes(content);
    s->stats.state_bytes += (int64_t)bigger.bytes - (int64_t)k->memory.bytes;
    buffer_free(&k->memory);
    k->memory = bigger;
    k->capacity = t.room;
}

static void *reserve_state(struct session *s, struct state_slot *k, size_t bytes)
{
    size_t before = k->memory.bytes;
    void *at = buffer_reserve(&k->memory, bytes <= before ? bytes : bytes + bytes / 2);
    s->stats.state_bytes += (int64_t)(k->memory.bytes - before);
    return at;
}

static void use_slot_memory(const struct state_slot *k, struct tensor *t)
{
    t->data = k->memory.at;
    t->axis = k->axis;
    t->room = k->capacity;
}

static void place_growing(struct session *s, struct state_slot *k)
{
    struct tensor *past = &s->tensor[past_of(s, k)->id], *present = &s->tensor[present_of(s, k)->id];
    if (present->dtype == DT_NONE)
        fail("%s: the size of state '%s' follows from computed data", s->sig.path, present_of(s, k)->name);
    use_slot_memory(k, past);
    if (!k->memory.at || present->dim[k->axis] > k->capacity)
        move_state(s, k, past, present->dim[k->axis], k->filled ? past : NULL);
    use_slot_memory(k, past);
    use_slot_memory(k, present);
}

void state_place(struct session *s)
{
    EACH (struct state_slot, k, s->states) {
        struct tensor *past = &s->tensor[past_of(s, k)->id];
        if (past->dtype == DT_NONE)
            fail("%s: the size of state '%s' is not known: give it as an input", s->sig.path, s->sig.in[k->input].name);
        if (k->in_place)
            place_growing(s, k);
        else
            past->data = reserve_state(s, k, tensor_bytes(past));
    }
}

/* ---- around a run --------------------------------------------------------------------------------------------------------------- */

void state_sizes(struct session *s, const struct tensor *given, struct tensor *sizes)
{
    for (int i = 0; i < s->graph->inputs.n; i++) {
        struct state_slot *k = s->states.by_input[i];
        if (k && given[i].data)
            k->filled = false;
        if (k && !given[i].data && !k->filled && k->axis < 0 && !k->recurrent)
            fail("%s: state '%s' holds nothing yet: give it as an input", s->sig.path, s->sig.in[i].name);
        sizes[i] = k && !given[i].data ? k->global : given[i];
    }
}

void state_fill(struct session *s, int input, const struct tensor *global)
{
    struct tensor *to = &s->tensor[s->graph->inputs.at[input]->id], piece = *to;
    piece.room = 0;
    piece.data = global->data;
    if (s->sig.in[input].place.kind == PLACE_S) {
        piece.data = arena_alloc(s->plan, tensor_bytes(&piece) + 1);
        scatter_input(s, input, global, &piece);
    }
    scatter_copy(to, &piece);
    s->states.by_input[input]->global = *global;
    s->states.by_input[input]->global.data = NULL;
    s->states.by_input[input]->filled = true;
}

void state_begin(struct session *s, int input)
{
    const struct state_slot *k = s->states.by_input[input];
    struct tensor *past = &s->tensor[s->graph->inputs.at[input]->id];
    if (k->recurrent && !k->filled)
        memset(past->data, 0, tensor_bytes(past));
}

/* Global sizes of the last run's output; some may be data-dependent. */
static struct tensor global_sizes(const struct session *s, const struct formal *f)
{
    struct tensor t;
    if (!sizes_after_run(s, &f->type, &t))
        fail("%s: the size of state '%s' is not known", s->sig.path, f->name);
    return t;
}

/* Keeps the outputs for the next run. */
void state_advance(struct session *s)
{
    EACH (struct state_slot, k, s->states) {
        if (k->output < 0) {
            k->local = s->tensor[past_of(s, k)->id];
            continue;
        }
        const struct formal *f = &s->sig.out[k->output];
        const struct tensor *present = &s->tensor[present_of(s, k)->id];
        k->global = global_sizes(s, f);
        k->filled = true;
        k->local = *present;
        if (k->in_place)
            continue;
        void *at = reserve_state(s, k, tensor_bytes(present));
        k->local.data = at;
        if (at == present->data)
            continue;
        memcpy(at, present->data, tensor_bytes(present));
        s->stats.state_moved += (int64_t)tensor_bytes(present);
    }
}

/* ---- between graphs --------------------------------------------------------------------------------------------------- */

bool session_is_state(const struct session *s, int input)
{
    return s->states.by_input && s->states.by_input[input];
}

const char *session_state_source(const struct session *s, int input)
{
    return s->states.by_input[input]->source;
}

int session_state_grows_along(const struct session *s, int input)
{
    return s->states.by_input[input]->axis;
}

const char *session_recurrent_state(const struct session *s)
{
    for (int i = 0; i < s->states.n; i++)
        if (s->states.at[i].recurrent)
            return s->sig.in[s->states.at[i].input].name;
    return NULL;
}

static int64_t slot_need(const struct session *s, const struct state_slot *k, const struct bindings *dims, int64_t tokens)
{
    const struct type *t = &past_of(s, k)->type;
    int64_t size[MAX_RANK], n, bytes;
    for (int d = 0; d < t->rank; d++) {
        size[d] = tokens;
        if (d != k->axis && (!dim_eval(t->dim[d], dims, &size[d]) || size[d] < 0))
            return 0;
    }
    bool possible = type_sizes_product(size, t->rank, &n) && dtype_bytes(t->dtype, n, &bytes);
    return possible ? bytes : INT64_MAX;
}

int64_t session_state_need(const struct session *s, const struct bindings *dims, int64_t tokens)
{
    int64_t sum = 0;
    for (int i = 0; i < s->states.n; i++)
        if (!i64_add(sum, slot_need(s, &s->states.at[i], dims, tokens), &sum))
            return INT64_MAX;
    return sum;
}

static bool same_pieces(struct session *to, const struct formal *a, const struct session *from, const struct formal *b)
{
    if (a->place.kind != PLACE_S || b->place.kind != PLACE_S)
        return a->place.kind == PLACE_R && b->place.kind == PLACE_R;
    struct intervals x = intervals_of(to->plan, a->place.split, to->comm->rank, false, &from->bind);
    struct intervals y = intervals_of(to->plan, b->place.split, to->comm->rank, false, &from->bind);
    return a->place.dim == b->place.dim && x.n == y.n && memcmp(x.at, y.at, (size_t)x.n * sizeof *x.at) == 0;
}

void session_copy_state(struct session *to, int input, const struct session *from, int output)
{
    const struct formal *in = &to->sig.in[input], *out = &from->sig.out[output];
    const struct tensor *piece = &from->tensor[from->graph->outputs.at[output]->id];
    struct state_slot *k = to->states.by_input[input];
    if (in->type.dtype != out->type.dtype || in->type.rank != out->type.rank || !same_pieces(to, in, from, out))
        fail("%s: state '%s' is %s, %s, and %s leaves it as '%s', %s, %s: compile one with tpc-shard --state-from the other", to->sig.path,
             in->name, type_str(to->arena, &in->type), placement_str(to->arena, in->place), from->sig.path, out->name,
             type_str(to->arena, &out->type), placement_str(to->arena, out->place));
    k->global = global_sizes(from, out);
    k->filled = true;
    to->planned = false;
    k->local = *piece;
    k->local.room = 0;
    if (k->in_place) {
        move_state(to, k, piece, piece->dim[k->axis] + 1, piece);
        use_slot_memory(k, &k->local);
        return;
    }
    k->local.data = reserve_state(to, k, tensor_bytes(piece));
    scatter_copy(&k->local, piece);
    to->stats.state_moved += (int64_t)tensor_bytes(piece);
}

void state_empty(struct state_slot *k)
{
    k->memory = (struct buffer){0};
    k->capacity = 0;
    k->filled = false;
    k->global = (struct tensor){.dtype = k->global.dtype, .rank = k->global.rank};
    for (int d = 0; d < k->global.rank; d++)
        k->global.dim[d] = d == k->axis ? 0 : -1;
}

void state_reserve(const struct session *s, struct state_slot *k)
{
    int64_t rows = k->in_place ? k->local.dim[k->axis] : 0;
    size_t bytes = tensor_bytes(&k->local);
    if (k->in_place)
        bytes = capacity_bytes(s, k, k->local, rows, &k->local.room);
    k->local.axis = k->axis;
    k->capacity = k->local.room;
    k->local.data = buffer_reserve(&k->memory, bytes);
}

void state_free(struct session *s)
{
    for (int i = 0; i < s->states.n; i++)
        buffer_free(&s->states.at[i].memory);
}
