/* state_from: --state-from: the placements that another plan of the model gives to the state that both graphs share. */
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <string.h>

struct other_reader {
    struct arena *a;
    struct alg *alg;
    const char *path;
    const json_t *inputs, *outputs;
};

static const json_t *need_member(const struct other_reader *r, const json_t *o, const char *key, json_type type)
{
    const json_t *member = json_member(r->path, o, key, type);
    if (!member)
        fail("%s: has no '%s': expected a plan.json that tpc-shard wrote", r->path, key);
    return member;
}

/* Reads a state, by the end that a later graph reads, or that all graphs read. */
static struct other_state read_other_state(const struct other_reader *r, const json_t *o)
{
    const char *present = json_text(r->a, r->path, o, "present"), *error = NULL;
    struct other_state s = {.made = present != NULL, .placement = json_string_value(need_member(r, o, "placement", JSON_STRING))};
    s.end.name = present ? present : json_string_value(need_member(r, o, "past", JSON_STRING));
    const json_t *end = need_member(r, present ? r->outputs : r->inputs, s.end.name, JSON_OBJECT);
    const char *type = json_string_value(need_member(r, end, "type", JSON_STRING));
    if (!type_parse(r->alg, type, 0, &s.end.type, &error))
        fail("%s: the type '%s' of state '%s': %s", r->path, type, s.end.name, error);
    s.end.name = arena_strdup(r->a, s.end.name);
    s.placement = arena_strdup(r->a, s.placement);
    return s;
}

/* Releases root. */
static struct other_plan *read_other(struct arena *a, const char *path, json_t *root, int ranks)
{
    struct other_plan *other = NEW(a, struct other_plan);
    json_t *states, *state;
    other->path = path;
    struct other_reader r = {.a = a, .alg = alg_new(a), .path = other->path};
    if (json_object_get(root, "stages"))
        fail("%s: is the plan of a model in stages (--pp), from which no state is taken yet", other->path);
    json_int_t there = json_integer_value(need_member(&r, root, "tp", JSON_INTEGER));
    size_t i;
    if (there != ranks)
        fail("%s: is a plan for %lld ranks, --tp is %d", other->path, (long long)there, ranks);
    r.inputs = need_member(&r, root, "inputs", JSON_OBJECT);
    r.outputs = need_member(&r, root, "outputs", JSON_OBJECT);
    need_member(&r, root, "state", JSON_ARRAY);
    states = json_object_get(root, "state");
    json_array_foreach(states, i, state) VEC_PUSH(a, &other->states, read_other_state(&r, state));
    json_decref(root);
    return other;
}

struct other_plan *state_from_read(struct arena *a, const char *dir, int ranks)
{
    const char *path = path_join(a, dir, "plan.json");
    struct other_plan *other = read_other(a, path, json_read(path), ranks);
    if (other->states.n == 0)
        fail("%s: is the plan of a graph without state", path);
    return other;
}

struct other_plan *state_from_text(struct arena *a, const char *path, const char *text, int ranks)
{
    struct other_plan *other = read_other(a, path, json_parse(path, text, strlen(text)), ranks);
    return other->states.n ? other : NULL;
}

/* ---- which of them the states of a graph are ---------------------------------------------------------------------------------- */

static const struct value *end_of(const struct state *s)
{
    return s->past ? s->past : s->present;
}

static int find_there(const struct other_plan *other, const struct state_names *names, const char *end)
{
    for (int j = 0; j < other->states.n; j++)
        if (strcmp(other->states.at[j].end.name, end) == 0)
            return j;
    fail("%s: %s has no state '%s'", names->path, other->path, end);
}

/* Matches the pairs that the plan file names. */
static void match_named(const struct graph *g, const struct plan_file *file, const struct other_plan *other, int *match)
{
    for (int k = 0; file && k < file->state_from.n; k++) {
        const struct state_names *names = &file->state_from.at[k];
        bool any = false;
        for (int i = 0; i < g->states.n; i++) {
            const char *there = glob_rewrite(g->arena, names->past, end_of(&g->states.at[i])->name, names->present);
            if (there)
                match[i] = find_there(other, names, there);
            any = any || there;
        }
        if (!any)
            fail("%s: no state of %s is named like '%s'", names->path, graph_file(g), names->past);
    }
}

/* Matches the rest by name. */
static void match_rest(const struct graph *g, const struct other_plan *other, int *match)
{
    struct handed *here = NEWN(g->arena, struct handed, g->states.n), *there = NEWN(g->arena, struct handed, other->states.n);
    int *at = NEWN(g->arena, int, g->states.n), *of = NEWN(g->arena, int, other->states.n), *found = NEWN(g->arena, int, g->states.n);
    bool *taken = NEWN(g->arena, bool, other->states.n);
    struct handover to = {graph_file(g), 0, here}, from = {other->path, 0, there};
    for (int i = 0; i < g->states.n; i++) {
        const struct value *end = end_of(&g->states.at[i]);
        if (match[i] >= 0) {
            taken[match[i]] = true;
        } else {
            at[to.n] = i;
            here[to.n++] = (struct handed){end->name, end->type};
        }
    }
    for (int j = 0; j < other->states.n; j++)
        if (!taken[j]) {
            of[from.n] = j;
            there[from.n++] = other->states.at[j].end;
        }
    state_match(&to, &from, found);
    for (int i = 0; i < to.n; i++)
        match[at[i]] = found[i] < 0 ? -1 : of[found[i]];
}

void plan_match_states(struct graph *g, const struct options *options, struct plan *plan)
{
    const struct other_plan *other = options->state_from;
    int *match = NEWN(g->arena, int, g->states.n + 1), matched = 0;
    for (int i = 0; i < g->states.n; i++)
        match[i] = -1;
    match_named(g, options->plan_file, other, match);
    match_rest(g, other, match);
    plan->state_placement = NEWN(g->arena, const char *, g->states.n + 1);
    for (int i = 0; i < g->states.n; i++) {
        struct state *s = &g->states.at[i];
        if (match[i] < 0) {
            VEC_PUSH(g->arena, &plan->warnings,
                     arena_printf(g->arena, "state '%s' has no counterpart in %s", end_of(s)->name, other->path));
            continue;
        }
        require(match[i] < other->states.n);
        const struct other_state *o = &other->states.at[match[i]];
        s->from = s->past && o->made ? o->end.name : NULL;
        plan->state_placement[i] = o->placement;
        matched++;
    }
    if (matched == 0)
        fail("%s: shares no state with %s", graph_file(g), other->path);
}
