/* canonical: gives the same computation the same form, whichever exporter wrote it. Planning then sees few forms.
 *
 * No-op nodes are removed. A Gather with one constant index becomes a Slice, repeated KV heads become Repeat, and written-out norms and
 * quantised weights become one node. A product on a flattened operand keeps its dimensions. Equal nodes are merged; slices that tile an
 * axis become a Split.
 *
 * One rewrite enables others, so all are repeated until the number of nodes is stable. No weight is changed. */
#include "lower/lower.h"
#include "lower/pattern.h"
#include "op/canon/canon.h"

enum { CANON_ROUNDS = 8 };

static void clean(struct graph *g)
{
    canon_remove_noops(g);
    canon_merge_equal_nodes(g);
    graph_prune(g);
}

static void rewrite_with(struct graph *g, int n, bool (*const *rewrite)(struct rewrite *, struct node *))
{
    for (int i = 0; i < n; i++)
        if (rewrite_all(g, rewrite[i]))
            clean(g);
}

static void rewrite_round(struct graph *g)
{
    static bool (*const before[])(struct rewrite *, struct node *) = {canon_einsum_to_matmul, canon_ms_attention_to_onnx,
                                                                      canon_gather_to_slice,  canon_tile_to_expand,
                                                                      canon_find_repeat,      canon_find_dequantize};
    static bool (*const after[])(struct rewrite *, struct node *) = {canon_unflatten_product, canon_merge_reshapes, canon_quantized_scales};
    rewrite_with(g, sizeof before / sizeof *before, before);
    if (pattern_apply(g, PATTERN_NORM) + pattern_apply(g, PATTERN_EXPERTS) > 0)
        clean(g);
    rewrite_with(g, sizeof after / sizeof *after, after);
    if (canon_slices_to_splits(g))
        clean(g);
}

void lower_canonical(struct graph *g)
{
    int before, rounds = 0;
    clean(g);
    do {
        before = g->values.n;
        rewrite_round(g);
    } while (g->values.n != before && ++rounds < CANON_ROUNDS);
}
