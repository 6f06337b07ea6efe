/* loss: classification losses: (b c d..)(b d..)(c) -> (b d..), or the sum of that; with SoftmaxCrossEntropyLoss also (b c d..), the log
 * probabilities. A mean divides by the weights of all labels: over split b or d it is lowered to a sum divided by a sum. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

static bool is_mean(const struct node *node)
{
    return strcmp(attr_string(node, "reduction"), "mean") == 0;
}

static bool reduces(const struct graph *g, const struct node *node)
{
    const char *how = attr_string(node, "reduction");
    bool none = strcmp(how, "none") == 0;
    if (!none && strcmp(how, "sum") != 0 && !is_mean(node))
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
    if (node_operand(node, 2)) {
        op_same_dtype(g, node, 0, 2);
        op_need_rank(g, node, 2, 1, 1);
        op_same_dim(g, node, x->dim[1], op_operand(g, node, 2)->dim[0], "the classes of scores and weights");
    }
    op_result(g, node, 0, x->dtype, reduces(g, node) ? 0 : labels->rank, labels->dim);
    op_result(g, node, 1, x->dtype, x->rank, x->dim);
}

/* ---- over split classes: the largest score is reduced, then the sum of exponentials, the label's score and its weight together --- */

enum { CLASSES = 1 };

struct labelled {
    struct value *valid;          /* bool [N, D..]; NULL: no label is ignored */
    struct value *local, *inside; /* [N, 1, D..] */
};

/* For every label, whether it counts; NULL: all do. */
static struct value *find_valid(struct lowering *l, struct value *label)
{
    if (!attr_is_set(l->node, "ignore_index"))
        return NULL;
    struct value *ignored = lower_scalar(l, "ignored", DT_I64, (double)attr_int(l->node, "ignore_index"));
    return lower_unary(l, "Not", "valid", lower_binary(l, "Equal", "is_ignored", label, ignored));
}

/* An ignored label may be any number. */
static struct labelled find_labels(struct lowering *l)
{
    const struct node *node = l->node;
    struct value *label = lower_cast(l, "label", node->in[1], DT_I64), *zero = lower_scalar(l, "first", DT_I64, 0), *inside;
    struct labelled found = {.valid = find_valid(l, label)};
    if (found.valid)
        label = lower_where(l, "kept", found.valid, label, zero);
    struct value *local = lower_local_index(l, INDICES_LABELS, label, false, &inside);
    found.local = lower_unsqueeze(l, "row", local, CLASSES, 1);
    found.inside = lower_unsqueeze(l, "mask", inside, CLASSES, 1);
    return found;
}

/* Each rank's values at the labels in its shard, as a partial value. */
static struct value *partial_at(struct lowering *l, const char *part, const struct labelled *at, struct node *found, struct value *table)
{
    struct placement *in = NEWN(l->g->arena, struct placement, 4), out = placement_partial(RED_SUM);
    in[0] = table->place;
    lower_on_ranks(l, found, in, &placement_replicated);
    struct value *zero = lower_scalar(l, arena_printf(l->g->arena, "%s.zero", part), table->type.dtype, 0);
    struct value *partial = lower_where(l, part, at->inside, found->out[0], zero);
    in[0] = placement_replicated;
    lower_on_ranks(l, partial->producer, in, &out);
    return lower_float(l, arena_printf(l->g->arena, "%s.wide", part), partial);
}

static struct value *scores_at(struct lowering *l, const struct labelled *at)
{
    struct value *table = lower_with_spare(l, l->node->in[0], CLASSES, false);
    struct node *found = lower_node(l, "", "GatherElements", "scores", 2, (struct value *[]){table, at->local});
    attr_set_int(found, "axis", CLASSES);
    op_infer(l->g, found);
    return partial_at(l, "score", at, found, table);
}

static struct value *weights_at(struct lowering *l, const struct labelled *at)
{
    struct value *table = lower_with_spare(l, l->node->in[2], 0, false);
    struct node *found = lower_node(l, "", "Gather", "weights", 2, (struct value *[]){table, at->local});
    return partial_at(l, "weight", at, found, table);
}

/* The sum of all elements, as a scalar of float64. */
static struct value *total(struct lowering *l, const char *part, struct value *x)
{
    struct value *wide = lower_cast(l, arena_printf(l->g->arena, "%s.double", part), x, DT_F64);
    struct node *sum = lower_node(l, "", "ReduceSum", part, 1, &wide);
    attr_set_int(sum, "keepdims", 0);
    op_infer(l->g, sum);
    return sum->out[0];
}

/* The divisor of the losses; weight: of labels that count, NULL: all are 1. */
static struct value *loss_mean(struct lowering *l, struct value *loss, struct value *weight)
{
    const struct type *labels = &l->node->in[1]->type;
    struct value *sum = total(l, "total", loss);
    struct value *count = weight ? total(l, "count", weight) : lower_extent(l, "count", labels, 0, labels->rank, DT_F64);
    return lower_binary(l, "Div", "mean", sum, count);
}

/* loss, weight: [N, 1, D..]; weight NULL: all are 1. */
static void finish_loss(struct lowering *l, const struct labelled *at, struct value *loss, struct value *weight)
{
    const struct node *node = l->node;
    struct value *one = lower_scalar(l, "one", loss->type.dtype, 1), *zero = lower_scalar(l, "none", loss->type.dtype, 0);
    if (weight)
        loss = lower_binary(l, "Mul", "weighted", loss, weight);
    loss = lower_squeeze(l, "losses", loss, CLASSES);
    weight = weight ? lower_squeeze(l, "counts", weight, CLASSES) : NULL;
    if (at->valid) {
        loss = lower_where(l, "counted", at->valid, loss, zero);
        weight = lower_where(l, "weighs", at->valid, weight ? weight : one, zero);
    }
    if (reduces(l->g, node))
        loss = is_mean(node) ? loss_mean(l, loss, weight) : total(l, "total", loss);
    if (node->out[0])
        lower_result(l, 0, lower_cast(l, "narrow", loss, node->out[0]->type.dtype));
}

/* ---- a mean over split labels: losses and weights are partial ---------------------------------------------------------------- */

static struct value *weights_of(struct lowering *l)
{
    const struct node *node = l->node;
    struct value *label = lower_cast(l, "label", node->in[1], DT_I64), *valid = find_valid(l, label), *weight = NULL;
    if (valid)
        label = lower_where(l, "kept", valid, label, lower_scalar(l, "first", DT_I64, 0));
    if (node_operand(node, 2))
        weight = lower_float(l, "counts", lower_node(l, "", "Gather", "weights", 2, (struct value *[]){node->in[2], label})->out[0]);
    if (!valid)
        return weight;
    enum dtype dtype = weight ? weight->type.dtype : DT_F32;
    return lower_where(l, "weighs", valid, weight ? weight : lower_scalar(l, "one", dtype, 1), lower_scalar(l, "none", dtype, 0));
}

static void lower_mean(struct lowering *l)
{
    const struct node *node = l->node;
    struct value *in[3] = {lower_float(l, "wide", node->in[0]), node->in[1], NULL};
    if (node_operand(node, 2))
        in[2] = lower_float(l, "weight", node->in[2]);
    struct node *each = lower_copy(l, "each", node->nin, in);
    attr_set_string(each, "reduction", "none");
    for (int i = 0; i < each->nout; i++)
        if (each->out[i])
            each->out[i]->type.dtype = DT_NONE;
    op_infer(l->g, each);
    if (node->out[0])
        lower_result(l, 0, lower_cast(l, "narrow", loss_mean(l, each->out[0], weights_of(l)), node->out[0]->type.dtype));
    if (node_result(node, 1))
        lower_result(l, 1, lower_cast(l, "log_prob", each->out[1], node->out[1]->type.dtype));
}

static bool splits_labels(const struct node *node)
{
    return node->in[1]->place.kind == PLACE_S;
}

void lower_likelihoodloss(struct lowering *l)
{
    if (splits_labels(l->node)) {
        lower_mean(l);
        return;
    }
    struct labelled at = find_labels(l);
    bool weighs = node_operand(l->node, 2);
    struct value *partial[2] = {scores_at(l, &at), weighs ? weights_at(l, &at) : NULL}, *reduced[2] = {NULL};
    lower_together(l, CLASSES, weighs ? 2 : 1, partial, reduced);
    finish_loss(l, &at, lower_unary(l, "Neg", "loss", reduced[0]), reduced[1]);
}

void lower_entropyloss(struct lowering *l)
{
    const struct node *node = l->node;
    if (splits_labels(node)) {
        lower_mean(l);
        return;
    }
    struct labelled at = find_labels(l);
    bool weighs = node_operand(node, 2);
    struct value *x = lower_float(l, "wide", node->in[0]), *most = lower_reduce(l, "ReduceMax", "max", x, CLASSES, CLASSES + 1);
    struct value *shifted = lower_binary(l, "Sub", "shifted", x, most);
    struct value *sum = lower_reduce(l, "ReduceSum", "sum", lower_unary(l, "Exp", "exp", shifted), CLASSES, CLASSES + 1);
    struct value *partial[3] = {sum, scores_at(l, &at), weighs ? weights_at(l, &at) : NULL}, *reduced[3] = {NULL};
    lower_together(l, CLASSES, weighs ? 3 : 2, partial, reduced);
    struct value *log = lower_unary(l, "Log", "log", reduced[0]), *score = lower_binary(l, "Sub", "score.shifted", reduced[1], most);
    finish_loss(l, &at, lower_binary(l, "Sub", "loss", log, score), reduced[2]);
    if (node_result(node, 1))
        lower_result(l, 1, lower_cast(l, "log_prob", lower_binary(l, "Sub", "logs", shifted, log), node->out[1]->type.dtype));
}
