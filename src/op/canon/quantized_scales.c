/* quantized_scales: scales and zero points of MatMulNBits, as rows. */
#include "ir/operands.h"
#include "op/canon/canon.h"
#include "op/table/table.h"

/* Scales or zero points in one dimension become rows, with the same bytes: a split along K is then a few intervals, not a few per row. */
static void write_rows(struct rewrite *w, struct node *node, int i, int64_t n)
{
    struct graph *g = w->g;
    struct value *flat = node_operand(node, i);
    if (!flat || flat->type.rank != 1 || !flat->constant || n < 1)
        return;
    struct constant *c = NEW(g->arena, struct constant);
    *c = *flat->constant;
    c->rank = 2;
    c->dim[1] = c->dim[0] / n;
    c->dim[0] = n;
    struct type type = {flat->type.dtype, 2, {dim_int(g->alg, n), dim_int(g->alg, c->dim[1])}};
    node->in[i] = graph_value(g, flat->name, &type);
    node->in[i]->constant = c;
    w->changed = true;
}

bool canon_quantized_scales(struct rewrite *w, struct node *node)
{
    if (!node->op || node->op->rule != rule_matmulnbits)
        return false;
    write_rows(w, node, IN_MatMulNBits_scales, attr_int(node, "N"));
    write_rows(w, node, IN_MatMulNBits_zero_points, attr_int(node, "N"));
    return false;
}
