/* integral: weights become -1, 0 and 1; a node whose results are no integers is replaced.
 *
 *     elementwise, one result of an operand's type       Mod(Relu(x), 3): 0, 1 or 2      activations, Sin, Sqrt, Pow, Div ...
 *     another one that is no product                     Mod(x, 3): -2 to 2              softmax, norms
 *     linear, one of several results                     Mod(x, 3)                       gradients of norms
 *     any other                                          itself, its results rounded     fused attention, fused sums and norms
 *
 * Remainders, and not Relu alone: magnitudes are cubed by every attention and every gated MLP, and two layers of that leave 2^24 behind. A
 * remainder bounds them, and unlike a clamp it still tells neighbours apart. A fused op is never split through its softmax or its norm: a
 * rank's rows are computed as they are in the whole, and rounding makes them exact again for the sums behind.
 *
 * An operand that is too large for later sums is replaced by its remainder, too: f16 and bf16 hold few integers, weights of 8 bits are
 * large. */
#include "tests/prove/integral.h"

#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "tests/prove/private.h"

#include <math.h>
#include <string.h>

enum { MODULUS = 3 };
enum outcome { GOOD, ROUNDS, TOO_LARGE };
static const double MARGIN = 0.25; /* addends may be larger than their sum: each rank's share, and several sums in one */

struct walk {
    struct graph *g;
    struct arena *tmp; /* of one set */
    struct bindings bind;
    VEC(struct tensor) held; /* by value id */
    VEC(bool) raw;           /* by value id: it is rounded by the node behind */
    int most_replaced;
    bool changed;
    struct kenv *env;
    struct integral *report;
};

/* ---- magnitudes --------------------------------------------------------------------------------------------------------------- */

/* Up to here every integer is a number of the type; sums are made in f32. */
static double exact_below(enum dtype t)
{
    return t == DT_F16 ? 0x1p11 : t == DT_BF16 ? 0x1p8 : 0x1p24;
}

/* ---- running a node ------------------------------------------------------------------------------------------------------------- */

/* False: the data decides a size. */
static bool sizes_known(struct walk *w, const struct type *type, struct tensor *t)
{
    *t = (struct tensor){.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < type->rank; d++)
        if (!dim_eval(type->dim[d], &w->bind, &t->dim[d]))
            return false;
    return true;
}

static void bind_sizes(struct walk *w, const struct type *type, const struct tensor *t)
{
    for (int d = 0; d < type->rank; d++)
        if (type->dim[d]->kind == DIM_SYM)
            bindings_set(w->tmp, &w->bind, type->dim[d]->name, t->dim[d]);
}

static void results_new(struct walk *w, const struct node *n, const struct tensor *in, struct tensor *out)
{
    bool known = true;
    for (int i = 0; i < n->nout; i++)
        known = (!n->out[i] || sizes_known(w, &n->out[i]->type, &out[i])) && known;
    if (!known)
        dynamic_types(w->tmp, w->g, n, in, out);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i]) {
            bind_sizes(w, &n->out[i]->type, &out[i]);
            out[i].data = arena_alloc(w->tmp, tensor_bytes(&out[i]) + 64);
        }
}

static struct tensor operand(struct walk *w, struct value *v)
{
    struct tensor none = {0};
    if (!v)
        return none;
    return v->constant ? integral_tensor(v->constant, v->name) : w->held.at[v->id];
}

static void run_kernel(struct walk *w, const struct node *n, const struct tensor *in, struct tensor *out)
{
    struct kcall call = {.node = n, .graph = w->g, .nin = n->nin, .nout = n->nout, .in = in, .out = out, .bind = &w->bind, .env = w->env};
    if (!n->op || !n->op->kernel)
        fail("%s: cannot be run", node_where(w->g, n));
    results_new(w, n, in, out);
    n->op->kernel(&call);
}

static void note(struct integral *r, double magnitude, enum dtype type)
{
    r->largest = fmax(r->largest, magnitude);
    r->room = fmax(r->room, magnitude / exact_below(type));
}

static int64_t floats(const struct tensor *t)
{
    return dtype_is_float(t->dtype) ? tensor_elements(t) : 0;
}

static bool is_finite(const struct tensor *t)
{
    for (int64_t i = 0; i < floats(t); i++)
        if (!isfinite(tensor_element(t, i)))
            return false;
    return true;
}

static bool is_integral(const struct tensor *t)
{
    for (int64_t i = 0; i < floats(t); i++)
        if (tensor_element(t, i) != rint(tensor_element(t, i)))
            return false;
    return is_finite(t);
}

static double magnitude(const struct tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < floats(t); i++)
        most = fmax(most, fabs(tensor_element(t, i)));
    return most;
}

/* Integers that are stored as such are below 2^8, or 2^bits where the op says how many. */
static double stored_below(const struct node *n)
{
    double below = 256;
    for (int i = 0; i < n->nattr; i++)
        if (strcmp(n->attr[i].name, "bits") == 0)
            below = ldexp(1, (int)n->attr[i].i);
    return below;
}

static struct tensor magnitudes(struct walk *w, const struct tensor *t)
{
    struct tensor out = *t;
    out.data = arena_alloc(w->tmp, tensor_bytes(t) + 64);
    for (int64_t k = 0; k < tensor_elements(t); k++)
        tensor_put(&out, k, fabs(tensor_element(t, k)));
    return out;
}

/* A sum of products is exact in any order if the sum of their magnitudes is. */
static void note_sums(struct walk *w, const struct node *n, const struct tensor *in)
{
    struct tensor *of = NEWN(w->tmp, struct tensor, n->nin + 1), *out = NEWN(w->tmp, struct tensor, n->nout + 1);
    double most = 0;
    for (int i = 0; i < n->nin; i++) {
        bool is_float = in[i].data && dtype_is_float(in[i].dtype);
        of[i] = is_float ? magnitudes(w, &in[i]) : in[i];
        if (in[i].data && !is_float && (n->op->flags & OP_PRODUCT) && dtype_is_float(in[0].dtype))
            most = magnitude(&in[0]) * (double)in[0].dim[in[0].rank - 1] * stored_below(n);
    }
    run_kernel(w, n, of, out);
    for (int i = 0; i < n->nout; i++)
        if (out[i].data && !w->raw.at[n->out[i]->id])
            note(w->report, most > 0 ? most : magnitude(&out[i]), out[i].dtype);
}

static bool sums(struct walk *w, const struct node *n)
{
    const struct rule *r = rule_of(w->g, n);
    for (int f = 0; r && f < r->nfactor; f++)
        if (!(r->factor[f].flags & FACTOR_LOWERED) && ((r->factor[f].flags & FACTOR_CONTRACTED) || r->factor[f].red == RED_SUM))
            return true;
    return false;
}

static void keep(struct walk *w, const struct value *v, const struct tensor *t)
{
    static const struct tensor none;
    while (w->held.n <= v->id) {
        VEC_PUSH(w->g->arena, &w->held, none);
        VEC_PUSH(w->g->arena, &w->raw, false);
    }
    w->held.at[v->id] = *t;
}

/* The largest magnitude in sums and results, as a part of what their type holds exactly. */
static void note_results(struct walk *w, const struct node *n, const struct tensor *in, const struct tensor *out)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && !w->raw.at[n->out[i]->id])
            note(w->report, magnitude(&out[i]), out[i].dtype);
    if (sums(w, n))
        note_sums(w, n, in);
}

static enum outcome judge(struct walk *w, const struct node *n, const struct tensor *in, const struct tensor *out)
{
    const struct integral before = *w->report;
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && !w->raw.at[n->out[i]->id] && !is_integral(&out[i]))
            return !is_finite(&out[i]) && sums(w, n) ? TOO_LARGE : ROUNDS;
    note_results(w, n, in, out);
    if (w->report->room < MARGIN)
        return GOOD;
    *w->report = before;
    return TOO_LARGE;
}

static enum outcome run_node(struct walk *w, const struct node *n)
{
    struct tensor *in = NEWN(w->tmp, struct tensor, n->nin + 1), *out = NEWN(w->tmp, struct tensor, n->nout + 1);
    for (int i = 0; i < n->nin; i++)
        in[i] = operand(w, n->in[i]);
    run_kernel(w, n, in, out);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            keep(w, n->out[i], &out[i]);
    return judge(w, n, in, out);
}

/* ---- replacing a node ----------------------------------------------------------------------------------------------------------- */

static struct value *modulus(struct walk *w, enum dtype type)
{
    struct tensor t = {.dtype = type};
    t.data = arena_alloc(w->g->arena, 8);
    tensor_put(&t, 0, MODULUS);
    return graph_constant(w->g, "modulus", type, 0, NULL, t.data);
}

/* The operand that has the type of the node's only result; NULL: none. */
static struct value *like_result(const struct node *n)
{
    for (int i = 0; n->nout == 1 && i < n->nin; i++)
        if (n->in[i] && type_eq(&n->in[i]->type, &n->out[0]->type))
            return n->in[i];
    return NULL;
}

/* The operand in which the node is linear, if result i has its type. Terms of it pass the node, and do not round as their sum does. */
static struct value *linear_like(struct graph *g, const struct node *n, int i)
{
    const struct rule *r = n->nout > 1 ? rule_of(g, n) : NULL;
    for (int s = 0; r && s < r->nlinear; s++)
        for (int k = 0; k < n->nin; k++)
            if (r->linear[s] == 1u << k && n->in[k] && type_eq(&n->in[k]->type, &n->out[i]->type))
                return n->in[k];
    return NULL;
}

/* Mod(x, MODULUS), not inserted; its result is to be set. */
static struct node *remainder_of(struct walk *w, struct value *x, const char *name)
{
    struct value *in[] = {x, modulus(w, x->type.dtype)};
    struct node *mod = graph_node(w->g, op_find("", "Mod"), arena_printf(w->g->arena, "%s/Mod", name), 2, in, 1);
    attr_set_int(mod, "fmod", 1);
    return mod;
}

static void replace(struct walk *w, int at, struct value *x)
{
    struct graph *g = w->g;
    struct node *old = g->nodes.at[at];
    if (old->op->flags & OP_ELEMENTWISE) {
        struct node *relu = op_node(g, "", "Relu", arena_printf(g->arena, "%s/Relu", old->name), 1, &x);
        x = relu->out[0];
        graph_insert(g, at++, relu);
    }
    struct node *mod = remainder_of(w, x, old->name);
    node_output(g, mod, 0, old->out[0]);
    g->nodes.at[at] = mod;
    w->report->replaced++;
}

/* The largest operand that is computed, as a remainder. */
static void reduce_operand(struct walk *w, int at)
{
    struct graph *g = w->g;
    struct node *n = g->nodes.at[at];
    int largest = -1;
    double most = MODULUS - 1;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !n->in[i]->constant && magnitude(&w->held.at[n->in[i]->id]) > most) {
            most = magnitude(&w->held.at[n->in[i]->id]);
            largest = i;
        }
    if (largest < 0)
        fail("%s: a magnitude is too large to be added in any order, and no operand is", node_where(g, n));
    struct node *mod = remainder_of(w, n->in[largest], arena_printf(g->arena, "%s/%d", n->name, largest));
    node_output(g, mod, 0, graph_value(g, mod->name, &n->in[largest]->type));
    n->in[largest] = mod->out[0];
    graph_insert(g, at, mod);
    w->report->reduced++;
}

/* One of several results: a remainder of x, or rounded if there is no x. */
static void mend_result(struct walk *w, int at, int i, struct value *x)
{
    struct graph *g = w->g;
    struct node *n = g->nodes.at[at];
    struct value *y = n->out[i], *raw = graph_value(g, arena_printf(g->arena, "%s/raw", y->name), &y->type);
    struct node *instead = x ? remainder_of(w, x, y->name)
                             : graph_node(g, op_find("", "Round"), arena_printf(g->arena, "%s/Round", y->name), 1, &raw, 1);
    keep(w, raw, &w->held.at[y->id]);
    w->raw.at[raw->id] = true;
    node_output(g, n, i, raw);
    node_output(g, instead, 0, y);
    graph_insert(g, at + 1, instead);
    *(x ? &w->report->replaced : &w->report->rounded) += 1;
}

/* So that the node at this place has results that are integers. */
static void mend(struct walk *w, int at)
{
    const struct node *n = w->g->nodes.at[at];
    struct value *x = n->op->flags & OP_PRODUCT ? NULL : like_result(n);
    if (w->report->replaced >= w->most_replaced)
        fail("%s: what replaces it is no integer, either", node_where(w->g, n));
    if (x) {
        replace(w, at, x);
        return;
    }
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && !w->raw.at[n->out[i]->id] && !is_integral(&w->held.at[n->out[i]->id]))
            mend_result(w, at, i, n->op->flags & OP_PRODUCT ? NULL : linear_like(w->g, n, i));
}

/* ---- the walk -------------------------------------------------------------------------------------------------------------------- */

static void take_inputs(struct walk *w, struct tensor *inputs)
{
    w->bind = (struct bindings){0};
    for (int i = 0; i < w->g->inputs.n; i++) {
        const struct value *v = w->g->inputs.at[i];
        for (int64_t k = 0; k < floats(&inputs[i]); k++)
            tensor_put(&inputs[i], k, rint(tensor_element(&inputs[i], k)));
        keep(w, v, &inputs[i]);
        for (int d = 0; d < v->type.rank; d++)
            if (v->type.dim[d]->kind == DIM_SYM)
                bindings_set(w->tmp, &w->bind, v->type.dim[d]->name, inputs[i].dim[d]);
    }
}

static void count_outputs(const struct walk *w)
{
    for (int i = 0; i < w->g->outputs.n; i++) {
        const struct value *v = w->g->outputs.at[i];
        const struct tensor *t = &w->held.at[v->id];
        for (int64_t k = 0; k < floats(t); k++)
            w->report->nonzero += tensor_element(t, k) != 0;
        w->report->elements += floats(t);
    }
}

static void walk_set(struct walk *w, struct tensor *inputs)
{
    w->tmp = arena_new();
    take_inputs(w, inputs);
    for (int i = 0; i < w->g->nodes.n; i++)
        for (enum outcome found; (found = run_node(w, w->g->nodes.at[i])) != GOOD; w->changed = true)
            (found == ROUNDS ? mend : reduce_operand)(w, i);
    count_outputs(w);
    arena_free(w->tmp);
}

/* Again until no set changes the graph: the numbers are of the graph as it is then. */
struct integral integral_rewrite(struct graph *g, int nset, struct tensor *const *inputs)
{
    struct integral report = {0};
    struct walk w = {.g = g, .env = kenv_new(1, false), .report = &report, .changed = true, .most_replaced = g->nodes.n};
    integral_constants(g);
    while (w.changed) {
        w.changed = false;
        report = (struct integral){.replaced = report.replaced, .rounded = report.rounded, .reduced = report.reduced};
        for (int k = 0; k < nset; k++)
            walk_set(&w, inputs[k]);
    }
    kenv_free(w.env);
    graph_prune(g);
    return report;
}
