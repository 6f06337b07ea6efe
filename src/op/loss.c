/* Losses of classification: (b !c d..)(b d..)(!c) -> (b d..), or the sum of that; with SoftmaxCrossEntropyLoss also (b !c d..), the logarithms
 * of the probabilities. A mean divides by the weights of all labels, so parts of it are no parts of a sum: b and d stay whole. */
#include "op/op.h"
#include "op/table.h"

#include <string.h>

static bool reduces(const struct graph *g, const struct node *node)
{
    const char *how = attr_string(node, "reduction");
    bool none = strcmp(how, "none") == 0;
    if (!none && strcmp(how, "sum") != 0 && strcmp(how, "mean") != 0)
        fail("%s: attribute 'reduction' is '%s', expected none, sum or mean", node_where(g, node), how);
    return !none;
}

void infer_loss(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    const struct type *x = op_operand(g, node, 0), *labels = op_operand(g, node, 1);
    op_need_rank(g, node, 1, x->rank - 1, x->rank - 1);
    op_index_type(g, node, 1);
    for (int d = 0; d < labels->rank; d++)
        op_same_dim(g, node, x->dim[d ? d + 1 : 0], labels->dim[d], "the scores and the labels");
    if (node->nin > 2 && node->in[2]) {
        op_same_dtype(g, node, 0, 2);
        op_need_rank(g, node, 2, 1, 1);
        op_same_dim(g, node, x->dim[1], op_operand(g, node, 2)->dim[0], "the classes of scores and weights");
    }
    op_result(g, node, 0, x->dtype, reduces(g, node) ? 0 : labels->rank, labels->dim);
    op_result(g, node, 1, x->dtype, x->rank, x->dim);
}

static struct rule *loss_rule(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *x = &node->in[0]->type;
    bool reduced = reduces(g, node), mean = strcmp(attr_string(node, "reduction"), "mean") == 0;
    for (int d = 0; d < x->rank; d++) {
        char name[12];
        snprintf(name, sizeof name, "%c%d", d == 0 ? 'b' : d == 1 ? 'c' : 'd', d);
        int f = rule_factor(g, r, name, x->dim[d], d == 1 || mean ? FACTOR_WHOLE : 0), label = d ? d - 1 : 0;
        rule_put(g, &r->in[0], d, 0, f);
        if (node->nout > 1 && node->out[1])
            rule_put(g, &r->out[1], d, 0, f);
        if (d == 1) {
            if (node->nin > 2 && node->in[2])
                rule_put(g, &r->in[2], 0, 0, f);
            continue;
        }
        rule_put(g, &r->in[1], label, 0, f);
        if (reduced)
            r->factor[f].red = mean ? RED_NONE : RED_SUM;
        else if (node->out[0])
            rule_put(g, &r->out[0], label, 0, f);
    }
    return r;
}

/* Linear in the scores; without the mean also in the weights. */
struct rule *rule_likelihoodloss(struct graph *g, const struct node *node)
{
    struct rule *r = loss_rule(g, node);
    rule_linear(r, 1);
    if (node->nin > 2 && strcmp(attr_string(node, "reduction"), "mean") != 0)
        rule_linear(r, 4);
    return r;
}

struct rule *rule_entropyloss(struct graph *g, const struct node *node)
{
    struct rule *r = loss_rule(g, node);
    bool others = node->nout > 1 && node->out[1];
    if (node->nin > 2 && !others && strcmp(attr_string(node, "reduction"), "mean") != 0)
        rule_linear(r, 4);
    return r;
}
