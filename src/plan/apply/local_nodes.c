/* local_nodes: sets what differs between ranks in a node. Size attributes that a rule names get the local extent. Windows get local
 * attributes by the row's SLIDE, index maps local intervals (slice_index.c). */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/apply/apply.h"

/* ---- sizes that the rule names -------------------------------------------------------------------------------------------------- */

static const struct split **size_splits(struct arena *a, struct graph *global, const struct node *node, const struct rule *rule)
{
    const struct strategy *st = node->strategy;
    const struct split **all = NEWN(a, const struct split *, rule->nsize);
    for (int i = 0; i < rule->nsize; i++)
        all[i] = rule_part_split(global, rule, global->ranks, &st->assignment, &rule->size[i].part);
    return all;
}

static void set_size_attributes(struct graph *global, const struct node *node, const struct local_node *l, int rank, struct node *local)
{
    for (int i = 0; i < l->rule->nsize; i++) {
        const struct rule_size *size = &l->rule->size[i];
        const struct dim *extent = l->size[i] ? split_extent(global->alg, l->size[i], rank) : rule_part_size(global, l->rule, &size->part);
        int64_t k;
        if (!dim_is_int(extent, &k))
            bug("%s: attribute %s would be %s on rank %d", node_where(global, node), size->attr, dim_str(global->arena, extent), rank);
        require(k >= 0);
        if (attr_is_set(local, size->attr))
            attr_set_int(local, size->attr, k);
    }
}

/* ---- windows ---------------------------------------------------------------------------------------------------------------------- */

/* The split of the factor that counts the windows along dimension d of the first operand. NULL: not split, or no windows there. */
static const struct split *windows_of(const struct node *node, const struct rule *rule, int d)
{
    const struct rule_dim *dim = &rule->in[0].dim[d];
    const struct strategy *st = node->strategy;
    const struct split *s = dim->window ? st->assignment.factor[dim->part[0].factor[0]] : NULL;
    return s && !s->replicated ? s : NULL;
}

/* The split of what windows read, by dimension; NULL: no windows. */
static const struct split **window_reads(struct arena *a, struct graph *global, const struct node *node, const struct rule *rule)
{
    const struct split **all = NULL;
    for (int d = 0; rule->nin > 0 && d < rule->in[0].rank; d++) {
        const struct split *s = windows_of(node, rule, d);
        if (!s)
            continue;
        all = all ? all : NEWN(a, const struct split *, MAX_RANK);
        all[d] = split_windows(global->alg, s, rule->in[0].dim[d].window);
        require(all[d]);
    }
    return all;
}

static void slide_node(const struct node *node, const struct local_node *l, int d, struct graph *g, struct node *local)
{
    const struct split *reads = l->reads[d];
    struct slide slide = {.global = node, .dim = d, .by = l->rule->in[0].dim[d].window};
    if (reads->reads) {
        split_window_border(g->alg, reads, g->rank, &slide.before, &slide.behind);
    } else {
        require(windows_of(node, l->rule, d)->count[g->rank] == 1 && reads->count[g->rank] == 1); /* a rank's windows are neighbours */
        slide.windows = windows_of(node, l->rule, d)->list[g->rank][0];
        slide.elements = reads->list[g->rank][0];
    }
    local->op->slide(g, local, &slide);
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------------ */

struct local_nodes local_nodes_find(struct arena *a, struct graph *global)
{
    struct local_nodes all = {.global = global};
    for (int i = 0; i < global->nodes.n; i++) {
        const struct node *n = global->nodes.at[i];
        const struct rule *rule = n->strategy ? rule_of(global, n) : NULL;
        struct local_node l = {.at = i, .rule = rule, .uneven = slice_index_uneven(global, n)};
        if (rule) {
            l.size = size_splits(a, global, n, rule);
            l.reads = window_reads(a, global, n, rule);
        }
        if ((rule && (rule->nsize > 0 || l.reads)) || slice_index_is_map(n))
            VEC_PUSH(a, &all.list, l);
    }
    return all;
}

void local_nodes_set(const struct local_nodes *nodes, struct graph *g)
{
    EACH (struct local_node, l, nodes->list) {
        const struct node *node = nodes->global->nodes.at[l->at];
        struct node *local = g->nodes.at[l->at];
        if (l->rule)
            set_size_attributes(nodes->global, node, l, g->rank, local);
        for (int d = 0; l->reads && d < MAX_RANK; d++)
            if (l->reads[d])
                slide_node(node, l, d, g, local);
        slice_index_localize(node, g, local, l);
    }
}
