/* hoist_row_scalar: hoists the row-invariant operand r out of elements looked up in x - r or x / r, one number r per row.
 *
 * The row is sharded, so each rank finds an addend. The addends of (x - r)[i] are those of x[i], minus r on one rank; those of (x / r)[i]
 * are those of x[i], divided by r: the same operations on the same numbers. Then the partial value does not wait for r. */
#include "op/canon/canon.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

/* partial = Where(inside, rows[index], 0): inside on one rank; rows = x - r or x / r. */
struct row_lookup {
    struct node *partial, *found, *rows;
    int axis;
};

/* Whether it tests, maybe through views, that an index is in the rank's shard. */
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

/* Whether the types are equal except for dimension axis. */
static bool same_rows(const struct type *x, const struct type *y, int axis)
{
    bool same = x->dtype == y->dtype && x->rank == y->rank;
    for (int d = 0; same && d < x->rank; d++)
        same = d == axis || x->dim[d] == y->dim[d];
    return same;
}

static bool match_lookup(const struct value *v, struct row_lookup *p)
{
    p->partial = v->producer;
    if (!op_is_onnx(p->partial, "Where") || !is_index_test(p->partial->in[0]) || !is_zero(p->partial->in[2]))
        return false;
    p->found = p->partial->in[1]->producer;
    if (!op_is_onnx(p->found, "GatherElements") && !op_is_onnx(p->found, "GatherND"))
        return false;
    p->rows = p->found->in[0]->producer;
    if (!op_is_onnx(p->rows, "Sub") && !op_is_onnx(p->rows, "Div"))
        return false;
    const struct value *x = p->rows->in[0], *r = p->rows->in[1], *y = p->rows->out[0];
    int axis = p->axis = y->place.dim;
    bool replicated = r->placed && r->place.kind == PLACE_R, split = x->placed && y->place.kind == PLACE_S;
    if (!replicated || !split || !placement_eq(x->place, y->place) || !type_eq(&x->type, &y->type) || !same_rows(&r->type, &x->type, axis))
        return false;
    return dim_equals(r->type.dim[axis], 1) && (op_is_onnx(p->found, "GatherND") || same_rows(&v->type, &x->type, axis));
}

static struct value *placed_result(struct graph *g, struct node *n, const struct value *like)
{
    struct value *v = graph_value(g, n->name, &like->type);
    v->place = like->place;
    v->placed = true;
    node_output(g, n, 0, v);
    graph_append(g, n);
    return v;
}

/* The node with another operand. */
static struct value *copy_on(struct graph *g, const struct node *n, int operand, struct value *x)
{
    struct node *copy = graph_node_like(g, n, arena_printf(g->arena, "%s/taken", n->name), n->nin, n->in);
    copy->strategy = n->strategy;
    copy->in[operand] = x;
    return placed_result(g, copy, n->out[0]);
}

/* r as a partial value: r on one rank, zero on the others. */
static struct value *as_addend(struct graph *g, struct value *r)
{
    struct node *n = graph_node(g, op_find("tpc", "Term"), arena_printf(g->arena, "%s/Term", r->name), 1, &r, 1);
    struct value *addend = placed_result(g, n, r);
    addend->place = placement_partial(RED_SUM);
    return addend;
}

/* The row number of each element: GatherElements looks up in the rows in order, GatherND in the rows that tuples name, with 0 as the index
 * along the row. */
static struct value *row_number(struct graph *g, const struct row_lookup *p)
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
    struct value *rows = placed_result(g, graph_node(g, op_find("", "Mul"), arena_printf(g->arena, "%s/rows", p->found->name), 2, in, 1),
                                       tuples);
    struct value *number = copy_on(g, p->found, 0, r);
    number->producer->in[1] = rows;
    return number;
}

bool canon_hoist_row_scalar(struct graph *g, struct value *v, const bool *after)
{
    struct row_lookup p;
    if (!match_lookup(v, &p) || after[p.rows->in[0]->id] || !after[p.rows->in[1]->id])
        return false;
    struct value *r = row_number(g, &p), *partial = copy_on(g, p.partial, 1, copy_on(g, p.found, 0, p.rows->in[0]));
    struct value *in[2] = {partial, op_is_onnx(p.rows, "Sub") ? as_addend(g, r) : r};
    struct node *rest = graph_node(g, p.rows->op, arena_printf(g->arena, "%s/rest", p.partial->name), 2, in, 1);
    graph_replace(g, v, placed_result(g, rest, v), false);
    graph_sort(g);
    graph_prune(g);
    return true;
}
