/* plan_read: reads back a plan.json that tpc-shard wrote: its choices (src/plan/constrain/replay.c applies them to a graph) and everything
 * that its choices, costs and report depend on. */
#include "op/canon/canon.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

enum { MOST_DIMS = 4096 }; /* of a graph, far above real ones */

struct plan_reader {
    struct arena *a;
    const char *path;
    const json_t *root;
};

static const json_t *plan_member(const struct plan_reader *r, const char *key, json_type type)
{
    const json_t *v = json_member(r->path, r->root, key, type);
    if (!v)
        fail("%s: has no '%s': expected a plan.json that tpc-shard wrote", r->path, key);
    return v;
}

static int64_t size_of(const struct plan_reader *r, const char *where, const char *name, const json_t *v, int64_t lo, int64_t hi)
{
    if (!json_is_integer(v) || json_integer_value(v) < lo || json_integer_value(v) > hi)
        fail("%s: %s: expected '%s' to be an integer from %lld to %lld", r->path, where, name, (long long)lo, (long long)hi);
    return json_integer_value(v);
}

static double number_of(const struct plan_reader *r, const char *where, const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    if (!json_is_number(v) || !isfinite(json_number_value(v)))
        fail("%s: %s: expected '%s' to be a number, found %s", r->path, where, name, json_kind(v));
    return json_number_value(v);
}

static struct bindings plan_read_sizes(const struct plan_reader *r, const char *where, const json_t *o)
{
    struct bindings b = {0};
    const char *name;
    json_t *v, *dims = json_member(arena_printf(r->a, "%s: %s", r->path, where), o, "dims", JSON_OBJECT);
    if (json_object_size(dims) > MOST_DIMS)
        fail("%s: %s: has %zu dims, expected at most %d", r->path, where, json_object_size(dims), MOST_DIMS);
    json_object_foreach(dims, name, v) bindings_set(r->a, &b, arena_strdup(r->a, name), size_of(r, where, name, v, 0, INT64_MAX));
    return b;
}

/* ---- what was planned for -------------------------------------------------------------------------------------------------- */

static bool option_is(const struct plan_reader *r, const json_t *options, const char *key, const char *text)
{
    const char *found = json_text(r->a, r->path, options, key);
    return found && strcmp(found, text) == 0;
}

static struct bound_inputs fixed_of(const struct plan_reader *r, const json_t *options)
{
    struct bound_inputs all = {{NULL, 0, 0}};
    const json_t *list = json_member(arena_printf(r->a, "%s: options", r->path), options, "bind", JSON_ARRAY);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text)
            fail("%s: options: bind[%zu]: expected NAME=VALUE, found %s", r->path, i, json_kind(json_array_get(list, i)));
        VEC_PUSH(r->a, &all.list, arena_strdup(r->a, text));
    }
    return all;
}

static void read_plan_options(const struct plan_reader *r, struct emitted *e, struct plan_file *file)
{
    const json_t *o = plan_member(r, "options", JSON_OBJECT), *user = json_member(r->path, o, "plan", JSON_OBJECT);
    e->sp = option_is(r, o, "sp", "on") ? SP_ON : option_is(r, o, "sp", "auto") ? SP_AUTO : SP_OFF;
    e->sp_symbol = json_text(r->a, r->path, o, "sp_symbol");
    e->solver_first = option_is(r, o, "solver", "first");
    const char *configuration = json_text(r->a, r->path, o, "configuration");
    e->configuration = configuration ? configuration : "";
    const char *weights = json_text(r->a, r->path, o, "weights");
    e->storage = weights ? weight_type_parse(weights) : DT_NONE;
    const char *wire = json_text(r->a, r->path, o, "wire");
    if (wire && !sum_wire_parse(wire, &e->wire))
        fail("%s: options: wire is '%s', expected f32, bf16 or q8", r->path, wire);
    e->strict = json_is_true(json_object_get(o, "strict")) ? STRICT_ON
        : json_is_string(json_object_get(o, "strict"))     ? STRICT_WARN
                                                           : STRICT_OFF;
    e->dims = plan_read_sizes(r, "options", o);
    e->fixed = fixed_of(r, o);
    if (user)
        plan_parse_user(r->a, file, arena_printf(r->a, "%s: options.plan", r->path), user);
}

static void read_workloads(const struct plan_reader *r, struct emitted *e)
{
    const json_t *list = plan_member(r, "workload", JSON_ARRAY);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const char *where = arena_printf(r->a, "workload[%zu]", i);
        struct workload w = {.dims = plan_read_sizes(r, where, o), .weight = number_of(r, where, o, "weight")};
        if (!(w.weight > 0) || w.weight > 1e12)
            fail("%s: %s: expected a 'weight' above zero, found %g", r->path, where, w.weight);
        VEC_PUSH(r->a, &e->workloads, w);
    }
    if (e->workloads.n == 0)
        fail("%s: workload: is empty", r->path);
}

static void read_cost(const struct plan_reader *r, struct emitted *e)
{
    const json_t *o = plan_member(r, "cost", JSON_OBJECT);
    e->objective = number_of(r, "cost", o, "objective");
    e->lower_bound = number_of(r, "cost", o, "lower_bound");
    e->proven = json_is_true(json_object_get(o, "proven"));
    const json_t *price = json_object_get(o, "collective_price");
    e->collective_price = price ? size_of(r, "cost", "collective_price", price, 0, COST_NEVER >> 24) : 0;
}

static double least_zero(const struct plan_reader *r, const char *where, const json_t *o, const char *name)
{
    double x = number_of(r, where, o, name);
    if (x < 0)
        fail("%s: %s: expected '%s' to be 0 or more, found %g", r->path, where, name, x);
    return x;
}

static void read_memory_shares(const struct plan_reader *r, const json_t *list, struct emitted *e)
{
    int64_t *share = NEWN(r->a, int64_t, e->ranks), sum = 0;
    if (!list)
        return;
    if (json_array_size(list) != (size_t)e->ranks)
        fail("%s: memory: expected a list of %d 'shares', found %s", r->path, e->ranks,
             json_is_array(list) ? arena_printf(r->a, "%zu", json_array_size(list)) : json_kind(list));
    for (int i = 0; i < e->ranks; i++)
        sum += share[i] = size_of(r, "memory", arena_printf(r->a, "shares[%d]", i), json_array_get(list, (size_t)i), 0, SHARES_SUM);
    if (sum < 1 || sum > SHARES_SUM)
        fail("%s: memory: expected 'shares' whose sum is from 1 to %d, found %lld", r->path, SHARES_SUM, (long long)sum);
    e->memory_share = share;
}

static void read_memory(const struct plan_reader *r, struct emitted *e)
{
    const json_t *o = plan_member(r, "memory", JSON_OBJECT), *limit = json_object_get(o, "limit");
    if (!limit)
        return;
    e->memory = size_of(r, "memory", "limit", limit, 1, INT64_MAX);
    e->byte_price = least_zero(r, "memory", o, "price");
    e->memory_gap = least_zero(r, "memory", o, "gap");
    read_memory_shares(r, json_object_get(o, "shares"), e);
}

/* ---- what was chosen ------------------------------------------------------------------------------------------------------- */

/* Members that are strings, or objects with a placement. */
static struct named_list texts_of(const struct plan_reader *r, const char *key)
{
    struct named_list list = {{NULL, 0, 0}};
    const char *name;
    json_t *v, *all = (json_t *)(uintptr_t)plan_member(r, key, JSON_OBJECT);
    json_object_foreach(all, name, v)
    {
        const char *text = json_string_value(json_is_object(v) ? json_object_get(v, "placement") : v);
        if (!text)
            fail("%s: %s: expected a placement for '%s', found %s", r->path, key, name, json_kind(v));
        VEC_PUSH(r->a, &list.list, ((struct named){arena_strdup(r->a, name), arena_strdup(r->a, text)}));
    }
    return list;
}

static struct named_list read_from(const struct plan_reader *r)
{
    struct named_list list = {{NULL, 0, 0}};
    const json_t *states = plan_member(r, "state", JSON_ARRAY);
    for (size_t i = 0; i < json_array_size(states); i++) {
        const char *where = arena_printf(r->a, "%s: state[%zu]", r->path, i);
        const char *past = json_text(r->a, where, json_array_get(states, i), "past"),
                   *from = json_text(r->a, where, json_array_get(states, i), "from");
        if (past && from)
            VEC_PUSH(r->a, &list.list, ((struct named){past, from}));
    }
    return list;
}

const struct emitted *plan_read_emitted(struct arena *a, struct plan_file *file, const json_t *root)
{
    const struct plan_reader r = {a, file->path, root};
    struct emitted *e = NEW(a, struct emitted);
    if (json_object_get(root, "stages"))
        fail("%s: is the plan of a model in stages (--pp), which is not replayed or compared with yet", file->path);
    size_of(&r, "plan", "version", plan_member(&r, "version", JSON_INTEGER), PLAN_VERSION, PLAN_VERSION);
    e->ranks = (int)size_of(&r, "plan", "tp", plan_member(&r, "tp", JSON_INTEGER), 1, PLAN_RANKS);
    read_plan_options(&r, e, file);
    read_workloads(&r, e);
    read_cost(&r, e);
    read_memory(&r, e);
    e->machine = machine_from(a, arena_printf(a, "%s: machine", file->path), plan_member(&r, "machine", JSON_OBJECT));
    const char *name = json_text(a, e->machine.name, plan_member(&r, "machine", JSON_OBJECT), "name");
    e->machine.name = name ? name : "";
    e->machine.wire = e->wire;
    e->nodes = texts_of(&r, "nodes");
    e->inputs = texts_of(&r, "inputs");
    e->outputs = texts_of(&r, "outputs");
    e->weights = texts_of(&r, "weights");
    e->read_places = texts_of(&r, "pinned");
    e->from = read_from(&r);
    return e;
}

struct plan_file *plan_file_read(struct arena *a, const char *path)
{
    path = path_is_folder(path) ? path_join(a, path, "plan.json") : path;
    struct plan_file *file = NEW(a, struct plan_file);
    json_t *root = json_read(path);
    file->path = path;
    if (json_object_get(root, "version"))
        file->emitted = plan_read_emitted(a, file, root);
    else
        plan_parse_user(a, file, path, root);
    json_decref(root);
    return file;
}
