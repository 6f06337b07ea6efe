/* timeline: the predicted step, all layers as blocks and one of each kind in detail. Ranks do the same at the same time, so one line is
 * enough. */
#include "plan/html/html.h"

static void segment(const struct html_page *p, const char *class, double seconds, double scale, const char *title)
{
    double wide = 100 * seconds / scale;
    if (wide < 0.005)
        return;
    fprintf(p->f, "<i class=\"%s\" style=width:%.2f%% title=\"", class, wide);
    html_text(p, title);
    fprintf(p->f, ": %s\"></i>", units_seconds(p->arena, seconds));
}

static void line_end(const struct html_page *p, double seconds)
{
    fputs("</div><span class=n>", p->f);
    html_seconds(p, seconds);
    fputs("</span></div>\n", p->f);
}

/* Groups in the order of time; layers of one kind that follow each other are one block. */
static void step_line(const struct html_page *p, int w, bool unsharded, double scale)
{
    const struct html_groups *all = &p->groups;
    html_load_begin(p, "div", "bar", w);
    fprintf(p->f, "<span>%s</span><div class=track>", unsharded ? "1 rank" : arena_printf(p->arena, "%d ranks", p->g->ranks));
    for (int i = 0, n, odd = 0; i < all->order.n; i += n) {
        const struct html_group *g = &all->list.at[all->order.at[i]];
        for (n = 1; i + n < all->order.n && all->order.at[i + n] == all->order.at[i];)
            n++;
        segment(p, odd++ % 2 ? "work odd" : "work", n * (unsharded ? g->unsharded[w] : g->compute[w]), scale, g->title);
        if (!unsharded)
            segment(p, "sent", n * g->sent[w], scale, arena_printf(p->arena, "%s, collectives", g->title));
    }
    line_end(p, unsharded ? p->plan->workloads.at[w].unsharded_seconds : p->plan->workloads.at[w].seconds);
}

static const char *part_title(const struct html_page *p, const struct step_part *part)
{
    const struct graph *g = p->plan->alternatives->graph;
    const char *what = part->to ? part->by ? collective_name(part->by) : "slice" : g->nodes.at[part->node]->optype;
    return arena_printf(p->arena, "%s, %s", what, html_part_label(p, part));
}

static void group_line(const struct html_page *p, const struct html_group *g, int w)
{
    double seconds = g->compute[w] + g->sent[w];
    if (seconds <= 0)
        return;
    html_load_begin(p, "div", "bar", w);
    fprintf(p->f, "<span>%s%s</span><div class=track>", g->title, g->times > 1 ? arena_printf(p->arena, " <b>×%d</b>", g->times) : "");
    for (int i = g->first, odd = 0; i < g->end; i++) {
        const struct step_part *part = &p->plan->step.list.at[i];
        const char *class = html_part_sends(part) ? html_kind_class(p->arena, part->by) : odd++ % 2 ? "work odd" : "work";
        segment(p, class, part->seconds[w], seconds, part_title(p, part));
    }
    line_end(p, seconds);
}

void html_timeline(const struct html_page *p)
{
    if (!html_timed(p))
        return;
    html_head(p, "time", "The predicted step",
              "All ranks work at the same time. First the whole step, folded; then one of each kind of layer, node by node.");
    fputs("<p class=key><i class=work></i>compute <i class=sent></i>collectives</p>\n", p->f);
    for (int w = 0; w < p->loads; w++) {
        const struct workload *load = &p->plan->workloads.at[w];
        double scale = load->seconds > load->unsharded_seconds ? load->seconds : load->unsharded_seconds;
        if (p->g->ranks > 1)
            step_line(p, w, true, scale);
        step_line(p, w, false, scale);
        for (int i = 0; i < p->groups.list.n; i++)
            group_line(p, &p->groups.list.at[i], w);
    }
    fputs("</section>\n", p->f);
}
