/* takeout: what is the same in a whole row is taken out of what is picked from it. Of x - r or x / r, r one number per row, picked at
 * indices that are dealt out with the row, the terms of (x - r)[i] are those of x[i], less a term of r, and those of (x / r)[i] are those
 * of x[i], over r: the same operations on the same numbers. Then the terms do not wait for r. */
#include "op/op.h"
#include "plan/apply/apply.h"
#include "plan/cost/cost.h"

#include <math.h>
#include <string.h>

/* terms = Where(inside, rows[index], 0): inside on one rank; rows = x - r or x / r. */
struct pick {
    struct node *terms, *found, *rows;
    int axis;
};

/* Whether an index lies in what the rank holds, seen through views. */
static bool is_index_test(const struct value *v)
{
    while (v->producer && v->producer->op && (v->producer->op->flags & OP_VIEW))
        v = v->producer->in[0];
    const struct node *n = v->producer;
    return op_is_tpc(n, "LocalIndex") && n->out[1] == v;
}

static bool is_zero(const struct value *v)
{
    return v->constant && v->type.rank == 0 && dtype_is_float(v->type.dtype) &&
        fpclassify(constant_float(v->constant, v->name, 0)) == FP_ZERO;
}

/* The types are equal but for dimension axis. */
static bool same_rows(const struct type *x, const struct type *y, int axis)
{
    bool same = x->dtype == y->dtype && x->rank == y->rank;
    for (int d = 0; same && d < x->rank; d++)
        same = d == axis || x->dim[d] == y->dim[d];
    return same;
}

static bool find_pick(const struct value *v, struct pick *p)
{
    p->terms = v->producer;
    if (!op_is_onnx(p->terms, "Where") || !is_index_test(p->terms->in[0]) || !is_zero(p->terms->in[2]))
        return false;
    p->found = p->terms->in[1]->producer;
    if (!op_is_onnx(p->found, "GatherElements") && !op_is_onnx(p->found, "GatherND"))
        return false;
    p->rows = p->found->in[0]->producer;
    if (!op_is_onnx(p->rows, "Sub") && !op_is_onnx(p->rows, "Div"))
        return false;
    const struct value *x = p->rows->in[0], *r = p->rows->in[1], *y = p->rows->out[0];
    int axis = p->axis = y->place.dim;
    bool whole = r->placed && r->place.kind == PLACE_R, split = x->placed && y->place.kind == PLACE_S;
    if (!whole || !split || !placement_eq(x->place, y->place) || !type_eq(&x->type, &y->type) || !same_rows(&r->type, &x->type, axis))
        return false;
    return dim_equals(r->type.dim[axis], 1) && (op_is_onnx(p->found, "GatherND") || same_rows(&v->type, &x->type, axis));
}

static struct value *result(struct graph *g, struct node *n, const struct value *like)
{
    struct value *v = graph_value(g, n->name, &like->type);
    v->place = like->place;
    v->placed = true;
    node_output(g, n, 0, v);
    graph_append(g, n);
    return v;
}

/* The node on another operand. */
static struct value *again(struct graph *g, const struct node *n, int operand, struct value *x)
{
    struct node *copy = graph_node(g, n->op, arena_printf(g->arena, "%s/taken", n->name), n->nin, n->in, 1);
    for (int k = 0; k < n->nattr; k++)
        copy->attr[k] = n->attr[k];
    copy->strategy = n->strategy;
    copy->in[operand] = x;
    return result(g, copy, n->out[0]);
}

static struct value *term_of(struct graph *g, struct value *r)
{
    struct node *n = reshard_node(g, r, placement_partial(RED_SUM));
    graph_append(g, n);
    return n->out[0];
}

/* The number of the row that each picked element is of: GatherElements picks in rows as they lie, GatherND in those that tuples name, which
 * count 0 along the row instead. */
static struct value *row_number(struct graph *g, const struct pick *p)
{
    struct value *r = p->rows->in[1], *tuples = p->found->in[1];
    int64_t keep[MAX_RANK], n;
    if (op_is_onnx(p->found, "GatherElements"))
        return r;
    bool known = dim_is_int(tuples->type.dim[tuples->type.rank - 1], &n);
    require(known && n <= MAX_RANK);
    for (int i = 0; i < n; i++)
        keep[i] = i != p->axis - attr_int(p->found, "batch_dims");
    struct value *in[2] = {tuples, graph_ints(g, arena_printf(g->arena, "%s/along", p->found->name), (int)n, keep)};
    in[1]->placed = true;
    struct value *rows = result(g, graph_node(g, op_find("", "Mul"), arena_printf(g->arena, "%s/rows", p->found->name), 2, in, 1), tuples);
    struct value *number = again(g, p->found, 0, r);
    number->producer->in[1] = rows;
    return number;
}

bool plan_take_out(struct graph *g, struct value *v, const bool *after)
{
    struct pick p;
    if (!find_pick(v, &p) || after[p.rows->in[0]->id] || !after[p.rows->in[1]->id])
        return false;
    struct value *r = row_number(g, &p), *terms = again(g, p.terms, 1, again(g, p.found, 0, p.rows->in[0]));
    struct value *in[2] = {terms, op_is_onnx(p.rows, "Sub") ? term_of(g, r) : r};
    struct node *rest = graph_node(g, p.rows->op, arena_printf(g->arena, "%s/rest", p.terms->name), 2, in, 1);
    graph_replace(g, v, result(g, rest, v), false);
    graph_sort(g);
    graph_prune(g);
    return true;
}
