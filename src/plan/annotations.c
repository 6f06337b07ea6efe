/* annotations: the multi-device configuration of a model as constraints, and a chosen plan as one.
 *
 * Under a configuration a node says how it reads operands and how it leaves results. What canonicalisation makes of node N is called N or N/...,
 * and a tensor keeps its name as long as it exists: a spec speaks of what still reads or makes the tensor under such a name, and is of no use
 * where nothing does. An operand drops the node's strategies that read it otherwise, a result is a wish (src/plan/wishes.c): it is brought there before
 * it is read. A node with a spec reads an operand that has none as its maker leaves it, a graph input whole, and terms of a sum as they are, where it can;
 * weights and what a decode loop carries are free. */
#include "plan/space.h"

#include <inttypes.h>
#include <string.h>

/* ---- which configuration ---------------------------------------------------------------------------------------------------- */

static const struct configuration *named_configuration(const struct graph *g, const char *name)
{
    const struct configuration *c = graph_configuration(g, name);
    const char **names = NEWN(g->arena, const char *, g->configurations.n + 1);
    for (int i = 0; i < g->configurations.n; i++)
        names[i] = g->configurations.at[i]->name;
    if (!c && !g->configurations.n)
        fail("%s: has no device configurations, expected '%s'", g->path ? g->path : g->name, name);
    if (!c)
        fail("%s: has no device configuration '%s'; the nearest is '%s'", g->path, name, names[nearest_text(name, g->configurations.n, names)]);
    return c;
}

static const struct configuration *fitting_configuration(const struct graph *g, const struct options *o, struct plan *plan)
{
    const struct configuration *found = NULL;
    for (int i = 0; i < g->configurations.n; i++) {
        const struct configuration *c = g->configurations.at[i];
        if (c->devices == o->ranks && found)
            fail_usage("%s: has device configurations '%s' and '%s' for %d devices: say which with --configuration", g->path, found->name, c->name, o->ranks);
        if (c->devices == o->ranks)
            found = c;
    }
    if (g->configurations.n && !found)
        VEC_PUSH(g->arena, &plan->warnings, arena_printf(g->arena, "device configuration '%s' is for %" PRId64 " devices: it is not followed", g->configurations.at[0]->name,
                                                         g->configurations.at[0]->devices));
    return found;
}

static void check_stages(const struct graph *g, const struct configuration *c)
{
    for (int i = 1; i < c->stages.n; i++)
        if (c->stages.at[i].stage != c->stages.at[0].stage)
            fail("%s: device configuration '%s': node '%s' is in pipeline stage %" PRId64 " and node '%s' in %" PRId64 ", where tpc knows one stage", g->path, c->name,
                 c->stages.at[0].node, c->stages.at[0].stage, c->stages.at[i].node, c->stages.at[i].stage);
}

void plan_configuration(const struct graph *g, const struct options *o, struct plan *plan)
{
    const struct configuration *c = NULL;
    if (!o->configuration)
        c = fitting_configuration(g, o, plan);
    else if (*o->configuration)
        c = named_configuration(g, o->configuration);
    if (!c)
        return;
    if (c->devices != o->ranks)
        fail("%s: device configuration '%s' is for %" PRId64 " devices, --tp says %d", g->path, c->name, c->devices, o->ranks);
    check_stages(g, c);
    explain("device configuration '%s': %d sharding specs", c->name, c->shardings.n);
    plan->configuration = c;
}

/* ---- what a spec speaks of ---------------------------------------------------------------------------------------------------------- */

/* Is the node what is left of the source's? */
static bool comes_from(const struct node *n, const char *source)
{
    size_t length = strlen(source);
    return strncmp(n->name, source, length) == 0 && (!n->name[length] || n->name[length] == '/');
}

static const struct value *living(const struct space *s, const char *tensor)
{
    const struct value *v = graph_find(s->g, tensor);
    return v && s->uses[v->id].list.n ? v : NULL;
}

static void add(struct space *s, const char *where, const struct value *v, struct place_use u, struct placement at, bool implied)
{
    VEC_PUSH(s->arena, &s->annotated.list, ((struct annotated){where, v, u.node, u.operand, at, implied}));
}

static struct placement placement_of(const struct space *s, const char *where, const struct value *v, const struct sharding *from)
{
    struct placement at;
    const char *fault = sharding_placement(s->arena, s->g->alg, &v->type, from, s->ranks, &at);
    if (fault)
        fail("%s: %s", where, fault);
    return at;
}

/* For every operand that the spec is about. */
static void add_readers(struct space *s, const char *where, const struct value *v, const char *node, struct placement at, bool implied)
{
    for (int i = 0; i < s->uses[v->id].list.n; i++) {
        struct place_use u = s->uses[v->id].list.at[i];
        if (u.node >= 0 && comes_from(s->g->nodes.at[u.node], node))
            add(s, where, v, u, at, implied);
    }
}

/* False: the spec speaks of nothing that there is. */
static bool resolve(struct space *s, const struct sharding *from)
{
    static const struct place_use result = {-1, 0};
    const struct value *v = living(s, from->tensor);
    const char *where = arena_printf(s->arena, "%s: node '%s': sharding_spec of '%s'", s->g->path ? s->g->path : s->g->name, from->node, from->tensor);
    int before = s->annotated.list.n;
    if (!v)
        return false;
    struct placement at = placement_of(s, where, v, from);
    if (from->how == SHARDED_MAKES)
        add(s, where, v, result, at, false);
    else
        add_readers(s, where, v, from->node, at, false);
    return s->annotated.list.n > before;
}

static bool is_plain_input(const struct space *s, const struct value *v)
{
    for (int i = 0; i < s->g->states.n; i++)
        if (s->g->states.at[i].past == v)
            return false;
    return s->producer[v->id] < 0 && !v->constant;
}

/* How the maker of each value leaves it by its spec; by value id, NULL: it has none. */
static const struct placement **left_by_makers(struct space *s)
{
    const struct placement **left = NEWN(s->arena, const struct placement *, s->g->values.n + 1);
    for (int i = 0; i < s->said; i++)
        if (s->annotated.list.at[i].node < 0) {
            struct placement *at = NEW(s->arena, struct placement);
            *at = s->annotated.list.at[i].place;
            left[s->annotated.list.at[i].value->id] = at;
        }
    return left;
}

static void keep(struct space *s, const struct sharding *from, const struct placement *const *left)
{
    const struct value *v = living(s, from->tensor);
    if (v && left[v->id])
        add_readers(s, NULL, v, from->node, *left[v->id], true);
    else if (v && is_plain_input(s, v))
        add_readers(s, NULL, v, from->node, placement_whole, true);
}

static void read_all(struct space *s)
{
    const struct configuration *c = s->plan->configuration;
    const struct sharding *first = NULL;
    int gone = 0;
    for (int i = 0; i < c->shardings.n; i++)
        if (c->shardings.at[i].how != SHARDED_KEEPS && !resolve(s, &c->shardings.at[i])) {
            first = first ? first : &c->shardings.at[i];
            gone++;
        }
    if (gone)
        explain("device configuration '%s': %d sharding specs speak of what is no more in the canonical graph, the first of '%s' at node '%s'", c->name, gone,
                first->tensor, first->node);
    s->said = s->annotated.list.n;
    const struct placement **left = left_by_makers(s);
    for (int i = 0; i < c->shardings.n; i++)
        if (c->shardings.at[i].how == SHARDED_KEEPS)
            keep(s, &c->shardings.at[i], left);
}

/* ---- as constraints ------------------------------------------------------------------------------------------------------------------ */

/* A dimension of run-time size is split as --sp splits it, but through a product that reads it so. */
static bool seed(struct space *s, const struct annotated *a)
{
    const struct op *op = a->node >= 0 ? s->g->nodes.at[a->node]->op : NULL;
    bool product = op && (op->flags & OP_PRODUCT);
    if (a->place.kind != PLACE_S)
        return false;
    bool sequence = !product && !dim_is_int(a->value->type.dim[a->place.dim], NULL);
    return space_add(s, a->value, a->place.dim, (struct candidate){a->place.split, sequence, "annotated in the model", -1});
}

bool annotations_seed(struct space *s)
{
    bool changed = false;
    if (s->plan->configuration && s->ranks > 1 && !s->annotated.list.n)
        read_all(s);
    for (int i = 0; i < s->said; i++)
        changed |= seed(s, &s->annotated.list.at[i]);
    return changed;
}

static bool reads_so(const struct strategy *st, const struct annotated *a)
{
    return placement_eq(st->in[a->operand], a->place) || (a->implied && st->in[a->operand].kind == PLACE_P);
}

static _Noreturn void refuse_operand(struct space *s, const struct annotated *a)
{
    const struct node *n = s->g->nodes.at[a->node];
    const struct strategies *all = &s->strategies[a->node];
    const char **texts = NEWN(s->arena, const char *, all->list.n + 1), *text = placement_str(s->arena, a->place);
    for (int k = 0; k < all->list.n; k++)
        texts[k] = placement_str(s->arena, all->list.at[k]->in[a->operand]);
    fail("%s: node '%s' (%s) can't read it '%s'; the nearest legal placement is '%s'", a->where, n->name, n->optype, text,
         texts[nearest_text(text, all->list.n, texts)]);
}

static void restrict_operand(struct space *s, const struct annotated *a)
{
    struct strategies kept = {{NULL, 0, 0}}, *all = &s->strategies[a->node];
    for (int k = 0; k < all->list.n; k++)
        if (reads_so(all->list.at[k], a))
            VEC_PUSH(s->arena, &kept.list, all->list.at[k]);
    if (kept.list.n)
        *all = kept;
    else if (!a->implied)
        refuse_operand(s, a);
}

static void apply(struct space *s, int first, int end)
{
    for (int i = first; i < end; i++) {
        const struct annotated *a = &s->annotated.list.at[i];
        s->asked[a->value->id] |= !a->implied;
        if (a->node >= 0)
            restrict_operand(s, a);
        else
            wish_add(s, a->where, a->value, placement_str(s->arena, a->place), true);
    }
}

void annotations_apply(struct space *s)
{
    apply(s, 0, s->annotated.list.n);
}

/* The specs are not consistent with each other: which is the first that those before it rule out? */
void annotations_blame(struct space *s)
{
    int lo = 0, hi = s->said + 1;
    while (lo + 1 < hi) {
        int middle = lo + (hi - lo) / 2;
        constrain_none(s);
        apply(s, 0, middle);
        if (space_solve(s) < COST_NEVER)
            lo = middle;
        else
            hi = middle;
    }
    if (hi > s->said)
        return;
    const struct annotated *a = &s->annotated.list.at[hi - 1];
    fail("%s: '%s' can't be met beside the specs before it", a->where, placement_str(s->arena, a->place));
}

/* ---- a chosen plan as annotations ------------------------------------------------------------------------------------------------------ */

static int output_number(const struct graph *g, const struct value *v)
{
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] == v)
            return i;
    return -1;
}

static struct placement operand_place(const struct space *s, struct place_use u)
{
    const struct strategy *st = u.node >= 0 ? s->g->nodes.at[u.node]->strategy : NULL;
    return st ? st->in[u.operand] : s->output_place[u.operand];
}

/* Where a result is left: at its end of the graph, or where it is brought to. Terms of a sum are where all readers have them. */
static struct placement result_place(const struct space *s, const struct value *v)
{
    int number = output_number(s->g, v);
    const struct place_uses *uses = &s->uses[v->id];
    struct placement at = number >= 0 ? s->output_place[number] : s->pin[v->id] ? *s->pin[v->id] : v->place;
    if (at.kind != PLACE_P || number >= 0)
        return at;
    struct placement read = operand_place(s, uses->list.at[0]);
    for (int i = 1; i < uses->list.n; i++)
        if (!placement_eq(read, operand_place(s, uses->list.at[i])))
            return at;
    return read;
}

bool annotation_of(void *space, struct arena *a, const char *node, const char *tensor, bool result, struct sharding *out)
{
    const struct space *s = space;
    const struct value *v = living(s, tensor);
    if (!v || (result && v->constant))
        return false;
    if (result)
        return placement_sharding(a, s->g->alg, &v->type, result_place(s, v), s->ranks, out);
    for (int i = 0; i < s->uses[v->id].list.n; i++) {
        struct place_use u = s->uses[v->id].list.at[i];
        if (u.node >= 0 && comes_from(s->g->nodes.at[u.node], node))
            return placement_sharding(a, s->g->alg, &v->type, operand_place(s, u), s->ranks, out);
    }
    return false;
}
