/* file_form: converts the ranks' graphs from the canonical form to the file form: expands internal ops, makes sizes operands again, and
 * casts weights stored in another type. */
#include "op/emit/emit.h"
#include "op/op.h"
#include "plan/apply/apply.h"

#include <string.h>

static struct node *const *peers_at(struct arena *a, struct node ***lists, int ranks, int i)
{
    struct node **peers = NEWN(a, struct node *, ranks);
    for (int r = 0; r < ranks; r++) {
        require(lists[r][i]->op == lists[0][i]->op); /* ranks have one form */
        peers[r] = lists[r][i];
    }
    return peers;
}

static void make_operands(struct graph **graphs, int ranks, int rank, struct node ***lists, int n)
{
    struct graph *g = graphs[rank];
    g->nodes.at = NULL;
    g->nodes.n = g->nodes.cap = 0;
    for (int i = 0; i < n; i++)
        graph_append(g, size_operands_restore(g, ranks, rank, peers_at(g->arena, lists, ranks, i)));
    graph_sort(g);
}

/* Adds a Cast to the computed type after each weight that is stored in another type. */
static void widen_stored(struct graph *g)
{
    int values = g->values.n;
    for (int i = 0; i < values; i++) {
        struct value *v = g->values.at[i];
        if (v->stored == DT_NONE)
            continue;
        require(v->constant && dtype_size(v->stored) < dtype_size(v->type.dtype));
        struct value *wide = graph_value(g, arena_printf(g->arena, "%s/%s", v->name, dtype_name(v->type.dtype)), &v->type);
        graph_replace(g, v, wide, false);
        struct node *cast = graph_node(g, op_find("", "Cast"), arena_printf(g->arena, "%s/Cast", v->name), 1, &v, 1);
        attr_set_int(cast, "to", (int64_t)v->type.dtype);
        node_output(g, cast, 0, wide);
        graph_insert(g, 0, cast);
        wide->place = v->place;
        wide->placed = v->placed;
        v->type.dtype = v->stored;
    }
}

static void declare_opset(struct graph *g, const char *domain, int version)
{
    const char *text = arena_printf(g->arena, "%d", version);
    for (int i = 0; i < g->opsets.n; i++)
        if (strcmp(g->opsets.at[i].key, domain) == 0) {
            if (!*domain)
                g->opsets.at[i].text = text;
            return;
        }
    VEC_PUSH(g->arena, &g->opsets, ((struct meta){arena_strdup(g->arena, domain), text}));
}

static void set_versions(struct graph *g)
{
    declare_opset(g, "", g->opset);
    for (int i = 0; i < g->nodes.n; i++)
        if (*g->nodes.at[i]->domain)
            declare_opset(g, g->nodes.at[i]->domain, 1);
    if (g->ir_version < 10)
        g->ir_version = 10;
}

void file_form_make(struct arena *a, struct graph **graphs, int ranks)
{
    struct node ***lists = NEWN(a, struct node **, ranks);
    int n = 0;
    for (int r = 0; r < ranks; r++) {
        widen_stored(graphs[r]);
        expand_nodes(graphs[r], 0);
        lists[r] = graphs[r]->nodes.at;
        if (r > 0 && graphs[r]->nodes.n != n)
            bug("rank %d has %d nodes, rank 0 has %d", r, graphs[r]->nodes.n, n);
        n = graphs[r]->nodes.n;
    }
    for (int r = 0; r < ranks; r++)
        make_operands(graphs, ranks, r, lists, n);
    for (int r = 0; r < ranks; r++)
        set_versions(graphs[r]);
}
