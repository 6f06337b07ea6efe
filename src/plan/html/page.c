/* page: the frame around the panels, and what is said in words. */

#include "plan/html/page.h" /* made from page.css and page.js */

#include "plan/html/html.h"
#include "plan/input/input.h"

#include <string.h>

static void put_lines(const struct html_page *p, const char *const *line)
{
    for (; *line; line++)
        fputs(*line, p->f);
}

static void begin_page(const struct html_page *p, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n", p->f);
    fputs("<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<title>", p->f);
    html_text(p, title);
    fputs("</title>\n<style>\n", p->f);
    put_lines(p, page_css);
    for (int w = 0; w < p->loads && p->loads > 1; w++)
        fprintf(p->f, "#w%d:checked~main .w:not(.w%d){display:none}\n", w, w);
    fputs("</style>\n<header><h1>", p->f);
    html_text(p, path_last_two(p->options->model));
    fprintf(p->f, " <small>on %d rank%s</small></h1><p>", p->g->ranks, p->g->ranks == 1 ? "" : "s");
    html_text(p, p->options->model);
    fputs("; machine ", p->f);
    html_text(p, path_base(p->options->machine.name));
    fputs(p->options->sp == SP_ON ? "; --sp" : p->options->sp == SP_AUTO ? "; --sp=auto" : "", p->f);
    fputs("</p></header>\n", p->f);
}

/* The measured workload, else the workload with most of the weighted time. */
static int main_workload(const struct html_page *p)
{
    const struct plan *plan = p->plan;
    int most = 0;
    if (p->measured)
        return p->measured->load;
    for (int w = 1; w < plan->workloads.n; w++)
        if (plan->workloads.at[w].weight * plan->workloads.at[w].seconds >
            plan->workloads.at[most].weight * plan->workloads.at[most].seconds)
            most = w;
    return most;
}

/* A tab for each. Later than the header, so that <main> can tell by CSS which one is chosen. */
static void workload_tabs(const struct html_page *p)
{
    for (int w = 0; w < p->loads; w++) {
        const struct workload *load = &p->plan->workloads.at[w];
        if (p->loads > 1)
            fprintf(p->f, "<input type=radio name=w id=w%d%s><label for=w%d>", w, w == main_workload(p) ? " checked" : "", w);
        else
            fputs("<p class=load>", p->f);
        fprintf(p->f, "<b>workload %d</b> ", w + 1);
        for (const char *at = *load->text ? load->text : "static sizes", *end; *at; at = end) {
            end = at + strcspn(at, ",");
            end += *end == ',';
            html_text(p, arena_strndup(p->arena, at, (size_t)(end - at)));
            fputs("<wbr>", p->f);
        }
        fprintf(p->f, " (weight %g)%s\n", load->weight, p->loads > 1 ? "</label>" : "</p>");
    }
}

static void write_report(const struct html_page *p, const void *unused)
{
    (void)unused;
    plan_report(p->f, p->g, p->options, p->plan);
}

static void show_text_report(const struct html_page *p)
{
    fputs("<details><summary><span class=title>The report as text</span></summary><pre>", p->f);
    html_text(p, html_captured(p, write_report, NULL));
    fputs("</pre></details>\n", p->f);
}

static void show_list(const struct html_page *p, const char *title, int n, const char *const *at)
{
    if (!n)
        return;
    fprintf(p->f, "<details><summary><span class=title>%s (%d)</span></summary><ul>\n", title, n);
    for (int i = 0; i < n; i++) {
        fputs("<li>", p->f);
        html_text(p, at[i]);
        fputc('\n', p->f);
    }
    fputs("</ul></details>\n", p->f);
}

static void show_words(const struct html_page *p)
{
    html_head(p, "words", "In words", NULL);
    show_list(p, "Notes", p->plan->warnings.n, p->plan->warnings.at);
    show_list(p, "Replicated ops", p->plan->replicated.n, p->plan->replicated.at);
    show_text_report(p);
    fputs("</section>\n", p->f);
}

void plan_html(FILE *f, struct graph *g, const struct options *options, const struct plan *plan)
{
    struct arena *a = arena_new();
    struct html_page p = {.f = f, .arena = a, .g = g, .options = options, .plan = plan, .loads = plan->workloads.n};
    require(plan->alternatives && plan->use);
    p.groups = html_groups_of(a, plan);
    p.bodies = NEW(a, struct name_index);
    p.uses = graph_uses(plan->alternatives->graph, a);
    p.measured = options->trace ? html_measured_read(&p, options->trace) : NULL;
    begin_page(&p, arena_printf(a, "%s on %d ranks", options->model, g->ranks));
    workload_tabs(&p);
    fputs("<main>\n<input id=search type=search placeholder=\"search nodes, weights, collectives\" hidden><p id=found></p>\n", f);
    html_tiles(&p);
    html_memory(&p);
    html_what_if(&p);
    html_timeline(&p);
    html_layers(&p);
    html_weights(&p);
    html_collectives(&p);
    show_words(&p);
    fputs("</main>\n<script>\n", f);
    put_lines(&p, page_js);
    fputs("</script>\n</html>\n", f);
    arena_free(a);
}
