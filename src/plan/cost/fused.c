/* fused: which kernel computes each node. The run fuses nodes (src/lower/graph/lower_graph.c); this file fuses a copy of the graph, in
 * which values keep their ids. A kernel's parts are the nodes between its operands and its result:
 *
 *     the graph         a = Conv(x, w)    b = Add(a, z)    y = Relu(b)
 *     the one that runs y/last = ChannelsLastConv(x/last, w, z)            y/last and x/last are forms of y and x
 *
 * The parts read x, w and z, as the kernel does, and the last part writes y. No kernel stores a and b: they are inner values. */
#include "kern/product/product.h"
#include "op/op.h"
#include "op/prices.h"
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/cost/work.h"
#include "plan/space/space.h"

#include <string.h>

struct fused_search {
    struct space *s;
    struct arena *tmp;
    int nvalues;                /* values of the model's graph; a value with a higher id that is no form of these is internal to a kernel */
    const struct value **in;    /* by value id: the form in which the kernel reads it; NULL: it does not */
    bool *stored, *read;        /* by value id: stored in memory, in some form; read by an earlier part of the kernel */
    int *position;              /* by value id: position of its producer */
    const struct node **reader; /* by value id: its first reader */
    int *kernel;                /* by node position: the last kernel that it is a part of, from 1 on */
    int at, steps;              /* the current kernel; the nodes that run for it */
    int whole;                  /* its number, if it runs whole or not at all; else 0 */
    bool in_place;              /* it writes into operand 0 */
    VEC(int) ids, parts;        /* values that it reads; its parts */
};

/* ---- values of both graphs -------------------------------------------------------------------------------------------------------- */

/* The value that v is a form of; -1: none. */
static int model_id(const struct fused_search *x, const struct value *v)
{
    const struct value *of = v->form_of ? v->form_of : v;
    return of->id < x->nvalues ? of->id : -1;
}

static const struct value *first_result(const struct node *n)
{
    int k = 0;
    while (k < n->nout && !n->out[k])
        k++;
    return k < n->nout ? n->out[k] : NULL;
}

static struct fused_part *part_of(const struct space *s, const struct node *n)
{
    return &s->fused.part[first_result(n)->id];
}

/* The node of the model that makes result k of a kernel; NULL: none. */
static struct node *maker_of(const struct fused_search *x, const struct node *kernel, int k)
{
    int id = kernel->out[k] ? model_id(x, kernel->out[k]) : -1;
    return id >= 0 ? x->s->g->values.at[id]->producer : NULL;
}

/* Whether the kernel only converts a value from one form to another. */
static bool changes_form(const struct fused_search *x, const struct node *kernel)
{
    int id = kernel->nin > 0 && kernel->in[0] ? model_id(x, kernel->in[0]) : -1;
    return id >= 0 && kernel->nout == 1 && kernel->out[0] != kernel->in[0] && model_id(x, kernel->out[0]) == id;
}

/* ---- what a kernel reads ------------------------------------------------------------------------------------------------------------ */

/* Adds the kernel's operands. Nodes that make no value of the model belong to the kernel that reads them. */
static void add_operands(struct fused_search *x, const struct node *kernel)
{
    x->steps++;
    for (int k = 0; k < kernel->nin; k++) {
        const struct value *v = kernel->in[k];
        int id = v ? model_id(x, v) : -1;
        if (id >= 0 && !x->in[id]) {
            x->in[id] = v;
            VEC_PUSH(x->tmp, &x->ids, id);
        } else if (v && id < 0 && v->producer) {
            add_operands(x, v->producer);
        }
    }
}

static void forget_operands(struct fused_search *x)
{
    for (int i = 0; i < x->ids.n; i++) {
        x->in[x->ids.at[i]] = NULL;
        x->read[x->ids.at[i]] = false;
    }
    x->ids.n = x->parts.n = x->steps = 0;
}

/* ---- its parts ---------------------------------------------------------------------------------------------------------------------- */

static bool keeps_elements(const struct node *n)
{
    return n->op && n->op->flags & (OP_MOVES | OP_CONVERTS | OP_DECODES) && n->in[0];
}

static void add_part(struct fused_search *x, const struct node *n)
{
    int at = x->position[first_result(n)->id];
    if (x->kernel[at] == x->at)
        return;
    x->kernel[at] = x->at;
    VEC_PUSH(x->tmp, &x->parts, at);
}

static bool is_inner(const struct fused_search *x, const struct value *v)
{
    return !x->in[v->id] && !x->stored[v->id] && v->producer;
}

/* Marks an inner value. moved: a node at an end of the kernel makes or reads it and only moves or repeats elements, so the rest of the
 * kernel may run without that node. */
static void note_inner(struct fused_search *x, const struct value *v, bool moved)
{
    x->s->fused.inner[v->id] = true;
    x->s->fused.whole[v->id] = moved ? 0 : x->whole;
}

/* The value from which the elements of operand v are read; parts that only move, convert or decode them belong to the kernel. */
static const struct value *read_from(struct fused_search *x, const struct value *v)
{
    while (is_inner(x, v) && keeps_elements(v->producer)) {
        note_inner(x, v, true);
        add_part(x, v->producer);
        v = v->producer->in[0];
    }
    return v;
}

static void visit(struct fused_search *x, const struct node *n)
{
    struct fused_part *part = part_of(x->s, n);
    add_part(x, n);
    for (int k = 0; k < n->nin; k++) {
        const struct value *v = n->in[k] ? read_from(x, n->in[k]) : NULL, *form = v ? x->in[v->id] : NULL;
        if (form && !x->read[v->id]) {
            x->read[v->id] = true;
            part->read[k] += value_width(form) * (x->in_place ? 2 : 1);
            part->weight = k > 0 && x->s->weight[n->in[k]->id] && part->weight == DT_NONE ? value_storage(form) : part->weight;
        } else if (v && is_inner(x, v)) {
            note_inner(x, v, keeps_elements(n) || (v->producer->op && v->producer->op->flags & OP_REPEATS));
            if (x->kernel[x->position[v->id]] != x->at)
                visit(x, v->producer);
        }
    }
}

/* ---- what its parts do -------------------------------------------------------------------------------------------------------------- */

/* Whether the kernel applies a function to 8-bit codes by table lookup (kern/pointwise/chain.c). */
static bool maps_codes(const struct node *kernel)
{
    return kernel->op->flags & OP_ELEMENTWISE && kernel->nin == 1 && dtype_is_byte(kernel->in[0]->type.dtype) &&
        dtype_is_byte(kernel->out[0]->type.dtype);
}

static const struct node *node_at(const struct fused_search *x, int i)
{
    return x->s->g->nodes.at[x->parts.at[i]];
}

/* Whether the kernel's time is the sum of memory traffic and computation. A product overlaps both, so the slower of them counts. */
static bool works_in_turn(const struct fused_search *x)
{
    bool turns = true;
    for (int i = 0; i < x->parts.n; i++) {
        const struct node *n = node_at(x, i);
        const struct rule *rule = x->s->rule ? x->s->rule[x->parts.at[i]] : NULL;
        if (work_is_convolution(n))
            return true;
        turns = turns && n->op && (n->op->flags & (OP_ELEMENTWISE | OP_VIEW | OP_DECODES) || (rule && rule->moves));
    }
    return turns;
}

static double elements_of(const struct space *s, const struct value *v)
{
    double n = 1;
    for (int d = 0; v && d < v->type.rank; d++)
        n *= (double)s->sizes.extent[v->id * s->plan->workloads.n][d];
    return n;
}

/* The largest of the convolutions of one tensor that run as one convolution. */
static const struct node *largest_convolution(const struct fused_search *x)
{
    const struct node *largest = NULL;
    for (int i = 0; i < x->parts.n; i++) {
        const struct node *n = node_at(x, i);
        if (work_is_convolution(n) && (!largest || elements_of(x->s, n->in[1]) > elements_of(x->s, largest->in[1])))
            largest = n;
    }
    return largest;
}

/* How often a product with a weight in codes is made: once for each 8 bits that the other operand is rounded to. */
static int digits_of(const struct node *kernel)
{
    bool rounds = kernel->op && kernel->op->flags & OP_INTEGERS && kernel->op->flags & OP_PRODUCT &&
        dtype_is_integer(kernel->in[1]->type.dtype) && !dtype_is_integer(kernel->in[0]->type.dtype);
    return rounds ? nbits_level_digits(attr_int(kernel, "accuracy_level")) : 1;
}

static void note_part(const struct node *kernel, struct fused_part *part, const struct node *n, const struct node *last)
{
    unsigned flags = kernel->op ? kernel->op->flags : 0;
    part->into = last;
    part->integers = flags & OP_INTEGERS;
    part->digits = digits_of(kernel);
    part->rows = (n->op == kernel->op || flags & OP_ELEMENTWISE) && !(flags & OP_IN_PLACE);
    part->functions = !kernel->op || !maps_codes(kernel);
    part->codes = kernel->op && kernel->op->codes > 0 && (n == last || part->functions);
}

static void note_parts(struct fused_search *x, const struct node *kernel, const struct node *last)
{
    const struct node *largest = largest_convolution(x);
    bool turns = works_in_turn(x);
    for (int i = 0; i < x->parts.n; i++) {
        const struct node *n = node_at(x, i);
        struct fused_part *part = part_of(x->s, n);
        note_part(kernel, part, n, last);
        part->whole = x->whole;
        part->computed |= !work_is_convolution(n) || n == largest;
        part->in_turn = turns;
    }
    part_of(x->s, last)->overheads += largest ? PRICE_CONV_OVERHEADS : x->steps;
}

static void add_results(struct fused_search *x, const struct node *kernel)
{
    struct space *s = x->s;
    for (int k = 0; k < kernel->nout; k++) {
        const struct node *n = maker_of(x, kernel, k);
        const struct value *v = n ? s->g->values.at[model_id(x, kernel->out[k])] : NULL;
        if (!v)
            continue;
        part_of(s, n)->write[v->index] += x->in_place ? 0 : value_width(kernel->out[k]);
        s->fused.last[v->id] = kernel->out[k]->form_of && kernel->out[k]->type.dtype == v->type.dtype;
    }
}

/* The node whose result the kernel stores; NULL: no node of the model. */
static const struct node *last_part(const struct fused_search *x, const struct node *kernel)
{
    const struct node *last = NULL;
    for (int k = 0; k < kernel->nout && !last; k++)
        last = maker_of(x, kernel, k);
    return last;
}

/* Whether the kernel runs whole or not at all. A chain of elementwise ops, alone or after a product, may end earlier; a matched pattern may
 * not. */
static bool runs_whole(const struct node *kernel)
{
    return kernel->op && !(kernel->op->flags & (OP_ELEMENTWISE | OP_PRODUCT));
}

static void add_kernel(struct fused_search *x, const struct node *kernel)
{
    const struct node *last = last_part(x, kernel);
    require(last);
    x->at++;
    x->whole = runs_whole(kernel) ? ++x->s->fused.wholes : 0;
    add_operands(x, kernel);
    x->in_place = kernel->op && kernel->op->flags & OP_IN_PLACE;
    if (x->in_place && model_id(x, kernel->in[0]) >= 0)
        x->read[model_id(x, kernel->in[0])] = true;
    for (int k = 0; k < kernel->nout; k++)
        if (maker_of(x, kernel, k))
            visit(x, maker_of(x, kernel, k));
    note_parts(x, kernel, last);
    add_results(x, kernel);
    forget_operands(x);
}

/* Adds a node that converts a value to the part that makes the value, or to its first reader. */
static void add_change(struct fused_search *x, const struct node *kernel)
{
    const struct space *s = x->s;
    const struct value *v = s->g->values.at[model_id(x, kernel->out[0])];
    const struct node *n = v->producer ? v->producer : x->reader[v->id];
    if (!n || !first_result(n))
        return;
    struct fused_part *part = part_of(s, n);
    part->changed = v;
    part->recoded = kernel->op->codes > 0;
}

/* Marks nodes that are computed at load: those that make a constant of the graph that runs, and those whose results only such nodes
 * read. */
static void add_folded(struct fused_search *x, const struct graph *runs)
{
    const struct graph *g = x->s->g;
    bool *folded = NEWN(x->tmp, bool, g->nodes.n + 1);
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            folded[i] |= n->out[k] && runs->values.at[n->out[k]->id]->constant;
        if (!folded[i] || part_of(x->s, n)->into)
            continue;
        add_kernel(x, n);
        part_of(x->s, n)->folded = true;
        for (int k = 0; k < n->nin; k++)
            if (n->in[k] && n->in[k]->producer)
                folded[x->position[n->in[k]->id]] = true;
    }
}

/* ---- the graph ---------------------------------------------------------------------------------------------------------------------- */

static void make_parts(struct fused_search *x)
{
    struct space *s = x->s;
    s->fused.part = NEWN(s->arena, struct fused_part, s->g->values.n + 1);
    s->fused.whole = NEWN(s->arena, int, s->g->values.n + 1);
    s->fused.inner = NEWN(s->arena, bool, s->g->values.n + 1);
    s->fused.last = NEWN(s->arena, bool, s->g->values.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                x->position[n->out[k]->id] = i;
        for (int k = 0; k < n->nin; k++)
            if (n->in[k] && !x->reader[n->in[k]->id])
                x->reader[n->in[k]->id] = n;
        if (!first_result(n))
            continue;
        part_of(s, n)->read = NEWN(s->arena, double, n->nin + 1);
        part_of(s, n)->write = NEWN(s->arena, double, n->nout + 1);
    }
}

static void find_stored(struct fused_search *x, const struct graph *runs)
{
    for (int i = 0; i < x->nvalues; i++)
        x->stored[i] = runs->values.at[i]->constant;
    for (int i = 0; i < runs->nodes.n; i++)
        for (int k = 0; k < runs->nodes.at[i]->nout; k++) {
            int id = runs->nodes.at[i]->out[k] ? model_id(x, runs->nodes.at[i]->out[k]) : -1;
            if (id >= 0)
                x->stored[id] = true;
        }
}

/* Gives each inner value the memory layout of its kernel's result, for the case that it is stored. */
static void spread_last(struct space *s)
{
    for (int i = s->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = s->g->nodes.at[i];
        for (int k = 0; first_result(n) && k < n->nin; k++)
            if (n->in[k] && s->fused.inner[n->in[k]->id] && n->in[k]->type.rank == first_result(n)->type.rank)
                s->fused.last[n->in[k]->id] |= s->fused.last[first_result(n)->id];
    }
}

void fused_find(struct space *s, const struct graph *runs)
{
    struct arena *tmp = arena_new();
    struct fused_search x = {.s = s, .tmp = tmp, .nvalues = s->g->values.n};
    require(runs->values.n >= x.nvalues);
    s->fused.runs = runs;
    x.in = NEWN(tmp, const struct value *, x.nvalues + 1);
    x.stored = NEWN(tmp, bool, x.nvalues + 1);
    x.read = NEWN(tmp, bool, x.nvalues + 1);
    x.position = NEWN(tmp, int, x.nvalues + 1);
    x.reader = NEWN(tmp, const struct node *, x.nvalues + 1);
    x.kernel = NEWN(tmp, int, s->g->nodes.n + 1);
    make_parts(&x);
    find_stored(&x, runs);
    for (int i = 0; i < runs->nodes.n; i++) {
        const struct node *kernel = runs->nodes.at[i];
        if (changes_form(&x, kernel) && !(kernel->op->flags & OP_VIEW))
            add_change(&x, kernel);
        else if (last_part(&x, kernel) && !(kernel->op && kernel->op->flags & OP_VIEW))
            add_kernel(&x, kernel);
    }
    add_folded(&x, runs);
    spread_last(s);
    s->fused.apart = NEWN(s->arena, bool, s->fused.wholes + 1);
    arena_free(tmp);
}

void fused_find_alone(struct space *s)
{
    struct space_fused fused = s->fused;
    s->fused = (struct space_fused){0};
    fused_find(s, s->g);
    fused.alone = s->fused.part;
    for (int i = 0; i <= s->g->values.n; i++) /* kernels that need not run whole keep their numbers from the other search */
        fused.alone[i].whole = 0;
    s->fused = fused;
}

const struct fused_part *fused_part(const struct space *s, const struct node *n)
{
    const struct fused_part *part = first_result(n) ? part_of(s, n) : NULL;
    return part && s->fused.apart[part->whole] ? &s->fused.alone[first_result(n)->id] : part;
}

void fused_join(struct space *s)
{
    memset(s->fused.apart, 0, sizeof *s->fused.apart * (size_t)(s->fused.wholes + 1));
}

/* Whether the chosen plan, if there is one yet, reshards the value. */
static bool is_resharded(const struct space *s, const struct value *v)
{
    return v->placed && reshard_is_read(s, v);
}

void fused_settle(struct space *s)
{
    fused_join(s);
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        if (s->fused.whole[i] && is_resharded(s, v))
            s->fused.apart[s->fused.whole[i]] = true;
    }
}

/* The part that stores the result of n's kernel in the chosen plan, which may end the kernel early. */
static const struct node *last_of(const struct space *s, const struct node *n)
{
    const struct value *v = first_result(n);
    while (v && s->fused.inner[v->id] && !is_resharded(s, v) && s->uses[v->id].list.at[0].node >= 0) {
        n = s->g->nodes.at[s->uses[v->id].list.at[0].node];
        v = first_result(n);
    }
    return n;
}

const char *fused_into(const struct space *s, const struct node *n)
{
    const struct fused_part *part = fused_part(s, n);
    const struct node *last = part && part->into && part->into != n ? last_of(s, n) : n;
    return last == n ? NULL : last->name;
}
