/* explain_collective: why there are collectives (--explain AllReduce): the nodes that leave a value in one placement, and those that read
 * it in another. */
#include "op/rule/rule.h"
#include "plan/report/report.h"
#include "plan/space/space.h"

#include <string.h>

struct move {
    const char *value, *made, *read; /* patterns of names, so that all layers share one entry */
    int count;
    double *seconds;
};
struct moves {
    VEC(struct move) list;
};

static const char *brief_text(struct arena *a, struct placement p)
{
    return p.kind == PLACE_S ? arena_printf(a, "S(%d)", p.dim) : placement_str(a, p);
}

/* "left as P(sum) by X (MatMul), which splits k". */
static const char *made_text(struct space *s, const struct value *v)
{
    int node = s->producer[v->id];
    const char *left = brief_text(s->arena, v->place), *splits = "";
    if (node < 0)
        return arena_printf(s->arena, "left as %s by who gives the input", left);
    const struct node *n = s->g->nodes.at[node];
    const struct strategy *st = n->strategy;
    for (int f = 0; s->rule[node] && st->assignment.factor && f < s->rule[node]->nfactor; f++)
        if (st->assignment.factor[f])
            splits = arena_printf(s->arena, ", which splits %s%s", s->rule[node]->factor[f].name,
                                  s->rule[node]->factor[f].flags & FACTOR_CONTRACTED ? " and sums over it" : "");
    return arena_printf(s->arena, "left as %s by %s (%s)%s", left, label_pattern(s->arena, n->name), n->optype, splits);
}

static const char *read_text(struct space *s, const struct step_part *part, const char *to)
{
    if (part->node >= s->g->nodes.n)
        return "taken as a graph output, which is replicated unless --plan asks otherwise";
    const struct node *n = s->g->nodes.at[part->node];
    return arena_printf(s->arena, "read as %s by %s (%s)", to, label_pattern(s->arena, n->name), n->optype);
}

static void add_move(struct space *s, struct moves *all, const struct step_part *part)
{
    const struct value *v = graph_find(s->g, part->name);
    require(v);
    struct placement to;
    const char *error, *brief = placement_parse(s->g->alg, part->to, &to, &error) ? brief_text(s->arena, to) : part->to;
    struct move new = {arena_printf(s->arena, "%s to %s", label_pattern(s->arena, part->name), brief), made_text(s, v),
                       read_text(s, part, brief), 1, part->seconds};
    for (int i = 0; i < all->list.n; i++)
        if (strcmp(all->list.at[i].value, new.value) == 0 && strcmp(all->list.at[i].made, new.made) == 0 &&
            strcmp(all->list.at[i].read, new.read) == 0) {
            all->list.at[i].count++;
            return;
        }
    VEC_PUSH(s->arena, &all->list, new);
}

void explain_collectives(FILE *f, struct space *s, enum collective kind)
{
    struct moves all = {.list = {NULL, 0, 0}};
    const struct step_parts *step = &s->plan->step;
    int count = 0;
    for (int i = 0; i < step->list.n; i++)
        if (step->list.at[i].to && step->list.at[i].by == kind) {
            add_move(s, &all, &step->list.at[i]);
            count++;
        }
    fprintf(f, "%d %s a step, before small ones are merged, without the ones inside a node's computation\n", count, collective_name(kind));
    EACH (const struct move, m, all.list) {
        fprintf(f, "  %dx %s\n      %s\n      %s\n      each takes", m->count, m->value, m->made, m->read);
        for (int w = 0; w < s->plan->workloads.n; w++)
            fprintf(f, "%s %s", w ? "," : "", units_seconds(s->arena, m->seconds[w]));
        fprintf(f, "%s\n", s->plan->workloads.n > 1 ? ", by workload" : "");
    }
}

const struct value *explain_emitted(const struct space *s, const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash && collective_parse(slash + 1) ? graph_find(s->g, arena_strndup(s->arena, name, (size_t)(slash - name))) : NULL;
}
