/* what_if: time, memory and collectives for other numbers of ranks, without and with sequence parallelism. */
#include "plan/html/html.h"

static int collectives_of(const struct compared *c)
{
    int n = 0;
    for (int i = 0; i < c->kinds.list.n; i++)
        n += c->kinds.list.at[i].count;
    return n;
}

static bool is_this_plan(const struct html_page *p, const struct other_ranks *o)
{
    return o->ranks == p->g->ranks && (*o->plan.name != '\0') == (p->options->sp == SP_AUTO) && p->options->sp != SP_ON;
}

static void show_row(const struct html_page *p, const struct other_ranks *o, int w, double most)
{
    const struct compared *one = &p->plan->others.list.at[0].plan;
    double seconds = o->plan.step[w];
    html_load_begin(p, "div", is_this_plan(p, o) ? "bar try chosen" : "bar try", w);
    fprintf(p->f, "<span>%d rank%s <span>%s</span></span><div class=track><i class=work style=width:%.2f%%></i></div><span class=n>",
            o->ranks, o->ranks == 1 ? "" : "s", o->plan.name, 100 * seconds / most);
    html_seconds(p, seconds);
    fprintf(p->f, "</span><small>%.2f×, ", one->step[w] / seconds);
    html_bytes(p, (double)o->plan.memory);
    int n = collectives_of(&o->plan);
    fprintf(p->f, " on the fullest rank, %d collective%s%s</small></div>\n", n, n == 1 ? "" : "s", o->plan.fits ? "" : "; over --memory");
}

void html_what_if(const struct html_page *p)
{
    int n = p->plan->others.list.n;
    if (!html_timed(p))
        return;
    html_head(p, "ranks", "Other numbers of ranks",
              n > 0 ? "The cheapest plan of each. <code>--sp=auto</code> is shown where it is faster or smaller."
                    : arena_printf(p->arena, "Not planned for a graph of %d nodes: <code>tpc-shard MODEL</code> plans them.",
                                   p->plan->alternatives->graph->nodes.n));
    for (int w = 0; w < p->loads; w++) {
        double most = 0;
        for (int i = 0; i < n; i++)
            most = p->plan->others.list.at[i].plan.step[w] > most ? p->plan->others.list.at[i].plan.step[w] : most;
        for (int i = 0; i < n; i++)
            show_row(p, &p->plan->others.list.at[i], w, most);
    }
    fputs("</section>\n", p->f);
}
