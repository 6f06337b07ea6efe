/* lower_graph: the complete, ordered list of rewrites before a graph runs. Each fusion is a row of patterns.def, or a file below src/lower
 * that says what it matches and why the result is the same. The fused ops have no rules and are never written to files, so the lowered
 * graph is not canonical. */
#include "lower/lower.h"
#include "lower/pattern.h"
#include "op/op.h"

/* A fused chain of half-precision operations rounds once, at its end. Where it ends depends on the plan. */
static bool has_halves(const struct graph *g)
{
    for (int i = 0; i < g->values.n; i++)
        if (g->values.at[i]->type.dtype == DT_F16 || g->values.at[i]->type.dtype == DT_BF16)
            return true;
    return false;
}

/* Whether all ranks would convert collectives to channels-last alike: tried on a copy. */
static bool ranks_agree(const struct graph *g, const struct lower_options *o)
{
    if (!o->agree)
        return false;
    struct arena *tmp = arena_new();
    struct graph *trial = graph_copy(tmp, g);
    channels_last(trial, true);
    bool agree = o->agree(o->ranks, channels_last_digest(trial));
    arena_free(tmp);
    return agree;
}

/* Counts printed by -v; only if o->tells. */
struct told {
    struct graph *g;
    bool tells;
    const char *text;
};

static void count(struct told *t, int n, const char *what)
{
    if (n > 0 && t->tells)
        t->text = arena_printf(t->g->arena, "%s; %d %s", t->text, n, what);
}

/* Rewrites that may change rounding. */
static void fuse(struct graph *g, const struct lower_options *o, struct told *t)
{
    pattern_apply(g, PATTERN_DECODED);
    pattern_apply(g, PATTERN_INTEGERS);
    fuse_attention_gradients(g);
    count(t, fuse_attention(g), "attentions fused");
    count(t, pattern_apply(g, PATTERN_GELU), "Gelus fused");
    fuse_in_place(g);
    fuse_codes(g);
    count(t, pattern_apply(g, PATTERN_GROUP_NORM), "norms of groups fused");
    count(t, fuse_conv_sums(g), "sums of convolutions are one");
    fuse_open_norms(g);
    channels_last(g, ranks_agree(g, o));
    fuse_convs(g);
}

/* The bodies of control flow are lowered like the enclosing graph. */
static void lower_bodies(struct graph *g, const struct lower_options *o)
{
    const struct lower_options inside = {.deterministic = o->deterministic, .fast = o->fast};
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        for (int k = 0; n->op && k < node_bodies(n); k++) {
            node_body(n, k)->graph = lower_body(g->arena, g, n, k);
            lower_graph(node_body(n, k)->graph, &inside);
        }
    }
}

void lower_graph(struct graph *g, const struct lower_options *o)
{
    struct told t = {g, o->tells, ""};
    int before = g->nodes.n;
    lower_bodies(g, o);
    if (o->split_outputs)
        keep_outputs_sharded(g);
    complete_sums(g);
    count(&t, fold_at_load(g), "computed at load from constants");
    count(&t, fuse_transposed(g), "products and lookups read a transposed weight as it is stored");
    fuse_weights(g, !o->deterministic);
    pattern_apply(g, PATTERN_QUANTIZED);
    if (o->fast)
        fast_products(g);
    if (!o->deterministic)
        fuse(g, o, &t);
    if (o->cache)
        count(&t, narrow_caches(g, o->cache), o->cache == DT_I8 ? "caches kept as int8" : "caches kept as f16");
    count(&t, fuse_expand(g), "operands repeated by elementwise operators themselves");
    if (!o->deterministic || !has_halves(g))
        count(&t, fuse_chains(g), "nodes saved by chains of elementwise operations");
    if (!o->deterministic)
        count(&t, grow_concats(g), "Concats that append to another one's result");
    g->properties &= ~(unsigned)PROP_CANONICAL;
    graph_name_nodes(g);
    graph_verify(g, "lowering");
    if (t.tells)
        explain("%s: %d operators, %d to run%s", graph_file(g), before, g->nodes.n, t.text);
}
