/* loss_backward: gradients of losses: each label's row is its probabilities minus one at the label, times the label's weight. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

#include <string.h>

enum { CLASSES = 1 };

struct labels {
    struct value *at;     /* i64; 0 for ignored labels */
    struct value *counts; /* of the scores' type: the weight of each label, 0 for ignored ones; NULL: all count 1 */
};

static struct labels read_labels(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value *weights = back_operand(b, 2);
    struct labels found = {.at = lower_cast(&b->l, "labels", node->in[1], DT_I64)};
    struct value *valid = NULL;
    if (attr_is_set(node, "ignore_index")) {
        valid = back_unary(b, "Not", back_with(b, "Equal", found.at, (double)attr_int(node, "ignore_index")));
        found.at = back_chosen(b, valid, found.at);
    }
    if (weights)
        found.counts = lower_node(&b->l, "", "Gather", "weights", 2, (struct value *[]){weights, found.at})->out[0];
    if (valid)
        found.counts = found.counts ? back_chosen(b, valid, found.counts) : lower_cast(&b->l, "valid", valid, node->in[0]->type.dtype);
    return found;
}

/* Off and on. */
static struct value *ends_of_hot(struct backward *b)
{
    const float ends[2] = {0, 1};
    struct graph *g = b->l.g;
    void *bytes = memcpy(arena_alloc(g->arena, sizeof ends), ends, sizeof ends);
    struct value *v = graph_constant(g, arena_printf(g->arena, "%s/ends", b->l.name), DT_F32, 1, (const int64_t[]){2}, bytes);
    return lower_cast(&b->l, "ends.narrow", v, b->l.node->in[0]->type.dtype);
}

/* One at the label, of the scores' type. */
static struct value *one_hot(struct backward *b, struct value *at)
{
    struct graph *g = b->l.g;
    const struct type *scores = &b->l.node->in[0]->type;
    struct value *in[3] = {at, NULL, ends_of_hot(b)};
    struct node *node = lower_node(&b->l, "", "OneHot", "OneHot", 3, in);
    attr_set_dims(g, node, "depth", 1, &scores->dim[CLASSES]);
    attr_set_int(node, "axis", CLASSES);
    op_infer(g, node);
    return node->out[0];
}

/* The contribution of each label's loss to the result, times the result's gradient: a scalar, or one per label. */
static struct value *share(struct backward *b, const struct labels *found)
{
    const struct node *node = b->l.node;
    struct value *g = back_dy(b);
    if (strcmp(attr_string(node, "reduction"), "mean") == 0) {
        const struct type *labels = &node->in[1]->type;
        struct value *all = found->counts ? back_sum(b, found->counts, 0, labels->rank, false)
                                          : lower_extent(&b->l, "count", labels, 0, labels->rank, g->type.dtype);
        g = back_binary(b, "Div", g, all);
    }
    g = found->counts ? back_binary(b, "Mul", found->counts, g) : g;
    return g->type.rank ? lower_unsqueeze(&b->l, "share", g, CLASSES, 1) : g;
}

static void check_loss(const struct backward *b)
{
    const struct node *node = b->l.node;
    if (!b->dy[0] || (node_result(node, 1) && b->dy[1]))
        fail("%s: no gradient passes this node: the gradient is supported only for the first result", node_where(b->l.g, node));
    if (back_wants(b, 2))
        fail("%s: no gradient passes this node: the gradient of the class weights is not supported", node_where(b->l.g, node));
}

void backward_likelihoodloss(struct backward *b)
{
    check_loss(b);
    struct labels found = read_labels(b);
    struct value *hot = one_hot(b, found.at);
    back_to(b, 0, back_unary(b, "Neg", back_binary(b, "Mul", hot, share(b, &found))));
}

/* The node also outputs the log probabilities, so no class is read twice and no rank communicates. */
void backward_entropyloss(struct backward *b)
{
    check_loss(b);
    struct labels found = read_labels(b);
    struct value *p = back_unary(b, "Exp", back_result(b, 1));
    struct value *of = share(b, &found); /* before its factor, independent of the compiler's order */
    back_to(b, 0, back_binary(b, "Mul", back_binary(b, "Sub", p, one_hot(b, found.at)), of));
}
