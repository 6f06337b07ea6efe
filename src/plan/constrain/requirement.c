/* requirement: the requirements of the plan file's constraints on single nodes and values, in order. */
#include "plan/constrain/constrain.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/space/space.h"

enum { PREPARES = 1u << STYLE_PREPARE_INPUT | 1u << STYLE_PREPARE_OUTPUT | 1u << STYLE_PREPARE_INPUT_OUTPUT };

/* ---- nodes ------------------------------------------------------------------------------------------------------------------ */

/* The nodes that a constraint names. inside, by node: whether it belongs to the module of style prepare-*. */
struct match {
    const struct constraint *c;
    VEC(int) nodes;
    bool *inside;
    struct pairs pairs;
};

static bool has_style(const struct match *x, enum style style)
{
    return x->c->styles >> style & 1;
}

static void find_nodes(struct space *s, struct match *x)
{
    const struct name_search search = {
        .where = x->c->where, .what = s->g->modules ? "node or module" : "node", .kind = NAMED_NODES, .optional = s->options->part};
    struct name_matches found = names_find(space_names(s), &search, x->c->glob);
    for (int i = 0; i < found.at.n; i++)
        VEC_PUSH(s->arena, &x->nodes, found.at.at[i]);
}

/* Fails if a style applies to none of the nodes. */
static void check_style(const struct space *s, const struct match *x, enum style style)
{
    for (int i = 0; i < x->nodes.n; i++)
        if (style_applies(s, style, x->c, x->nodes.at[i]))
            return;
    if (s->options->part)
        return;
    fail("%s: of %d nodes named like '%s' none %s, as style %s expects", x->c->where, x->nodes.n, x->c->glob, style_subject(style),
         plan_style_name(style));
}

static struct pairs find_pairs(const struct space *s, const struct match *x)
{
    bool *target = NEWN(s->arena, bool, s->g->nodes.n + 1);
    for (int i = 0; i < x->nodes.n; i++)
        target[x->nodes.at[i]] = style_applies(s, STYLE_PAIRWISE, x->c, x->nodes.at[i]);
    return style_pairs_find(s, target);
}

static enum style own_style(const struct match *x, enum style style, int node)
{
    require(style != STYLE_PAIRWISE || x->pairs.row);
    return style != STYLE_PAIRWISE ? style : x->pairs.row[node] ? STYLE_ROWWISE : STYLE_COLWISE;
}

/* Returns false if none of the constraint's styles applies to the node. */
static bool require_node(struct space *s, const struct match *x, int node)
{
    bool met = !(x->c->styles & ~(unsigned)PREPARES);
    for (enum style i = 0; i < STYLES; i++)
        if (has_style(x, i) && style_applies(s, i, x->c, node)) {
            boundary_add_requirement(
                s, (struct requirement){.from = x->c, .kind = REQUIREMENT_STYLE, .node = node, .style = own_style(x, i, node)});
            met = true;
        }
    s->sequence.passes[node] |= met && (x->c->strategy || has_style(x, STYLE_SEQUENCE)); /* rows may be split */
    if (met && x->c->strategy)
        boundary_add_requirement(
            s,
            (struct requirement){
                .from = x->c, .kind = REQUIREMENT_STRATEGY, .node = node, .text = placement_texts(s->g->alg, x->c->strategy)});
    return met;
}

static void prepare_node(struct space *s, const struct match *x, int node)
{
    const struct node *n = s->g->nodes.at[node];
    bool pair = has_style(x, STYLE_PAIRWISE);
    require(!x->inside[node]);
    x->inside[node] = true;
    boundary_prepare(s, x->c,
                     &(struct module){.n = 1,
                                      .node = &node,
                                      .inside = x->inside,
                                      .in = !pair || !x->pairs.row[node],
                                      .out = !pair || x->pairs.last[node],
                                      .what = arena_printf(s->arena, "node '%s' (%s)", n->name, n->optype)});
    x->inside[node] = false;
}

static void prepare_all(struct space *s, const struct match *x)
{
    for (int i = 0; i < x->nodes.n; i++)
        x->inside[x->nodes.at[i]] = true;
    boundary_prepare(s, x->c,
                     &(struct module){.n = x->nodes.n,
                                      .node = x->nodes.at,
                                      .inside = x->inside,
                                      .in = true,
                                      .out = true,
                                      .what = arena_printf(s->arena, "the %d nodes named like '%s'", x->nodes.n, x->c->glob)});
    for (int i = 0; i < x->nodes.n; i++)
        x->inside[x->nodes.at[i]] = false;
}

/* inside: all false, before and after. */
static void require_nodes(struct space *s, const struct constraint *c, bool *inside)
{
    struct match x = {.c = c, .inside = inside};
    find_nodes(s, &x);
    if (!x.nodes.n)
        return;
    for (enum style i = 0; i < STYLES; i++)
        if (has_style(&x, i) && !(1u << i & PREPARES))
            check_style(s, &x, i);
    if (has_style(&x, STYLE_PAIRWISE))
        x.pairs = find_pairs(s, &x);
    for (int i = 0; i < x.nodes.n; i++)
        if (require_node(s, &x, x.nodes.at[i]) && !(c->styles & PREPARES))
            prepare_node(s, &x, x.nodes.at[i]);
    if (c->styles & PREPARES)
        prepare_all(s, &x);
}

/* ---- tensors and weights ------------------------------------------------------------------------------------------------------- */

static void require_values(struct space *s, const struct constraint *c)
{
    bool *used = NEWN(s->arena, bool, s->g->values.n + 1), weights = c->on == ON_WEIGHTS;
    for (int i = 0; i < s->g->values.n; i++)
        used[i] = s->uses[i].list.n > 0;
    const struct name_search search = {.where = c->where,
                                       .what = weights ? "weight" : "tensor",
                                       .kind = weights ? NAMED_WEIGHTS : NAMED_TENSORS,
                                       .among = used,
                                       .optional = s->options->part};
    struct name_matches found = names_find(space_names(s), &search, c->glob);
    for (int i = 0; i < found.at.n; i++)
        boundary_add_requirement(
            s, (struct requirement){.from = c, .kind = REQUIREMENT_PLACED, .value = s->g->values.at[found.at.at[i]], .text = c->placement});
}

/* With one rank everything is replicated, whatever is required. */
void requirement_make_all(struct space *s)
{
    const struct plan_file *file = s->ranks > 1 ? s->options->plan_file : NULL;
    bool *inside = NEWN(s->arena, bool, s->g->nodes.n + 1);
    if (s->ranks > 1)
        onnx_annotations_require(s);
    for (int i = 0; file && i < file->constraints.n; i++) {
        const struct constraint *c = file->constraints.at[i];
        if (c->on == ON_NODES)
            require_nodes(s, c, inside);
        else
            require_values(s, c);
    }
}
