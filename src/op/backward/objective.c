/* objective: the training loss, appended to a graph: cross entropy of logits, a loss per element, or an output. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"

#include <string.h>

/* The ignored label, as in torch. */
enum { IGNORED = -100 };

/* The output that the loss reads: of that name, or `logits`, or the first float output that is no state. */
static struct value *output_named(const struct graph *g, const char *name)
{
    int i = graph_output_named(g, name);
    return i < 0 ? NULL : g->outputs.at[i];
}

static struct value *prediction(const struct graph *g)
{
    struct value *logits = output_named(g, "logits");
    for (int i = 0; i < g->outputs.n && !logits; i++)
        if (dtype_is_float(g->outputs.at[i]->type.dtype) && !graph_state(g, g->outputs.at[i]))
            logits = g->outputs.at[i];
    if (!logits || !dtype_is_float(logits->type.dtype))
        fail("%s: --train: no output of floats is there to learn from", graph_file(g));
    return logits;
}

static struct value *labels_like(struct graph *g, enum dtype dtype, int rank, const struct dim *const *dim)
{
    struct type type = {.dtype = dtype, .rank = rank};
    if (graph_find(g, "labels"))
        fail("%s: --train: the model has a value 'labels' already", graph_file(g));
    memcpy(type.dim, dim, sizeof *dim * (size_t)rank);
    struct value *labels = graph_value(g, "labels", &type);
    VEC_PUSH(g->arena, &g->inputs, labels);
    return labels;
}

static struct value *total(struct lowering *l, const char *part, struct value *x)
{
    struct node *sum = lower_node(l, "", "ReduceSum", part, 1, &x);
    attr_set_int(sum, "keepdims", 0);
    op_infer(l->g, sum);
    return sum->out[0];
}

/* Over the last dimension, the classes; each of the other elements has a label. */
static struct objective cross_entropy(struct lowering *l, struct value *x)
{
    struct alg *alg = l->g->alg;
    int rank = x->type.rank;
    if (rank < 2)
        fail("%s: --train: '%s' is %s, expected rows of classes", graph_file(l->g), x->name, type_str(l->g->arena, &x->type));
    struct value *labels = labels_like(l->g, DT_I64, rank - 1, x->type.dim);
    const struct dim *rows[2] = {dim_int(alg, 1), x->type.dim[rank - 1]};
    for (int d = 0; d < rank - 1; d++)
        rows[0] = dim_mul(alg, rows[0], x->type.dim[d]);
    struct value *at = rank == 2 ? labels : lower_reshape(l, "labels", labels, 1, rows);
    struct value *in[2] = {lower_float(l, "wide", rank == 2 ? x : lower_reshape(l, "rows", x, 2, rows)), at};
    struct node *loss = lower_node(l, "", "SoftmaxCrossEntropyLoss", "cross_entropy", 2, in);
    node_attr(loss, "ignore_index")->set = true;
    attr_set_int(loss, "ignore_index", IGNORED);
    attr_set_string(loss, "reduction", "sum");
    op_infer(l->g, loss);
    struct value *ignored = lower_scalar(l, "ignored", DT_I64, IGNORED);
    struct value *counts = lower_unary(l, "Not", "counts", lower_binary(l, "Equal", "is_ignored", at, ignored));
    return (struct objective){loss->out[0], total(l, "labelled", lower_cast(l, "one", counts, DT_F32)), x};
}

/* The loss of each element, from its prediction and label of one type. */
static struct value *squared(struct lowering *l, struct value *x, struct value *label)
{
    struct value *off = lower_binary(l, "Sub", "off", x, label);
    return lower_binary(l, "Mul", "square", off, off);
}

static struct value *absolute(struct lowering *l, struct value *x, struct value *label)
{
    return lower_unary(l, "Abs", "distance", lower_binary(l, "Sub", "off", x, label));
}

/* From a logit and a probability. */
static struct value *binary_entropy(struct lowering *l, struct value *x, struct value *label)
{
    return lower_binary(l, "Sub", "entropy", lower_unary(l, "Softplus", "softplus", x), lower_binary(l, "Mul", "score", x, label));
}

static struct objective element_loss(struct lowering *l, struct value *x,
                                     struct value *(*f)(struct lowering *, struct value *, struct value *))
{
    const struct type *type = &x->type;
    struct value *labels = labels_like(l->g, type->dtype, type->rank, type->dim);
    struct value *count = lower_extent(l, "elements", type, 0, type->rank, DT_F32);
    return (struct objective){total(l, "total", lower_float(l, "wide", f(l, x, labels))), count, x};
}

static struct objective own_loss(struct lowering *l, const char *name)
{
    struct value *loss = output_named(l->g, name);
    if (!loss)
        fail("%s: --loss is '%s', expected cross-entropy, mse, l1, bce or the name of an output", graph_file(l->g), name);
    if (!dtype_is_float(loss->type.dtype) || !dim_equals(type_elements(l->g->alg, &loss->type), 1))
        fail("%s: --loss names '%s', which is %s, expected one number", graph_file(l->g), name, type_str(l->g->arena, &loss->type));
    return (struct objective){loss, lower_scalar(l, "count", DT_F32, 1), NULL};
}

struct objective objective_append(struct lowering *l, const char *kind)
{
    static const struct {
        const char *name;
        struct value *(*f)(struct lowering *, struct value *, struct value *);
    } by_element[] = {{"mse", squared}, {"l1", absolute}, {"bce", binary_entropy}};
    if (!kind || strcmp(kind, "cross-entropy") == 0)
        return cross_entropy(l, prediction(l->g));
    int i = NAMED_ROW(by_element, kind);
    return i < 0 ? own_loss(l, kind) : element_loss(l, prediction(l->g), by_element[i].f);
}
