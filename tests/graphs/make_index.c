/* Operands of ops that look up, put and count along an axis. Indices are in range at the sizes of this run. */
#include "tests/graphs/families.h"

#include <string.h>

static struct value *axis_node(struct sketch *s, struct node *n, int axis)
{
    if (n)
        attr_set_int(n, "axis", axis);
    return sketch_add(s, n, NULL);
}

/* Integers of [0, n): new ones, or some that are there. */
static struct value *indices(struct sketch *s, int64_t n, int rank, const struct dim *const *dim)
{
    struct type t = sketch_type(DT_I64, rank, dim);
    for (int i = s->items.n - 1; i >= 0 && n > 0 && draw(s->draws, 2); i--) {
        struct value *v = s->g->values.at[i];
        const struct item *it = sketch_item(s, v);
        if (it->there && !v->constant && type_eq(&v->type, &t) && it->least >= 0 && it->most < (double)n)
            return v;
    }
    return n > 0 ? sketch_input(s, &t, (struct fill){INTEGERS, 0, (double)(n - 1)}) : NULL;
}

/* A table is often a weight. */
static struct value *table(struct sketch *s)
{
    struct type t = {.dtype = DT_F32, .rank = 2, .dim = {sketch_static(s), sketch_static(s)}};
    return draw(s->draws, 2) ? sketch_const(s, &t, sketch_fill(s, DT_F32)) : sketch_pick(s, SORT_ANY, 1, 4);
}

void make_gather(struct sketch *s, const struct op *op)
{
    struct value *x = table(s);
    const struct dim *dim[2] = {sketch_dim(s), sketch_dim(s)};
    int axis = x ? (int)draw(s->draws, (uint32_t)x->type.rank) : 0, rank = (int)draw(s->draws, 3);
    struct value *i = x ? indices(s, sketch_size(s, x->type.dim[axis]), rank, dim) : NULL;
    axis_node(s, sketch_node(s, op, 2, (struct value *[]){x, i}, 1), axis);
}

/* Indices [d, k] into the first k dimensions of x. */
static struct value *tuples(struct sketch *s, const struct value *x, int k, const struct dim *d)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < k; i++)
        least = sketch_size(s, x->type.dim[i]) < least ? sketch_size(s, x->type.dim[i]) : least;
    return indices(s, least, 2, (const struct dim *[]){d, dim_int(s->g->alg, k)});
}

void make_gathernd(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    int k = x ? 1 + (int)draw(s->draws, (uint32_t)x->type.rank) : 0;
    struct value *i = x ? tuples(s, x, k, sketch_dim(s)) : NULL;
    sketch_add(s, sketch_node(s, op, 2, (struct value *[]){x, i}, 1), NULL);
}

/* Where one place may be written twice, what is written is added. */
void make_scatternd(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    bool add = draw(s->draws, 2);
    struct type t = x ? x->type : (struct type){.dtype = DT_NONE};
    t.dim[0] = add ? sketch_dim(s) : dim_int(s->g->alg, 1);
    struct value *i = x ? tuples(s, x, 1, t.dim[0]) : NULL, *u = i ? sketch_like(s, DT_F32, t.rank, t.dim) : NULL;
    struct node *n = sketch_node(s, op, 3, (struct value *[]){x, i, u}, 1);
    if (n && add)
        attr_set_string(n, "reduction", "add");
    sketch_add(s, n, NULL);
}

void make_gatherelements(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    if (!x)
        return;
    int axis = (int)draw(s->draws, (uint32_t)x->type.rank);
    struct type t = x->type;
    t.dim[axis] = sketch_dim(s);
    struct value *i = indices(s, sketch_size(s, x->type.dim[axis]), t.rank, t.dim);
    axis_node(s, sketch_node(s, op, 2, (struct value *[]){x, i}, 1), axis);
}

void make_scatterelements(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    if (!x)
        return;
    int axis = (int)draw(s->draws, (uint32_t)x->type.rank);
    bool add = draw(s->draws, 2);
    struct type t = x->type;
    t.dim[axis] = add ? sketch_dim(s) : dim_int(s->g->alg, 1);
    struct value *i = indices(s, sketch_size(s, x->type.dim[axis]), t.rank, t.dim), *u = i ? sketch_like(s, DT_F32, t.rank, t.dim) : NULL;
    struct node *n = sketch_node(s, op, 3, (struct value *[]){x, i, u}, 1);
    if (n && add)
        attr_set_string(n, "reduction", "add");
    axis_node(s, n, axis);
}

void make_arg(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    int axis = x ? (int)draw(s->draws, (uint32_t)x->type.rank) : 0;
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (!n || sketch_size(s, x->type.dim[axis]) == 0)
        return;
    attr_set_int(n, "keepdims", draw(s->draws, 2));
    axis_node(s, n, axis);
}

void make_topk(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    int axis = x ? (int)draw(s->draws, (uint32_t)x->type.rank) : 0;
    struct node *n = sketch_node(s, op, 1, &x, 2);
    int64_t size = x ? sketch_size(s, x->type.dim[axis]) : 0, k = size ? 1 + (int64_t)draw(s->draws, (uint32_t)size) : 0;
    if (k == 0)
        return;
    attr_set_int(n, "largest", draw(s->draws, 2));
    set_sizes(s, n, "k", 1, &k);
    axis_node(s, n, axis);
}

void make_onehot(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_INT, 0, 3),
                 *values = sketch_const(s, &(struct type){.dtype = DT_F32, .rank = 1, .dim = {dim_int(s->g->alg, 2)}},
                                        sketch_fill(s, DT_F32));
    struct node *n = sketch_node(s, op, 3, (struct value *[]){x, NULL, values}, 1);
    int64_t depth = 1 + (int64_t)draw(s->draws, 6);
    set_sizes(s, n, "depth", 1, &depth);
    axis_node(s, n, x ? (int)draw(s->draws, (uint32_t)x->type.rank + 1) : 0);
}

void make_cumsum(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_NUMBER, 1, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    int64_t axis = x ? (int64_t)draw(s->draws, (uint32_t)x->type.rank) : 0;
    if (!n)
        return;
    attr_set_int(n, "exclusive", draw(s->draws, 2));
    attr_set_int(n, "reverse", draw(s->draws, 2));
    set_sizes(s, n, "axis", 1, &axis);
    sketch_add(s, n, NULL);
}

static int64_t count_nonzero(const struct tensor *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < tensor_elements(t); i++)
        n += sketch_get(t, i) < 0 || sketch_get(t, i) > 0;
    return n;
}

/* Data decides how many there are, and rounding must not. */
void make_nonzero(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (!n)
        return;
    int64_t count = count_nonzero(&sketch_item(s, x)->lane[0]);
    for (int k = 1; k < LANES; k++)
        if (count_nonzero(&sketch_item(s, x)->lane[k]) != count)
            return;
    bindings_set(s->arena, &s->bind, arena_printf(s->arena, "%s.1", n->out[0]->first_name), count);
    sketch_add(s, n, NULL);
}
