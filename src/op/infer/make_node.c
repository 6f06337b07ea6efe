/* make_node: makes nodes, and runs a row's inference on one.
 *
 * Inference may run many times on a node: again after a new equation, again on a rank's local graph. Each time it computes types and shape
 * information from the operands alone, so earlier results are cleared first. */
#include "op/infer/infer.h"
#include "op/op.h"

#include <string.h>

/* Whether the op's inference can run on a new node of graph_node: the caller has nothing left to set. */
static bool ready_to_infer(const struct node *node)
{
    for (int i = 0; i < node->nattr; i++)
        if (!node->attr[i].set && node->attr[i].kind != ATTR_FLOAT && !node->op->attr[i].noted)
            return false;
    return op_resolved(node) && node->nin >= node->op->min_in;
}

static bool types_known(const struct node *node)
{
    for (int i = 0; i < node->nin; i++)
        if (node->in[i] && node->in[i]->type.dtype == DT_NONE)
            return false;
    for (int i = 0; i < node->op->nin; i++)
        if (node->op->in[i].size && strcmp(node->op->in[i].size, "@type") == 0)
            return false;
    return true;
}

struct node *op_node(struct graph *g, const char *domain, const char *name, const char *label, int nin, struct value *const *in)
{
    const struct op *op = op_find(domain, name);
    require(op);
    struct node *node = graph_node(g, op, label, nin, in, 1);
    node_output(g, node, 0, graph_value(g, label, NULL));
    if (ready_to_infer(node) && types_known(node))
        op_infer(g, node);
    return node;
}

/* A node without a row only has declared types; equations apply to these, too. */
static void rewrite_declared(struct graph *g, struct node *node)
{
    for (int i = 0; i < node->nout; i++)
        for (int d = 0; node->out[i] && d < node->out[i]->type.rank; d++)
            node->out[i]->type.dim[d] = dim_rewrite(g->alg, node->out[i]->type.dim[d]);
}

/* Fails if a required size is given neither by an operand nor by the attribute it folds into. */
static void check_sizes_said(const struct graph *g, const struct node *node)
{
    for (int i = 0; i < node->op->nin; i++) {
        const struct op_param *operand = &node->op->in[i];
        if (operand->optional || !operand->size || strcmp(operand->size, "@type") == 0 || node_operand(node, i))
            continue;
        if (!attr_is_set(node, operand->size + 1))
            fail("%s: operand %d, %s, is missing", node_where(g, node), i, operand->name);
    }
}

static const char *types_text(struct arena *a, uint32_t types)
{
    const char *text = "";
    for (int t = 0; t < 32; t++) {
        uint32_t bit = 1u << t;
        const char *before = !*text ? "" : types & ~(2 * bit - 1) ? ", " : " or ";
        if (types & bit)
            text = arena_printf(a, "%s%s%s", text, before, dtype_name((enum dtype)t));
    }
    return text;
}

/* Checks types against the row; unknown types fail where they are needed. */
static void check_types(const struct graph *g, const struct node *node)
{
    for (int i = 0; i < node->nin && node->op->nin; i++) {
        const struct op_param *operand = &node->op->in[i < node->op->nin ? i : node->op->nin - 1];
        enum dtype found = node->in[i] ? node->in[i]->type.dtype : DT_NONE;
        if (found == DT_NONE || (found < 32 && operand->types >> found & 1))
            continue;
        if (found == DT_STRING)
            fail("%s: operand '%s' is %s, expected numbers or booleans", node_where(g, node), node->in[i]->name, dtype_name(found));
        fail("%s: operand '%s' is %s, expected %s", node_where(g, node), node->in[i]->name, dtype_name(found),
             types_text(g->arena, operand->types));
    }
}

void op_infer(struct graph *g, struct node *node)
{
    op_try_infer(g, node);
    if (g->undecided.what)
        op_fail_undecided(g);
}

void op_try_infer(struct graph *g, struct node *node)
{
    if (!node->op) {
        rewrite_declared(g, node);
        return;
    }
    const struct diag_subject before = node_work_on(g, node);
    check_sizes_said(g, node);
    check_types(g, node);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && !node->out[i]->constant)
            node->out[i]->dims = NULL;
    node->op->infer(g, node);
    if (!g->undecided.what && node->op->value && node_result(node, 0))
        node->op->value(g, node);
    (void)diag_work_on(before);
}

const struct dim *op_unknown_dim(struct graph *g, const struct node *node, int i, int d)
{
    return dim_data_sym(g->alg, arena_printf(g->arena, "%s.%d", node->out[i]->first_name, d));
}
