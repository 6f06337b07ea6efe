/* slice: bounds with ONNX's clamping, as expressions.
 *
 * A bound below 0 counts from the end; bounds are clamped to the dimension, INT64_MAX and INT64_MIN meaning "to the end". A symbolic bound
 * is resolved if its sign follows from the facts; otherwise the extent is data-dependent. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/shape/shape.h"
#include "op/table/table.h"

#define FAR (INT64_MAX / 2) /* a bound beyond this is "to the end", whatever the dimension */

/* A bound counted from 0 and clamped to [low, high]; NULL if its sign is unknown. */
static const struct dim *clamp(struct graph *g, const struct node *node, const struct dim *x, const struct dim *n, const struct dim *low,
                               const struct dim *high)
{
    int64_t k;
    if (dim_is_int(x, &k) && (k > FAR || k < -FAR))
        return k > 0 ? high : low;
    if (!dim_ge(g->alg, x, dim_int(g->alg, 0))) {
        if (!op_assume_ge(g, node, dim_int(g->alg, -1), x, "a bound below 0"))
            return NULL;
        x = dim_add(g->alg, n, x);
    }
    return dim_max(g->alg, dim_min(g->alg, x, high), low);
}

static void clamp_bounds(struct graph *g, const struct node *node, const struct dim *n, const struct dim *start, const struct dim *stop,
                         struct slice *s)
{
    const struct dim *zero = dim_int(g->alg, 0), *one = dim_int(g->alg, 1), *minus = dim_int(g->alg, -1);
    const struct dim *low = s->step > 0 ? zero : minus, *high = s->step > 0 ? n : dim_sub(g->alg, n, one);
    const struct dim *step = dim_int(g->alg, s->step > 0 ? s->step : -s->step);
    s->start = clamp(g, node, start, n, low, high);
    s->stop = clamp(g, node, stop, n, low, high);
    if (!s->start || !s->stop) {
        s->start = NULL;
        return;
    }
    const struct dim *way = s->step > 0 ? dim_sub(g->alg, s->stop, s->start) : dim_sub(g->alg, s->start, s->stop);
    s->size = dim_max(g->alg, dim_div(g->alg, dim_add(g->alg, way, dim_sub(g->alg, step, one)), step), zero);
}

/* Entry i of an optional vector of integers, or fallback; false if it is no integer. */
static bool slice_entry(int n, const struct dim *const *at, int i, int64_t fallback, int64_t *out)
{
    *out = fallback;
    return n < 0 || dim_is_int(at[i], out);
}

static void check_slice_count(const struct graph *g, const struct node *node, const char *what, int n, int expected)
{
    if (n != expected && n != -2)
        fail("%s: starts has %d entries but %s has %d", node_where(g, node), expected, what, n);
}

int op_slices(struct graph *g, const struct node *node, struct slice out[MAX_RANK])
{
    const struct type *data = op_operand(g, node, 0);
    const struct dim *const *start, *const *stop, *const *axis = NULL, *const *step = NULL;
    int n = op_size_operand(g, node, 1, "starts", &start), m = op_size_operand(g, node, 2, "ends", &stop);
    int k = op_size_operand(g, node, 3, "axes", &axis), l = op_size_operand(g, node, 4, "steps", &step);
    if (n < 0 || m < 0 || k == -1 || l == -1)
        return -1;
    check_slice_count(g, node, "ends", m, n);
    check_slice_count(g, node, "axes", k, n);
    check_slice_count(g, node, "steps", l, n);
    if (n > data->rank)
        fail("%s: %d axes are sliced but '%s' has %d dimensions", node_where(g, node), n, node->in[0]->name, data->rank);
    for (int i = 0; i < n; i++) {
        int64_t a;
        if (!slice_entry(k, axis, i, i, &a) || !slice_entry(l, step, i, 1, &out[i].step))
            return -1;
        if (out[i].step == 0 || out[i].step < -FAR)
            fail("%s: the step of axis %lld is %lld", node_where(g, node), (long long)a, (long long)out[i].step);
        out[i].axis = op_axis(g, node, a, data->rank);
        for (int j = 0; j < i; j++)
            if (out[j].axis == out[i].axis)
                fail("%s: axis %d is sliced twice", node_where(g, node), out[i].axis);
        const struct dim *size = dim_rewrite(g->alg, data->dim[out[i].axis]);
        clamp_bounds(g, node, size, dim_rewrite(g->alg, start[i]), dim_rewrite(g->alg, stop[i]), &out[i]);
    }
    return n;
}

/* Axes that a slice of unknown content may change: those of operand 3, or all. */
static unsigned touched(struct graph *g, const struct node *node, int rank)
{
    const struct dim *const *axis;
    int n = op_size_operand(g, node, 3, "axes", &axis);
    unsigned mask = 0;
    int64_t k;
    for (int i = 0; i < n; i++)
        if (dim_is_int(axis[i], &k))
            mask |= 1u << op_axis(g, node, k, rank);
        else
            return ~0u;
    return n < 0 ? ~0u : mask;
}

void infer_slice(struct graph *g, struct node *node)
{
    struct type out = *op_operand(g, node, 0);
    struct slice slice[MAX_RANK];
    int n = op_slices(g, node, slice);
    unsigned mask = n < 0 ? touched(g, node, out.rank) : 0;
    for (int d = 0; d < out.rank; d++)
        if (mask >> d & 1u)
            out.dim[d] = op_unknown_dim(g, node, 0, d);
    for (int i = 0; i < n; i++)
        out.dim[slice[i].axis] = slice[i].start ? slice[i].size : op_unknown_dim(g, node, 0, slice[i].axis);
    op_result(g, node, 0, out.dtype, out.rank, out.dim);
}

/* The source of entry i of the result: bounds per dimension of a vector or table. */
struct slice_bounds {
    int64_t start[2], step[2], from[2], size[2];
};

static bool read_bounds(struct graph *g, const struct node *node, struct slice_bounds *b)
{
    const struct type *x = &node->in[0]->type, *y = &node->out[0]->type;
    struct slice slice[MAX_RANK];
    int n = op_slices(g, node, slice);
    if (n < 0 || x->rank < 1 || x->rank > 2)
        return false;
    *b = (struct slice_bounds){.step = {1, 1}, .from = {1, 1}, .size = {1, 1}};
    for (int d = 0; d < x->rank; d++)
        if (!dim_is_int(x->dim[d], &b->from[d + 2 - x->rank]) || !dim_is_int(y->dim[d], &b->size[d + 2 - x->rank]))
            return false;
    for (int i = 0; i < n; i++) {
        int d = slice[i].axis + 2 - x->rank;
        if (!slice[i].start || !dim_is_int(slice[i].start, &b->start[d]))
            return false;
        b->step[d] = slice[i].step;
    }
    return true;
}

void value_slice(struct graph *g, struct node *node)
{
    const struct dims_value *from = op_entries(g, node->in[0]);
    struct slice_bounds b;
    if (!from || !read_bounds(g, node, &b) || b.from[0] * b.from[1] != from->n)
        return;
    int64_t size = b.size[0] * b.size[1];
    const struct dim **at = op_set_dims(g, node, (int)size);
    for (int64_t i = 0; i < size; i++) {
        int64_t row = b.start[0] + i / b.size[1] * b.step[0], column = b.start[1] + i % b.size[1] * b.step[1];
        at[i] = from->at[row * b.from[1] + column];
    }
}

/* ---- rule: each sliced axis is [cut | kept | cut] ----------------------------------------------------------------------------- */

struct parts {
    struct graph *g;
    struct rule *rule;
    int axis, part;
};

/* One part of the operand's sliced axis; empty cut parts are omitted. */
static int put_slice_part(struct parts *p, const char *name, const struct dim *size, unsigned flags)
{
    if (dim_equals(size, 0) && (flags & FACTOR_DROPPED))
        return -1;
    int f = rule_factor(p->g, p->rule, name, size, flags);
    rule_put(p->g, &p->rule->in[0], p->axis, p->part++, f);
    return f;
}

static void group_parts(struct rule *rule, int f)
{
    if (f >= 0)
        rule->group[rule->ngroup++] = f;
}

/* An axis that is not cut into parts: if it is split, and the only sliced one, the kept elements are looked up (`found`). */
static void looked_up_axis(struct graph *g, struct rule *rule, const struct type *data, const struct type *out, int axis, bool found)
{
    int f = rule_factor(g, rule, "cut", data->dim[axis], found ? FACTOR_LOWERED | FACTOR_POSITION : FACTOR_REPLICATED | FACTOR_DROPPED);
    rule->factor[f].red = found ? RED_SUM : RED_NONE;
    rule_put(g, &rule->in[0], axis, 0, f);
    rule_put(g, &rule->out[0], axis, 0, rule_factor(g, rule, "kept", out->dim[axis], FACTOR_REPLICATED));
}

/* An axis cut at integer bounds: its parts split together. One such axis per rule. */
static void cut_slice_axis(struct graph *g, struct rule *rule, const struct type *data, const struct slice *s)
{
    struct parts p = {.g = g, .rule = rule, .axis = s->axis};
    int before = put_slice_part(&p, "before", s->start, FACTOR_DROPPED);
    int kept = put_slice_part(&p, "kept", s->size, 0);
    int after = put_slice_part(&p, "after", dim_sub(g->alg, data->dim[s->axis], s->stop), FACTOR_DROPPED);
    group_parts(rule, before);
    group_parts(rule, kept);
    group_parts(rule, after);
    rule_put(g, &rule->out[0], s->axis, 0, kept);
}

static bool cuttable(const struct type *data, const struct slice *s)
{
    return s->start && s->step == 1 && dim_is_int(s->start, NULL) && dim_is_int(s->stop, NULL) && dim_is_int(data->dim[s->axis], NULL) &&
        s->size->k > 0;
}

static void sliced_axes(struct graph *g, const struct node *node, struct rule *rule, unsigned *done)
{
    struct slice slice[MAX_RANK];
    const struct type *data = &node->in[0]->type, *out = &node->out[0]->type;
    int n = op_slices(g, node, slice);
    for (int i = 0; i < n; i++) {
        int axis = slice[i].axis;
        if (slice[i].step == 1 && data->dim[axis] == out->dim[axis])
            continue;
        if (cuttable(data, &slice[i]) && !rule->ngroup)
            cut_slice_axis(g, rule, data, &slice[i]);
        else
            looked_up_axis(g, rule, data, out, axis, n == 1 && slice[i].start && !dtype_is_small(data->dtype));
        *done |= 1u << axis;
    }
}

struct rule *rule_slice(struct graph *g, const struct node *node)
{
    struct rule *rule = rule_new(g, node);
    unsigned done = 0;
    sliced_axes(g, node, rule, &done);
    for (int d = 0; d < rule->out[0].rank; d++) {
        if (done >> d & 1u)
            continue;
        rule_same_dim(g, rule, "d", d, node->out[0]->type.dim[d], 0);
    }
    rule_linear(rule, 1);
    rule->moves = true;
    return rule;
}

/* Each rank gathers the kept rows among its own: few of many, as the last of a sequence. */
void lower_slice(struct lowering *l)
{
    struct value *x = l->node->in[0], *inside;
    int axis = x->place.dim;
    struct slice slice[MAX_RANK];
    require(op_slices(l->g, l->node, slice) == 1 && slice->axis == axis);
    struct value *at = lower_progression(l, lower_count(l, "kept", slice->size), slice->start, dim_int(l->g->alg, slice->step));
    struct value *local = lower_local_index(l, INDICES_KNOWN, at, false, &inside);
    struct node *found = lower_node(l, "", "Gather", "found", 2, (struct value *[]){lower_with_spare(l, x, axis, false), local});
    attr_set_int(found, "axis", axis);
    op_infer(l->g, found);
    lower_on_own(l, found, placement_replicated);
    lower_addends(l, lower_unsqueeze(l, "mask", inside, 1, x->type.rank - 1 - axis), found->out[0]);
}
