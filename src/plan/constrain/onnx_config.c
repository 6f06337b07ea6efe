/* onnx_config: the multi-device configuration of a model as requirements, and a chosen plan as a configuration.
 *
 * In a configuration, a node gives the placements of its operands and results. Canonicalisation names the nodes that it makes from node N
 * either N or N/..., and a tensor keeps its name while it exists. A spec applies to nodes of such a name that still read or make the
 * tensor; if there are none, it is ignored. An operand without a spec, of a node with specs, is read as its producer leaves it; a graph
 * input is read replicated, a partial value partial if possible. Weights and state are free. */
#include "ir/configuration.h"
#include "op/rule/rule.h"
#include "plan/constrain/config_stages.h"
#include "plan/constrain/constrain.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <inttypes.h>
#include <string.h>

/* ---- which configuration ---------------------------------------------------------------------------------------------------- */

static int stages_of(const struct options *o)
{
    return o->stages ? o->stages : 1;
}

static int all_ranks(const struct options *o)
{
    return o->ranks * stages_of(o);
}

static const struct configuration *named_configuration(const struct graph *g, const char *name)
{
    const struct configuration *c = graph_configuration(g, name);
    const char **names = NEWN(g->arena, const char *, g->configurations.n + 1);
    for (int i = 0; i < g->configurations.n; i++)
        names[i] = g->configurations.at[i]->name;
    if (!c && !g->configurations.n)
        fail("%s: has no device configurations, expected '%s'", g->path, name);
    if (!c)
        fail("%s: has no device configuration '%s'; the nearest is '%s'", g->path, name,
             names[did_you_mean(name, g->configurations.n, names)]);
    return c;
}

/* Of several configurations for this number of devices, the one with the requested stages. */
static const struct configuration *fitting_configuration(const struct graph *g, const struct options *o, struct plan *plan)
{
    const struct configuration *found = NULL, *fits[2] = {NULL, NULL};
    for (int i = 0; i < g->configurations.n; i++) {
        const struct configuration *c = g->configurations.at[i];
        struct config_stages stages = {.list = {NULL, 0, 0}};
        if (c->devices != all_ranks(o))
            continue;
        found = found ? found : c;
        if (!config_stages_read(g->arena, c, o->ranks, stages_of(o), &stages))
            fits[fits[0] ? 1 : 0] = c;
    }
    if (fits[1])
        fail_usage("%s: has device configurations '%s' and '%s' for %d devices: say which with --configuration", g->path, fits[0]->name,
                   fits[1]->name, all_ranks(o));
    if (g->configurations.n && !found)
        VEC_PUSH(g->arena, &plan->warnings,
                 arena_printf(g->arena, "device configuration '%s' is for %" PRId64 " devices: it is not followed",
                              g->configurations.at[0]->name, g->configurations.at[0]->devices));
    return fits[0] ? fits[0] : found;
}

void plan_configuration(const struct graph *g, const struct options *o, struct plan *plan)
{
    const struct configuration *c = NULL;
    struct config_stages stages = {.list = {NULL, 0, 0}};
    if (!o->configuration)
        c = fitting_configuration(g, o, plan);
    else if (*o->configuration)
        c = named_configuration(g, o->configuration);
    if (!c)
        return;
    if (c->devices != all_ranks(o))
        fail("%s: device configuration '%s' is for %" PRId64 " devices, %s %d", g->path, c->name, c->devices,
             o->stages ? "--tp and --pp make" : "--tp says", all_ranks(o));
    const char *fault = config_stages_read(g->arena, c, o->ranks, stages_of(o), &stages);
    if (fault)
        fail("%s: device configuration '%s': %s: --configuration '' follows none", g->path, c->name, fault);
    explain("device configuration '%s': %d sharding specs", c->name, c->shardings.n);
    plan->configuration = c;
}

/* ---- what a spec applies to ---------------------------------------------------------------------------------------------------------- */

/* The remaining readers of a value that come from one node of the source. */
struct readers {
    VEC(struct place_use) list;
};

static void add_readers(const struct space *s, struct arena *a, const struct value *v, const char *node, const char *behind,
                        struct readers *out)
{
    size_t length = strlen(node);
    for (int i = 0; i < s->uses[v->id].list.n; i++) {
        struct place_use u = s->uses[v->id].list.at[i];
        const char *name = u.node < 0 ? "" : s->g->nodes.at[u.node]->name;
        if (u.node >= 0 && strncmp(name, node, length) == 0 && (*behind ? name[length] == *behind : !name[length]))
            VEC_PUSH(a, &out->list, u);
    }
}

/* Readers in the node of that name; if there is none, in nodes made from it. */
static struct readers readers_of(const struct space *s, struct arena *a, const struct value *v, const char *node)
{
    struct readers out = {{NULL, 0, 0}};
    add_readers(s, a, v, node, "", &out);
    if (!out.list.n)
        add_readers(s, a, v, node, "/", &out);
    return out;
}

static const struct value *living(const struct space *s, const char *tensor)
{
    const struct value *v = graph_find(s->g, tensor);
    return v && s->uses[v->id].list.n ? v : NULL;
}

static struct placement placement_of(const struct space *s, const char *where, const struct value *v, const struct sharding *from)
{
    struct placement at;
    const char *fault = sharding_placement(s->arena, s->g->alg, &v->type, from, s->ranks, &at);
    if (fault)
        fail("%s: %s", where, fault);
    return at;
}

static void require_result(struct space *s, const struct constraint *from, const struct value *v, struct placement at)
{
    boundary_add_requirement(
        s, (struct requirement){.from = from, .kind = REQUIREMENT_PLACED, .value = v, .text = placement_str(s->arena, at)});
}

static void require_operands(struct space *s, const struct constraint *from, enum requirement_kind kind, const struct value *v,
                             struct placement at)
{
    struct readers readers = readers_of(s, s->arena, v, from->glob);
    for (int i = 0; i < readers.list.n; i++) {
        struct place_use u = readers.list.at[i];
        require(u.node >= 0 && s->g->nodes.at[u.node]->in[u.operand] == v);
        boundary_add_requirement(
            s,
            (struct requirement){
                .from = from, .kind = kind, .node = u.node, .operand = u.operand, .value = v, .text = placement_str(s->arena, at)});
        s->sequence.passes[u.node] |= at.kind == PLACE_S && !dim_is_int(v->type.dim[at.dim], NULL);
    }
}

static const struct constraint *constraint_of(struct space *s, const struct sharding *from)
{
    struct constraint *c = NEW(s->arena, struct constraint);
    *c = (struct constraint){.on = ON_NODES, .glob = from->node};
    c->where = arena_printf(s->arena, "%s: node '%s': sharding_spec of '%s'", s->g->path, from->node, from->tensor);
    return c;
}

/* False: the spec applies to nothing that exists. left, by value id: placements of results. */
static bool demand(struct space *s, const struct sharding *from, const struct placement **left)
{
    const struct value *v = living(s, from->tensor);
    const struct constraint *c = constraint_of(s, from);
    int before = s->limits.requirements.n;
    if (!v)
        return false;
    struct placement *at = NEW(s->arena, struct placement);
    *at = placement_of(s, c->where, v, from);
    if (from->how == SHARDED_MAKES) {
        left[v->id] = at;
        require_result(s, c, v, *at);
    } else {
        require_operands(s, c, REQUIREMENT_OPERAND, v, *at);
    }
    return s->limits.requirements.n > before;
}

static bool is_plain_input(const struct space *s, const struct value *v)
{
    for (int i = 0; i < s->g->states.n; i++)
        if (s->g->states.at[i].past == v)
            return false;
    return s->producer[v->id] < 0 && !v->constant;
}

static void require_kept(struct space *s, const struct sharding *from, const struct placement *const *left)
{
    const struct value *v = living(s, from->tensor);
    if (v && (left[v->id] || is_plain_input(s, v)))
        require_operands(s, constraint_of(s, from), REQUIREMENT_KEPT, v, left[v->id] ? *left[v->id] : placement_replicated);
}

void onnx_annotations_require(struct space *s)
{
    const struct configuration *c = s->plan->configuration;
    const struct placement **left = NEWN(s->arena, const struct placement *, s->g->values.n + 1);
    const struct sharding *first = NULL;
    int gone = 0;
    for (int i = 0; c && i < c->shardings.n; i++)
        if (c->shardings.at[i].how != SHARDED_KEEPS && !demand(s, &c->shardings.at[i], left)) {
            first = first ? first : &c->shardings.at[i];
            gone++;
        }
    if (gone)
        explain("device configuration '%s': %d sharding specs apply to nothing in the canonical graph, the first of '%s' at node '%s'",
                c->name, gone, first->tensor, first->node);
    for (int i = 0; c && i < c->shardings.n; i++)
        if (c->shardings.at[i].how == SHARDED_KEEPS)
            require_kept(s, &c->shardings.at[i], left);
}

/* ---- a chosen plan as annotations -------------------------------------------------------------------------------------------- */

static struct placement operand_place(const struct space *s, struct place_use u)
{
    const struct strategy *st = u.node >= 0 ? s->g->nodes.at[u.node]->strategy : NULL;
    return st ? st->in[u.operand] : s->chosen.output[u.operand];
}

/* The placement of a result: of the graph input or output, or the one to which it is resharded. For a partial value, the one that all
 * readers need. */
static struct placement result_place(const struct space *s, const struct value *v)
{
    int number = graph_output_number(s->g, v);
    const struct place_uses *uses = &s->uses[v->id];
    struct placement at = number >= 0 ? s->chosen.output[number] : s->chosen.read[v->id] ? *s->chosen.read[v->id] : v->place;
    if (at.kind != PLACE_P || number >= 0)
        return at;
    struct placement read = operand_place(s, uses->list.at[0]);
    for (int i = 1; i < uses->list.n; i++)
        if (!placement_eq(read, operand_place(s, uses->list.at[i])))
            return at;
    return read;
}

bool onnx_annotation_of(void *space, struct arena *a, const char *node, const char *tensor, bool result, struct sharding *out)
{
    const struct space *s = space;
    const struct value *v = living(s, tensor);
    if (!v || (result && v->constant))
        return false;
    if (result)
        return sharding_of_placement(a, s->g->alg, &v->type, result_place(s, v), s->ranks, out);
    struct readers readers = readers_of(s, a, v, node);
    return readers.list.n && sharding_of_placement(a, s->g->alg, &v->type, operand_place(s, readers.list.at[0]), s->ranks, out);
}
