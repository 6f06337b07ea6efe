/* memory: what each rank holds while it runs: its weights, the state that a decode loop or training carries, and in the worst workload the
 * slab that its activations share and the blocks that a collective packs. The graph is the one that runs, with explicit reshards and fused
 * nodes, and the slab has the runtime's layout (src/op/analysis/lifetime.c, src/base/memory/slab.c), so its size is exact for these
 * sizes. */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "op/runtime/runtime.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"

#include <string.h>

struct holder {
    struct arena *tmp;
    const struct graph *g;
    const struct plan *plan;
    struct lifetimes life;
    struct row_segments segments; /* what may run in blocks of rows while collectives overlap with compute */
    struct name_index of_inputs;  /* symbols of sizes */
    int rank;
    bool *late;             /* by item: data decides its size, so it is allocated outside of the slab */
    int64_t *size, *before; /* by workload * items + item: of this rank, and of the previous one */
};

/* The type of v on the rank. A rank's own graph has local types. */
static struct type held_type(const struct holder *h, const struct value *v)
{
    return h->g->rank >= 0 ? v->type : placement_local(h->g->alg, &v->type, v->place, h->rank);
}

/* 0 for data-dependent sizes. */
static int64_t held_bytes(const struct holder *h, const struct value *v, const struct bindings *dims)
{
    struct type local = held_type(h, v);
    int64_t n = 1, k, bytes;
    for (int d = 0; d < local.rank; d++)
        if (!dim_eval(local.dim[d], dims, &k) || k < 0 || !i64_mul(n, k, &n))
            return 0;
    return dtype_bytes(local.dtype, n, &bytes) ? plan_possible_bytes(bytes) : 0;
}

/* ---- weights and state -------------------------------------------------------------------------------------------------------- */

static int64_t constant_bytes(const struct holder *h, const struct value *v)
{
    struct value local = *v;
    local.type = held_type(h, v);
    return plan_possible_bytes(weight_bytes(&local));
}

/* Whether the weight is only read by rows: its pages stay in the file until they are read. */
static bool is_table(const struct uses *uses)
{
    for (int i = 0; i < uses->n; i++) {
        const struct node *n = uses->at[i].node;
        if (!n || !n->op || !(n->op->flags & OP_SEEDS) || (n->op->flags & OP_PRODUCT) || uses->at[i].index != 0)
            return false;
    }
    return true;
}

/* Bytes of packed copies that recurrent nets keep of their weights. */
static int64_t packed_bytes(const struct holder *h)
{
    const bool *constant = op_load_time_constants(h->tmp, h->g);
    int64_t total = 0;
    for (int i = 0; i < h->g->nodes.n; i++) {
        const struct node *n = h->g->nodes.at[i];
        for (int k = 1; k < 3 && op_packs_recurrent(n, constant); k++) {
            struct type local = held_type(h, n->in[k]);
            total += plan_possible_bytes(op_recurrent_copy(&local));
        }
    }
    return total;
}

static void add_weights(const struct holder *h, const struct uses *uses, struct rank_use *use)
{
    use->weights = packed_bytes(h);
    for (int i = 0; i < h->g->values.n; i++) {
        const struct value *v = h->g->values.at[i];
        if (!v->constant || uses[i].n == 0)
            continue;
        int64_t bytes = constant_bytes(h, v);
        if (use->weight < 0 || bytes > constant_bytes(h, h->g->values.at[use->weight]))
            use->weight = i;
        use->weights += bytes;
        use->tables += is_table(&uses[i]) ? bytes : 0;
    }
}

/* Whether the rank reads the input from the caller's memory. */
static bool is_elsewhere(const struct holder *h, const struct value *input, const struct bindings *dims)
{
    return placement_is_stretch(&input->type, input->place, h->rank, dims);
}

/* Bytes of all states, each counted once. in_slab: only states in the slab, not inputs that are read in place, nor results that are views
 * of them. */
static int64_t state_bytes(const struct holder *h, const struct bindings *dims, bool in_slab)
{
    int64_t total = 0;
    for (int i = 0; i < h->g->states.n; i++) {
        const struct state *s = &h->g->states.at[i];
        const struct value *v = s->present ? s->present : s->past;
        bool elsewhere = h->life.item[v->id] < 0 || (!v->producer && is_elsewhere(h, v, dims));
        if (!in_slab || !elsewhere)
            total += held_bytes(h, v, dims);
    }
    return total;
}

static int64_t training_bytes(const struct holder *h)
{
    int64_t total = 0;
    for (int i = 0; i < h->g->trained.n; i++)
        total += cost_trained(h->g->trained.at[i].weight) * constant_bytes(h, h->g->trained.at[i].weight);
    return total;
}

/* ---- activations -------------------------------------------------------------------------------------------------------------- */

/* Lifetimes of the graph; shards of inputs may be copied into the slab. */
static struct lifetimes lives_of(struct arena *tmp, const struct graph *g)
{
    bool *copied = NEWN(tmp, bool, g->inputs.n);
    for (int i = 0; i < g->inputs.n; i++)
        copied[i] = g->inputs.at[i]->place.kind == PLACE_S;
    return lifetime_items(tmp, g, copied, GRADIENTS_LEAVE);
}

static bool size_of_inputs(const struct holder *h, const struct dim *size)
{
    bool stated = size->kind != DIM_SYM || name_index_find(&h->of_inputs, size->name) >= 0;
    for (int i = 0; i < size->n; i++)
        stated = stated && size_of_inputs(h, size->arg[i]);
    return stated;
}

static bool data_decides(const struct holder *h, const struct value *v)
{
    for (int d = 0; d < v->type.rank; d++)
        if (!size_of_inputs(h, v->type.dim[d]))
            return true;
    return false;
}

static void size_items(struct holder *h, struct rank_use *use)
{
    int64_t most = 0;
    memset(h->size, 0, (size_t)(h->plan->workloads.n * h->life.nitem) * sizeof *h->size);
    for (int w = 0; w < h->plan->workloads.n; w++)
        for (int i = 0; i < h->g->values.n; i++) {
            const struct value *v = h->g->values.at[i];
            const struct bindings *dims = &h->plan->workloads.at[w].dims;
            if (h->life.item[i] < 0 || (!v->producer && is_elsewhere(h, v, dims)))
                continue;
            int64_t bytes = held_bytes(h, v, dims);
            h->size[w * h->life.nitem + h->life.item[i]] = bytes;
            use->value = bytes > most ? i : use->value;
            most = bytes > most ? bytes : most;
        }
}

static bool overlaps(const struct holder *h, const struct row_segment *x, const struct bindings *dims)
{
    struct row_segment_size size = {0};
    for (int k = 0; k < x->stages.n; k++) {
        const struct node *n = h->g->nodes.at[x->stages.at[k].last];
        if (!row_segment_ends_stage(n))
            continue;
        const struct value *full = row_segment_full_side(n);
        row_segment_count(&size, n, overlap_rows(&h->segments, full, dims), held_bytes(h, full, dims));
    }
    return row_segment_runs(x, size, h->g->ranks, h->plan->overlap_bytes);
}

/* Peak bytes of data-dependent sizes, step by step as the runtime allocates them. */
static int64_t late_bytes(const struct holder *h, struct arena *tmp, const struct lifetimes *life, const int64_t *size)
{
    struct block_pool pool = {0};
    for (int i = 0; i < h->g->nodes.n; i++) {
        const struct node *n = h->g->nodes.at[i];
        for (int k = 0; k < n->nout; k++) {
            int item = n->out[k] ? life->item[n->out[k]->id] : -1;
            if (item >= 0 && h->late[item])
                block_pool_take(tmp, &pool, (size_t)size[item] + 1, life->items[item].last);
        }
        block_pool_release(&pool, i);
    }
    return block_pool_bytes(&pool);
}

static int64_t slab_of(const struct holder *h, int workload)
{
    struct arena *tmp = arena_new();
    const int64_t *size = h->size + workload * h->life.nitem;
    struct lifetimes life = h->life;
    life.items = NEWN(tmp, struct slab_item, life.nitem + 1);
    for (int i = 0; i < life.nitem; i++) {
        life.items[i] = h->life.items[i];
        life.items[i].bytes = h->late[i] ? 0 : size[i];
    }
    const struct lifetime_ends *ends = lifetime_ends_find(tmp, &life, h->g->nodes.n);
    for (int i = 0; i < h->segments.list.n; i++)
        if (overlaps(h, &h->segments.list.at[i], &h->plan->workloads.at[workload].dims))
            row_segment_extend(h->g, &h->segments.list.at[i], ends, &life);
    int64_t bytes = slab_assign(tmp, life.items, life.nitem) + late_bytes(h, tmp, &life, size);
    arena_free(tmp);
    return bytes;
}

/* Bytes of communication buffers: a collective that runs in blocks needs one block to send and one to reduce; any other packs and unpacks
 * its whole payload. */
static int64_t block_bytes(const struct holder *h, const struct bindings *dims)
{
    int64_t most = 0;
    for (int i = 0; i < h->g->nodes.n; i++) {
        const struct node *n = h->g->nodes.at[i];
        if (!n->op || !(n->op->flags & OP_COLLECTIVE))
            continue;
        int64_t from = held_bytes(h, n->in[0], dims), to = held_bytes(h, n->out[0], dims), strips = 2 * (from > to ? from : to);
        int64_t bytes = !collective_in_strips(n) ? from + to : strips < 2 * STRIP_BYTES ? strips : 2 * STRIP_BYTES;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Adds the slab. Computed again only if a size differs from the previous rank's: ranks often hold the same. */
static void add_activations(struct holder *h, const struct rank_use *before, struct rank_use *use)
{
    int n = h->plan->workloads.n;
    size_items(h, use);
    int64_t training = training_bytes(h), times = h->g->in_flight > 1 ? h->g->in_flight : 1;
    bool same = before && memcmp(h->size, h->before, (size_t)(n * h->life.nitem) * sizeof *h->size) == 0;
    for (int w = 0; w < n; w++) {
        const struct bindings *dims = &h->plan->workloads.at[w].dims;
        int64_t state = state_bytes(h, dims, false), blocks = times * block_bytes(h, dims);
        int64_t peak = same ? before->peak : times * (slab_of(h, w) - state_bytes(h, dims, true) + plan_bodies_bytes(h->tmp, h->g, dims));
        require(state >= 0 && blocks >= 0 && peak >= 0); /* the slab holds the states that it counts */
        use->state = state + training > use->state ? state + training : use->state;
        use->blocks = blocks > use->blocks ? blocks : use->blocks;
        use->peak = peak > use->peak ? peak : use->peak;
    }
    int64_t *size = h->size;
    h->size = h->before;
    h->before = size;
}

void plan_memory(struct graph *g, const struct plan *plan, int ranks, struct rank_use *out)
{
    struct arena *tmp = arena_new();
    struct holder h = {.tmp = tmp, .g = g, .plan = plan, .life = lives_of(tmp, g), .of_inputs = symbol_of_inputs(tmp, g)};
    struct uses *uses = graph_uses(g, tmp);
    if (plan->overlap_bytes > 0)
        h.segments = row_segments_find(tmp, g);
    h.late = NEWN(tmp, bool, h.life.nitem);
    for (int i = 0; i < g->values.n; i++)
        if (h.life.item[i] >= 0)
            h.late[h.life.item[i]] = data_decides(&h, g->values.at[i]);
    h.size = NEWN(tmp, int64_t, plan->workloads.n * h.life.nitem);
    h.before = NEWN(tmp, int64_t, plan->workloads.n * h.life.nitem);
    for (h.rank = 0; h.rank < ranks; h.rank++) {
        out[h.rank] = (struct rank_use){.weight = -1, .value = -1};
        add_weights(&h, uses, &out[h.rank]);
        add_activations(&h, h.rank ? &out[h.rank - 1] : NULL, &out[h.rank]);
        require(out[h.rank].tables <= out[h.rank].weights && out[h.rank].weights <= memory_total(&out[h.rank]));
    }
    arena_free(tmp);
}

/* ---- sums and maxima ---------------------------------------------------------------------------------------------------------- */

int64_t memory_total(const struct rank_use *use)
{
    return use->weights + use->state + use->peak + use->blocks;
}

static int64_t weighed_total(const struct options *o, int rank, const struct rank_use *use)
{
    return limit_weighed(o, rank, memory_total(&use[rank]), true);
}

int memory_fullest(const struct options *o, int ranks, const struct rank_use *use)
{
    int fullest = 0;
    for (int r = 1; r < ranks; r++)
        if (weighed_total(o, r, use) > weighed_total(o, fullest, use))
            fullest = r;
    return fullest;
}

static void raise_to(int64_t *most, int64_t bytes)
{
    *most = bytes > *most ? bytes : *most;
}

struct rank_use memory_most(int n, const struct rank_use *use)
{
    struct rank_use most = use[0];
    for (int r = 1; r < n; r++) {
        raise_to(&most.weights, use[r].weights);
        raise_to(&most.tables, use[r].tables);
        raise_to(&most.state, use[r].state);
        raise_to(&most.peak, use[r].peak);
        raise_to(&most.blocks, use[r].blocks);
    }
    return most;
}

void plan_memory_that_runs(const struct graph *g, const struct plan *plan, int ranks, struct rank_use *out)
{
    struct arena *tmp = arena_new();
    plan_memory(cost_graph_that_runs(tmp, g), plan, ranks, out);
    for (int r = 0; r < ranks; r++) { /* the fused graph has values that this one lacks */
        out[r].weight = out[r].weight < g->values.n ? out[r].weight : -1;
        out[r].value = out[r].value < g->values.n ? out[r].value : -1;
    }
    arena_free(tmp);
}

/* A lower bound of the bytes per rank, distributed by the ranks' limits. It allows for constants computed at load, which may add an eighth,
 * and for --weights, which may store less. */
int64_t memory_least(const struct graph *g, const struct plan *plan, const struct options *options, int ranks)
{
    struct rank_use all = {0};
    double parts = 0;
    for (int r = 0; r < ranks; r++)
        parts += 1 / limit_weight(options, r);
    plan_memory_that_runs(g, plan, 1, &all);
    return options->weights ? 0 : (int64_t)((double)(all.weights / 9 * 8 + all.state) / parts);
}
