/* fold_at_load: values computed from constants, such as a bias from a position table, are computed at load, not in every run. */
#include "lower/lower.h"
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"

int fold_at_load(struct graph *g)
{
    struct arena *tmp = arena_new();
    const bool *once = op_folded_at_load(tmp, g);
    int kept = 0, n = g->nodes.n;
    for (int i = 0; i < n; i++)
        if (!once[i] || !op_evaluate_later(g, g->nodes.at[i]))
            g->nodes.at[kept++] = g->nodes.at[i];
    g->nodes.n = kept;
    arena_free(tmp);
    graph_prune(g);
    return n - kept;
}
