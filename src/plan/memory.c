/* memory: what a rank holds while it runs: its weights, the state that a decode loop carries, and in the worst workload the slab that
 * its activations share and the blocks that collectives gather in. The graph is the one that is executed, with fused nodes, and the slab
 * is laid out as the runtime does (src/op/lifetime.c, src/ir/slab.c), so its size is exact for these sizes. */
#include "plan/plan.h"

#define MOST_BYTES ((int64_t)1 << 43)

/* More than a machine has, and few enough for sums not to overflow: sizes in a file may be anything. */
static int64_t possible(int64_t bytes)
{
    return bytes < MOST_BYTES ? bytes : MOST_BYTES;
}

static int64_t value_bytes(const struct value *v, const struct bindings *dims)
{
    int64_t n = (int64_t)dtype_size(v->type.dtype), k;
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_eval(v->type.dim[d], dims, &k) || k < 0 || !mul_i64(n, k, &n))
            return 0;
    return possible(n);
}

/* Split inputs are copied into the slab; whole ones are used where they are. */
static struct lifetimes lives_of(const struct graph *g, struct arena *tmp)
{
    bool *copied = NEWN(tmp, bool, g->inputs.n);
    for (int i = 0; i < g->inputs.n; i++)
        copied[i] = g->inputs.at[i]->place.kind == PLACE_S;
    return lifetimes_of(tmp, g, copied);
}

static int64_t slab_of(const struct graph *g, const struct lifetimes *life, const struct bindings *dims)
{
    struct arena *tmp = arena_new();
    for (int i = 0; i < g->values.n; i++)
        if (life->item[i] >= 0)
            life->items[life->item[i]].bytes = value_bytes(g->values.at[i], dims);
    int64_t bytes = slab_assign(tmp, life->items, life->nitem);
    arena_free(tmp);
    return bytes;
}

static int64_t weights_of(const struct graph *g, struct arena *tmp)
{
    struct uses *uses = graph_uses(g, tmp);
    int64_t total = 0;
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->constant && uses[i].n > 0)
            total += possible(weight_bytes(g->values.at[i]));
    return total;
}

/* Every state once. in_slab: without those that are used where they are. */
static int64_t state_of(const struct graph *g, const struct bindings *dims, bool in_slab)
{
    int64_t total = 0;
    for (int i = 0; i < g->states.n; i++) {
        const struct state *s = &g->states.at[i];
        if (s->present || !in_slab || s->past->place.kind == PLACE_S)
            total += value_bytes(s->present ? s->present : s->past, dims);
    }
    return total;
}

struct rank_use plan_memory(const struct graph *g, const struct plan *plan)
{
    struct arena *tmp = arena_new();
    struct lifetimes life = lives_of(g, tmp);
    struct rank_use use = {.weights = weights_of(g, tmp)};
    for (int i = 0; i < plan->workloads.n; i++) {
        const struct bindings *dims = &plan->workloads.at[i].dims;
        int64_t state = state_of(g, dims, false), peak = slab_of(g, &life, dims) - state_of(g, dims, true);
        use.peak = peak > use.peak ? peak : use.peak;
        use.state = state > use.state ? state : use.state;
    }
    arena_free(tmp);
    return use;
}
