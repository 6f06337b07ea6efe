/* dot: the planned graph for graphviz: placements on the edges, collectives coloured by kind, weights inside the nodes that read
 * them. */
#include "op/op.h"
#include "plan/report/report.h"

const char *dot_collective_colour(enum collective kind)
{
    static const char *const colours[] = {
        [COLL_ALLREDUCE] = "#e8a09a", [COLL_ALLGATHER] = "#a9cbe8",    [COLL_REDUCESCATTER] = "#f2cf8d",
        [COLL_ALLTOALL] = "#c9b3e0",  [COLL_REDISTRIBUTE] = "#b5dcb0", [COLL_BROADCAST] = "#d9d9d9",
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

static void show_node(FILE *f, struct arena *a, const struct node *n, int i)
{
    bool collective = n->op && (n->op->flags & OP_COLLECTIVE);
    fprintf(f, "  n%d [label=\"", i);
    dot_text(f, n->optype);
    fputs("\\n", f);
    dot_text(f, n->name);
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && n->in[k]->constant) {
            fputs("\\n", f);
            dot_text(f, n->in[k]->name);
            fputs(": ", f);
            put_place(f, a, n->in[k]->place);
        }
    fputc('"', f);
    if (collective)
        fprintf(f, ", style=filled, fillcolor=\"%s\"", dot_collective_colour(collective_parse(n->optype)));
    fputs("];\n", f);
}

static void show_edge(FILE *f, struct arena *a, const int *made, const struct value *v, const char *kind, int i)
{
    if (v->constant)
        return;
    require(v->producer || made[v->id] < 0);
    if (made[v->id] >= 0)
        fprintf(f, "  n%d -> %s%d [label=\"", made[v->id], kind, i);
    else
        fprintf(f, "  i%d -> %s%d [label=\"", -made[v->id] - 1, kind, i);
    put_place(f, a, v->place);
    fputs("\"];\n", f);
}

void plan_dot(FILE *f, const struct graph *g)
{
    struct arena *a = arena_new();
    int *made = NEWN(a, int, g->values.n + 1); /* the node that makes a value; graph input i: -1 - i */
    fputs("digraph plan {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n  edge [fontname=\"sans-serif\", fontsize=9];\n", f);
    for (int i = 0; i < g->inputs.n; i++) {
        made[g->inputs.at[i]->id] = -1 - i;
        show_end(f, "i", i, g->inputs.at[i]->name);
    }
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        show_node(f, a, n, i);
        for (int k = 0; k < n->nin; k++)
            if (n->in[k])
                show_edge(f, a, made, n->in[k], "n", i);
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                made[n->out[k]->id] = i;
    }
    for (int i = 0; i < g->outputs.n; i++) {
        show_end(f, "o", i, g->outputs.at[i]->name);
        show_edge(f, a, made, g->outputs.at[i], "o", i);
    }
    fputs("}\n", f);
    arena_free(a);
}
