/* layers: each group of layers as a strip of nodes, coloured by placement, that opens to its graph and its nodes. */
#include "plan/html/html.h"

static void group_strip(const struct html_page *p, const struct html_group *g)
{
    fputs("<span class=strip>", p->f);
    for (int i = g->first; i < g->end; i = html_next_part(g, i))
        fprintf(p->f, "<i class=%s></i>", html_part_class(p, &p->plan->step.list.at[i]));
    fputs("</span>", p->f);
}

static void show_group(const struct html_page *p, const struct html_group *g)
{
    const char *path = html_common_path(p, g->first, g->end);
    double *all = NEWN(p->arena, double, p->loads + 1);
    for (int w = 0; w < p->loads; w++)
        all[w] = (g->compute[w] + g->sent[w]) * g->times;
    fprintf(p->f, "<details class=group><summary><span class=title>%s", g->title);
    if (g->times > 1)
        fprintf(p->f, " <b>×%d</b>", g->times);
    fputs("</span><span class=path>", p->f);
    html_text(p, path);
    fputs("</span><span class=n>", p->f);
    html_seconds_by(p, all);
    fputs("</span>", p->f);
    group_strip(p, g);
    fputs("</summary>\n", p->f);
    html_graph(p, g);
    html_nodes(p, g);
    fputs("</details>\n", p->f);
}

void html_layers(const struct html_page *p)
{
    html_head(p, "layers", "Layers",
              "A cell is a node, coloured by the placement that it leaves. Open a row to see the graph of one layer.");
    fputs("<p class=key><span><i class=R></i>replicated</span> <span><i class=S></i>sharded</span> <span><i class=P></i>partial</span> "
          "<span><i class=slice></i>slice</span>",
          p->f);
    struct kind_uses kinds = plan_kinds(p->arena, p->g, p->plan);
    for (int i = 0; i < kinds.list.n; i++)
        fprintf(p->f, " <span><i class=%s></i>%s</span>", html_kind_class(p->arena, kinds.list.at[i].kind),
                collective_name(kinds.list.at[i].kind));
    fputs("</p>\n", p->f);
    for (int i = 0; i < p->groups.list.n; i++)
        show_group(p, &p->groups.list.at[i]);
    fputs("</section>\n", p->f);
}
