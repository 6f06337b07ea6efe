/* statefrom: --state-from: what another plan of the same model says of the state that this graph shares with it. */
#include "plan/json.h"
#include "plan/plan.h"

#include <string.h>

struct reader { struct arena *a; struct alg *alg; const char *path; const json_t *inputs, *outputs; };

static const json_t *need(const struct reader *r, const json_t *o, const char *key, json_type type)
{
    const json_t *member = json_member(r->path, o, key, type);
    if (!member)
        fail("%s: has no '%s': expected a plan.json that tpc-shard wrote", r->path, key);
    return member;
}

/* The state by the end that a graph after this one takes, or that all take. */
static struct other_state read_state(const struct reader *r, const json_t *o)
{
    const char *present = json_text(r->a, r->path, o, "present"), *error = NULL;
    struct other_state s = {.made = present != NULL, .placement = json_string_value(need(r, o, "placement", JSON_STRING))};
    s.end.name = present ? present : json_string_value(need(r, o, "past", JSON_STRING));
    const json_t *end = need(r, present ? r->outputs : r->inputs, s.end.name, JSON_OBJECT);
    const char *type = json_string_value(need(r, end, "type", JSON_STRING));
    if (!type_parse(r->alg, type, 0, &s.end.type, &error))
        fail("%s: the type '%s' of state '%s': %s", r->path, type, s.end.name, error);
    s.end.name = arena_strdup(r->a, s.end.name);
    s.placement = arena_strdup(r->a, s.placement);
    return s;
}

struct other_plan *state_from_read(struct arena *a, const char *dir, int ranks)
{
    struct other_plan *other = NEW(a, struct other_plan);
    other->path = path_join(a, dir, "plan.json");
    json_t *root = json_read(other->path), *states, *state;
    struct reader r = {.a = a, .alg = alg_new(a), .path = other->path};
    json_int_t there = json_integer_value(need(&r, root, "tp", JSON_INTEGER));
    size_t i;
    if (there != ranks)
        fail("%s: is a plan for %lld ranks, --tp asks for %d", other->path, (long long)there, ranks);
    r.inputs = need(&r, root, "inputs", JSON_OBJECT);
    r.outputs = need(&r, root, "outputs", JSON_OBJECT);
    need(&r, root, "state", JSON_ARRAY);
    states = json_object_get(root, "state");
    json_array_foreach(states, i, state)
        VEC_PUSH(a, &other->states, read_state(&r, state));
    json_decref(root);
    if (other->states.n == 0)
        fail("%s: is the plan of a graph without state", other->path);
    return other;
}

/* ---- which of them the states of a graph are ---------------------------------------------------------------------------------- */

static struct handover ends_of(struct graph *g)
{
    struct handed *at = NEWN(g->arena, struct handed, g->states.n + 1);
    for (int i = 0; i < g->states.n; i++) {
        const struct value *v = g->states.at[i].past ? g->states.at[i].past : g->states.at[i].present;
        at[i] = (struct handed){v->name, v->type};
    }
    return (struct handover){g->path ? g->path : g->name, g->states.n, at};
}

static struct handover ends_there(struct arena *a, const struct other_plan *other)
{
    struct handed *at = NEWN(a, struct handed, other->states.n + 1);
    for (int j = 0; j < other->states.n; j++)
        at[j] = other->states.at[j].end;
    return (struct handover){other->path, other->states.n, at};
}

void plan_match_states(struct graph *g, const struct options *options, struct plan *plan)
{
    const struct other_plan *other = options->state_from;
    struct handover here = ends_of(g), there = ends_there(g->arena, other);
    int *match = NEWN(g->arena, int, g->states.n + 1), matched = 0;
    handover_match(&here, &there, match);
    plan->state_placement = NEWN(g->arena, const char *, g->states.n + 1);
    for (int i = 0; i < g->states.n; i++) {
        struct state *s = &g->states.at[i];
        if (match[i] < 0) {
            VEC_PUSH(g->arena, &plan->warnings, arena_printf(g->arena, "state '%s' has no counterpart in %s", here.at[i].name, other->path));
            continue;
        }
        const struct other_state *o = &other->states.at[match[i]];
        s->from = s->past && o->made ? o->end.name : NULL;
        plan->state_placement[i] = o->placement;
        matched++;
    }
    if (matched == 0)
        fail("%s: shares no state with %s", here.file, other->path);
}
