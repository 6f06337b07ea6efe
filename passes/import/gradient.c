/* gradient: what a step of training computes, in place of what the model does (--train).
 *
 * A loss is appended, as a sum over all labels and the number of labels, so that microbatches and ranks of data parallelism just add.
 * The walk back from it gives each trained weight a gradient (src/op/backward/walk.c). The graph's outputs are these alone; in canonical
 * form gradients are ordinary nodes, and all that follows treats them so. One thing is said of them: a gradient is placed as its weight
 * (graph.trained, src/plan/solve/encode.c). There is no past: the pass shapes has set its length to 0. */
#include "op/backward/backward.h"
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "passes/pass.h"

#include <string.h>

/* The label that counts nothing, as torch has it. */
enum { IGNORED = -100 };

struct objective {
    struct value *sum, *count;
};

/* ---- the loss ---------------------------------------------------------------------------------------------------------------- */

/* The output that the loss reads: of that name, or `logits`, or the first one of floats that is no state. */
static struct value *output_named(const struct graph *g, const char *name)
{
    for (int i = 0; i < g->outputs.n; i++)
        if (strcmp(g->outputs.at[i]->name, name) == 0)
            return g->outputs.at[i];
    return NULL;
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

static struct value *reshaped(struct lowering *l, const char *part, struct value *x, int rank, const struct dim *const *dim)
{
    struct node *node = lower_node(l, "", "Reshape", part, 1, &x);
    node->out[0]->type = (struct type){.dtype = x->type.dtype, .rank = rank};
    memcpy(node->out[0]->type.dim, dim, sizeof *dim * (size_t)rank);
    op_infer(l->g, node);
    return node->out[0];
}

static struct value *total(struct lowering *l, const char *part, struct value *x)
{
    struct node *sum = lower_node(l, "", "ReduceSum", part, 1, &x);
    attr_set_int(sum, "keepdims", 0);
    op_infer(l->g, sum);
    return sum->out[0];
}

/* Of the last dimension, the classes; each of the other elements has a label. */
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
    struct value *at = rank == 2 ? labels : reshaped(l, "labels", labels, 1, rows);
    struct value *in[2] = {lower_float(l, "wide", rank == 2 ? x : reshaped(l, "rows", x, 2, rows)), at};
    struct node *loss = lower_node(l, "", "SoftmaxCrossEntropyLoss", "cross_entropy", 2, in);
    node_attr(loss, "ignore_index")->set = true;
    attr_set_int(loss, "ignore_index", IGNORED);
    attr_set_string(loss, "reduction", "sum");
    op_infer(l->g, loss);
    struct value *ignored = lower_scalar(l, "ignored", DT_I64, IGNORED);
    struct value *counts = lower_unary(l, "Not", "counts", lower_binary(l, "Equal", "is_ignored", at, ignored));
    return (struct objective){loss->out[0], total(l, "labelled", lower_cast(l, "one", counts, DT_F32))};
}

/* An element's loss, by its prediction and label of one type. */
static struct value *squared(struct lowering *l, struct value *x, struct value *label)
{
    struct value *off = lower_binary(l, "Sub", "off", x, label);
    return lower_binary(l, "Mul", "square", off, off);
}

static struct value *absolute(struct lowering *l, struct value *x, struct value *label)
{
    return lower_unary(l, "Abs", "distance", lower_binary(l, "Sub", "off", x, label));
}

/* Of a logit and a probability. */
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
    return (struct objective){total(l, "total", lower_float(l, "wide", f(l, x, labels))), count};
}

static struct objective own_loss(struct lowering *l, const char *name)
{
    struct value *loss = output_named(l->g, name);
    if (!loss)
        fail("%s: --loss is '%s', expected cross-entropy, mse, l1, bce or the name of an output", graph_file(l->g), name);
    if (!dtype_is_float(loss->type.dtype) || !dim_equals(type_elements(l->g->alg, &loss->type), 1))
        fail("%s: --loss names '%s', which is %s, expected one number", graph_file(l->g), name, type_str(l->g->arena, &loss->type));
    return (struct objective){loss, lower_scalar(l, "count", DT_F32, 1)};
}

static struct objective append_loss(struct lowering *l, const char *kind)
{
    static const struct {
        const char *name;
        struct value *(*f)(struct lowering *, struct value *, struct value *);
    } by_element[] = {{"mse", squared}, {"l1", absolute}, {"bce", binary_entropy}};
    if (!kind || strcmp(kind, "cross-entropy") == 0)
        return cross_entropy(l, prediction(l->g));
    for (size_t i = 0; i < sizeof by_element / sizeof *by_element; i++)
        if (strcmp(kind, by_element[i].name) == 0)
            return element_loss(l, prediction(l->g), by_element[i].f);
    return own_loss(l, kind);
}

static void append_nodes(struct graph *g, int n, struct node *const *node)
{
    for (int i = 0; i < n; i++)
        graph_append(g, node[i]);
}

/* ---- weights ------------------------------------------------------------------------------------------------------------------- */

/* By value id: some path to the loss does not go through an angle. A table of frequencies has no other, and is none to train. */
static bool *reaches_loss(const struct graph *g, const struct value *loss)
{
    bool *reaches = NEWN(g->arena, bool, g->values.n + 1);
    reaches[loss->id] = true;
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = g->nodes.at[i];
        bool reached = false, angle = op_is_onnx(n, "Sin") || op_is_onnx(n, "Cos");
        for (int k = 0; k < n->nout; k++)
            reached |= n->out[k] && reaches[n->out[k]->id];
        for (int k = 0; reached && !angle && k < n->nin; k++)
            if (n->in[k] && !(n->op && strcmp(n->op->backward_name, "zero") == 0))
                reaches[n->in[k]->id] = true;
    }
    return reaches;
}

/* Floats that are more than one, of a name that is asked for. */
static bool is_trained(const struct value *v, const struct options *o)
{
    return v->constant && dtype_is_float(v->type.dtype) && constant_elements(v->constant) > 1 && glob_match(o->train, v->name) &&
        !(o->freeze && glob_match(o->freeze, v->name));
}

struct weights {
    VEC(struct value *) list;
};

static struct weights find_trained(struct graph *g, const struct options *o, const struct value *loss)
{
    struct weights found = {{NULL, 0, 0}};
    const bool *reaches = reaches_loss(g, loss);
    for (int i = 0; i < g->values.n; i++)
        if (reaches[i] && is_trained(g->values.at[i], o))
            VEC_PUSH(g->arena, &found.list, g->values.at[i]);
    if (!found.list.n)
        fail("%s: --train: no weight of floats that the loss depends on matches '%s'", graph_file(g), o->train);
    return found;
}

/* ---- what is left of a past of length 0 ------------------------------------------------------------------------------------------- */

static void drop_empty(struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (!op_is_onnx(n, "Concat"))
            continue;
        int kept = 0, axis = (int)attr_int(n, "axis");
        for (int k = 0; k < n->nin; k++)
            if (!dim_equals(n->in[k]->type.dim[axis], 0))
                n->in[kept++] = n->in[k];
        n->nin = kept ? kept : n->nin;
    }
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------------- */

/* The loss counts once. */
static void start(struct gradients *all, struct lowering *l, const struct value *loss)
{
    const struct value like = *loss;
    struct value *one = lower_cast(l, "one.cast", lower_scalar(l, "one", DT_F32, 1), like.type.dtype);
    if (loss->type.rank > 0)
        one = reshaped(l, "one.shape", one, loss->type.rank, loss->type.dim);
    for (int i = 0; i < l->nodes.n; i++)
        VEC_PUSH(l->g->arena, &all->made.list, l->nodes.at[i]);
    gradients_add(all, loss, one);
}

static void add_output(struct graph *g, const char *name, struct value *v)
{
    struct node *node = op_node(g, "", "Identity", name, 1, &v);
    graph_append(g, node);
    VEC_PUSH(g->arena, &g->outputs, node->out[0]);
}

static void set_outputs(struct graph *g, const struct objective *loss, const struct weights *weights, const struct gradients *all)
{
    g->outputs.n = 0;
    g->states.n = 0;
    add_output(g, "loss_sum", loss->sum);
    add_output(g, "loss_count", loss->count);
    for (int i = 0; i < weights->list.n; i++) {
        struct value *w = weights->list.at[i];
        if (!all->of[w->id])
            continue;
        struct trained pair = {w, g->outputs.n};
        add_output(g, arena_printf(g->arena, "%s.grad", w->name), all->of[w->id]);
        VEC_PUSH(g->arena, &g->trained, pair);
    }
}

/* Lowerings place what they make; nothing is placed yet. */
static void forget_placements(struct graph *g)
{
    for (int i = 0; i < g->values.n; i++)
        g->values.at[i]->placed = false;
    for (int i = 0; i < g->nodes.n; i++)
        g->nodes.at[i]->strategy = NULL;
}

void pass_gradient(struct compile *c)
{
    struct graph *g = c->graph;
    const struct options *o = c->options;
    if (!o || !o->train)
        return;
    drop_empty(g);
    struct lowering tail = {.g = g, .name = "loss"}, seed = {.g = g, .name = "loss/grad"};
    struct objective loss = append_loss(&tail, o->loss);
    append_nodes(g, tail.nodes.n, tail.nodes.at);
    struct weights weights = find_trained(g, o, loss.sum);
    struct gradients all = gradients_new(g, "grad");
    for (int i = 0; i < weights.list.n; i++)
        all.active[weights.list.at[i]->id] = true;
    gradients_activate(&all, g->nodes.n, g->nodes.at);
    start(&all, &seed, loss.sum);
    gradients_walk(&all, g->nodes.n, g->nodes.at);
    append_nodes(g, all.made.list.n, all.made.list.at);
    set_outputs(g, &loss, &weights, &all);
    forget_placements(g);
    canon_remove_noops(g);
    canon_merge_equal_nodes(g);
    graph_prune(g);
    op_drop_unread(g);
}
