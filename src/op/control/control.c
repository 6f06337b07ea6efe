/* control: If, Loop, Scan: operands and results of their bodies, and the types of their results.
 *
 * A body is inferred for the operands of its node. If branches disagree in a size, it stays open; so does a size that changes between
 * iterations of a Loop or Scan. No rule: a node with subgraphs stays replicated. */
#include "op/control/control.h"

#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

#include <string.h>

#define ROUNDS_BY_NEED 4 /* after that, every size of carried values is open */

/* ---- operands and results of bodies ---------------------------------------------------------------------------------------- */

/* A controlling operand is one element: the number of iterations an integer, a condition a boolean. */
static void check_steering(struct graph *g, const struct node *node, int i, enum dtype dtype)
{
    const struct type *t = node_operand(node, i) ? op_operand(g, node, i) : NULL;
    if (t && t->dtype != dtype)
        fail("%s: operand '%s' is %s, expected one element of type %s", node_where(g, node), node->in[i]->name, type_str(g->arena, t),
             dtype_name(dtype));
    for (int d = 0; t && d < t->rank; d++)
        op_same_dim(g, node, t->dim[d], dim_int(g->alg, 1), "the number of conditions and 1");
}

static const struct type *output_type(const struct graph *g, const struct node *node, const struct subgraph *r, int i)
{
    const struct value *v = r->graph->outputs.at[i];
    if (v->type.dtype == DT_NONE)
        fail("%s: the type of result '%s' of its %s is not known%s", node_where(g, node), v->name, r->graph->name,
             op_why_untyped(g->arena, v));
    if (!dtype_size(v->type.dtype))
        fail("%s: result '%s' of its %s is %s, which tpc does not handle there", node_where(g, node), v->name, r->graph->name,
             dtype_name(v->type.dtype));
    return &v->type;
}

/* ---- If -------------------------------------------------------------------------------------------------------------------------- */

static const struct dim *agreed(struct graph *g, const struct node *node, int i, int d, const struct subgraph *branch)
{
    const struct dim *a = subgraph_leave(&branch[0], branch[0].graph->outputs.at[i]->type.dim[d]);
    const struct dim *b = subgraph_leave(&branch[1], branch[1].graph->outputs.at[i]->type.dim[d]);
    return a && a == b ? a : op_unknown_dim(g, node, i, d);
}

/* In sizes of the enclosing graph, where known. */
static const char *result_text(struct graph *g, const struct subgraph *branch, int i)
{
    struct type t = branch->graph->outputs.at[i]->type;
    for (int d = 0; d < t.rank; d++) {
        const struct dim *outside = subgraph_leave(branch, t.dim[d]);
        t.dim[d] = outside ? outside : t.dim[d];
    }
    return type_str(g->arena, &t);
}

static void if_result(struct graph *g, struct node *node, int i, const struct subgraph *branch)
{
    const struct type *a = output_type(g, node, &branch[0], i), *b = output_type(g, node, &branch[1], i);
    const struct dim *dim[MAX_RANK];
    const char *both = "";
    if (a->dtype != b->dtype || a->rank != b->rank)
        both = arena_printf(g->arena, "%s: result '%s' is %s by one branch and %s by the other", node_where(g, node), node->out[i]->name,
                            result_text(g, &branch[0], i), result_text(g, &branch[1], i));
    if (*both && a->dtype == b->dtype && op_undecided_by_values(g, 1, node->in, both))
        return;
    if (*both)
        fail("%s, expected one element type and number of dimensions", both);
    for (int d = 0; d < a->rank; d++)
        dim[d] = agreed(g, node, i, d, branch);
    op_result(g, node, i, a->dtype, a->rank, dim);
}

static struct subgraph ready_branch(struct arena *arena, struct graph *g, const struct node *node, int body)
{
    control_check_operands(g, node, 1);
    control_check_inputs(g, node, body, 0);
    control_check_outputs(g, node, body, node->nout);
    struct subgraph r = subgraph_new(arena, g, node, body);
    op_infer_fixpoint(r.graph);
    return r;
}

void infer_if(struct graph *g, struct node *node)
{
    struct arena *tmp = arena_new();
    check_steering(g, node, 0, DT_BOOL);
    struct subgraph branch[2] = {ready_branch(tmp, g, node, 0), ready_branch(tmp, g, node, 1)};
    bool known = !subgraph_is_undecided(&branch[0]) && !subgraph_is_undecided(&branch[1]);
    for (int i = 0; known && i < node->nout && !g->undecided.what; i++)
        if (node->out[i])
            if_result(g, node, i, branch);
    arena_free(tmp);
}

/* ---- values carried between iterations ------------------------------------------------------------------------------------------- */

/* Operands first ..., inputs in ... and outputs out ... of the body, n of each. open: by number * MAX_RANK + dimension: the size
 * changes. */
struct carried {
    int n, first, in, out;
    bool *open;
};

static void enter_carried(struct subgraph *r, const struct carried *c)
{
    for (int i = 0; i < c->n; i++) {
        struct value *v = r->graph->inputs.at[c->in + i];
        v->type = subgraph_type(r, op_operand(r->around, r->node, c->first + i));
        for (int d = 0; d < v->type.rank; d++)
            if (c->open[i * MAX_RANK + d])
                v->type.dim[d] = dim_data_sym(r->graph->alg, arena_printf(r->graph->arena, "%s.%d", v->name, d));
    }
}

static bool opens_more(struct subgraph *r, const struct carried *c, int round)
{
    bool more = false;
    for (int i = 0; i < c->n; i++) {
        const struct type *in = &r->graph->inputs.at[c->in + i]->type, *out = output_type(r->around, r->node, r, c->out + i);
        if (in->dtype != out->dtype || in->rank != out->rank)
            fail("%s: what it carries as '%s' is %s before an iteration and %s after it", node_where(r->around, r->node),
                 r->graph->inputs.at[c->in + i]->name, type_str(r->around->arena, in), type_str(r->around->arena, out));
        for (int d = 0; d < in->rank; d++) {
            bool changes = dim_rewrite(r->graph->alg, in->dim[d]) != out->dim[d] || round >= ROUNDS_BY_NEED;
            more = more || (changes && !c->open[i * MAX_RANK + d]);
            c->open[i * MAX_RANK + d] |= changes;
        }
    }
    return more;
}

/* The body under sizes that hold in every iteration. enter: types the inputs that are not carried. */
static struct subgraph ready_turn(struct arena *arena, struct graph *g, const struct node *node, const struct carried *c,
                                  void (*enter)(struct subgraph *))
{
    for (int round = 0;; round++) {
        struct subgraph r = subgraph_new(arena, g, node, 0);
        enter(&r);
        enter_carried(&r, c);
        op_infer_fixpoint(r.graph);
        if (r.graph->undecided.what || !opens_more(&r, c, round))
            return r;
    }
}

static void carried_result(struct graph *g, struct node *node, const struct carried *c, int i)
{
    const struct type *t = op_operand(g, node, c->first + i);
    const struct dim *dim[MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        dim[d] = c->open[i * MAX_RANK + d] ? op_unknown_dim(g, node, i, d) : t->dim[d];
    op_result(g, node, i, t->dtype, t->rank, dim);
}

/* One per iteration, stacked along axis; turns NULL: their number is unknown. */
static void infer_stacked(struct graph *g, struct node *node, const struct subgraph *r, int i, int output, int axis,
                          const struct dim *turns)
{
    const struct type *t = output_type(g, node, r, output);
    const struct dim *dim[MAX_RANK];
    if (t->rank + 1 > MAX_RANK)
        fail("%s: result '%s' has %d dimensions, at most %d are handled", node_where(g, node), node->out[i]->name, t->rank + 1, MAX_RANK);
    for (int d = 0; d <= t->rank; d++) {
        const struct dim *of = d == axis ? turns : subgraph_leave(r, t->dim[d - (d > axis)]);
        dim[d] = of ? of : op_unknown_dim(g, node, i, d);
    }
    op_result(g, node, i, t->dtype, t->rank + 1, dim);
}

/* ---- Loop: operands M, cond, carried; body (iteration, cond, carried) -> (cond, carried, stacked) ---------------------------- */

/* A scalar, or one element if the file says so. */
static void enter_scalar(struct subgraph *r, int input, enum dtype dtype)
{
    struct type *t = &r->graph->inputs.at[input]->type;
    bool vector = t->dtype != DT_NONE && t->rank == 1;
    *t = (struct type){.dtype = dtype, .rank = vector};
    if (vector)
        t->dim[0] = dim_int(r->graph->alg, 1);
}

static void enter_loop(struct subgraph *r)
{
    enter_scalar(r, 0, DT_I64);
    enter_scalar(r, 1, DT_BOOL);
}

static struct carried loop_carried(struct arena *arena, const struct graph *g, const struct node *node)
{
    struct carried c = {.n = node_captured(node, 0) - 2, .first = 2, .in = 2, .out = 1};
    control_check_operands(g, node, 2);
    control_check_inputs(g, node, 0, c.n + 2);
    control_check_outputs(g, node, 0, 1 + (c.n > node->nout ? c.n : node->nout));
    c.open = NEWN(arena, bool, c.n *MAX_RANK);
    return c;
}

static struct subgraph ready_loop(struct arena *arena, struct graph *g, const struct node *node, int body)
{
    (void)body;
    struct carried c = loop_carried(arena, g, node);
    return ready_turn(arena, g, node, &c, enter_loop);
}

/* Whether the condition is initially true and then always unchanged or true. */
static bool goes_on(struct graph *g, const struct node *node, const struct subgraph *r)
{
    const struct dims_value *first = op_dims(g, node->in[1]);
    struct value *v = r->graph->outputs.at[0];
    while (v->producer && op_is_onnx(v->producer, "Identity"))
        v = v->producer->in[0];
    bool begins = !node->in[1] || (first && first->n == 1 && !dim_equals(first->at[0], 0));
    const struct dims_value *again = op_dims(r->graph, v);
    return begins && (v == r->graph->inputs.at[1] || (again && again->n == 1 && dim_equals(again->at[0], 1)));
}

/* NULL: unknown. */
static const struct dim *loop_turns(struct graph *g, const struct node *node, const struct subgraph *r)
{
    const struct dims_value *most = op_dims(g, node->in[0]);
    return most && most->n == 1 && goes_on(g, node, r) ? dim_max(g->alg, most->at[0], dim_int(g->alg, 0)) : NULL;
}

void infer_loop(struct graph *g, struct node *node)
{
    struct arena *tmp = arena_new();
    struct carried c = loop_carried(tmp, g, node);
    check_steering(g, node, 0, DT_I64);
    check_steering(g, node, 1, DT_BOOL);
    struct subgraph r = ready_turn(tmp, g, node, &c, enter_loop);
    if (subgraph_is_undecided(&r)) {
        arena_free(tmp);
        return;
    }
    const struct type *again = output_type(g, node, &r, 0);
    if (again->dtype != DT_BOOL || again->rank > 1)
        fail("%s: the condition that its body gives is %s, expected one boolean", node_where(g, node), type_str(tmp, again));
    if (!node->in[0] && goes_on(g, node, &r))
        fail("%s: never ends: it has no number of iterations and a condition that stays true", node_where(g, node));
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && i < c.n)
            carried_result(g, node, &c, i);
        else if (node->out[i])
            infer_stacked(g, node, &r, i, 1 + i, 0, loop_turns(g, node, &r));
    arena_free(tmp);
}

/* ---- Scan: operands carried, scanned; body (carried, slices) -> (carried, stacked) ------------------------------------------- */

int control_scan_inputs(const struct graph *g, const struct node *node)
{
    int64_t n = attr_int(node, "num_scan_inputs");
    if (n < 1 || n > node_captured(node, 0))
        fail("%s: scans %lld of %d operands", node_where(g, node), (long long)n, node_captured(node, 0));
    return (int)n;
}

int control_scan_axis(const struct graph *g, const struct node *node, const char *attr, int i, int rank)
{
    const int64_t *axis;
    int n = attr_is_set(node, attr) ? attr_ints(g, node, attr, &axis) : 0;
    return n > i ? op_axis(g, node, axis[i], rank) : 0;
}

bool control_scan_backwards(const struct graph *g, const struct node *node, const char *attr, int i)
{
    const int64_t *direction;
    int n = attr_is_set(node, attr) ? attr_ints(g, node, attr, &direction) : 0;
    return n > i && direction[i] != 0;
}

static struct carried scan_carried(struct arena *arena, const struct graph *g, const struct node *node)
{
    struct carried c = {.n = node_captured(node, 0) - control_scan_inputs(g, node)};
    control_check_inputs(g, node, 0, node_captured(node, 0));
    control_check_outputs(g, node, 0, c.n > node->nout ? c.n : node->nout);
    c.open = NEWN(arena, bool, c.n *MAX_RANK);
    return c;
}

static int scanned_axis(const struct graph *g, const struct node *node, int i)
{
    op_need_rank(g, node, node_captured(node, 0) - control_scan_inputs(g, node) + i, 1, MAX_RANK);
    return control_scan_axis(g, node, "scan_input_axes", i,
                             op_operand(g, node, node_captured(node, 0) - control_scan_inputs(g, node) + i)->rank);
}

static void enter_scan(struct subgraph *r)
{
    int n = control_scan_inputs(r->around, r->node), first = node_captured(r->node, 0) - n;
    for (int i = 0; i < n; i++) {
        struct type t = subgraph_type(r, op_operand(r->around, r->node, first + i));
        int axis = scanned_axis(r->around, r->node, i);
        t.rank--;
        for (int d = axis; d < t.rank; d++)
            t.dim[d] = t.dim[d + 1];
        r->graph->inputs.at[first + i]->type = t;
    }
}

static struct subgraph ready_scan(struct arena *arena, struct graph *g, const struct node *node, int body)
{
    (void)body;
    struct carried c = scan_carried(arena, g, node);
    return ready_turn(arena, g, node, &c, enter_scan);
}

static const struct dim *scan_length(struct graph *g, const struct node *node)
{
    int n = control_scan_inputs(g, node), first = node_captured(node, 0) - n;
    const struct dim *length = NULL;
    for (int i = 0; i < n; i++) {
        const struct dim *own = op_operand(g, node, first + i)->dim[scanned_axis(g, node, i)];
        length = length ? op_same_dim(g, node, length, own, "the lengths of what is scanned") : own;
    }
    return length;
}

void infer_scan(struct graph *g, struct node *node)
{
    struct arena *tmp = arena_new();
    struct carried c = scan_carried(tmp, g, node);
    const struct dim *length = scan_length(g, node);
    struct subgraph r = ready_turn(tmp, g, node, &c, enter_scan);
    bool known = !subgraph_is_undecided(&r);
    for (int i = 0; known && i < node->nout; i++) {
        if (node->out[i] && i < c.n)
            carried_result(g, node, &c, i);
        else if (node->out[i])
            infer_stacked(g, node, &r, i, i, control_scan_axis(g, node, "scan_output_axes", i - c.n, output_type(g, node, &r, i)->rank + 1),
                          length);
    }
    arena_free(tmp);
}

/* ---- any of them ------------------------------------------------------------------------------------------------------------- */

struct subgraph control_typed_body(struct arena *arena, struct graph *g, const struct node *node, int body)
{
    bool loop = op_is_onnx(node, "Loop"), branch = op_is_onnx(node, "If");
    struct subgraph typed = (branch ? ready_branch : loop ? ready_loop : ready_scan)(arena, g, node, body);
    if (typed.graph->undecided.what)
        op_fail_undecided(typed.graph);
    return typed;
}

int control_steering_operands(const struct node *node)
{
    return op_is_onnx(node, "If") ? 1 : op_is_onnx(node, "Loop") ? 2 : 0;
}

const struct dim *control_iterations(struct graph *g, const struct node *node)
{
    const struct dims_value *most = op_is_onnx(node, "Loop") ? op_dims(g, node->in[0]) : NULL;
    if (op_is_onnx(node, "Scan"))
        return scan_length(g, node);
    return most && most->n == 1 ? most->at[0] : NULL;
}

static const struct dim *larger_branch(struct graph *g, const struct node *node, int i, int d)
{
    struct arena *tmp = arena_new();
    const struct dim *most = NULL;
    for (int k = 0; k < 2; k++) {
        struct subgraph r = ready_branch(tmp, g, node, k);
        const struct dim *size = subgraph_leave(&r, r.graph->outputs.at[i]->type.dim[d]);
        most = most && size ? dim_max(g->alg, most, size) : size ? size : most;
    }
    arena_free(tmp);
    return most;
}

const struct dim *control_size_guess(struct graph *g, const struct node *node, int i, int d)
{
    if (op_is_onnx(node, "If"))
        return larger_branch(g, node, i, d);
    int first = op_is_onnx(node, "Loop") ? 2 : 0, carried = node_captured(node, 0) - first - (first ? 0 : control_scan_inputs(g, node));
    return i < carried ? node->in[first + i]->type.dim[d] : NULL;
}
