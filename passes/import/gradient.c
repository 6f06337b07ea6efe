/* gradient: replaces the model's outputs by a training step's: loss and gradients (--train).
 *
 * A loss is appended, as a sum over all labels and the number of labels, so that microbatches and ranks of data parallelism just add. The
 * walk back from it gives each trained weight a gradient (src/op/backward/walk.c). Only these are the graph's outputs; gradients are
 * ordinary nodes for all later passes, with one constraint: a gradient is placed as its weight (graph.trained, src/plan/solve/encode.c).
 * There is no past: the pass shapes has set its length to 0. */
#include "ir/rank_meta.h"
#include "op/analysis/analysis.h"
#include "op/backward/backward.h"
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "passes/pass.h"
#include "plan/facts/facts.h"

#include <string.h>

static void append_nodes(struct graph *g, int n, struct node *const *node)
{
    for (int i = 0; i < n; i++)
        graph_append(g, node[i]);
}

/* ---- copies --------------------------------------------------------------------------------------------------------------------- */

static bool is_trained(const struct value *v)
{
    return v->constant && v->constant->trained;
}

/* A matrix whose bytes are available; in a dry run they may be missing. Other types are not trained. */
static bool may_be_tied(const struct value *v)
{
    struct constant *c = v->constant;
    return is_trained(v) && c->dtype == DT_F32 && c->rank == 2 && c->bytes >= WEIGHT_BYTES && constant_present(c) && !constant_is_hole(c) &&
        !constant_is_uniform(constant_data(c, v->name), c->dim, sizeof(float));
}

/* Every reader of b reads a instead. */
static void tie(struct graph *g, struct value *a, struct value *b, enum constant_copy kind)
{
    struct value *instead = a;
    diag_tell("%s: '%s' is a copy of '%s': they are trained as one", graph_file(g), b->name, a->name);
    if (kind == CONSTANT_TRANSPOSED) {
        struct node *turn = op_node(g, "", "Transpose", arena_printf(g->arena, "%s/tied", b->name), 1, &a);
        attr_set_ints(g, turn, "perm", 2, (const int64_t[]){1, 0});
        op_infer(g, turn);
        instead = turn->out[0];
        graph_replace(g, b, instead, false);
        graph_insert_before_use(g, 1, &turn);
        return;
    }
    graph_replace(g, b, instead, false);
}

/* Exporters write a weight twice if two nodes read it in different forms, such as an embedding and a head. */
static void tie_copies(struct graph *g, struct plan *p)
{
    VEC(struct value *) found = {NULL, 0, 0};
    for (int i = 0, n = g->values.n; i < n; i++) {
        struct value *v = g->values.at[i], *of = NULL;
        enum constant_copy kind = CONSTANT_OTHER;
        if (!may_be_tied(v))
            continue;
        for (int k = 0; k < found.n && kind == CONSTANT_OTHER; k++) {
            of = found.at[k];
            kind = constant_copy_kind(constant_data(of->constant, of->name), of->constant->dim, constant_data(v->constant, v->name),
                                      v->constant->dim, sizeof(float));
        }
        if (kind != CONSTANT_OTHER) {
            tie(g, of, v, kind);
            p->trainable.weights--;
            p->trainable.numbers -= (double)constant_elements(v->constant);
        } else
            VEC_PUSH(g->arena, &found, v);
    }
}

/* Integers carry no gradient. An op that makes integers from a trained weight, such as rounding, must not cut it off from the loss. */
static void check_passes(const struct graph *g, const struct gradients *all, const struct value *loss)
{
    const bool *reaches = gradients_reach(g, 1, &loss);
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        bool trained = false, read = false;
        for (int k = 0; k < n->nin; k++)
            trained |= n->in[k] && all->active[n->in[k]->id] && !gradients_given(n, k);
        for (int k = 0; k < n->nout; k++)
            read |= n->out[k] && reaches[n->out[k]->id];
        if (trained && read)
            gradients_check(g, n);
    }
}

struct weights {
    VEC(struct value *) list;
};

static struct weights find_trained(struct graph *g, const struct options *o, const struct value *loss)
{
    struct weights found = {{NULL, 0, 0}};
    const bool *reaches = gradients_reach(g, 1, &loss);
    for (int i = 0; i < g->values.n; i++)
        if (reaches[i] && is_trained(g->values.at[i]))
            VEC_PUSH(g->arena, &found.list, g->values.at[i]);
    if (!found.list.n && o->freeze)
        fail("%s: --train='%s' --freeze='%s' leaves no weight to train", graph_file(g), o->train, o->freeze);
    if (!found.list.n)
        fail("%s: --train: no weight of floats that the loss depends on matches '%s'", graph_file(g), o->train);
    return found;
}

/* ---- removing a past of length 0 ------------------------------------------------------------------------------------------- */

static void drop_empty_parts(struct node *n)
{
    int kept = 0, axis = (int)attr_int(n, "axis");
    for (int k = 0; k < n->nin; k++)
        if (!dim_equals(n->in[k]->type.dim[axis], 0))
            n->in[kept++] = n->in[k];
    n->nin = kept ? kept : n->nin;
}

/* A fused op appends its result i to operand past. */
static void drop_empty_past(struct node *n)
{
    for (int i = 0; i < n->nout; i++) {
        int past = op_past_operand(n, i);
        struct value *v = past >= 0 ? node_operand(n, past) : NULL;
        if (v && v->type.rank > 1 && dim_equals(v->type.dim[v->type.rank - 2], 0))
            n->in[past] = NULL;
    }
}

static void drop_empty(struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (op_is_onnx(n, "Concat"))
            drop_empty_parts(n);
        else if (n->op && (n->op->flags & OP_APPENDS) && (n->op->flags & OP_PRODUCT))
            drop_empty_past(n);
    }
}

/* Why rows of the batch may depend on each other in the values that the loss reads; NULL: they do not. */
static const char *mixing(struct graph *g, const struct objective *loss)
{
    const struct type *first = g->inputs.n ? &g->inputs.at[0]->type : NULL;
    struct graph *only = graph_copy(g->arena, g);
    const char *symbol, *why = NULL;
    if (!loss->of)
        return arena_printf(g->arena, "the loss '%s' counts them itself", loss->sum->name);
    if (!first || !first->rank || first->dim[0]->kind != DIM_SYM)
        return arena_printf(g->arena, "input '%s' (%s) has a fixed number of them", first ? g->inputs.at[0]->name : "labels",
                            first ? type_str(g->arena, first) : "none");
    graph_clear_outputs(only);
    graph_add_output(only, only->values.at[loss->of->id]);
    graph_prune(only);
    op_note_rows(only);
    return rank_meta_rows(only, 0, &symbol, &why) ? why : NULL;
}

/* Replicas and microbatches add the results of separate rows: the sum equals one batch's if rows are independent. */
static void note_mixing(struct graph *g, const struct objective *loss)
{
    const char *why = mixing(g, loss);
    if (why)
        rank_meta_set_mixing(g, why);
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------------- */

/* The loss has gradient 1. */
static void start(struct gradients *all, struct lowering *l, const struct value *loss)
{
    const struct value like = *loss;
    struct value *one = lower_cast(l, "one.cast", lower_scalar(l, "one", DT_F32, 1), like.type.dtype);
    for (int d = 0; d < loss->type.rank; d++)
        one = lower_unsqueeze(l, "one.shape", one, 0, 1);
    for (int i = 0; i < l->nodes.n; i++)
        VEC_PUSH(l->g->arena, &all->made.list, l->nodes.at[i]);
    gradients_add(all, loss, one);
}

static void add_output(struct graph *g, const char *name, struct value *v)
{
    struct node *node = op_node(g, "", "Identity", name, 1, &v);
    graph_append(g, node);
    graph_add_output(g, node->out[0]);
}

static void set_outputs(struct graph *g, const struct objective *loss, const struct weights *weights, const struct gradients *all,
                        struct plan *p)
{
    graph_clear_outputs(g);
    graph_clear_states(g);
    add_output(g, "loss_sum", loss->sum);
    add_output(g, "loss_count", loss->count);
    for (int i = 0; i < weights->list.n; i++) {
        struct value *w = weights->list.at[i];
        if (!all->of[w->id])
            continue;
        if (w->type.dtype != DT_F32)
            fail("%s: --train: weight '%s' is %s: only f32 is trained, in products of bf16 with tpc-run --fast", graph_file(g), w->name,
                 dtype_name(w->type.dtype));
        struct trained pair = {w, g->outputs.n, NULL};
        add_output(g, arena_printf(g->arena, "%s.grad", w->name), all->of[w->id]);
        VEC_PUSH(g->arena, &g->trained, pair);
        p->trained = trained_plus(p->trained, w);
    }
}

/* Lowerings place their results; nothing is placed yet. */
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
    trained_note_shared(g, c->plan);
    tie_copies(g, c->plan);
    struct lowering tail = {.g = g, .name = "loss"}, seed = {.g = g, .name = "loss/grad"};
    struct objective loss = objective_append(&tail, o->loss);
    note_mixing(g, &loss);
    append_nodes(g, tail.nodes.n, tail.nodes.at);
    struct weights weights = find_trained(g, o, loss.sum);
    trained_tell(g, weights.list.n, weights.list.at);
    struct gradients all = gradients_new(g, "grad");
    for (int i = 0; i < weights.list.n; i++)
        all.active[weights.list.at[i]->id] = true;
    gradients_activate(&all, g->nodes.n, g->nodes.at);
    check_passes(g, &all, loss.sum);
    start(&all, &seed, loss.sum);
    gradients_walk(&all, g->nodes.n, g->nodes.at);
    append_nodes(g, all.made.list.n, all.made.list.at);
    set_outputs(g, &loss, &weights, &all, c->plan);
    forget_placements(g);
    canon_remove_noops(g);
    canon_merge_equal_nodes(g);
    graph_prune(g);
    if (o->recompute == RECOMPUTE_FULL)
        recompute_forward(g);
    op_drop_unread(g);
}
