/* Norms over channels, dimension 1. BatchNormalization scales each channel by given statistics: (b c h..)(c)(c)(c)(c) -> (b c h..).
 * InstanceNormalization and GroupNormalization take them over the spatial dimensions, which are never split: (b c !h..), (b (g !c) !h..).
 */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

void infer_channelnorm(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 2, MAX_RANK);
    const struct type *x = op_operand(g, node, 0);
    for (int i = 1; i < node->nin; i++) {
        op_need_rank(g, node, i, 1, 1);
        op_same_dim(g, node, x->dim[1], op_operand(g, node, i)->dim[0], "the channels of the operands");
    }
    op_result(g, node, 0, x->dtype, x->rank, x->dim);
}

void infer_batchnorm(struct graph *g, struct node *node)
{
    if (attr_int(node, "training_mode"))
        fail("%s: training_mode is 1, expected a model exported for inference", node_where(g, node));
    infer_channelnorm(g, node);
}

void infer_groupnorm(struct graph *g, struct node *node)
{
    infer_channelnorm(g, node);
    int64_t groups = attr_is_set(node, "num_groups") ? attr_int(node, "num_groups") : -1;
    const struct dim *channels = node->in[0]->type.dim[1], *count = dim_int(g->alg, groups);
    bool whole = groups > 0 ? dim_quotient(g->alg, channels, count) != NULL : groups == 0 && dim_equals(channels, 0);
    if (!whole && groups > 0 && channels->kind != DIM_INT)
        op_same_dim(g, node, channels, dim_mul(g->alg, count, dim_div(g->alg, channels, count)), "the channels and those of all groups");
    else if (!whole)
        fail("%s: %s channels do not form %lld groups", node_where(g, node), dim_str(g->arena, channels), (long long)groups);
}

/* The channels of every operand are the factors of part (outer first). Linear in scale and bias together. */
static struct rule *channel_rule(struct graph *g, const struct node *node, struct rule *r, int n, const int *part, unsigned spatial)
{
    const struct type *x = &node->in[0]->type;
    int batch = rule_factor(g, r, "b", x->dim[0], 0);
    rule_put(g, &r->in[0], 0, 0, batch);
    rule_put(g, &r->out[0], 0, 0, batch);
    for (int k = 0; k < n; k++) {
        rule_put(g, &r->in[0], 1, 0, part[k]);
        rule_put(g, &r->out[0], 1, 0, part[k]);
        for (int i = 1; i < node->nin; i++)
            rule_put(g, &r->in[i], 0, 0, part[k]);
    }
    for (int d = 2; d < x->rank; d++)
        rule_same_dim(g, r, "h", d, x->dim[d], spatial);
    rule_linear(r, 2 | 4);
    r->increasing = 4;
    return r;
}

/* Here also linear in X, bias and mean together. */
struct rule *rule_batchnorm(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    rule_linear(r, 1 | 4 | 8);
    return channel_rule(g, node, r, 1, (int[]){rule_factor(g, r, "c", node->in[0]->type.dim[1], 0)}, 0);
}

struct rule *rule_instancenorm(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    return channel_rule(g, node, r, 1, (int[]){rule_factor(g, r, "c", node->in[0]->type.dim[1], 0)}, FACTOR_REPLICATED);
}

struct rule *rule_groupnorm(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct dim *groups = dim_int(g->alg, attr_int(node, "num_groups"));
    const struct dim *each = dim_equals(groups, 0) ? NULL : dim_quotient(g->alg, node->in[0]->type.dim[1], groups);
    if (!each) /* one symbol, of which only a run knows that groups divide it */
        return channel_rule(g, node, r, 1, (int[]){rule_factor(g, r, "c", node->in[0]->type.dim[1], FACTOR_REPLICATED)}, FACTOR_REPLICATED);
    int part[2] = {rule_factor(g, r, "g", groups, 0), rule_factor(g, r, "c", each, FACTOR_REPLICATED)};
    r->size[r->nsize++] = (struct rule_size){.attr = "num_groups", .part = {.n = 1, .factor = {part[0]}}};
    return channel_rule(g, node, r, 2, part, FACTOR_REPLICATED);
}
