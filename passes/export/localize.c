/* localize: copies the global graph, with a placement on every value, into one graph per rank. All have the same nodes, names and order.
 *
 * Local types follow from placements. Size attributes that a rule names get the local extent. Windows get local attributes by the row's
 * SLIDE, index maps local intervals (src/plan/apply/slice_index.c). Then inference runs on every node again: a result that differs from its
 * local type shows a wrong rule or placement and is a bug. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "passes/pass.h"
#include "plan/apply/apply.h"

#include <string.h>

/* ---- types ------------------------------------------------------------------------------------------------------------------ */

static struct graph *local_graph(struct compile *c, int ranks, int rank)
{
    struct graph *g = graph_copy(c->arena, c->graph);
    g->ranks = ranks;
    g->rank = rank;
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (!v->placed)
            v->place = placement_replicated;
        v->placed = true;
        if (v->type.dtype != DT_NONE)
            v->type = placement_local(g->alg, &v->type, v->place, rank);
        if (v->place.kind != PLACE_R)
            v->dims = NULL;
    }
    return g;
}

/* ---- sizes that the rule names -------------------------------------------------------------------------------------------------- */

static const struct dim *part_extent(struct graph *g, const struct rule *rule, const struct assignment *assignment,
                                     const struct rule_part *part, int ranks, int rank)
{
    const struct split *s = rule_part_split(g, rule, ranks, assignment, part);
    return s ? split_extent(g->alg, s, rank) : rule_part_size(g, rule, part);
}

static void set_size_attributes(struct locality *l, int at, const struct rule *rule)
{
    const struct node *node = l->global->nodes.at[at];
    const struct strategy *strategy = node->strategy;
    for (int i = 0; i < rule->nsize; i++)
        for (int r = 0; r < l->ranks; r++) {
            struct node *local = l->local[r]->nodes.at[at];
            const struct dim *extent = part_extent(l->global, rule, &strategy->assignment, &rule->size[i].part, l->ranks, r);
            int64_t k;
            if (!dim_is_int(extent, &k))
                bug("%s: attribute %s would be %s on rank %d", node_where(l->global, node), rule->size[i].attr,
                    dim_str(l->global->arena, extent), r);
            if (attr_is_set(local, rule->size[i].attr))
                attr_set_int(local, rule->size[i].attr, k);
        }
}

/* ---- windows ---------------------------------------------------------------------------------------------------------------------- */

static void slide_node(struct locality *l, int at, const struct rule *rule, int d, const struct split *s)
{
    const struct sliding *by = rule->in[0].dim[d].window;
    const struct split *reads = split_windows(l->global->alg, s, by);
    require(reads);
    for (int r = 0; r < l->ranks; r++) {
        struct node *local = l->local[r]->nodes.at[at];
        struct slide slide = {.global = l->global->nodes.at[at], .dim = d, .by = by};
        if (reads->reads) {
            split_window_border(l->global->alg, reads, r, &slide.before, &slide.behind);
        } else {
            slide.windows = s->list[r][0];
            slide.elements = reads->list[r][0];
        }
        local->op->slide(l->local[r], local, &slide);
    }
}

static void slide_windows(struct locality *l, int at, const struct rule *rule)
{
    const struct strategy *strategy = l->global->nodes.at[at]->strategy;
    for (int d = 0; rule->nin > 0 && d < rule->in[0].rank; d++) {
        const struct rule_dim *dim = &rule->in[0].dim[d];
        const struct split *s = dim->window ? strategy->assignment.factor[dim->part[0].factor[0]] : NULL;
        if (s && !s->replicated)
            slide_node(l, at, rule, d, s);
    }
}

/* ---- the check ----------------------------------------------------------------------------------------------------------------------- */

static struct type *types_of_results(struct graph *g, const struct node *node)
{
    struct type *list = NEWN(g->arena, struct type, node->nout + 1);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            list[i] = node->out[i]->type;
    return list;
}

static void check_node(struct graph *g, struct node *node, int equations)
{
    const struct type *local = types_of_results(g, node);
    const struct equation *eq;
    op_infer(g, node);
    if (alg_equations(g->alg, &eq) != equations)
        bug("%s on rank %d: types agree only if %s = %s", node_where(g, node), g->rank, dim_str(g->arena, eq[equations].left),
            dim_str(g->arena, eq[equations].right));
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && !type_eq(&local[i], &node->out[i]->type))
            bug("%s on rank %d: output %d is %s by its placement %s and %s by inference", node_where(g, node), g->rank, i,
                type_str(g->arena, &local[i]), placement_str(g->arena, node->out[i]->place), type_str(g->arena, &node->out[i]->type));
}

static bool reads_nothing(const struct node *node)
{
    for (int i = 0; i < node->nin; i++)
        for (int d = 0; node->in[i] && d < node->in[i]->type.rank; d++)
            if (dim_equals(node->in[i]->type.dim[d], 0))
                return true;
    return false;
}

/* The op's row says that the types of results tell its sizes. */
static bool typed_by_result(const struct node *node)
{
    for (int i = 0; i < node->op->nin; i++)
        if (node->op->in[i].size && strcmp(node->op->in[i].size, "@type") == 0)
            return true;
    return node->op->flags & OP_CONTROL;
}

/* A rank that holds nothing infers the same when it loads its file, where results have no types yet: else its collectives would be others
 * than those of the ranks that hold something. */
static void check_idle(struct graph *g, struct node *node)
{
    if (!node->op || typed_by_result(node) || !reads_nothing(node))
        return;
    const struct type *local = types_of_results(g, node);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            node->out[i]->type = (struct type){.dtype = DT_NONE};
    op_infer(g, node);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && !type_eq(&local[i], &node->out[i]->type))
            fail("%s: rank %d of %d has an operand without elements, and nothing tells it that '%s' is %s (it takes %s); use fewer ranks",
                 node_where(g, node), g->rank, g->ranks, node->out[i]->name, type_str(g->arena, &local[i]),
                 type_str(g->arena, &node->out[i]->type));
}

static void localize_node(struct locality *l, int at)
{
    const struct node *node = l->global->nodes.at[at];
    const struct rule *rule = node->strategy ? rule_of(l->global, node) : NULL;
    if (rule) {
        set_size_attributes(l, at, rule);
        slide_windows(l, at, rule);
    }
    slice_index_localize(l, at);
}

void pass_localize(struct compile *c)
{
    const struct equation *eq;
    int ranks = c->graph->ranks > 0 ? c->graph->ranks : 1, equations = alg_equations(c->graph->alg, &eq);
    struct locality l = {c->graph, ranks, NEWN(c->arena, struct graph *, ranks)};
    c->graph->ranks = ranks;
    for (int r = 0; r < ranks; r++)
        l.local[r] = local_graph(c, ranks, r);
    for (int i = 0; i < c->graph->nodes.n; i++)
        localize_node(&l, i);
    for (int r = 0; r < ranks; r++)
        plan_note_ranks(l.local[r]);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < l.local[r]->nodes.n; i++) {
            check_node(l.local[r], l.local[r]->nodes.at[i], equations);
            check_idle(l.local[r], l.local[r]->nodes.at[i]);
        }
    c->rank_graphs = l.local;
}
