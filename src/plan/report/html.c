/* html: one page that needs nothing else: the report, collectives with their bytes, weights by rank, and every node with its
 * strategies and what they cost. Names and texts of a model are escaped. */
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/report/report.h"
#include "plan/space/space.h"

#include <stdlib.h>
#include <string.h>

/* ---- strategies, while the space is as it was chosen from ----------------------------------------------------------------------- */

void plan_price(struct space *s)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        const struct strategies *all = &s->offered[i];
        struct priced_node p = {.name = n->name, .op = n->optype};
        for (int k = 0; k < all->list.n; k++) {
            double seconds = (double)cost_of_strategy(s, n, s->rule[i], all->list.at[k]) * 1e-12 / cost_steps(s->plan);
            VEC_PUSH(s->arena, &p.list,
                     ((struct priced){strategy_str(s->arena, n, all->list.at[k]), seconds, all->list.at[k] == n->strategy}));
        }
        VEC_PUSH(s->arena, &s->plan->priced, p);
    }
}

/* ---- HTML ------------------------------------------------------------------------------------------------------------------------- */

void html_text(FILE *f, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", f); break;
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '"': fputs("&quot;", f); break;
        default: fputc((unsigned char)*text < ' ' && *text != '\n' ? ' ' : *text, f);
        }
}

static void put_cell(FILE *f, const char *text)
{
    fputs("<td>", f);
    html_text(f, text);
    fputs("</td>", f);
}

static void put_number(FILE *f, const char *text)
{
    fputs("<td class=\"n\">", f);
    html_text(f, text);
    fputs("</td>", f);
}

static void begin_page(FILE *f, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>", f);
    html_text(f, title);
    fputs(
        "</title>\n<style>\nbody { font: 14px sans-serif; margin: 2em; } pre { background: #f4f4f4; padding: 1em; overflow-x: auto; }\n"
        "table { border-collapse: collapse; } td, th { border: 1px solid #ccc; padding: 2px 8px; text-align: left; vertical-align: top; }\n"
        ".n { text-align: right; white-space: nowrap; } .chosen { font-weight: bold; }\n</style>\n<h1>",
        f);
    html_text(f, title);
    fputs("</h1>\n", f);
}

static void show_summary(FILE *f, const struct graph *g, const struct options *options, const struct plan *p)
{
    char *text = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    require(memory);
    plan_report(memory, g, options, p);
    require(fclose(memory) == 0);
    fputs("<pre>", f);
    html_text(f, text);
    fputs("</pre>\n", f);
    free(text);
}

static void list_collectives_html(FILE *f, struct arena *a, const struct graph *g, const struct plan *p)
{
    fputs("<h2>Collectives</h2>\n<p>Bytes are what one rank puts in, by workload.</p>\n<table>\n<tr><th>op<th>value<th>axis<th>reason", f);
    for (int w = 0; w < p->workloads.n; w++)
        fprintf(f, "<th>workload %d", w + 1);
    fputs("</tr>\n", f);
    for (int i = 0; i < p->collectives.n; i++) {
        const struct planned_collective *c = &p->collectives.at[i];
        fprintf(f, "<tr><td style=\"background: %s\">", dot_collective_colour(c->kind));
        html_text(f, collective_name(c->kind));
        fputs("</td>", f);
        put_cell(f, c->value->name);
        put_number(f, c->axis < 0 ? "" : arena_printf(a, "%d", c->axis));
        put_cell(f, c->reason ? c->reason : "");
        for (int w = 0; w < p->workloads.n; w++)
            put_number(f, units_bytes(a, (double)cost_payload(g->alg, c->node, &p->workloads.at[w].dims, g->ranks)));
        fputs("</tr>\n", f);
    }
    fputs("</table>\n", f);
}

static double html_held_bytes(const struct graph *g, const struct value *v, int rank)
{
    require(rank >= 0 && rank < g->ranks);
    struct value local = *v;
    local.type = placement_local(g->alg, &v->type, v->place, rank);
    return (double)weight_bytes(&local);
}

static void show_weights(FILE *f, struct arena *a, const struct graph *g)
{
    struct uses *uses = graph_uses(g, a);
    fputs("<h2>Weights</h2>\n<table>\n<tr><th>weight<th>type<th>placement", f);
    for (int r = 0; r < g->ranks; r++)
        fprintf(f, "<th>rank %d", r);
    fputs("</tr>\n", f);
    for (int i = 0; i < g->values.n; i++) {
        const struct value *v = g->values.at[i];
        if (!v->constant || !uses[i].n)
            continue;
        fputs("<tr>", f);
        put_cell(f, v->name);
        put_cell(f, type_str(a, &v->type));
        put_cell(f, placement_str(a, v->place));
        for (int r = 0; r < g->ranks; r++)
            put_number(f, units_bytes(a, html_held_bytes(g, v, r)));
        fputs("</tr>\n", f);
    }
    fputs("</table>\n", f);
}

static void show_nodes(FILE *f, struct arena *a, const struct plan *p)
{
    fputs("<h2>Nodes</h2>\n<p>What each strategy takes of the operands and leaves of the results, and what the node then costs "
          "per step; the chosen one is bold.</p>\n"
          "<table>\n<tr><th>node<th>op<th>strategies</tr>\n",
          f);
    for (int i = 0; i < p->priced.n; i++) {
        const struct priced_node *n = &p->priced.at[i];
        fputs("<tr>", f);
        put_cell(f, n->name);
        put_cell(f, n->op);
        fputs("<td><table>", f);
        for (int k = 0; k < n->list.n; k++) {
            fprintf(f, "<tr%s>", n->list.at[k].chosen ? " class=\"chosen\"" : "");
            put_cell(f, n->list.at[k].strategy);
            put_number(f, units_seconds(a, n->list.at[k].seconds));
            fputs("</tr>", f);
        }
        fputs("</table></td></tr>\n", f);
    }
    fputs("</table>\n", f);
}

void plan_html(FILE *f, const struct graph *g, const struct options *options, const struct plan *p)
{
    struct arena *a = arena_new();
    begin_page(f, arena_printf(a, "%s on %d ranks", options->model, g->ranks));
    show_summary(f, g, options, p);
    list_collectives_html(f, a, g, p);
    show_weights(f, a, g);
    show_nodes(f, a, p);
    fputs("</html>\n", f);
    arena_free(a);
}
