/* fuse_attention: attention that an exporter wrote out (op/analysis/attention_written.c) becomes one FusedAttention node, which never
 * stores the scores. */
#include "lower/lower.h"
#include "op/analysis/analysis.h"
#include "op/op.h"

static struct node *fused(struct graph *g, struct attention_match *m)
{
    struct node *n = graph_node(g, op_find("tpc", "FusedAttention"), m->last->name, m->in[ATTENTION_MASK] ? 4 : 3, m->in, 1);
    int64_t rows_first[4] = {m->rows_first[ATTENTION_Q], m->rows_first[ATTENTION_K], m->rows_first[ATTENTION_V],
                             m->rows_first[ATTENTION_Y]};
    attr_set_float(n, "scale", m->scale);
    attr_set_int(n, "guarded", m->guarded);
    attr_set_ints(g, n, "rows_first", 4, rows_first);
    node_output(g, n, 0, m->last->out[0]);
    return n;
}

int fuse_attention(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct attention_search s = {.graph = g, .uses = graph_uses(g, tmp), .nvalues = g->values.n};
    int made = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct attention_match m;
        if (!attention_written(&s, g->nodes.at[i], &m))
            continue;
        int at = i;
        while (g->nodes.at[at] != m.last)
            at++;
        g->nodes.at[at] = fused(g, &m);
        made++;
    }
    arena_free(tmp);
    graph_prune(g);
    return made;
}
