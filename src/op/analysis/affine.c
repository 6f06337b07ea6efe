/* affine: positions and row numbers, from which masks and lookups are made: through Range, sums, products with a known number, and ops that
 * only move elements. */
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"

static bool holds_integers(const struct value *v)
{
    return v && (v->type.dtype == DT_I64 || v->type.dtype == DT_I32);
}

static struct affine *affine_new(struct graph *g, const struct dim *base)
{
    struct affine *a = NEW(g->arena, struct affine);
    a->base = base;
    for (int d = 0; d < MAX_RANK; d++)
        a->step[d] = dim_int(g->alg, 0);
    return a;
}

static struct affines one(struct graph *g, const struct value *v, struct affine *a)
{
    for (int d = 0; a && d < v->type.rank; d++)
        if (dim_equals(v->type.dim[d], 1))
            a->step[d] = dim_int(g->alg, 0);
    struct affines list = {a ? 1 : 0, NEW(g->arena, const struct affine *)};
    *list.at = a;
    return list;
}

/* The form of operand i, equal for all elements; NULL: unknown. */
static const struct affine *affine_operand(struct graph *g, const struct node *n, int i, const struct affines *known)
{
    struct value *v = n->in[i];
    if (!holds_integers(v))
        return NULL;
    if (known[v->id].n)
        return known[v->id].n == 1 ? known[v->id].at[0] : NULL;
    const struct dims_value *dims = op_dims(g, v);
    return dims && dims->n == 1 ? affine_new(g, dims->at[0]) : NULL;
}

static bool is_constant(const struct affine *a)
{
    for (int d = 0; d < MAX_RANK; d++)
        if (!dim_equals(a->step[d], 0))
            return false;
    return true;
}

/* ---- making and combining them --------------------------------------------------------------------------------------------- */

static struct affine *affine_range(struct graph *g, const struct node *n)
{
    const struct dim **start, **delta;
    if (n->nin > 0 || attr_dims(n, "start", &start) != 1 || attr_dims(n, "delta", &delta) != 1)
        return NULL;
    struct affine *a = affine_new(g, start[0]);
    a->step[0] = delta[0];
    return a;
}

/* x + times * y for operands broadcast to rank dimensions. */
static struct affine *sum(struct graph *g, int rank, const struct affine *x, int x_rank, const struct affine *y, int y_rank, int64_t times)
{
    const struct dim *k = dim_int(g->alg, times);
    struct affine *a = affine_new(g, dim_add(g->alg, x->base, dim_mul(g->alg, k, y->base)));
    for (int d = 0; d < rank; d++) {
        if (d >= rank - x_rank)
            a->step[d] = x->step[d - rank + x_rank];
        if (d >= rank - y_rank)
            a->step[d] = dim_add(g->alg, a->step[d], dim_mul(g->alg, k, y->step[d - rank + y_rank]));
    }
    return a;
}

static struct affine *affine_product(struct graph *g, int rank, const struct affine *x, int x_rank, const struct dim *k)
{
    struct affine *a = affine_new(g, dim_mul(g->alg, x->base, k));
    for (int d = rank - x_rank; d < rank; d++)
        a->step[d] = dim_mul(g->alg, x->step[d - rank + x_rank], k);
    return a;
}

static struct affine *affine_combined(struct graph *g, const struct node *n, const struct affines *known)
{
    const struct affine *x = affine_operand(g, n, 0, known), *y = affine_operand(g, n, 1, known);
    int rank = n->out[0]->type.rank, x_rank = n->in[0]->type.rank, y_rank = n->in[1]->type.rank;
    if (!x || !y)
        return NULL;
    if (op_is_onnx(n, "Add") || op_is_onnx(n, "Sub"))
        return sum(g, rank, x, x_rank, y, y_rank, op_is_onnx(n, "Add") ? 1 : -1);
    if (is_constant(y))
        return affine_product(g, rank, x, x_rank, y->base);
    return is_constant(x) ? affine_product(g, rank, y, y_rank, x->base) : NULL;
}

/* ---- what moves them ---------------------------------------------------------------------------------------------------------------- */

/* The step along each factor; NULL: unknown. */
static const struct dim **steps_of_factors(struct graph *g, const struct rule *r, const struct affine *x)
{
    const struct dim **step = NEWN(g->arena, const struct dim *, r->nfactor + 1);
    for (int f = 0; f < r->nfactor; f++)
        step[f] = dim_int(g->alg, 0);
    for (int d = 0; d < r->in[0].rank; d++)
        for (int p = 0; p < r->in[0].dim[d].n; p++) {
            const struct rule_part *part = &r->in[0].dim[d].part[p];
            bool alone = r->in[0].dim[d].n == 1 && part->n == 1;
            for (int i = 0; i < part->n; i++)
                step[part->factor[i]] = alone || dim_equals(x->step[d], 0) ? x->step[d] : NULL;
        }
    return step;
}

/* Along a dimension of several factors, only step 0 is defined. */
static const struct dim *affine_step(struct graph *g, const struct rule_dim *dim, const struct dim *const *step)
{
    if (dim->n == 1 && dim->part[0].n == 1)
        return step[dim->part[0].factor[0]];
    for (int p = 0; p < dim->n; p++)
        for (int i = 0; i < dim->part[p].n; i++)
            if (!step[dim->part[p].factor[i]] || !dim_equals(step[dim->part[p].factor[i]], 0))
                return NULL;
    return dim_int(g->alg, 0);
}

static struct affine *moved(struct graph *g, const struct node *n, const struct affines *known)
{
    const struct affine *x = affine_operand(g, n, 0, known);
    const struct rule *r = x ? rule_of(g, n) : NULL;
    if (!r)
        return NULL;
    const struct dim **step = steps_of_factors(g, r, x);
    struct affine *a = affine_new(g, x->base);
    for (int d = 0; d < r->out[0].rank; d++)
        if (!(a->step[d] = affine_step(g, &r->out[0].dim[d], step)))
            return NULL;
    return a;
}

/* Index tuples: concatenated along the last dimension, one number from each. */
static struct affines tuples(struct graph *g, const struct node *n, const struct affines *known)
{
    int last = n->out[0]->type.rank - 1;
    if (op_axis(g, n, attr_int(n, "axis"), last + 1) != last || n->nin < 2)
        return (struct affines){0, NULL};
    struct affines list = {n->nin, NEWN(g->arena, const struct affine *, n->nin)};
    for (int i = 0; i < n->nin; i++) {
        if (!dim_equals(n->in[i]->type.dim[last], 1))
            return (struct affines){0, NULL};
        list.at[i] = affine_operand(g, n, i, known);
    }
    return list;
}

static bool only_moves(const struct node *n)
{
    static const char *const list[] = {"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Identity", "Flatten", "Cast"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (op_is_onnx(n, list[i]))
            return true;
    return false;
}

/* ---- entry points -------------------------------------------------------------------------------------------------------------------- */

struct affines affine_of(struct graph *g, const struct node *n, const struct affines *known)
{
    if (!n->op || n->nout != 1 || !holds_integers(n->out[0]))
        return (struct affines){0, NULL};
    if (op_is_onnx(n, "Range"))
        return one(g, n->out[0], affine_range(g, n));
    if (op_is_onnx(n, "Add") || op_is_onnx(n, "Sub") || op_is_onnx(n, "Mul"))
        return one(g, n->out[0], affine_combined(g, n, known));
    if (op_is_onnx(n, "Concat"))
        return tuples(g, n, known);
    return one(g, n->out[0], only_moves(n) ? moved(g, n, known) : NULL);
}

bool affine_within(struct graph *g, const struct affine *a, const struct type *type, int but, const struct dim *k)
{
    const struct dim *zero = dim_int(g->alg, 0), *one_more = dim_int(g->alg, 1), *end = dim_add(g->alg, a->base, one_more);
    for (int d = 0; d < type->rank; d++) {
        if (d == but)
            continue;
        if (!dim_ge(g->alg, a->step[d], zero))
            return false;
        end = dim_add(g->alg, end, dim_mul(g->alg, a->step[d], dim_sub(g->alg, type->dim[d], one_more)));
    }
    return dim_ge(g->alg, a->base, zero) && dim_ge(g->alg, k, end);
}
