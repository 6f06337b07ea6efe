/* replay: an emitted plan fixes every choice: each node has the strategy that the plan names, each input and output its placement, so
 * nothing is left to search. Nodes, inputs and outputs must be the plan's, in its order. */
#include "op/rule/rule.h"
#include "plan/constrain/constrain.h"
#include "plan/cost/cost.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <string.h>

static void same_name(const struct space *s, const char *what, const struct named_list *there, int i, int n, const char *name)
{
    const char *path = s->options->plan_file->path;
    if (i >= there->list.n)
        fail("%s: is the plan of another graph: it has %d %ss, %s has %d, the first of the others '%s'", path, there->list.n, what,
             s->g->path, n, name);
    if (strcmp(there->list.at[i].name, name) != 0)
        fail("%s: is the plan of another graph: %s %d is '%s' there and '%s' in %s", path, what, i + 1, there->list.at[i].name, name,
             s->g->path);
}

static void same_count(const struct space *s, const char *what, const struct named_list *there, int n)
{
    if (there->list.n > n)
        fail("%s: is the plan of another graph: it has %d %ss, %s has %d: '%s' is missing", s->options->plan_file->path, there->list.n,
             what, s->g->path, n, there->list.at[n].name);
}

static void fix_node(struct space *s, int i, const char *text)
{
    const struct node *n = s->g->nodes.at[i];
    const struct strategies *all = &s->strategies[i];
    const char **texts = NEWN(s->arena, const char *, all->list.n + 1);
    require(all->list.n > 0);
    for (int k = 0; k < all->list.n; k++) {
        struct strategy *st = all->list.at[k];
        texts[k] = strategy_str(s->arena, n, st);
        if (strcmp(texts[k], text) != 0)
            continue;
        struct strategies one = {0};
        VEC_PUSH(s->arena, &one.list, st);
        s->strategies[i] = one;
        return;
    }
    fail("%s: nodes: node '%s' (%s) has no strategy '%s'; the nearest legal one is '%s'", s->options->plan_file->path, n->name, n->optype,
         text, texts[did_you_mean(text, all->list.n, texts)]);
}

static void fix_nodes(struct space *s, const struct named_list *nodes)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        same_name(s, "node", nodes, i, s->g->nodes.n, s->g->nodes.at[i]->name);
        fix_node(s, i, placement_texts(s->g->alg, nodes->list.at[i].text));
    }
    same_count(s, "node", nodes, s->g->nodes.n);
}

typedef void require_value(struct space *, const char *where, const struct value *, const char *text, bool check);

static void fix_value(struct space *s, require_value *add, const char *key, const struct value *v, const char *text)
{
    add(s, arena_printf(s->arena, "%s: %s", s->options->plan_file->path, key), v, text, true);
}

static void fix_ends(struct space *s, const char *what, const struct named_list *there, int n, struct value *const *at)
{
    for (int i = 0; i < n; i++) {
        same_name(s, what, there, i, n, at[i]->name);
        fix_value(s, required_add, arena_printf(s->arena, "%ss", what), at[i], there->list.at[i].text);
    }
    same_count(s, what, there, n);
}

/* Skips constants that insert and lowerings made: they do not exist yet. */
static void replay_named(struct space *s, require_value *add, const char *key, const struct named_list *there)
{
    for (int i = 0; i < there->list.n; i++) {
        const struct value *v = graph_find(s->g, there->list.at[i].name);
        if (v && s->uses[v->id].list.n)
            fix_value(s, add, key, v, there->list.at[i].text);
    }
}

static void name_sources(struct space *s, const struct named_list *from)
{
    EACH (struct state, st, s->g->states) {
        for (int k = 0; st->past && !st->from && k < from->list.n; k++)
            if (strcmp(st->past->name, from->list.at[k].name) == 0)
                st->from = from->list.at[k].text;
    }
}

void replay_plan(struct space *s)
{
    const struct emitted *e = s->options->plan_file->emitted;
    fix_nodes(s, &e->nodes);
    fix_ends(s, "input", &e->inputs, s->g->inputs.n, s->g->inputs.at);
    fix_ends(s, "output", &e->outputs, s->g->outputs.n, s->g->outputs.at);
    replay_named(s, required_add, "weights", &e->weights);
    replay_named(s, required_add_read, "pinned", &e->read_places);
    name_sources(s, &e->from);
}

bool replay_holds(const struct space *s)
{
    double objective = plan_objective(s->plan), written = s->options->plan_file->emitted->objective;
    return !(objective < written) && !(objective > written);
}
