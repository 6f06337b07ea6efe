/* session: steps, weights and memory plan of a graph. A run binds the symbols from the real inputs, plans again only if they changed, and
 * calls the kernels in file order. */
#include "run/session/session.h"

#include "ir/rank_meta.h"
#include "kern/gemm/gemm.h"
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "op/recurrent/recurrent.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static char nothing[64]; /* address of tensors without elements: NULL means an absent operand */

/* ---- building ------------------------------------------------------------------------------------------------------------- */

/* Fails with one sentence that lists all ops without a kernel. */
static void check_kernels(struct session *s)
{
    struct missing_kernels missing = missing_kernels_of(s->arena, s->graph);
    if (missing.list.n)
        fail("%s: no kernel for %s%s", s->sig.path, missing_kernels_text(s->arena, &missing), missing_kernels_hint(&missing));
}

static enum step_kind step_kind_of(unsigned flags)
{
    return flags & OP_COLLECTIVE ? STEP_COLLECTIVE : flags & OP_VIEW ? STEP_VIEW : flags & OP_CONTROL ? STEP_CONTROL : STEP_KERNEL;
}

static void step_new(struct session *s, struct session_step *step, struct node *n)
{
    step->node = n;
    step->kind = step_kind_of(n->op->flags);
    step->in = NEWN(s->arena, struct tensor, n->nin);
    step->out = NEWN(s->arena, struct tensor, n->nout);
    step->in_constant = NEWN(s->arena, bool, n->nin);
    for (int k = 0; k < n->nin; k++)
        step->in_constant[k] = n->in[k] && n->in[k]->constant;
    if (step->kind == STEP_CONTROL)
        control_prepare(s, step);
    else if (step->kind != STEP_KERNEL)
        require(n->nin >= 1 && n->in[0] && n->nout >= 1 && n->out[0]);
}

/* A recurrent net whose hidden units are split exchanges them itself. */
static void prepare_units(struct session *s, struct session_step *step)
{
    struct recurrent_exchange x;
    if (!recurrent_exchanges(s->graph, step->node, &x))
        return;
    if (x.units->ranks != s->comm->size)
        fail("%s: %s: its hidden units are split over %d ranks, this run has %d", s->sig.path, node_where(s->graph, step->node),
             x.units->ranks, s->comm->size);
    step->units = unit_gather_new(s->arena, s->comm, &s->scratch, x.units);
}

static void read_collective(struct session *s, struct session_step *step, struct collective_node *c)
{
    if (step->sum) {
        ordered_sum_register(step->sum, c, &s->traffic.count[s->traffic.n]);
        return;
    }
    struct recurrent_exchange x;
    if (recurrent_exchanges(s->graph, step->node, &x)) {
        *c = (struct collective_node){.kind = COLL_ALLGATHER, .name = step->node->name, .axis = -1, .axis2 = -1, .from = x.units};
        return;
    }
    collective_read(s->graph, step->node, c);
    c->wire = s->wire;
    c->complete = kenv_deterministic(s->env) && c->kind == COLL_REDUCESCATTER && c->red == RED_SUM;
}

static bool multiplies_bf16(const struct session *s)
{
    for (int i = 0; i < s->nstep; i++) {
        const struct node *n = s->step[i].node;
        for (int k = 0; k < n->nin && n->op && n->op->flags & OP_PRODUCT; k++)
            if (s->step[i].in_constant[k] && n->in[k]->type.dtype == DT_BF16)
                return true;
    }
    return false;
}

/* Recurrent nets also pack weights that are concatenated from constants, as exporters write them. */
static void settle_weights(struct session *s)
{
    const bool *constant = op_load_time_constants(s->arena, s->graph);
    for (int i = 0; i < s->nstep; i++) {
        struct node *n = s->step[i].node;
        for (int k = 0; (n->op->flags & OP_RECURS) && k < n->nin; k++)
            s->step[i].in_constant[k] = s->step[i].in_constant[k] || (n->in[k] && constant[n->in[k]->id]);
        if (op_packs_recurrent(n, constant))
            s->stats.weight_bytes += op_recurrent_copy(&n->in[1]->type) + op_recurrent_copy(&n->in[2]->type);
    }
}

static bool communicates(const struct session_step *step)
{
    return step->kind == STEP_COLLECTIVE || step->sum || step->units;
}

static void count_passed(struct session *s)
{
    s->stage.received = &s->traffic.count[s->stats.ncollective++];
    s->stage.sent = &s->traffic.count[s->stats.ncollective++];
    *s->stage.received = (struct session_collective){.name = "other stages", .op = "Receive"};
    *s->stage.sent = (struct session_collective){.name = "other stages", .op = "Send"};
}

static void collect_collectives(struct session *s)
{
    int n = 0;
    for (int i = 0; i < s->nstep; i++) {
        if (kenv_deterministic(s->env) && s->step[i].kind == STEP_KERNEL)
            s->step[i].sum = ordered_sum_new(s, s->step[i].node);
        prepare_units(s, &s->step[i]);
        n += communicates(&s->step[i]);
    }
    s->traffic.at = NEWN(s->arena, struct collective_node, n);
    s->traffic.count = NEWN(s->arena, struct session_collective, n + 2);
    for (int i = 0; i < s->nstep; i++) {
        if (!communicates(&s->step[i]))
            continue;
        struct collective_node *c = &s->traffic.at[s->traffic.n];
        read_collective(s, &s->step[i], c);
        s->traffic.count[s->traffic.n] = (struct session_collective){.name = c->name, .op = collective_name(c->kind)};
        s->step[i].collective = c;
        s->step[i].count = &s->traffic.count[s->traffic.n];
        c->id = ++s->traffic.n;
    }
    s->stats.ncollective = s->traffic.n;
    s->stats.collective = s->traffic.count;
    if (s->pipeline)
        count_passed(s);
}

static void load_constant(struct session *s, struct value *v)
{
    struct tensor *t = &s->tensor[v->id];
    v->constant->held++;
    if (t->data)
        return;
    *t = (struct tensor){.dtype = v->constant->dtype, .rank = v->constant->rank, .packed = dtype_is_packed(v->constant->dtype)};
    memcpy(t->dim, v->constant->dim, sizeof t->dim);
    const void *data = constant_data(v->constant, v->name);
    digest_check(v->constant, v->name, s->verify);
    t->data = tensor_bytes(t) && data ? (void *)(uintptr_t)data : nothing;
    s->stats.weight_bytes += (int64_t)tensor_bytes(t);
}

static void release_operands(struct session *s)
{
    for (int i = 0; i < s->graph->values.n; i++)
        if (s->graph->values.at[i]->constant && s->graph->values.at[i]->constant->held)
            constant_release_operands(s->graph->values.at[i]->constant);
}

static void load_constants(struct session *s)
{
    s->tensor = NEWN(s->arena, struct tensor, s->graph->values.n);
    for (int i = 0; i < s->nstep; i++)
        for (int k = 0; k < s->step[i].node->nin; k++)
            if (s->step[i].in_constant[k])
                load_constant(s, s->step[i].node->in[k]);
    for (int i = 0; i < s->graph->outputs.n; i++)
        if (s->graph->outputs.at[i]->constant)
            load_constant(s, s->graph->outputs.at[i]);
    release_operands(s);
}

/* Whether a body holds the operand as a constant of its own. */
static bool is_captured(const struct node *n, int operand)
{
    return node_bodies(n) && operand >= node_captured(n, 0);
}

static void unpack_constant(struct session *s, const struct value *v)
{
    s->tensor[v->id] = tensor_unpacked(s->arena, &s->tensor[v->id]);
}

/* Unpacks few-bit constants, unless all their readers are kernels that read them packed. */
static void unpack_constants(struct session *s)
{
    for (int i = 0; i < s->nstep; i++) {
        const struct node *n = s->step[i].node;
        for (int k = 0; k < n->nin; k++)
            if (s->step[i].in_constant[k] && !is_captured(n, k) && !(n->op && n->op->flags & OP_PACKED))
                unpack_constant(s, n->in[k]);
    }
    for (int i = 0; i < s->graph->outputs.n; i++)
        if (s->graph->outputs.at[i]->constant)
            unpack_constant(s, s->graph->outputs.at[i]);
}

/* Releases the pages of operands that a kernel has packed. */
static void release_packed(const struct node *n, unsigned packed)
{
    for (int k = 0; k < n->nin; k++)
        if (packed >> k & 1 && n->in[k]) {
            digest_check(n->in[k]->constant, n->in[k]->name, true); /* its bytes were just read */
            n->in[k]->constant->held--;
            constant_release(n->in[k]->constant);
        }
}

/* Whether training reads the weight unpacked. A frozen weight is read in two orders, forward and backward, and each would be packed
 * separately. With products in bf16, both copies together take as much as the f32 weight, which is then not read; in f32 the weight alone
 * takes half. */
static bool reads_as_stored(const struct session *s, const struct node *n)
{
    bool product = op_is_onnx(n, "MatMul") || op_is_onnx(n, "Gemm");
    return product && s->gradients.go != GRADIENTS_STAY && !kenv_narrows(s->env) && n->in[1]->constant &&
        dtype_fits_f32(n->in[1]->type.dtype);
}

/* Packs weights that the kernel keeps packed. Returns the operands that the kernel will not read any more, as bits. */
static unsigned pack_weight(struct session *s, struct session_step *step)
{
    const struct node *n = step->node;
    if (step->kind != STEP_KERNEL)
        return 0;
    step->as_stored = reads_as_stored(s, n);
    for (int k = 0; k < n->nin; k++)
        if (step->in_constant[k])
            step->in[k] = s->tensor[n->in[k]->id];
    struct kcall call = {.node = n,
                         .graph = s->graph,
                         .nin = n->nin,
                         .in = step->in,
                         .in_constant = step->in_constant,
                         .cache = step->as_stored ? NULL : &step->cache,
                         .env = s->env};
    unsigned packed = kern_pack(&call);
    release_packed(n, packed);
    return packed;
}

/* Copies a constant that a mapped file has at an unaligned address: kernels read elements in place. */
static void align_constant(struct session *s, const struct value *v)
{
    struct tensor *t = &s->tensor[v->id];
    if ((uintptr_t)t->data % dtype_size(t->dtype) == 0)
        return;
    void *copy = arena_alloc(s->arena, tensor_bytes(t));
    memcpy(copy, t->data, tensor_bytes(t));
    t->data = copy;
    constant_release(v->constant);
}

static void place_constants(struct session *s)
{
    double start = clock_seconds();
    int n = 0;
    for (int i = 0; i < s->nstep; i++) {
        unsigned packed = pack_weight(s, &s->step[i]);
        n += packed != 0;
        for (int k = 0; k < s->step[i].node->nin; k++)
            if (s->step[i].in_constant[k] && !(k < 32 && packed >> k & 1) && !is_captured(s->step[i].node, k))
                align_constant(s, s->step[i].node->in[k]);
    }
    for (int i = 0; i < s->graph->outputs.n; i++)
        if (s->graph->outputs.at[i]->constant)
            align_constant(s, s->graph->outputs.at[i]);
    if (s->comm->rank == 0)
        explain("%s: %d weights packed in %.3f seconds", s->sig.path, n, clock_seconds() - start);
}

/* Hash of the plan and the outputs' placements: what ranks must agree on in addition to collectives. */
static uint64_t plan_hash(const struct session *s)
{
    const char *text = s->graph->rank_meta ? s->graph->rank_meta->plan : NULL;
    uint64_t hash = text ? strtoull(text, NULL, 16) : 0;
    for (int i = 0; i < s->sig.nout; i++) {
        const char *place = placement_str(s->arena, s->sig.out[i].place);
        hash = XXH3_64bits_withSeed(place, strlen(place), hash);
    }
    return hash;
}

/* The type of addends in messages; messages within a machine stay unchanged. --deterministic overrides the plan, because it was given for
 * this run. */
static enum wire wire_of(const struct graph *g, const struct comm *comm, const struct session_options *o)
{
    if (comm->local_size == comm->size || o->deterministic)
        return WIRE_F32;
    return o->wire == WIRE_PLANNED ? rank_meta_wire(g) : o->wire;
}

static struct session *session_build(struct graph *g, struct comm *comm, struct kenv *env, struct session_options o)
{
    struct arena *arena = arena_new();
    struct session *s = NEW(arena, struct session);
    s->arena = arena;
    s->plan = arena_new();
    s->graph = g;
    s->comm = comm;
    s->env = env;
    s->verify = o.verify;
    s->force = o.force;
    s->wire = wire_of(g, comm, &o);
    s->gradients.go = o.gradients;
    s->gradients.first = s->gradients.last = true;
    s->pipeline = o.pipeline;
    signature_read(arena, g, &s->sig);
    check_kernels(s);
    s->actual = NEWN(arena, struct tensor, g->inputs.n);
    if (o.keep_state)
        state_prepare(s);
    s->nstep = s->stage.pause = g->nodes.n;
    if (o.pipeline)
        stage_run_prepare(s);
    s->step = NEWN(arena, struct session_step, s->nstep);
    for (int i = 0; i < s->nstep; i++)
        step_new(s, &s->step[i], g->nodes.at[i]);
    collect_collectives(s);
    load_constants(s);
    unpack_constants(s);
    if (!o.profile)
        overlap_prepare(s);
    layout_prepare(s);
    place_constants(s);
    settle_weights(s);
    if (!o.deterministic && dnnl_narrows() && multiplies_bf16(s))
        kenv_narrow_computed(s->env);
    if (o.profile)
        profile_begin(s);
    return s;
}

struct session *session_new(struct graph *g, struct comm *comm, struct session_options o)
{
    require(!g->rank_meta || g->rank_meta->stages == 1 || o.pipeline);
    struct kenv *env = o.beside ? kenv_share(o.beside->env) : kenv_new(o.threads, o.deterministic);
    if (o.narrow && dnnl_narrows())
        kenv_narrow(env);
    struct session *s = session_build(g, comm, env, o);
    collective_agree(comm, s->arena, s->sig.path, s->traffic.at, s->traffic.n, plan_hash(s));
    return s;
}

struct session *session_inner(const struct session *around, struct graph *body)
{
    struct session *s = session_build(body, around->comm, around->env,
                                      (struct session_options){.verify = around->verify, .force = around->force});
    require(s->traffic.n == 0);
    s->inner = true;
    return s;
}

void session_free(struct session *s)
{
    for (int i = 0; i < s->nstep; i++)
        if (s->step[i].control)
            control_free(&s->step[i]);
    overlap_free(s);
    if (!s->inner)
        kenv_free(s->env);
    state_free(s);
    stage_run_free(s);
    buffer_free(&s->slab.memory);
    buffer_free(&s->scratch);
    arena_free(s->plan);
    dynamic_free(s);
    arena_free(s->arena);
}

/* ---- running -------------------------------------------------------------------------------------------------------------- */

static bool same_bindings(const struct bindings *a, const struct bindings *b)
{
    if (a->list.n != b->list.n)
        return false;
    for (int i = 0; i < a->list.n; i++) {
        const int64_t *x = bindings_get(b, a->list.at[i].name);
        if (!x || *x != a->list.at[i].value)
            return false;
    }
    return true;
}

void session_check(struct session *s, const struct tensor *inputs)
{
    bindings_clear(&s->next);
    if (s->states.by_input)
        state_sizes(s, inputs, s->actual);
    signature_bind(s->arena, &s->sig, s->states.by_input ? s->actual : inputs, &s->next);
}

static void bind_inputs(struct session *s, const struct tensor *inputs)
{
    session_check(s, inputs);
    if (s->planned && s->states.n == 0 && same_bindings(&s->bind, &s->next))
        return;
    struct bindings old = s->bind;
    s->bind = s->next;
    s->next = old;
    layout_update(s);
}

void session_place_input(struct session *s, int i, const struct tensor *input)
{
    struct tensor *t = &s->tensor[s->graph->inputs.at[i]->id];
    if (session_is_state(s, i) && input->data)
        state_fill(s, i, input);
    else if (session_is_state(s, i))
        state_begin(s, i);
    else if (s->stage.unread && s->stage.unread[i] && !input->data)
        t->data = nothing;
    else if (s->sig.in[i].place.kind == PLACE_S)
        scatter_input(s, i, input, t);
    else
        t->data = input->data ? input->data : nothing;
}

static void place_inputs(struct session *s, const struct tensor *inputs)
{
    for (int i = 0; i < s->graph->inputs.n; i++)
        session_place_input(s, i, &inputs[i]);
}

static void gather_operands(struct session *s, struct session_step *step)
{
    const struct node *n = step->node;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k])
            step->in[k] = s->tensor[n->in[k]->id];
    if (n->op->flags & OP_IN_PLACE)
        s->tensor[n->out[0]->id].data = step->in[0].data;
    if (step->dynamic && step->kind != STEP_CONTROL)
        dynamic_results(s, step);
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            step->out[k] = s->tensor[n->out[k]->id];
}

void session_run_kernel(struct session *s, struct session_step *step)
{
    struct kcall call = {.node = step->node,
                         .graph = s->graph,
                         .nin = step->node->nin,
                         .nout = step->node->nout,
                         .in = step->in,
                         .out = step->out,
                         .in_constant = step->in_constant,
                         .cache = step->as_stored ? NULL : &step->cache,
                         .bind = &s->bind,
                         .env = s->env,
                         .share = step->sum ? ordered_sum_share(step->sum) : NULL,
                         .units = step->units ? unit_gather_units(step->units) : NULL};
    if (!step->units) {
        kern_run(&call);
        return;
    }
    struct traffic_start t = traffic_begin(s, step->collective);
    step->node->op->kernel(&call);
    traffic_end(s, step->count, t);
}

static void run_collective(struct session *s, struct session_step *step)
{
    struct traffic_start t = traffic_begin(s, step->collective);
    step->count->payload += (int64_t)tensor_bytes(&step->in[0]);
    collective_run(step->collective, step->route, s->comm, &s->scratch, &step->in[0], &step->out[0]);
    traffic_end(s, step->count, t);
}

static void run_control(struct session *s, struct session_step *step)
{
    if (op_is_onnx(step->node, "If"))
        control_run_if(s, step);
    else if (op_is_onnx(step->node, "Loop"))
        loop_run(s, step);
    else
        loop_run_scan(s, step);
}

static void run_step(struct session *s, struct session_step *step)
{
    gather_operands(s, step);
    switch (step->kind) {
    case STEP_KERNEL: session_run_kernel(s, step); return;
    case STEP_VIEW: s->tensor[step->node->out[0]->id].data = step->in[0].data; return;
    case STEP_COLLECTIVE: run_collective(s, step); return;
    case STEP_CONTROL: run_control(s, step); return;
    }
}

/* Runs the step, or the blocks that start with it; returns the number of steps. */
static int run_from(struct session *s, int step, double began)
{
    int ran = overlap_run(s, step);
    if (ran == 0)
        ran = batch_blocks_run(s, step, began);
    if (ran > 0)
        return ran;
    if (s->gradients.go != GRADIENTS_STAY)
        gradients_need(s, step);
    if (s->profile)
        profile_step(s, step, began, run_step);
    else
        run_step(s, &s->step[step]);
    if (s->gradients.go != GRADIENTS_STAY)
        gradients_take(s, step);
    return 1;
}

static void run_steps(struct session *s, int first, int end, double began)
{
    for (int i = first; i < end;) {
        i += run_from(s, i, began);
        dynamic_release(s, i - 1);
    }
}

void session_begin(struct session *s, const struct tensor *inputs)
{
    double start = clock_seconds();
    if (s->pipeline)
        inputs = stage_run_inputs(s, inputs);
    bind_inputs(s, inputs);
    dynamic_begin(s);
    place_inputs(s, inputs);
    gradients_place(s);
    run_steps(s, 0, s->stage.pause, start);
    if (s->pipeline)
        stage_run_pass(s, true);
    s->stats.seconds += clock_seconds() - start;
}

void session_finish(struct session *s, struct tensor *outputs)
{
    double start = clock_seconds();
    if (s->stage.pause < s->nstep)
        stage_run_later(s);
    run_steps(s, s->stage.pause, s->nstep, start);
    gradients_finish(s);
    for (int i = 0; i < s->graph->outputs.n; i++)
        outputs[i] = s->tensor[s->graph->outputs.at[i]->id];
    if (s->pipeline)
        stage_run_pass(s, false);
    state_advance(s);
    s->stats.runs++;
    s->stats.seconds += clock_seconds() - start;
}

void session_run(struct session *s, const struct tensor *inputs, struct tensor *outputs)
{
    session_begin(s, inputs);
    session_finish(s, outputs);
}

int64_t session_slab(const struct session *s)
{
    int64_t bytes = s->slab.bytes + dynamic_bytes(s);
    for (int i = 0; i < s->nstep; i++)
        if (s->step[i].control)
            bytes += control_slab(&s->step[i]);
    return bytes;
}

const struct session_stats *session_stats(struct session *s)
{
    s->stats.slab_bytes = session_slab(s);
    return &s->stats;
}

void session_stats_add(struct session *s, int64_t weights, int64_t state)
{
    s->stats.weight_bytes += weights;
    s->stats.state_bytes += state;
}

const struct bindings *session_bindings(const struct session *s)
{
    return &s->bind;
}
