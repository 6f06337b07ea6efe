/* memory: what a graph holds at once: its weights, the state that a decode loop carries, and the activations that are alive together at
 * the worst node in the worst workload. A view shares its operand's bytes. Activations are taken as produced in file order and freed
 * after their last use; a runtime that reuses in place holds less, so this bounds from above. */
#include "plan/plan.h"

struct life { int *last; int *root; bool *skip; };      /* by value id; root: whose bytes a view shares; skip: not an activation */

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
        if (!dim_eval(v->type.dim[d], dims, &k) || !mul_i64(n, k, &n))
            return 0;
    return possible(n);
}

static void mark_roots(const struct graph *g, struct life *life)
{
    for (int i = 0; i < g->values.n; i++) {
        life->root[i] = i;
        life->last[i] = -1;
        life->skip[i] = !g->values.at[i]->producer;
    }
    for (int i = 0; i < g->states.n; i++)
        if (g->states.at[i].present)
            life->skip[g->states.at[i].present->id] = true;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (n->op && (n->op->flags & OP_VIEW) && n->in[0] && n->nout > 0 && n->out[0])
            life->root[n->out[0]->id] = life->root[n->in[0]->id];
    }
}

static struct life life_of(const struct graph *g, struct arena *tmp)
{
    struct life life = {NEWN(tmp, int, g->values.n + 1), NEWN(tmp, int, g->values.n + 1), NEWN(tmp, bool, g->values.n + 1)};
    mark_roots(g, &life);
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++)
            if (g->nodes.at[i]->in[k])
                life.last[life.root[g->nodes.at[i]->in[k]->id]] = i;
    for (int i = 0; i < g->outputs.n; i++)
        life.last[life.root[g->outputs.at[i]->id]] = g->nodes.n;
    return life;
}

static int64_t peak_of(const struct graph *g, const struct life *life, const struct bindings *dims)
{
    struct arena *tmp = arena_new();
    VEC(int) *dies = arena_array(tmp, (size_t)g->nodes.n + 1, sizeof *dies);
    int64_t now = 0, peak = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nout; k++) {
            const struct value *v = n->out[k];
            if (!v || life->skip[v->id] || life->root[v->id] != v->id)
                continue;
            now += value_bytes(v, dims);
            VEC_PUSH(tmp, &dies[life->last[v->id] < i ? i : life->last[v->id]], v->id);
        }
        peak = now > peak ? now : peak;
        for (int k = 0; k < dies[i].n; k++)
            now -= value_bytes(g->values.at[dies[i].at[k]], dims);
    }
    arena_free(tmp);
    return peak;
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

static int64_t state_of(const struct graph *g, const struct bindings *dims)
{
    int64_t total = 0;
    for (int i = 0; i < g->states.n; i++)
        if (g->states.at[i].present)
            total += value_bytes(g->states.at[i].present, dims);
    return total;
}

struct rank_use plan_memory(const struct graph *g, const struct plan *plan)
{
    struct arena *tmp = arena_new();
    struct life life = life_of(g, tmp);
    struct rank_use use = {.weights = weights_of(g, tmp)};
    for (int i = 0; i < plan->workloads.n; i++) {
        const struct bindings *dims = &plan->workloads.at[i].dims;
        int64_t peak = peak_of(g, &life, dims), state = state_of(g, dims);
        use.peak = peak > use.peak ? peak : use.peak;
        use.state = state > use.state ? state : use.state;
    }
    arena_free(tmp);
    return use;
}
