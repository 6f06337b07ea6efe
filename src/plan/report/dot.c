/* dot: the planned graph for graphviz: placements on the edges, collectives coloured by kind, weights inside the nodes that read them.
 * Equal layers are drawn once. */
#include "op/op.h"
#include "plan/report/report.h"

#include <inttypes.h>
#include <string.h>

const char *dot_collective_colour(enum collective kind)
{
    static const char *const colours[] = {
        [COLL_ALLREDUCE] = "#e8a09a",    [COLL_ALLGATHER] = "#a9cbe8", [COLL_REDUCESCATTER] = "#f2cf8d", [COLL_ALLTOALL] = "#c9b3e0",
        [COLL_REDISTRIBUTE] = "#b5dcb0", [COLL_BROADCAST] = "#d9d9d9", [COLL_DISPATCH] = "#f0c9a0",      [COLL_COMBINE] = "#e0b090",
    };
    bool known = (size_t)kind < sizeof colours / sizeof *colours && colours[kind];
    return known ? colours[kind] : "#ffffff";
}

/* Within a quoted string: quotes and backslashes are the only characters with a meaning. */
static void dot_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', f);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
    }
}

static void put_place(FILE *f, struct arena *a, struct placement p)
{
    dot_text(f, p.kind == PLACE_S ? arena_printf(a, "S(%d)", p.dim) : placement_str(a, p));
}

static void show_end(FILE *f, const char *kind, int i, const char *name)
{
    fprintf(f, "  %s%d [shape=ellipse, label=\"", kind, i);
    dot_text(f, name);
    fputs("\"];\n", f);
}

struct drawing {
    FILE *f;
    struct arena *arena;
    const struct graph *g;
    const struct uses *uses;
    struct layers layers;
    int *like;  /* by layer: the first equal layer */
    int *stand; /* by node position: the node drawn for it, maybe itself */
    int *made;  /* by value id: the drawn node that makes it; graph input i: -1 - i */
};

/* ---- layers that are alike --------------------------------------------------------------------------------------------------------- */

static uint64_t layer_digest(const struct drawing *d, const struct layer_span *l)
{
    uint64_t digest = 0;
    for (int i = l->first; i < l->end; i++) {
        const struct node *n = d->g->nodes.at[i];
        const char *text = arena_printf(d->arena, "%016" PRIx64 " %s", digest, n->optype);
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                text = arena_printf(d->arena, "%s %s@%s", text, type_str(d->arena, &n->out[k]->type),
                                    placement_str(d->arena, n->out[k]->place));
        digest = digest_bytes(text, strlen(text));
    }
    return digest;
}

static void fold_layers(struct drawing *d)
{
    int n = d->layers.list.n;
    uint64_t *digest = NEWN(d->arena, uint64_t, n + 1);
    d->like = NEWN(d->arena, int, n + 1);
    d->stand = NEWN(d->arena, int, d->g->nodes.n + 1);
    for (int i = 0; i < d->g->nodes.n; i++)
        d->stand[i] = i;
    for (int k = 0; k < n; k++) {
        const struct layer_span *at = d->layers.list.at;
        digest[k] = layer_digest(d, &at[k]);
        while (digest[d->like[k]] != digest[k] || at[d->like[k]].end - at[d->like[k]].first != at[k].end - at[k].first)
            d->like[k]++;
        for (int i = at[k].first; i < at[k].end; i++)
            d->stand[i] = at[d->like[k]].first + i - at[k].first;
    }
}

/* "layer 3", "layer 2 and 30 like it". */
static const char *layer_title(const struct drawing *d, int layer)
{
    int more = -1;
    for (int k = 0; k < d->layers.list.n; k++)
        more += d->like[k] == layer;
    return more > 0 ? arena_printf(d->arena, "layer %d and %d like it", layer + 1, more) : arena_printf(d->arena, "layer %d", layer + 1);
}

/* ---- nodes and edges --------------------------------------------------------------------------------------------------------- */

static void show_node(const struct drawing *d, int i)
{
    const struct node *n = d->g->nodes.at[i];
    bool collective = n->op && (n->op->flags & OP_COLLECTIVE);
    fprintf(d->f, "  n%d [label=\"", i);
    dot_text(d->f, n->optype);
    fputs("\\n", d->f);
    dot_text(d->f, label_node(d->arena, d->g, n));
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && n->in[k]->constant) {
            fputs("\\n", d->f);
            dot_text(d->f, label_last(label_weight(d->arena, d->g, d->uses, n->in[k])));
            fputs(": ", d->f);
            put_place(d->f, d->arena, n->in[k]->place);
        }
    fputc('"', d->f);
    if (collective)
        fprintf(d->f, ", style=filled, fillcolor=\"%s\"", dot_collective_colour(collective_parse(n->optype)));
    fputs("];\n", d->f);
}

static void show_edge(const struct drawing *d, const struct value *v, const char *kind, int i)
{
    if (v->constant)
        return;
    require(v->producer || d->made[v->id] < 0);
    if (d->made[v->id] >= 0)
        fprintf(d->f, "  n%d -> %s%d [label=\"", d->made[v->id], kind, i);
    else
        fprintf(d->f, "  i%d -> %s%d [label=\"", -d->made[v->id] - 1, kind, i);
    put_place(d->f, d->arena, v->place);
    fputs("\"];\n", d->f);
}

static void show_nodes(const struct drawing *d)
{
    int layer = 0, shown = d->layers.list.n && d->layers.list.at[0].repeat > 1 ? d->layers.list.n : 0;
    for (int i = 0; i < d->g->nodes.n; i++) {
        for (layer = 0; layer < shown && d->layers.list.at[layer].first != i;)
            layer++;
        if (layer < shown && d->like[layer] == layer) {
            fprintf(d->f, "  subgraph cluster%d {\n  graph [label=\"%s\"];\n", layer, layer_title(d, layer));
            for (int k = i; k < d->layers.list.at[layer].end; k++)
                show_node(d, k);
            fputs("  }\n", d->f);
        }
        if (layer < shown)
            i = d->layers.list.at[layer].end > i ? d->layers.list.at[layer].end - 1 : i;
        else
            show_node(d, i);
    }
}

/* Draws the edges of drawn nodes. A value made in a layer that is not drawn comes from the drawn layer's node. */
static void show_edges(const struct drawing *d)
{
    for (int i = 0; i < d->g->nodes.n; i++) {
        const struct node *n = d->g->nodes.at[i];
        for (int k = 0; k < n->nin && d->stand[i] == i; k++)
            if (n->in[k])
                show_edge(d, n->in[k], "n", i);
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                d->made[n->out[k]->id] = d->stand[i];
    }
}

/* Marks inputs that only hidden layers read, and outputs that they make like the drawn one. */
static bool *hidden_ends(const struct drawing *d)
{
    bool *hidden = NEWN(d->arena, bool, d->g->values.n + 1);
    for (int i = d->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = d->g->nodes.at[i];
        for (int k = 0; k < n->nin && d->stand[i] != i; k++)
            if (n->in[k])
                hidden[n->in[k]->id] = true;
        for (int k = 0; k < n->nout && d->stand[i] != i; k++) {
            const struct value *drawn = d->g->nodes.at[d->stand[i]]->out[k];
            if (n->out[k] && drawn && graph_output_number(d->g, drawn) >= 0)
                hidden[n->out[k]->id] = true;
        }
    }
    for (int i = 0; i < d->g->nodes.n; i++)
        for (int k = 0; k < d->g->nodes.at[i]->nin && d->stand[i] == i; k++)
            if (d->g->nodes.at[i]->in[k] && !d->g->nodes.at[i]->in[k]->producer)
                hidden[d->g->nodes.at[i]->in[k]->id] = false;
    return hidden;
}

void plan_dot(FILE *f, struct graph *g)
{
    struct arena *a = arena_new();
    struct drawing d = {.f = f, .arena = a, .g = g, .uses = graph_uses(g, a)};
    d.layers = layers_find(a, g, dim_symbol_roles(a, g));
    d.made = NEWN(a, int, g->values.n + 1);
    fold_layers(&d);
    const bool *hidden = hidden_ends(&d);
    fputs(DOT_KIND "\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n  edge [fontname=\"sans-serif\", fontsize=9];\n", f);
    fputs("  graph [fontname=\"sans-serif\", fontsize=11];\n", f);
    for (int i = 0; i < g->inputs.n; i++) {
        d.made[g->inputs.at[i]->id] = -1 - i;
        if (!hidden[g->inputs.at[i]->id])
            show_end(f, "i", i, g->inputs.at[i]->name);
    }
    show_nodes(&d);
    show_edges(&d);
    for (int i = 0; i < g->outputs.n; i++) {
        if (hidden[g->outputs.at[i]->id])
            continue;
        show_end(f, "o", i, g->outputs.at[i]->name);
        show_edge(&d, g->outputs.at[i], "o", i);
    }
    fputs("}\n", f);
    arena_free(a);
}
