/* graph: the nodes and reshards of one layer as a drawing: a reader is drawn below its operands. */
#include "op/rule/rule.h"
#include "plan/html/html.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DRAWN = 400, MOST_EDGES = 4096, BOX_WIDE = 116, BOX_HIGH = 32, PITCH_X = 132, PITCH_Y = 56, PORT_HIGH = 18, NAME = 17 };

struct vertex {
    int part;                  /* of the step; -1: a value from outside */
    const struct value *value; /* from outside */
    int level, place;          /* from above; among those of its level */
    int reads, readers;
    double want;
};
struct drawing {
    const struct html_page *p;
    const struct html_group *g;
    const struct graph *graph;
    VEC(struct vertex) at;
    VEC(struct interval) edge; /* from vertex lo to vertex hi */
    int *maker;                /* by value id: vertex + 1 */
    int levels, widest;
};

/* ---- who reads whom ------------------------------------------------------------------------------------------------------------- */

static const struct step_part *part_of(const struct drawing *d, const struct vertex *v)
{
    return &d->p->plan->step.list.at[v->part];
}

static int add_vertex(struct drawing *d, struct vertex v)
{
    VEC_PUSH(d->p->arena, &d->at, v);
    return d->at.n - 1;
}

static void add_edge(struct drawing *d, int from, int to)
{
    for (int i = 0; i < d->edge.n; i++)
        if (d->edge.at[i].lo == from && d->edge.at[i].hi == to)
            return;
    if (d->edge.n == MOST_EDGES)
        return;
    VEC_PUSH(d->p->arena, &d->edge, ((struct interval){from, to}));
    d->at.at[from].readers++;
    d->at.at[to].reads++;
}

/* The last reshard of a value so far, to this placement or, if to is NULL, to any; -1: none. */
static int reshard_before(const struct drawing *d, const char *name, const char *to)
{
    for (int i = d->at.n - 1; i >= 0; i--) {
        const struct step_part *part = d->at.at[i].part < 0 ? NULL : part_of(d, &d->at.at[i]);
        if (part && part->to && strcmp(part->name, name) == 0 && (!to || strcmp(part->to, to) == 0))
            return i;
    }
    return -1;
}

static int source_of(struct drawing *d, const struct value *v)
{
    if (!d->maker[v->id])
        d->maker[v->id] = add_vertex(d, (struct vertex){.part = -1, .value = v, .level = -1}) + 1;
    return d->maker[v->id] - 1;
}

static void note_maker(struct drawing *d, const struct node *n, int vertex)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            d->maker[n->out[i]->id] = vertex + 1;
}

/* Results of a folded part are drawn from the part shown for it. */
static void add_folded(struct drawing *d, int part)
{
    const struct step_part *all = d->p->plan->step.list.at;
    int vertex = 0;
    while (d->at.at[vertex].part != d->p->groups.shown[part])
        vertex++;
    if (!all[part].to)
        note_maker(d, d->graph->nodes.at[all[part].node], vertex);
}

static void add_node_part(struct drawing *d, int part)
{
    const struct node *n = d->graph->nodes.at[d->p->plan->step.list.at[part].node];
    const struct strategy *st = n->strategy;
    int *from = NEWN(d->p->arena, int, n->nin + 1), count = 0;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i] || n->in[i]->constant)
            continue;
        int reshard = reshard_before(d, n->in[i]->name, placement_str(d->p->arena, st->in[i]));
        from[count++] = reshard >= 0 ? reshard : source_of(d, n->in[i]);
    }
    int to = add_vertex(d, (struct vertex){.part = part});
    for (int i = 0; i < count; i++)
        add_edge(d, from[i], to);
    note_maker(d, n, to);
}

static void add_reshard_part(struct drawing *d, int part)
{
    const char *name = d->p->plan->step.list.at[part].name;
    const struct value *v = graph_find(d->graph, name);
    int before = reshard_before(d, name, NULL), from = before >= 0 ? before : v ? source_of(d, v) : -1;
    int to = add_vertex(d, (struct vertex){.part = part});
    if (from >= 0)
        add_edge(d, from, to);
}

/* ---- where they stand ------------------------------------------------------------------------------------------------------------- */

/* Edges are ordered by reader. A node that reads nothing here is drawn directly above its first reader. */
static void find_levels(struct drawing *d)
{
    for (int i = 0; i < d->edge.n; i++) {
        struct vertex *from = &d->at.at[d->edge.at[i].lo], *to = &d->at.at[d->edge.at[i].hi];
        to->level = from->level + 1 > to->level ? from->level + 1 : to->level;
    }
    for (int k = 0; k < d->at.n; k++) {
        int first = -1;
        for (int i = 0; i < d->edge.n && d->at.at[k].reads == 0; i++)
            if (d->edge.at[i].lo == k && (first < 0 || d->at.at[d->edge.at[i].hi].level < first))
                first = d->at.at[d->edge.at[i].hi].level;
        if (first >= 0)
            d->at.at[k].level = first - 1;
    }
    for (int k = 0; k < d->at.n; k++) {
        d->at.at[k].level++;
        d->levels = d->at.at[k].level + 1 > d->levels ? d->at.at[k].level + 1 : d->levels;
    }
}

static int by_want(const void *a, const void *b)
{
    const struct vertex *x = *(struct vertex *const *)a, *y = *(struct vertex *const *)b;
    return x->want < y->want ? -1 : x->want > y->want ? 1 : x->place - y->place;
}

static int number_level(struct drawing *d, int level, struct vertex **list)
{
    int n = 0;
    for (int k = 0; k < d->at.n; k++)
        if (d->at.at[k].level == level)
            list[n++] = &d->at.at[k];
    qsort(list, (size_t)n, sizeof *list, by_want);
    for (int i = 0; i < n; i++)
        list[i]->place = 2 * i - (n - 1); /* in half boxes from the middle */
    return n;
}

/* Each node is placed below the middle of its operands, then above the middle of its readers, alternately. */
static void find_places(struct drawing *d)
{
    struct vertex **list = NEWN(d->p->arena, struct vertex *, d->at.n + 1);
    for (int turn = 0; turn < 8; turn++) {
        for (int k = 0; k < d->at.n; k++) {
            double sum = 0;
            int n = 0;
            for (int i = 0; i < d->edge.n; i++) {
                int64_t me = turn % 2 ? d->edge.at[i].lo : d->edge.at[i].hi, other = turn % 2 ? d->edge.at[i].hi : d->edge.at[i].lo;
                if (me == k) {
                    sum += d->at.at[other].place;
                    n++;
                }
            }
            d->at.at[k].want = n ? sum / n : d->at.at[k].place;
        }
        for (int level = 0; level < d->levels; level++) {
            int n = number_level(d, level, list);
            d->widest = n > d->widest ? n : d->widest;
        }
    }
}

/* ---- drawing ------------------------------------------------------------------------------------------------------------------------- */

static double middle(const struct drawing *d, const struct vertex *v)
{
    return d->widest * PITCH_X / 2.0 + v->place * PITCH_X / 2.0;
}

static double top(const struct vertex *v)
{
    return v->level * PITCH_Y + 4 + (v->part < 0 ? BOX_HIGH - PORT_HIGH : 0);
}

static double bottom(const struct vertex *v)
{
    return v->level * PITCH_Y + 4 + BOX_HIGH;
}

static void draw_edge(const struct drawing *d, const struct vertex *from, const struct vertex *to)
{
    double x = middle(d, from), y = bottom(from), x2 = middle(d, to), y2 = top(to), bend = (y2 - y) / 2;
    double aside = to->level - from->level > 1 && from->place == to->place ? PITCH_X * 0.7 : 0; /* around the boxes between */
    fprintf(d->p->f, "<path d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"/>", x, y, x + aside, y + bend, x2 + aside, y2 - bend, x2, y2);
}

static void draw_text(const struct drawing *d, double y, const char *class, const char *text)
{
    fprintf(d->p->f, "<text y=%.0f%s>", y, class);
    html_text(d->p, strlen(text) <= NAME ? text : arena_printf(d->p->arena, "%.*s…", NAME - 1, text));
    fputs("</text>", d->p->f);
}

static void draw_vertex(const struct drawing *d, const struct vertex *v)
{
    const struct step_part *part = v->part < 0 ? NULL : part_of(d, v);
    fprintf(d->p->f, "<g transform=\"translate(%.0f %.0f)\">", middle(d, v), top(v));
    if (!part) {
        const struct node *by = v->value->producer;
        draw_text(d, 13, "", label_last(by ? label_node(d->p->arena, d->graph, by) : v->value->name));
    } else {
        const char *op = part->to ? part->by ? collective_name(part->by) : "slice" : d->graph->nodes.at[part->node]->optype;
        const char *class = html_part_class(d->p, part);
        fprintf(d->p->f, "<a href=#p%d><rect class=%s x=-%d width=%d height=%d rx=%d />", v->part, class, BOX_WIDE / 2, BOX_WIDE, BOX_HIGH,
                part->to ? BOX_HIGH / 2 : 5);
        draw_text(d, 14, " class=b", part->to ? op : label_last(html_part_label(d->p, part)));
        draw_text(d, 26, "", part->to ? label_last(html_part_label(d->p, part)) : op);
        fputs("</a>", d->p->f);
    }
    fputs("</g>\n", d->p->f);
}

static void draw_all(const struct drawing *d)
{
    int wide = d->widest * PITCH_X + PITCH_X / 2, high = d->levels * PITCH_Y;
    fprintf(d->p->f, "<div class=scroll><svg class=graph width=%d height=%d viewBox=\"0 0 %d %d\" role=img><g class=edges>", wide, high,
            wide, high);
    for (int i = 0; i < d->edge.n; i++)
        draw_edge(d, &d->at.at[d->edge.at[i].lo], &d->at.at[d->edge.at[i].hi]);
    fputs("</g>\n", d->p->f);
    for (int k = 0; k < d->at.n; k++)
        draw_vertex(d, &d->at.at[k]);
    fputs("</svg></div>\n", d->p->f);
}

static int count_shown(const struct html_group *g)
{
    int n = 0;
    for (int i = g->first; i < g->end; i = html_next_part(g, i))
        n++;
    return n;
}

void html_graph(const struct html_page *p, const struct html_group *g)
{
    struct drawing d = {.p = p, .g = g, .graph = p->plan->alternatives->graph};
    d.maker = NEWN(p->arena, int, d.graph->values.n + 1);
    int shown = count_shown(g);
    if (shown > MOST_DRAWN) {
        fprintf(p->f, "<p class=about>%d nodes and reshards are too many to draw.</p>\n", shown);
        return;
    }
    for (int i = g->first; i < g->end; i++)
        if (p->groups.shown[i] != i)
            add_folded(&d, i);
        else if (p->plan->step.list.at[i].to)
            add_reshard_part(&d, i);
        else
            add_node_part(&d, i);
    find_levels(&d);
    find_places(&d);
    draw_all(&d);
}
