/* limits: what sizes and integers the inputs of a graph may have: as its file states, or as the graph shows. */
#include "ir/rank_meta.h"
#include "job/io/io.h"
#include "op/analysis/analysis.h"

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
    for (int i = 0; i < limits.list.n; i++) {
        const struct index_limit *l = &limits.list.at[i];
        int64_t last, rows;
        if ((!given || !l->of_inputs) && dim_eval(l->last, b, &last) && dim_eval(l->rows, b, &rows) && last >= rows)
            fail("these sizes are too large: node '%s' has a table of %lld rows, and reads row %s = %lld of it, counted from 0", l->node,
                 (long long)rows, dim_str(a, l->last), (long long)last);
    }
}
