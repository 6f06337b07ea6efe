/* loop_scan: Loop and Scan. A carried value alternates between two buffers: an iteration reads one and writes the other. Stacked results
 * are copied to their place; a Loop does not know its number of iterations, so their memory doubles when it is full. */
#include "op/control/control.h"
#include "run/session/session.h"

#include <string.h>

struct iteration_state {
    struct session *s;
    struct session_step *step;
    struct body_run *body;
    int first, n;       /* the first carried operand, and their number */
    struct tensor *now; /* the current carried values */
    int64_t done;
};

/* The order of buffers: two per carried value, one per stacked result, one per scanned operand. */
static struct buffer *buffer_of(const struct iteration_state *t, int i)
{
    require(i < t->step->control->nbuffer);
    return &t->step->control->buffer[i];
}

static struct iteration_state iterations_begin(struct session *s, struct session_step *step, int first, int n)
{
    struct iteration_state t = {
        .s = s, .step = step, .body = control_body(s, step, 0), .first = first, .n = n, .now = NEWN(dynamic_arena(s), struct tensor, n)};
    for (int i = 0; i < n; i++)
        t.now[i] = step->in[first + i];
    return t;
}

/* A value that grows in one iteration will grow in the next ones. */
static void *reserve_carried(const struct iteration_state *t, int i, size_t bytes)
{
    struct buffer *b = buffer_of(t, 2 * i + (int)(t->done & 1));
    if (b->at && bytes <= b->bytes)
        return b->at;
    size_t all = b->at && bytes < SIZE_MAX / 2 ? bytes + bytes / 4 : bytes;
    sizes_need_room(t->s, t->step->node->in[t->first + i]->name, all, b->bytes);
    return buffer_reserve(b, all);
}

/* From the body's output number `out` on. */
static void carry_values(struct iteration_state *t, int out)
{
    for (int i = 0; i < t->n; i++) {
        const struct tensor *from = &t->body->out[out + i];
        void *to = reserve_carried(t, i, tensor_bytes(from) + 1);
        if (tensor_bytes(from))
            memcpy(to, from->data, tensor_bytes(from));
        t->now[i] = *from;
        t->now[i].data = to;
    }
}

static void set_carried_results(struct iteration_state *t)
{
    for (int i = 0; i < t->n && i < t->step->node->nout; i++)
        control_set_result(t->s, t->step, i, &t->now[i], t->done > 0);
}

/* ---- slices of a tensor along an axis: outer times total times inner bytes ---- */

struct slice_layout {
    int64_t outer, total, inner;
};

/* each: one slice, without the axis. */
static struct slice_layout slices_of(const struct tensor *each, int axis, int64_t total)
{
    struct slice_layout s = {1, total, (int64_t)dtype_size(each->dtype)};
    for (int d = 0; d < each->rank; d++)
        *(d < axis ? &s.outer : &s.inner) *= each->dim[d];
    return s;
}

static void copy_slice_out(const struct slice_layout *s, const char *whole, int64_t at, char *slice)
{
    for (int64_t o = 0; s->inner && o < s->outer; o++)
        memcpy(slice + o * s->inner, whole + (o * s->total + at) * s->inner, (size_t)s->inner);
}

static void copy_slice_in(const struct slice_layout *s, char *whole, int64_t at, const char *slice)
{
    for (int64_t o = 0; s->inner && o < s->outer; o++)
        memcpy(whole + (o * s->total + at) * s->inner, slice + o * s->inner, (size_t)s->inner);
}

/* ---- what is stacked ---- */

struct stacked_result {
    struct tensor each;
    int axis;
    struct buffer *memory;
};

static struct stacked_result *stacks_new(const struct iteration_state *t)
{
    struct stacked_result *stack = NEWN(dynamic_arena(t->s), struct stacked_result, t->step->node->nout);
    for (int i = t->n; i < t->step->node->nout; i++)
        stack[i].memory = buffer_of(t, 2 * t->n + i - t->n);
    return stack;
}

static void reserve_stacked(const struct iteration_state *t, int result, struct buffer *b, size_t bytes)
{
    bool keep = t->done > 0;
    if (b->at && bytes <= b->bytes)
        return;
    struct buffer old = *b;
    size_t all = keep && old.bytes < SIZE_MAX / 2 && 2 * old.bytes > bytes ? 2 * old.bytes : bytes;
    const struct value *v = t->step->node->out[result];
    sizes_need_room(t->s, v ? v->name : t->step->node->name, all, 0);
    *b = (struct buffer){0};
    buffer_reserve(b, all);
    if (keep && old.at)
        memcpy(b->at, old.at, old.bytes);
    buffer_free(&old);
}

/* The bytes of `total` slices. */
static size_t stacked_bytes(const struct iteration_state *t, const struct tensor *each, int64_t total)
{
    int64_t bytes;
    if (!i64_mul((int64_t)tensor_bytes(each), total, &bytes) || bytes < 0)
        fail("%s: %s: the results of %lld iterations do not fit in memory", t->s->sig.path, t->step->node->name, (long long)total);
    return (size_t)bytes + 1;
}

static void check_slice_size(const struct iteration_state *t, int result, const struct tensor *each, const struct tensor *now)
{
    bool same = each->rank == now->rank && memcmp(each->dim, now->dim, (size_t)each->rank * sizeof *each->dim) == 0;
    if (!same)
        fail("%s: %s: iteration %lld returns another size for result %d than those before it", t->s->sig.path, t->step->node->name,
             (long long)t->done, result);
}

/* total: the number of iterations; -1: unknown, and the axis is the first. */
static void stack_value(const struct iteration_state *t, struct stacked_result *stack, int result, const struct tensor *now, int64_t total,
                        int64_t at)
{
    if (t->done == 0)
        stack->each = *now;
    check_slice_size(t, result, &stack->each, now);
    reserve_stacked(t, result, stack->memory, stacked_bytes(t, now, total < 0 ? t->done + 1 : total));
    struct slice_layout s = slices_of(now, stack->axis, total);
    copy_slice_in(&s, stack->memory->at, at, now->data);
}

/* The result of no iterations: sizes where known, else 0. */
static struct tensor nothing_stacked(const struct session *s, const struct value *v)
{
    struct tensor t = {.dtype = v->type.dtype, .rank = v->type.rank};
    for (int d = 0; d < t.rank; d++)
        if (!dim_eval(v->type.dim[d], &s->bind, &t.dim[d]) || t.dim[d] < 0)
            t.dim[d] = 0;
    return t;
}

static void set_stacked_results(const struct iteration_state *t, struct stacked_result *stack)
{
    for (int i = t->n; i < t->step->node->nout; i++) {
        struct tensor whole = stack[i].each;
        if (!t->step->node->out[i])
            continue;
        for (int d = whole.rank++; d > stack[i].axis; d--)
            whole.dim[d] = whole.dim[d - 1];
        whole.dim[stack[i].axis] = t->done;
        whole.data = stack[i].memory->at;
        if (t->done == 0)
            whole = nothing_stacked(t->s, t->step->node->out[i]);
        if (t->done == 0)
            whole.data = buffer_reserve(stack[i].memory, tensor_bytes(&whole) + 1);
        control_set_result(t->s, t->step, i, &whole, true);
    }
}

/* ---- Loop -------------------------------------------------------------------------------------------------------------------- */

static int64_t iteration_limit(const struct session *s, const struct session_step *step)
{
    const struct tensor *t = &step->in[0];
    int64_t n = INT64_MAX;
    if (!step->node->in[0])
        return n;
    if (t->dtype != DT_I64 || tensor_elements(t) != 1)
        fail("%s: %s: its number of iterations is no single i64", s->sig.path, step->node->name);
    memcpy(&n, t->data, sizeof n);
    return n;
}

/* A scalar, or a tensor of one element, as the body's type requires. */
static struct tensor loop_scalar(const struct iteration_state *t, int input, enum dtype dtype, void *data)
{
    return (struct tensor){.dtype = dtype, .rank = t->body->session->graph->inputs.at[input]->type.rank, .dim = {1}, .data = data};
}

static bool loop_iteration(struct iteration_state *t, struct stacked_result *stack)
{
    int64_t iteration = t->done;
    uint8_t yes = 1;
    t->body->in[0] = loop_scalar(t, 0, DT_I64, &iteration);
    t->body->in[1] = loop_scalar(t, 1, DT_BOOL, &yes);
    for (int i = 0; i < t->n; i++)
        t->body->in[2 + i] = t->now[i];
    control_run_body(t->step, 0);
    carry_values(t, 1);
    for (int i = t->n; i < t->step->node->nout; i++)
        stack_value(t, &stack[i], i, &t->body->out[1 + i], -1, t->done);
    t->done++;
    return control_condition(t->s, t->step, &t->body->out[0]);
}

void loop_run(struct session *s, struct session_step *step)
{
    struct iteration_state t = iterations_begin(s, step, 2, node_captured(step->node, 0) - 2);
    struct stacked_result *stack = stacks_new(&t);
    int64_t most = iteration_limit(s, step);
    bool more = !step->node->in[1] || control_condition(s, step, &step->in[1]);
    while (more && t.done < most)
        more = loop_iteration(&t, stack);
    set_carried_results(&t);
    set_stacked_results(&t, stack);
}

/* ---- Scan -------------------------------------------------------------------------------------------------------------------- */

/* n scanned operands follow the carried ones; buffers: their first. */
struct scan {
    struct iteration_state t;
    struct stacked_result *stack;
    int n, buffers;
    int64_t length;
};

static const struct tensor *scanned(const struct scan *c, int i)
{
    return &c->t.step->in[c->t.n + i];
}

static int scan_axis(const struct scan *c, int i)
{
    return control_scan_axis(c->t.s->graph, c->t.step->node, "scan_input_axes", i, scanned(c, i)->rank);
}

static void find_length(struct scan *c)
{
    c->length = scanned(c, 0)->dim[scan_axis(c, 0)];
    for (int i = 1; i < c->n; i++)
        if (scanned(c, i)->dim[scan_axis(c, i)] != c->length)
            fail("%s: %s: operands of %lld and %lld slices are scanned together", c->t.s->sig.path, c->t.step->node->name,
                 (long long)c->length, (long long)scanned(c, i)->dim[scan_axis(c, i)]);
}

static void set_slice(const struct scan *c, int i)
{
    const struct tensor *whole = scanned(c, i);
    int axis = scan_axis(c, i);
    struct tensor each = {.dtype = whole->dtype, .rank = whole->rank - 1};
    for (int d = 0; d < each.rank; d++)
        each.dim[d] = whole->dim[d + (d >= axis)];
    each.data = buffer_reserve(buffer_of(&c->t, c->buffers + i), tensor_bytes(&each) + 1);
    bool backwards = control_scan_backwards(c->t.s->graph, c->t.step->node, "scan_input_directions", i);
    struct slice_layout s = slices_of(&each, axis, c->length);
    copy_slice_out(&s, whole->data, backwards ? c->length - 1 - c->t.done : c->t.done, each.data);
    c->t.body->in[c->t.n + i] = each;
}

static void stack_slice(struct scan *c, int i)
{
    bool backwards = control_scan_backwards(c->t.s->graph, c->t.step->node, "scan_output_directions", i - c->t.n);
    stack_value(&c->t, &c->stack[i], i, &c->t.body->out[i], c->length, backwards ? c->length - 1 - c->t.done : c->t.done);
}

static void scan_iteration(struct scan *c)
{
    for (int i = 0; i < c->t.n; i++)
        c->t.body->in[i] = c->t.now[i];
    for (int i = 0; i < c->n; i++)
        set_slice(c, i);
    control_run_body(c->t.step, 0);
    carry_values(&c->t, 0);
    for (int i = c->t.n; i < c->t.step->node->nout; i++)
        stack_slice(c, i);
    c->t.done++;
}

void loop_run_scan(struct session *s, struct session_step *step)
{
    struct scan c = {.n = control_scan_inputs(s->graph, step->node)};
    c.t = iterations_begin(s, step, 0, node_captured(step->node, 0) - c.n);
    c.stack = stacks_new(&c.t);
    c.buffers = 2 * c.t.n + step->node->nout;
    find_length(&c);
    for (int i = c.t.n; i < step->node->nout; i++)
        c.stack[i].axis = control_scan_axis(s->graph, step->node, "scan_output_axes", i - c.t.n,
                                            c.t.body->session->graph->outputs.at[i]->type.rank + 1);
    while (c.t.done < c.length)
        scan_iteration(&c);
    set_carried_results(&c.t);
    set_stacked_results(&c.t, c.stack);
}
