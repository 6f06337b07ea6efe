/* fuse_kernels: fuses nodes for speed, in tpc-run only. The fused ops have no rules and are never written to files, so this breaks the
 * canonical form.
 *
 * Each fusion is a row of src/lower/patterns.def, or a file below src/lower that says what it matches and why the result is the same.
 * Subgraphs of control flow get the types of their operands and go through the passes of a model. */
#include "lower/lower.h"
#include "lower/pattern.h"
#include "op/control/control.h"
#include "passes/pass.h"

static void prepare_bodies(struct compile *c, struct node *n)
{
    for (int k = 0; n->op && k < node_bodies(n); k++) {
        struct compile body = {.arena = c->arena,
                               .graph = control_typed_body(c->arena, c->graph, n, k).graph,
                               .deterministic = c->deterministic,
                               .fast = c->fast};
        pass_run(&body, "shapes", "canon", NULL);
        pass_run(&body, "fuse_kernels", "fuse_kernels", NULL);
        node_body(n, k)->graph = body.graph;
    }
}

/* A fused chain of half-precision operations rounds once, at its end. Where it ends depends on the plan. */
static bool has_halves(const struct graph *g)
{
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->type.dtype == DT_F16 || g->values.at[i]->type.dtype == DT_BF16)
            return true;
    return false;
}

/* Whether all ranks would make collectives move channels last alike: tried on a copy. */
static bool ranks_agree(struct compile *c)
{
    if (!c->agree)
        return false;
    struct arena *tmp = arena_new();
    struct graph *trial = graph_copy(tmp, c->graph);
    channels_last(trial, true);
    bool agree = c->agree(c->ranks, channels_last_digest(trial));
    arena_free(tmp);
    return agree;
}

static void count(struct compile *c, const char **text, int n, const char *what)
{
    if (n > 0 && c->tells)
        *text = arena_printf(c->arena, "%s; %d %s", *text, n, what);
}

void pass_fuse_kernels(struct compile *c)
{
    int before = c->graph->nodes.n;
    const char *text = "";
    for (int i = 0; i < c->graph->nodes.n; i++)
        prepare_bodies(c, c->graph->nodes.at[i]);
    if (c->split_outputs)
        keep_outputs_sharded(c->graph);
    complete_sums(c->graph);
    count(c, &text, fold_at_load(c->graph), "computed at load from constants");
    count(c, &text, fuse_transposed(c->graph), "products and lookups read a transposed weight as it is stored");
    fuse_weights(c->graph, !c->deterministic);
    pattern_apply(c->graph, PATTERN_QUANTIZED);
    if (c->fast)
        fast_products(c->graph);
    if (!c->deterministic) {
        pattern_apply(c->graph, PATTERN_DECODED);
        pattern_apply(c->graph, PATTERN_INTEGERS);
        fuse_attention_gradients(c->graph);
        count(c, &text, fuse_attention(c->graph), "attentions fused");
        count(c, &text, pattern_apply(c->graph, PATTERN_GELU), "Gelus fused");
        fuse_in_place(c->graph);
        fuse_codes(c->graph);
        count(c, &text, pattern_apply(c->graph, PATTERN_GROUP_NORM), "norms of groups fused");
        count(c, &text, fuse_conv_sums(c->graph), "sums of convolutions are one");
        fuse_open_norms(c->graph);
        channels_last(c->graph, ranks_agree(c));
        fuse_convs(c->graph);
    }
    if (c->cache)
        count(c, &text, narrow_caches(c->graph, c->cache), c->cache == DT_I8 ? "caches kept as int8" : "caches kept as f16");
    count(c, &text, fuse_expand(c->graph), "operands repeated by elementwise operators themselves");
    if (!c->deterministic || !has_halves(c->graph))
        count(c, &text, fuse_chains(c->graph), "nodes saved by chains of elementwise operations");
    if (!c->deterministic)
        count(c, &text, grow_concats(c->graph), "Concats that append to another one's result");
    if (c->tells)
        explain("%s: %d operators, %d to run%s", graph_file(c->graph), before, c->graph->nodes.n, text);
}
