/* canon: only what planning needs, so that the same computation has the same form whatever the exporter.
 *
 * No-op nodes go; one constant index is a slice; repeated key and value heads are Repeat; a product on a flattened operand keeps its
 * dimensions; norms written out are one node; equal nodes are one; slices that tile an axis are a Split. Each step opens the way for
 * others, so the steps are repeated until the number of nodes and the form no longer change. No weight is touched. At the end state is
 * found that attention tells (src/plan/facts/state.c). */
#include "op/canon/canon.h"

#include "passes/pass.h"
#include "plan/facts/facts.h"

enum { CANON_ROUNDS = 8 };

static void clean(struct graph *g)
{
    canon_remove_noops(g);
    canon_merge_equal_nodes(g);
    graph_prune(g);
}

static void rewrite_round(struct graph *g)
{
    static bool (*const rewrites[])(struct rewrite *, struct node *) = {
        canon_einsum_to_matmul, canon_ms_attention_to_onnx, canon_gather_to_slice,   canon_tile_to_expand, canon_find_repeat,
        canon_find_norm,        canon_find_norm_bias,       canon_unflatten_product, canon_merge_reshapes, canon_quantized_scales};
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        rewrite_all(g, rewrites[i]);
        clean(g);
    }
    canon_slices_to_splits(g);
    clean(g);
}

void pass_canon(struct compile *c)
{
    struct graph *g = c->graph;
    int before, rounds = 0;
    clean(g);
    do {
        before = g->values.n;
        rewrite_round(g);
    } while (g->values.n != before && ++rounds < CANON_ROUNDS);
    plan_find_unpaired_states(g);
    if (c->fixed && c->fixed->list.n)
        op_drop_unread(g);
}
