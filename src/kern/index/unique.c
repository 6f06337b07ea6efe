/* unique: the distinct elements of a tensor, or slices along an axis, with the first index of each, the inverse indices, and counts. In
 * ascending order, or in order of first indices. Slices are compared element by element. */
#include "kern/core/core.h"
#include "kern/index/index.h"

#include <stdlib.h>
#include <string.h>

struct item {
    const struct unique *of;
    int64_t index, first; /* its index; the first index of an equal one */
};
struct unique {
    const struct tensor *x;
    int axis; /* -1: single elements */
    int64_t n, inner, outer;
    struct item *item; /* sorted, equal ones by index */
    int64_t *which;    /* by index: the number of its group */
    int64_t distinct;
};

/* ---- order ------------------------------------------------------------------------------------------------------------------------ */

static int compare_numbers(const struct tensor *x, int64_t a, int64_t b)
{
    const void *pa = element_at_const(x->data, dtype_size(x->dtype), a), *pb = element_at_const(x->data, dtype_size(x->dtype), b);
    if (dtype_is_float(x->dtype)) {
        double p, q;
        convert_to_f64(x->dtype, pa, 1, &p);
        convert_to_f64(x->dtype, pb, 1, &q);
        return p != p || q != q ? (p != p) - (q != q) : (p > q) - (p < q);
    }
    if (x->dtype == DT_U64) {
        uint64_t p, q;
        memcpy(&p, pa, sizeof p);
        memcpy(&q, pb, sizeof q);
        return (p > q) - (p < q);
    }
    int64_t p, q;
    convert_to_i64(x->dtype, pa, 1, &p);
    convert_to_i64(x->dtype, pb, 1, &q);
    return (p > q) - (p < q);
}

static int compare_items(const struct unique *u, int64_t a, int64_t b)
{
    int c = 0;
    for (int64_t o = 0; c == 0 && o < u->outer; o++)
        for (int64_t i = 0; c == 0 && i < u->inner; i++)
            c = compare_numbers(u->x, (o * u->n + a) * u->inner + i, (o * u->n + b) * u->inner + i);
    return c;
}

static int by_value(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    int c = compare_items(a->of, a->index, b->index);
    return c ? c : (a->index > b->index) - (a->index < b->index);
}

static int by_first(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    return a->first != b->first ? (a->first > b->first) - (a->first < b->first) : (a->index > b->index) - (a->index < b->index);
}

/* ---- groups ----------------------------------------------------------------------------------------------------------------------- */

static void unique_begin(struct kcall *call, struct unique *u)
{
    const struct tensor *x = &call->in[0];
    bool flat = !attr_is_set(call->node, "axis");
    *u = (struct unique){.x = x, .axis = flat ? -1 : kcall_axis(call, attr_int(call->node, "axis"), x->rank), .inner = 1, .outer = 1};
    if (!dtype_size(x->dtype))
        kcall_bad_type(call, x->dtype);
    u->n = flat ? tensor_elements(x) : x->dim[u->axis];
    if (!flat) {
        u->inner = tensor_dims_product(x->dim, u->axis + 1, x->rank);
        u->outer = tensor_dims_product(x->dim, 0, u->axis);
    }
    u->item = kenv_room(call->env, ROOM_A, kcall_bytes(call, u->n, sizeof *u->item));
    for (int64_t i = 0; i < u->n; i++)
        u->item[i] = (struct item){u, i, i};
    if (u->n > 1)
        qsort(u->item, (size_t)u->n, sizeof *u->item, by_value);
    for (int64_t i = 0; i < u->n; i++) {
        bool same = i > 0 && compare_items(u, u->item[i - 1].index, u->item[i].index) == 0;
        u->item[i].first = same ? u->item[i - 1].first : u->item[i].index;
        u->distinct += !same;
    }
}

int64_t index_distinct(struct kcall *call)
{
    struct unique u;
    unique_begin(call, &u);
    return u.distinct;
}

static void put_item(const struct unique *u, struct tensor *y, int64_t group, int64_t from)
{
    size_t size = dtype_size(u->x->dtype);
    for (int64_t o = 0; o < u->outer; o++)
        memcpy(element_at(y->data, size, (o * u->distinct + group) * u->inner),
               element_at_const(u->x->data, size, (o * u->n + from) * u->inner), (size_t)u->inner * size);
}

void kern_Unique(struct kcall *call)
{
    struct unique u;
    struct tensor *y = kcall_out(call, 0), *first = kcall_out(call, 1), *which = kcall_out(call, 2), *count = kcall_out(call, 3);
    unique_begin(call, &u);
    if (y && y->dim[u.axis < 0 ? 0 : u.axis] != u.distinct)
        fail("%s: its result has another size than the %lld that are different", kcall_where(call), (long long)u.distinct);
    if (!attr_int(call->node, "sorted") && u.n > 1)
        qsort(u.item, (size_t)u.n, sizeof *u.item, by_first);
    for (int64_t i = 0, group = -1; i < u.n; i++) {
        const struct item *item = &u.item[i];
        bool starts = i == 0 || item->first != u.item[i - 1].first;
        group += starts;
        if (starts && y)
            put_item(&u, y, group, item->first);
        if (starts && first)
            ((int64_t *)first->data)[group] = item->first;
        if (which)
            ((int64_t *)which->data)[item->index] = group;
        if (count)
            ((int64_t *)count->data)[group] = starts ? 1 : ((int64_t *)count->data)[group] + 1;
    }
}
