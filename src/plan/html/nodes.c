/* nodes: the nodes and reshards of a group, each with its placement in words, its time, and what it could be instead. */
#include "op/rule/rule.h"
#include "plan/html/html.h"
#include "plan/space/space.h"

#include <math.h>
#include <string.h>

static const struct alternatives *known(const struct html_page *p)
{
    return p->plan->alternatives;
}

/* "heads" where the dimension counts attention heads. */
static const char *unit_of(const struct html_page *p, const struct value *v, struct placement place)
{
    const struct alternatives *all = known(p);
    bool head = place.kind == PLACE_S && all->head[dim_class_of(all->class, v->id * MAX_RANK + place.dim)];
    return head && v->type.rank > 3 ? "heads" : NULL;
}

static const char *placed_words(const struct html_page *p, const struct node *n, int operand, const struct value *v, struct placement place)
{
    struct use use = {(struct node *)n, operand};
    const char *unit = v->constant && place.kind == PLACE_S ? words_weight_unit(known(p)->graph, &use, v, place.dim) : unit_of(p, v, place);
    return words_placement(p->arena, known(p)->graph, p->plan, &v->type, place, unit);
}

/* The producer of an operand. */
static void show_source(const struct html_page *p, const struct value *v)
{
    const struct graph *g = known(p)->graph;
    const struct node *by = v->producer;
    const char *label = by ? label_node(p->arena, g, by) : v->constant ? label_weight(p->arena, g, p->uses, v) : v->name;
    html_text(p, label_last(label_pattern(p->arena, label)));
    if (by)
        fprintf(p->f, " %s", by->optype);
}

static void operand_row(const struct html_page *p, const struct node *n, int operand, const struct value *v, struct placement place)
{
    fprintf(p->f, "<tr><td>%s<td class=name>", operand < 0 ? "result" : v->constant ? "weight" : "operand");
    if (operand >= 0)
        show_source(p, v);
    fputs("<td>", p->f);
    html_text(p, type_str(p->arena, &v->type));
    fprintf(p->f, "<td><i class=%s></i>", html_place_class(place));
    html_text(p, placed_words(p, n, operand, v, place));
}

static void operand_table(const struct html_page *p, const struct node *n)
{
    const struct strategy *st = n->strategy;
    fputs("<table class=ops>", p->f);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            operand_row(p, n, i, n->in[i], st->in[i]);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            operand_row(p, n, -1, n->out[i], st->out[i]);
    fputs("</table>", p->f);
}

static void microseconds(const struct html_page *p, double seconds)
{
    if (seconds < 0)
        fputs("<td class=n>never", p->f);
    else
        fprintf(p->f, "<td class=n>%.2f", seconds * 1e6);
}

static double alternative_cost(const struct alternative *x)
{
    return x->around < 0 ? HUGE_VAL : x->node + x->around;
}

/* Is there another of the same outline that is chosen or costs less? They differ in the intervals of their splits. */
static bool is_worse(const struct alternative_list *all, int i)
{
    const struct alternative *at = all->list.at;
    for (int k = 0; k < all->list.n; k++)
        if (k != i && strcmp(at[k].outline, at[i].outline) == 0 &&
            (at[k].chosen || alternative_cost(&at[k]) < alternative_cost(&at[i]) ||
             (alternative_cost(&at[k]) == alternative_cost(&at[i]) && k < i)))
            return true;
    return false;
}

static void alternative_table(const struct html_page *p, int node)
{
    enum { MOST_SHOWN = 8 };
    const struct alternative_list *all = &known(p)->node[node];
    if (all->list.n < 2)
        return;
    fputs("<table><tr><th>strategy<th class=n>node, us<th class=n>reshards, us", p->f);
    for (int i = 0, shown = 0; i < all->list.n; i++) {
        const struct alternative *at = &all->list.at[i];
        if (!at->chosen && (is_worse(all, i) || shown++ >= MOST_SHOWN))
            continue;
        fprintf(p->f, "<tr%s><td>", at->chosen ? " class=chosen" : "");
        html_text(p, at->outline);
        fputs(at->barred ? " (barred)" : "", p->f);
        microseconds(p, at->node);
        microseconds(p, at->around);
    }
    fputs("</table>", p->f);
}

static void write_body(const struct html_page *p, const void *object)
{
    const struct step_part *part = object;
    operand_table(p, known(p)->graph->nodes.at[part->node]);
    alternative_table(p, part->node);
}

/* Operands and alternatives; written once for nodes with the same details. */
static void show_body(const struct html_page *p, const struct step_part *part)
{
    const char *text = html_captured(p, write_body, part);
    int first = name_index_find(p->bodies, text);
    if (first >= 0) {
        fprintf(p->f, ", as <a href=#p%d>", first);
        html_text(p, known(p)->graph->nodes.at[p->plan->step.list.at[first].node]->name);
        fputs("</a>", p->f);
        return;
    }
    name_index_put(p->arena, p->bodies, text, (int)(part - p->plan->step.list.at));
    fputs(text, p->f);
}

/* The node whose kernel computes this one, which comes later. */
static void show_into(const struct html_page *p, const struct step_part *part)
{
    const struct step_parts *step = &p->plan->step;
    int i = (int)(part - step->list.at);
    while (i < step->list.n && (step->list.at[i].to || strcmp(step->list.at[i].name, part->into) != 0))
        i++;
    int shown = i < step->list.n ? p->groups.shown[i] : -1;
    fputs(", runs inside ", p->f);
    if (shown >= 0)
        fprintf(p->f, "<a href=#p%d>", shown);
    html_text(p, part->into);
    fputs(shown >= 0 ? "</a>" : "", p->f);
}

static void show_node(const struct html_page *p, const struct step_part *part)
{
    const struct node *n = known(p)->graph->nodes.at[part->node];
    const struct value *out = n->nout > 0 ? n->out[0] : NULL;
    struct placement place = out ? ((const struct strategy *)n->strategy)->out[0] : placement_replicated;
    fprintf(p->f, "<details id=p%d class=node><summary><i class=%s></i><span>", (int)(part - p->plan->step.list.at),
            html_place_class(place));
    html_text(p, label_last(html_part_label(p, part)));
    fprintf(p->f, " <small>%s</small></span><span class=words>", n->optype);
    if (out)
        html_text(p, placed_words(p, n, -1, out, place));
    fputs("</span><span class=n>", p->f);
    html_seconds_by(p, part->seconds);
    fputs("</span></summary><p class=name>", p->f);
    html_text(p, n->name);
    if (part->into)
        show_into(p, part);
    show_body(p, part);
    fputs("</details>\n", p->f);
}

static void show_reshard(const struct html_page *p, const struct step_part *part)
{
    const struct value *v = graph_find(known(p)->graph, part->name);
    struct placement to;
    const char *error;
    fprintf(p->f, "<div id=p%d class=node><i class=%s></i><span>%s <small>", (int)(part - p->plan->step.list.at),
            part->by ? html_kind_class(p->arena, part->by) : "slice", part->by ? collective_name(part->by) : "slice");
    html_text(p, label_last(html_part_label(p, part)));
    fputs("</small></span><span class=words>", p->f);
    if (v && placement_parse(p->g->alg, part->to, &to, &error)) {
        html_text(p, words_placement(p->arena, known(p)->graph, p->plan, &v->type, v->place, unit_of(p, v, v->place)));
        fputs(" → ", p->f);
        html_text(p, words_placement(p->arena, known(p)->graph, p->plan, &v->type, to, unit_of(p, v, to)));
    }
    fputs("</span><span class=n>", p->f);
    html_seconds_by(p, part->seconds);
    fputs("</span></div>\n", p->f);
}

static void begin_fold(const struct html_page *p, const struct html_fold *x)
{
    double *all = NEWN(p->arena, double, p->loads + 1);
    for (int i = x->first; i < x->first + x->period; i++)
        for (int w = 0; w < p->loads; w++)
            all[w] += html_folded_seconds(p, x, i, w);
    fprintf(p->f, "<div class=fold><p><b>×%d</b> <span class=path>", x->times);
    html_text(p, html_common_path(p, x->first, x->first + x->period * x->times));
    fputs("</span> alike, the first is shown; all take ", p->f);
    html_seconds_by(p, all);
    fputs("</p>\n", p->f);
}

void html_nodes(const struct html_page *p, const struct html_group *g)
{
    for (int i = g->first; i < g->end; i = html_next_part(g, i)) {
        const struct step_part *part = &p->plan->step.list.at[i];
        const struct html_fold *x = html_fold_of(g, i);
        if (x && i == x->first)
            begin_fold(p, x);
        if (part->to)
            show_reshard(p, part);
        else
            show_node(p, part);
        if (x && i == x->first + x->period - 1)
            fputs("</div>\n", p->f);
    }
}
