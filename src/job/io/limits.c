/* limits: the valid sizes and integers of a graph's inputs: from its file's metadata, or from the graph. */
#include "ir/rank_meta.h"
#include "job/io/io.h"
#include "op/analysis/analysis.h"

#include <string.h>

static bool states_values(const struct value_use *use, int n)
{
    for (int i = 0; i < n; i++)
        if (use[i].rows > 0 || use[i].mask)
            return true;
    return false;
}

struct value_use *job_value_uses(struct arena *a, struct graph *g)
{
    struct value_use *use = NEWN(a, struct value_use, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++)
        rank_meta_values(g, g->inputs.at[i]->name, &use[i].rows, &use[i].mask);
    return g->rank_meta || states_values(use, g->inputs.n) ? use : op_value_uses(a, g);
}

struct index_limits job_size_limits(struct arena *a, struct graph *g)
{
    struct index_limits limits = {0};
    struct index_limit l;
    while (rank_meta_limit(g, limits.list.n, &l))
        VEC_PUSH(a, &limits.list, l);
    return g->rank_meta || limits.list.n ? limits : op_size_limits(a, g);
}

void job_check_limits(struct arena *a, struct graph *g, const struct bindings *b, bool given)
{
    const struct index_limits limits = job_size_limits(a, g);
    EACH (const struct index_limit, l, limits.list) {
        int64_t last, rows;
        if ((!given || !l->of_inputs) && dim_eval(l->last, b, &last) && dim_eval(l->rows, b, &rows) && last >= rows)
            fail("these sizes are too large: node '%s' has a table of %lld rows, and reads row %s = %lld of it, counted from 0", l->node,
                 (long long)rows, dim_str(a, l->last), (long long)last);
    }
}

static bool size_fits(struct arena *a, const struct index_limit *l, const char *symbol, int64_t size)
{
    const struct index_limits one = {.list = {(struct index_limit *)(uintptr_t)l, 1, 1}};
    const struct index_limit *broken;
    struct bindings b = {0};
    bindings_set(a, &b, symbol, size);
    return index_limits_hold(&one, &b, &broken);
}

static int64_t most_by_limit(struct arena *a, const struct index_limit *l, const char *symbol)
{
    int64_t lo = 1, hi = INT32_MAX;
    if (!size_fits(a, l, symbol, lo) || size_fits(a, l, symbol, hi))
        return -1;
    while (lo + 1 < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (size_fits(a, l, symbol, mid))
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

int64_t job_most_of(struct arena *a, struct graph *g, const char *symbol)
{
    const struct index_limits limits = job_size_limits(a, g);
    const struct equation *e;
    int64_t most = -1, k;
    int n = alg_equations(g->alg, &e);
    for (int i = 0; i < n; i++) {
        const struct dim *bounded = dim_at_most(e[i].left, e[i].right, &k);
        if (bounded && bounded->kind == DIM_SYM && strcmp(bounded->name, symbol) == 0)
            most = most < 0 || k < most ? k : most;
    }
    for (int i = 0; i < limits.list.n; i++) {
        k = most_by_limit(a, &limits.list.at[i], symbol);
        most = k > 0 && (most < 0 || k < most) ? k : most;
    }
    return most;
}
