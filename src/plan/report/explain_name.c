/* explain_name: resolves a partial name for --explain: nodes, weights, inputs and outputs; those of all layers count as one. */
#include "op/rule/rule.h"
#include "plan/report/report.h"
#include "plan/space/space.h"

#include <string.h>

struct name_group {
    const char *pattern, *what, *placed;
    struct explained first;
    int count;
};
struct name_groups {
    VEC(struct name_group) list;
};

static void add_name(struct space *s, struct name_groups *all, struct name_group new)
{
    EACH (struct name_group, g, all->list) {
        if (strcmp(g->pattern, new.pattern) == 0 && strcmp(g->what, new.what) == 0 && strcmp(g->placed, new.placed) == 0) {
            g->count++;
            return;
        }
    }
    new.count = 1;
    VEC_PUSH(s->arena, &all->list, new);
}

static void add_nodes(struct space *s, const char *glob, struct name_groups *all)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        if (names_node_any_case(space_names(s), i, glob))
            add_name(
                s, all,
                (struct name_group){label_pattern(s->arena, n->name), n->optype, strategy_outline(s->arena, n, n->strategy), {i, NULL}, 0});
    }
}

static const char *kind_of(const struct space *s, const struct value *v)
{
    return v->constant ? "weight" : graph_output_number(s->g, v) >= 0 ? "output" : v->producer ? NULL : "input";
}

static void add_values(struct space *s, const char *glob, struct name_groups *all)
{
    const struct uses *uses = graph_uses(s->g, s->arena);
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        const char *what = kind_of(s, v), *label = v->constant && uses[i].n ? label_weight(s->arena, s->g, uses, v) : v->name;
        if (what && s->uses[i].list.n > 0 && names_value_any_case(space_names(s), v, glob))
            add_name(s, all,
                     (struct name_group){label_pattern(s->arena, label),
                                         what,
                                         v->place.kind == PLACE_S ? arena_printf(s->arena, "S(%d)", v->place.dim)
                                                                  : placement_str(s->arena, v->place),
                                         {-1, v},
                                         0});
    }
}

static void list_groups(FILE *f, const struct name_groups *all, const char *name)
{
    enum { MOST_SHOWN = 40 };
    fprintf(f, "'%s' is part of the names of:\n", name);
    for (int i = 0; i < all->list.n && i < MOST_SHOWN; i++) {
        const struct name_group *g = &all->list.at[i];
        fprintf(f, "  %4dx  %s (%s): %s\n", g->count, g->pattern, g->what, g->placed);
    }
    if (all->list.n > MOST_SHOWN)
        fprintf(f, "  and of %d more\n", all->list.n - MOST_SHOWN);
    fprintf(f, "more of the name says why\n");
}

bool explain_part(FILE *f, struct space *s, const char *name, struct explained *out)
{
    struct name_groups all = {.list = {NULL, 0, 0}};
    const char *glob = arena_printf(s->arena, "*%s*", name);
    add_nodes(s, glob, &all);
    add_values(s, glob, &all);
    *out = (struct explained){-1, NULL};
    if (all.list.n == 1 && all.list.at[0].count > 1)
        fprintf(f, "the first of %d that are called so and placed alike:\n", all.list.at[0].count);
    if (all.list.n == 1)
        *out = all.list.at[0].first;
    else if (all.list.n > 1)
        list_groups(f, &all, name);
    return all.list.n > 0;
}
