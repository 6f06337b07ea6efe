/* state_names: state that the plan file names ("state": {"past_key_values.*.key": "present.*.key"}). A glob applies to every graph input
 * that it matches or, for output-only state, to every graph output. */
#include "plan/input/input.h"

#include <string.h>

struct ends {
    int n;
    struct value *const *at;
};
struct naming {
    struct graph *g;
    VEC(struct state) list;
};

static _Noreturn void refuse_state_name(struct graph *g, const struct state_names *names, const char *what, const char *name,
                                        struct ends among)
{
    const char **all = NEWN(g->arena, const char *, among.n + 1);
    for (int i = 0; i < among.n; i++)
        all[i] = among.at[i]->name;
    int near = did_you_mean(name, among.n, all);
    fail("%s: no graph %s is named like '%s'%s%s%s", names->path, what, name, near < 0 ? "" : "; the nearest is '",
         near < 0 ? "" : all[near], near < 0 ? "" : "'");
}

static bool shares_end(const struct state *a, const struct state *b)
{
    return (a->past && a->past == b->past) || (a->present && a->present == b->present);
}

static void add_named_state(struct naming *t, const struct state_names *names, struct state state)
{
    require(state.past || state.present);
    for (int i = 0; i < t->list.n; i++)
        if (shares_end(&t->list.at[i], &state))
            fail("%s: state '%s' is named twice", names->path, (state.past ? state.past : state.present)->name);
    VEC_PUSH(t->g->arena, &t->list, state);
}

static struct value *named_present(struct graph *g, const struct state_names *names, const char *name)
{
    int i = graph_output_named(g, name);
    if (i >= 0)
        return g->outputs.at[i];
    if (*names->present)
        refuse_state_name(g, names, "output", name, (struct ends){g->outputs.n, g->outputs.at});
    return NULL;
}

static void name_states(struct naming *t, const struct state_names *names)
{
    struct graph *g = t->g;
    bool output_only = !*names->past;
    const char *glob = output_only ? names->present : names->past, *end;
    struct ends among = {output_only ? g->outputs.n : g->inputs.n, output_only ? g->outputs.at : g->inputs.at};
    int before = t->list.n;
    for (int i = 0; i < among.n; i++)
        if ((end = glob_rewrite(g->arena, glob, among.at[i]->name, names->present)))
            add_named_state(t, names,
                            (struct state){.past = output_only ? NULL : among.at[i], .present = named_present(g, names, end), .dim = -1});
    if (t->list.n == before)
        refuse_state_name(g, names, output_only ? "output" : "input", glob, among);
}

/* Lets the past of a first step be empty along the dimension in which the declared types differ. */
static void may_lack_past(struct graph *g, const struct state *s)
{
    const struct type *past = s->past ? &s->past->type : NULL, *present = s->present ? &s->present->type : NULL;
    for (int d = 0; past && present && past->rank == present->rank && d < past->rank; d++)
        if (past->dim[d] != present->dim[d] && past->dim[d]->kind == DIM_SYM)
            dim_sym(g->alg, past->dim[d]->name, 0);
}

void plan_name_states(struct graph *g, const struct plan_file *file)
{
    struct naming t = {.g = g};
    for (int i = 0; i < file->states.n; i++)
        name_states(&t, &file->states.at[i]);
    int found = g->states.n;
    graph_clear_states(g);
    for (int i = 0; i < found; i++) {
        struct state s = g->states.at[i];
        bool named = false;
        for (int k = 0; k < t.list.n; k++) {
            named = named || shares_end(&t.list.at[k], &s);
            if (t.list.at[k].past == s.past && t.list.at[k].present == s.present)
                t.list.at[k].dim = s.dim;
        }
        if (!named)
            graph_add_state(g, s);
    }
    for (int k = 0; k < t.list.n; k++) {
        graph_add_state(g, t.list.at[k]);
        may_lack_past(g, &t.list.at[k]);
    }
}
