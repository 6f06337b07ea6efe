/* boundary: placements of the values at the boundary of a set of nodes. `input` is the placement of a value that enters the set, before its
 * nodes read it as `desired_input`. `output` is the placement that a value which leaves the set is resharded to; nodes outside, or the
 * caller for a graph output, read it as `desired_output`.
 *
 * Values are activations, in the order in which nodes read (make) them, each once; not weights, state, which belongs to the set, or
 * scalars, which are always replicated. */
#include "plan/constrain/constrain.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/space/space.h"

void boundary_add_requirement(struct space *s, struct requirement d)
{
    require(d.from && (d.kind < REQUIREMENT_KEPT || d.value));
    require(d.kind > REQUIREMENT_OPERAND || (d.node >= 0 && d.node < s->g->nodes.n));
    struct requirement *own = NEW(s->arena, struct requirement);
    *own = d;
    VEC_PUSH(s->arena, &s->limits.requirements, own);
}

struct boundary {
    VEC(const struct value *) list;
};

static bool is_activation(const struct space *s, const struct value *v)
{
    return v && !s->weight[v->id] && v->type.rank > 0 && !space_state(s, v);
}

static bool list_names(const struct boundary *b, const struct value *v)
{
    for (int i = 0; i < b->list.n; i++)
        if (b->list.at[i] == v)
            return true;
    return false;
}

static bool is_inside(const struct module *m, int node)
{
    return node >= 0 && m->inside[node];
}

static bool read_outside(const struct space *s, const struct module *m, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    for (int i = 0; i < uses->list.n; i++)
        if (!is_inside(m, uses->list.at[i].node))
            return true;
    return false;
}

static struct boundary boundary_of(const struct space *s, const struct module *m, bool result)
{
    struct boundary b = {0};
    for (int k = 0; k < m->n; k++) {
        const struct node *n = s->g->nodes.at[m->node[k]];
        for (int i = 0; i < (result ? n->nout : n->nin); i++) {
            const struct value *v = dim_node_value(n, result, i);
            if (is_activation(s, v) && (result ? read_outside(s, m, v) : !is_inside(m, s->producer[v->id])) && !list_names(&b, v))
                VEC_PUSH(s->arena, &b.list, v);
        }
    }
    return b;
}

/* ---- which placement is whose ------------------------------------------------------------------------------------------------ */

static char *names_of(struct arena *a, const struct boundary *b)
{
    enum { MOST_LISTED = 8 };
    char *text = arena_strdup(a, "");
    for (int i = 0; i < b->list.n && i < MOST_LISTED; i++)
        text = arena_printf(a, "%s%s'%s'", text, i ? ", " : "", b->list.at[i]->name);
    return b->list.n > MOST_LISTED ? arena_printf(a, "%s and %d more", text, b->list.n - MOST_LISTED) : text;
}

static void check_globs(struct space *s, const struct constraint *c, const struct layout *l, const struct boundary *b)
{
    bool *among = NEWN(s->arena, bool, s->g->values.n + 1);
    for (int i = 0; i < b->list.n; i++)
        among[b->list.at[i]->id] = true;
    const struct name_search search = {
        .where = arena_printf(s->arena, "%s: '%s'", c->where, l->key), .what = "value there", .kind = NAMED_TENSORS, .among = among};
    for (int k = 0; k < l->n; k++) {
        bool found = false;
        for (int i = 0; i < b->list.n; i++)
            found = found || names_value(space_names(s), b->list.at[i], l->glob[k]);
        if (!found)
            names_refuse(space_names(s), &search, NAMED_TENSORS, l->glob[k]);
    }
}

static void check_layout(struct space *s, const struct constraint *c, const struct layout *l, const struct boundary *b,
                         const struct module *m)
{
    if (!l->form)
        return;
    if (!b->list.n)
        fail("%s: '%s': %s has no such value but weights, state and scalars", c->where, l->key, m->what);
    if (l->form == LAYOUT_ORDER && l->n != b->list.n)
        fail("%s: '%s': expected %d placements for %s of %s, found %d", c->where, l->key, b->list.n, names_of(s->arena, b), m->what, l->n);
    if (l->form == LAYOUT_NAMES)
        check_globs(s, c, l, b);
}

/* The placement that the layout gives to value i; NULL: none. */
static const char *layout_of(struct space *s, const struct layout *l, int i, const struct value *v)
{
    int k = l->form == LAYOUT_ORDER ? i : 0;
    while (l->form == LAYOUT_NAMES && k < l->n && !names_value(space_names(s), v, l->glob[k]))
        k++;
    return k < l->n ? l->text[k] : NULL;
}

/* ---- requirements ------------------------------------------------------------------------------------------------------------------- */

static void require_place(struct space *s, const struct constraint *c, enum requirement_kind kind, const struct value *v, const char *text)
{
    boundary_add_requirement(s, (struct requirement){.from = c, .kind = kind, .value = v, .text = text});
}

/* Requires the placement in which nodes inside the set (or outside it, and callers of a graph output) read the value. */
static void require_reads(struct space *s, const struct constraint *c, const struct module *m, bool inside, const struct value *v,
                          const char *text)
{
    const struct place_uses *uses = &s->uses[v->id];
    for (int i = 0; i < uses->list.n; i++) {
        struct place_use u = uses->list.at[i];
        if (is_inside(m, u.node) != inside)
            continue;
        if (u.node < 0)
            require_place(s, c, REQUIREMENT_PLACED, v, text);
        else
            boundary_add_requirement(
                s,
                (struct requirement){
                    .from = c, .kind = REQUIREMENT_OPERAND, .node = u.node, .operand = u.operand, .value = v, .text = text});
    }
}

/* Lets splits along a sequence pass the nodes that read (make) the value, because the plan file names them. */
static void let_through(struct space *s, const struct module *m, bool result, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    require(!result || s->producer[v->id] >= 0);
    if (result)
        s->sequence.passes[s->producer[v->id]] = true;
    for (int i = 0; !result && i < uses->list.n; i++)
        if (is_inside(m, uses->list.at[i].node))
            s->sequence.passes[uses->list.at[i].node] = true;
}

static bool is_taken(const struct space *s, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    require(uses->list.n > 0);
    return uses->list.at[uses->list.n - 1].node < 0; /* outputs are the last in a list of uses */
}

static void prepare_value(struct space *s, const struct constraint *c, const struct module *m, bool result, const struct value *v,
                          const char *at, const char *read)
{
    if (at || read)
        let_through(s, m, result, v);
    if (at)
        require_place(s, c, REQUIREMENT_READ, v, at);
    if (at && result && !read && is_taken(s, v))
        require_place(s, c, REQUIREMENT_PLACED, v, at);
    if (read)
        require_reads(s, c, m, !result, v, read);
}

static void prepare_end(struct space *s, const struct constraint *c, const struct module *m, bool result)
{
    const struct layout *placed = result ? &c->output : &c->input, *desired = result ? &c->desired_output : &c->desired_input;
    if (!placed->form && !desired->form)
        return;
    struct boundary b = boundary_of(s, m, result);
    check_layout(s, c, placed, &b, m);
    check_layout(s, c, desired, &b, m);
    for (int i = 0; i < b.list.n; i++) {
        const struct value *v = b.list.at[i];
        prepare_value(s, c, m, result, v, layout_of(s, placed, i, v), layout_of(s, desired, i, v));
    }
}

void boundary_prepare(struct space *s, const struct constraint *c, const struct module *m)
{
    if (m->in)
        prepare_end(s, c, m, false);
    if (m->out)
        prepare_end(s, c, m, true);
}
