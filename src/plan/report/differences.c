/* differences: lists in what two plans of one graph differ: weights, nodes, collectives. Equal differences in names that differ only in
 * numbers, as in layers, share one line. */
#include "plan/plan.h"
#include "plan/report/report.h"

#include <string.h>

static void add(struct arena *a, struct named_list *list, const char *name, const char *text)
{
    VEC_PUSH(a, &list->list, ((struct named){arena_strdup(a, name), arena_strdup(a, text)}));
}

struct choices *differences_choices(struct arena *a, const struct graph *g, const struct plan *p)
{
    struct choices *c = NEW(a, struct choices);
    const struct uses *uses = graph_uses(g, a);
    for (int i = 0; i < g->values.n; i++) {
        const struct value *v = g->values.at[i];
        if (v->constant && v->placed && v->type.rank > 0 && uses[i].n > 0)
            add(a, &c->weights, label_weight(a, g, uses, v), placement_str(a, v->place));
    }
    for (int i = 0; i < p->nodes.list.n; i++)
        add(a, &c->nodes, p->nodes.list.at[i].name, p->nodes.list.at[i].text);
    for (int i = 0; i < p->collectives.n; i++)
        add(a, &c->collectives, p->collectives.at[i].value->name, collective_name(p->collectives.at[i].kind));
    return c;
}

/* ---- what differs ---------------------------------------------------------------------------------------------------------------- */

struct difference {
    const char *first, *pattern, *own, *other; /* first: the name of the first */
    int count;
};
struct differences {
    VEC(struct difference) list;
    int count;
};

static void note(struct arena *a, struct differences *all, const char *name, const char *own, const char *other)
{
    const char *pattern = label_pattern(a, name);
    all->count++;
    EACH (struct difference, d, all->list) {
        if (strcmp(d->pattern, pattern) == 0 && strcmp(d->own, own) == 0 && strcmp(d->other, other) == 0) {
            d->count++;
            return;
        }
    }
    VEC_PUSH(a, &all->list, ((struct difference){name, pattern, own, other, 1}));
}

/* Compares things that both plans have. */
static struct differences compare_named(struct arena *a, const struct named_list *own, const struct named_list *other)
{
    struct differences all = {{NULL, 0, 0}, 0};
    struct name_index there = {0};
    for (int i = 0; i < other->list.n; i++)
        name_index_put(a, &there, other->list.at[i].name, i);
    EACH (const struct named, mine, own->list) {
        int at = name_index_find(&there, mine->name);
        if (at < 0 || strcmp(mine->text, other->list.at[at].text) == 0)
            continue;
        const char *here = placement_outlines(a, mine->text), *theirs = placement_outlines(a, other->list.at[at].text);
        note(a, &all, mine->name, here, strcmp(here, theirs) == 0 ? "the same in other parts" : theirs);
    }
    return all;
}

/* Notes collectives of one plan that the other lacks. */
static void note_lacking(struct arena *a, struct differences *all, const struct named_list *list, const struct named_list *other, bool here)
{
    struct name_index there = {0};
    for (int i = 0; i < other->list.n; i++)
        name_index_put(a, &there, arena_printf(a, "%s %s", other->list.at[i].text, other->list.at[i].name), i);
    EACH (const struct named, n, list->list) {
        if (name_index_find(&there, arena_printf(a, "%s %s", n->text, n->name)) < 0)
            note(a, all, n->name, here ? n->text : "none", here ? "none" : n->text);
    }
}

/* ---- the list ------------------------------------------------------------------------------------------------------------------- */

static void show(FILE *f, const char *what, const struct differences *all)
{
    enum { MOST_SHOWN = 4 };
    int most = diag_is_verbose() ? all->list.n : MOST_SHOWN;
    for (int i = 0; i < all->list.n && i < most; i++) {
        const struct difference *d = &all->list.at[i];
        fprintf(f, "    %4dx %s %s: %s; there %s\n", d->count, what, d->count > 1 ? d->pattern : d->first, d->own, d->other);
    }
    if (all->list.n > most)
        fprintf(f, "          and %d more of %ss (-v shows all)\n", all->list.n - most, what);
}

void differences_text(FILE *f, struct arena *a, const struct choices *own, const char *name, const struct choices *other)
{
    if (!other)
        return;
    struct differences weights = compare_named(a, &own->weights, &other->weights), nodes = compare_named(a, &own->nodes, &other->nodes),
                       sent = {{NULL, 0, 0}, 0};
    note_lacking(a, &sent, &own->collectives, &other->collectives, true);
    note_lacking(a, &sent, &other->collectives, &own->collectives, false);
    fprintf(f, "  %s differs in %d weights, %d nodes, %d collectives\n", name, weights.count, nodes.count, sent.count);
    show(f, "weight", &weights);
    show(f, "node", &nodes);
    show(f, "collective", &sent);
}
