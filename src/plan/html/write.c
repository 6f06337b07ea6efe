/* write: text and numbers of the page. */
#include "op/rule/rule.h"
#include "plan/html/html.h"

#include <string.h>

void html_text(const struct html_page *p, const char *text)
{
    escape_text(p->f, text);
}

const char *html_captured(const struct html_page *p, void (*write)(const struct html_page *, const void *), const void *object)
{
    struct html_page inner = *p;
    struct captured text;
    captured_begin(&text);
    inner.f = text.to;
    write(&inner, object);
    return captured_end(&text, p->arena);
}

bool html_timed(const struct html_page *p)
{
    return p->plan->missing.list.n == 0;
}

void html_seconds(const struct html_page *p, double seconds)
{
    if (html_timed(p))
        fprintf(p->f, "<data value=%.6g>%s</data>", seconds, units_seconds(p->arena, seconds));
    else
        fputs("unknown", p->f);
}

void html_bytes(const struct html_page *p, double bytes)
{
    fprintf(p->f, "<data value=%.0f>%s</data>", bytes, units_bytes(p->arena, bytes));
}

void html_load_begin(const struct html_page *p, const char *tag, const char *class, int workload)
{
    if (p->loads > 1)
        fprintf(p->f, "<%s class=\"w w%d%s%s\">", tag, workload, *class ? " " : "", class);
    else
        fprintf(p->f, "<%s class=\"%s\">", tag, class);
}

static void by_workload(const struct html_page *p, const double *at, void (*write)(const struct html_page *, double))
{
    bool same = true;
    for (int w = 1; w < p->loads; w++)
        same = same && at[w] == at[0];
    for (int w = 0; w < (same ? 1 : p->loads); w++) {
        if (!same)
            html_load_begin(p, "span", "", w);
        write(p, at[w]);
        if (!same)
            fputs("</span>", p->f);
    }
}

void html_seconds_by(const struct html_page *p, const double *at)
{
    by_workload(p, at, html_seconds);
}

void html_bytes_by(const struct html_page *p, const double *at)
{
    by_workload(p, at, html_bytes);
}

const char *html_kind_class(struct arena *a, enum collective kind)
{
    return arena_printf(a, "c%d", (int)kind);
}

const char *html_place_class(struct placement p)
{
    return p.kind == PLACE_S ? "S" : p.kind == PLACE_P ? "P" : "R";
}

/* Of the placement that a node leaves, or of a reshard. */
const char *html_part_class(const struct html_page *p, const struct step_part *part)
{
    const struct node *n = part->to ? NULL : p->plan->alternatives->graph->nodes.at[part->node];
    if (!n)
        return part->by ? html_kind_class(p->arena, part->by) : "slice";
    return node_result(n, 0) ? html_place_class(((const struct strategy *)n->strategy)->out[0]) : "R";
}

/* The module of a node, or of what makes the value that is resharded. */
const char *html_part_label(const struct html_page *p, const struct step_part *part)
{
    const struct graph *g = p->plan->alternatives->graph;
    if (!part->to)
        return label_node(p->arena, g, g->nodes.at[part->node]);
    const struct value *v = graph_find(g, part->name);
    return v && v->producer ? label_node(p->arena, g, v->producer) : part->name;
}

const char *html_common_path(const struct html_page *p, int first, int end)
{
    char *common = NULL;
    for (int i = first; i < end; i++) {
        if (p->plan->step.list.at[i].to)
            continue;
        const char *label = label_pattern(p->arena, html_part_label(p, &p->plan->step.list.at[i]));
        if (!common)
            common = arena_strdup(p->arena, label);
        size_t n = 0;
        while (common[n] && common[n] == label[n])
            n++;
        bool whole = (!common[n] || strchr("./", common[n])) && (!label[n] || strchr("./", label[n]));
        while (!whole && n > 0 && !strchr("./", common[n]))
            n--;
        common[n] = '\0';
    }
    return common ? common : "";
}

void html_head(const struct html_page *p, const char *id, const char *title, const char *about)
{
    fprintf(p->f, "<section id=%s><h2>%s</h2>", id, title);
    if (about)
        fprintf(p->f, "<p class=about>%s</p>", about);
    fputc('\n', p->f);
}
