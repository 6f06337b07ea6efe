/* timeline: the predicted step, all layers as blocks, then one of each kind in detail. Ranks are predicted to do the same at the same time,
 * so one line is enough; of a run that was measured each rank has its own. */
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
    fprintf(p->f, "<span>%s</span><div class=track>",
            unsharded ? "1 rank" : arena_printf(p->arena, "%d rank%s", p->g->ranks, p->g->ranks == 1 ? "" : "s"));
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

static void group_line(const struct html_page *p, const struct html_group *g, int w, double scale)
{
    double seconds = g->compute[w] + g->sent[w];
    if (seconds <= 0)
        return;
    html_load_begin(p, "div", "bar", w);
    fprintf(p->f, "<span>%s%s</span><div class=track>", g->title, g->times > 1 ? arena_printf(p->arena, ", one of %d", g->times) : "");
    for (int i = g->first, odd = 0; i < g->end; i = html_next_part(g, i)) {
        const struct step_part *part = &p->plan->step.list.at[i];
        const struct html_fold *x = html_fold_of(g, i);
        const char *class = html_part_sends(part) ? html_kind_class(p->arena, part->by) : odd++ % 2 ? "work odd" : "work";
        segment(p, class, html_folded_seconds(p, x, i, w), scale,
                arena_printf(p->arena, "%s%s", part_title(p, part), x ? arena_printf(p->arena, " ×%d", x->times) : ""));
    }
    line_end(p, seconds);
}

enum { MOST_RANKS = 16 };

static void measured_line(const struct html_page *p, int w, int rank, double scale)
{
    static const char *const class[] = {"work", "wait", "sent"}, *const what[] = {"", ", waiting for other ranks", ", collectives"};
    const struct html_measured *m = p->measured;
    html_load_begin(p, "div", "bar measured", w);
    fprintf(p->f, "<span>rank %d, measured</span><div class=track>", rank);
    for (int i = 0, run = 0; i < p->groups.order.n; i++) {
        int group = p->groups.order.at[i];
        if (i > 0 && group == p->groups.order.at[i - 1])
            continue;
        for (int k = 0; k < HTML_SHARES; k++)
            segment(p, k == HTML_WORK && run % 2 ? "work odd" : class[k], m -> seconds[rank * m->runs + run][k], scale,
                    arena_printf(p->arena, "%s%s", p->groups.list.at[group].title, what[k]));
        run++;
    }
    line_end(p, m->total[rank]);
}

static void scale_head(const struct html_page *p, int w, const char *what, double scale)
{
    html_load_begin(p, "p", "scale", w);
    fprintf(p->f, "<b>%s</b> <small>the full width is %s</small></p>\n", what, units_seconds(p->arena, scale));
}

static double longest_group(const struct html_page *p, int w)
{
    double most = 0;
    EACH (const struct html_group, g, p->groups.list) {
        most = g->compute[w] + g->sent[w] > most ? g->compute[w] + g->sent[w] : most;
    }
    return most;
}

static void show_load(const struct html_page *p, int w)
{
    const struct workload *load = &p->plan->workloads.at[w];
    const struct html_measured *m = p->measured && p->measured->load == w ? p->measured : NULL;
    double scale = load->seconds > load->unsharded_seconds ? load->seconds : load->unsharded_seconds, one = longest_group(p, w);
    scale = m && m->most > scale ? m->most : scale;
    scale_head(p, w, "The whole step", scale);
    if (p->g->ranks > 1)
        step_line(p, w, true, scale);
    step_line(p, w, false, scale);
    for (int r = 0; m && r < m->ranks && r < MOST_RANKS; r++)
        measured_line(p, w, r, scale);
    if (one <= 0 || p->groups.list.n == 1)
        return;
    scale_head(p, w, "One of each kind of layer, as predicted", one);
    for (int i = 0; i < p->groups.list.n; i++)
        group_line(p, &p->groups.list.at[i], w, one);
}

void html_timeline(const struct html_page *p)
{
    if (!html_timed(p))
        return;
    html_head(
        p, "time", p->measured ? "The step, predicted and measured" : "The predicted step",
        "All ranks work at the same time. Above, the step is folded by layers; below, one of each kind has its nodes, to a larger scale.");
    if (p->g->trained.n)
        fputs("<p class=about>The forward half makes the loss, the backward half the gradients. The optimizer's update of the weights "
              "follows; it is not predicted.</p>\n",
              p->f);
    fprintf(p->f, "<p class=key><span><i class=work></i>compute</span> <span><i class=sent></i>collectives</span>%s</p>\n",
            p->measured ? " <span><i class=wait></i>waiting for other ranks</span>" : "");
    for (int w = 0; w < p->loads; w++)
        show_load(p, w);
    fputs("</section>\n", p->f);
}
