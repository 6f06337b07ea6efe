/* collectives: the rank files' collectives, by kind and by where they stand, layers folded, with what they cost. */
#include "plan/cost/cost.h"
#include "plan/html/html.h"

#include <string.h>

struct collective_row {
    enum collective kind;
    const char *label, *change;
    int count;
    double *bytes, *seconds; /* of all, by workload */
};
struct collective_rows {
    VEC(struct collective_row) list;
};

static const char *place_words(const struct html_page *p, const struct value *v)
{
    return v->place.kind == PLACE_S ? arena_printf(p->arena, "sharded along %d", v->place.dim)
                                    : words_placement(p->arena, p->g, p->plan, &v->type, v->place, NULL);
}

static struct collective_row *row_of(const struct html_page *p, struct collective_rows *all, const struct planned_collective *c)
{
    const struct value *from = c->node->in[0];
    const char *where = from->producer ? label_node(p->arena, p->g, from->producer) : from->name;
    const char *label = label_pattern(p->arena, where);
    const struct value *to = c->node->out[0] ? c->node->out[0] : c->value;
    const char *change = arena_printf(p->arena, "%s → %s", place_words(p, from), place_words(p, to));
    for (int i = 0; i < all->list.n; i++)
        if (all->list.at[i].kind == c->kind && strcmp(all->list.at[i].label, label) == 0 && strcmp(all->list.at[i].change, change) == 0)
            return &all->list.at[i];
    struct collective_row row = {.kind = c->kind, .label = label, .change = change};
    row.bytes = NEWN(p->arena, double, p->loads + 1);
    row.seconds = NEWN(p->arena, double, p->loads + 1);
    VEC_PUSH(p->arena, &all->list, row);
    return &all->list.at[all->list.n - 1];
}

static struct collective_rows find_rows(const struct html_page *p)
{
    struct collective_rows all = {.list = {NULL, 0, 0}};
    EACH (const struct planned_collective, c, p->plan->collectives) {
        struct collective_row *row = row_of(p, &all, c);
        row->count++;
        for (int w = 0; w < p->loads; w++) {
            const struct bindings *dims = &p->plan->workloads.at[w].dims;
            row->bytes[w] += (double)cost_payload(p->g, c->node, dims, p->g->ranks);
            row->seconds[w] += cost_collective_seconds(&p->options->machine, p->g, c->node, dims, p->g->ranks);
        }
    }
    return all;
}

static void show_row(const struct html_page *p, const struct collective_row *r)
{
    fprintf(p->f, "<tr class=row><td class=name><i class=%s></i>", html_kind_class(p->arena, r->kind));
    html_text(p, r->label);
    fprintf(p->f, "%s<br><small>%s</small><td class=n>", r->count > 1 ? arena_printf(p->arena, " <b>×%d</b>", r->count) : "", r->change);
    html_bytes_by(p, r->bytes);
    fputs("<td class=n>", p->f);
    html_seconds_by(p, r->seconds);
    fputc('\n', p->f);
}

static void show_kind(const struct html_page *p, const struct collective_rows *all, const struct kind_use *kind)
{
    double *seconds = NEWN(p->arena, double, p->loads + 1);
    for (int i = 0; i < all->list.n; i++)
        for (int w = 0; w < p->loads && all->list.at[i].kind == kind->kind; w++)
            seconds[w] += all->list.at[i].seconds[w];
    fprintf(p->f, "<tr class=kind><th>%d %s<th class=n>", kind->count, collective_name(kind->kind));
    html_bytes_by(p, kind->bytes);
    fputs("<th class=n>", p->f);
    html_seconds_by(p, seconds);
    fputc('\n', p->f);
    for (int i = 0; i < all->list.n; i++)
        if (all->list.at[i].kind == kind->kind)
            show_row(p, &all->list.at[i]);
}

void html_collectives(const struct html_page *p)
{
    if (p->plan->collectives.n == 0)
        return;
    struct collective_rows all = find_rows(p);
    struct kind_uses kinds = plan_kinds(p->arena, p->g, p->plan);
    html_head(p, "collectives", "Collectives",
              "The node that each one follows, the bytes that one rank puts in per step, and the predicted time.");
    fputs("<table class=wide><tr><th>where<th class=n>bytes<th class=n>time\n", p->f);
    for (int i = 0; i < kinds.list.n; i++)
        show_kind(p, &all, &kinds.list.at[i]);
    fputs("</table></section>\n", p->f);
}
