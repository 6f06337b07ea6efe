/* axis: indexing along one axis: GatherElements, ScatterElements, OneHot. Negative indices count from the end; every index is checked,
 * except that OneHot ignores those out of range, as the standard requires. */
#include "kern/core/core.h"

#include <stdlib.h>
#include <string.h>

static int kernel_axis(const struct kcall *call, int rank)
{
    return kcall_axis(call, attr_int(call->node, "axis"), rank);
}

static void check_inside(const struct kcall *call, const struct tensor *index, const struct tensor *data, int axis)
{
    for (int d = 0; d < index->rank; d++)
        if (d != axis && index->dim[d] > data->dim[d])
            fail("%s: the indices have %lld entries along dimension %d, the data %lld", kcall_where(call), (long long)index->dim[d], d,
                 (long long)data->dim[d]);
}

/* The elements of `in` that `index` selects along the axis. */
struct pointed {
    const struct kcall *call;
    const struct tensor *index;
    int axis;
    int64_t n, step, start[MAX_RANK]; /* of `in`: its size along the axis; strides along the axis and the other dimensions */
};

static struct pointed pointed_at(const struct kcall *call, const struct tensor *in, const struct tensor *index)
{
    struct pointed p = {.call = call, .index = index, .axis = kernel_axis(call, in->rank)};
    check_inside(call, index, in, p.axis);
    tensor_dense_strides(in->rank, in->dim, p.start);
    p.n = in->rank ? in->dim[p.axis] : 1;
    p.step = in->rank ? p.start[p.axis] : 0;
    if (in->rank)
        p.start[p.axis] = 0;
    return p;
}

SIMD static bool are_inside(const int64_t *index, int64_t count, int64_t n)
{
    int64_t outside = 0;
    LOOP for (int64_t j = 0; j < count; j++) outside |= (index[j] < -n) | (index[j] >= n);
    return !outside;
}

/* place[j] = at + j next + step index[j], where negative indices count from the end. */
SIMD static void places_of(const int64_t *index, int64_t count, int64_t n, int64_t at, int64_t next, int64_t step, int64_t *place)
{
    if (step == 1)
        LOOP for (int64_t j = 0; j < count; j++) place[j] = at + j * next + (index[j] < 0 ? index[j] + n : index[j]);
    else
        LOOP for (int64_t j = 0; j < count; j++) place[j] = at + j * next + step * (index[j] < 0 ? index[j] + n : index[j]);
}

/* Positions in `in` of the elements that indices from..from + n select, all in one row (the last dimension). */
static void pointed_places(const struct pointed *p, int64_t from, int64_t n, int64_t *place)
{
    int64_t base = 0, i = from;
    for (int d = p->index->rank - 1; d >= 0; d--) {
        base += i % p->index->dim[d] * p->start[d];
        i /= p->index->dim[d];
    }
    int64_t next = p->index->rank ? p->start[p->index->rank - 1] : 0;
    const int64_t *index = p->index->dtype == DT_I64 ? (const int64_t *)p->index->data + from : NULL;
    if (index && are_inside(index, n, p->n)) {
        places_of(index, n, p->n, base, next, p->step, place);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        place[j] = base + j * next + p->step * kcall_index(p->call, 1, from + j, p->n, p->axis);
}

/* The number of indices from i on in one row, at most CHUNK. */
static int64_t pointed_run(const struct pointed *p, int64_t i)
{
    int64_t width = p->index->rank ? p->index->dim[p->index->rank - 1] : 1, left = width - i % width;
    return left < CHUNK ? left : CHUNK;
}

SIMD static bool is_one_number(const int64_t *index, int64_t n)
{
    int64_t differ = 0;
    LOOP for (int64_t j = 0; j < n; j++) differ |= index[j] ^ index[0];
    return differ == 0;
}

/* Whether indices from..from + n are equal, as in a row of an expanded index, so that they select a contiguous range from *place on. */
static bool pointed_stretch(const struct pointed *p, int64_t from, int64_t n, int64_t *place)
{
    bool other_axis = p->axis < p->index->rank - 1 && p->index->dtype == DT_I64;
    if (!other_axis || !is_one_number((const int64_t *)p->index->data + from, n))
        return false;
    pointed_places(p, from, 1, place);
    return true;
}

SIMD static void gather_words(const int64_t *place, int64_t n, const uint32_t *from, uint32_t *to)
{
    LOOP for (int64_t j = 0; j < n; j++) to[j] = from[place[j]];
}

static void gather_run(size_t size, const int64_t *place, int64_t n, const void *from, void *to)
{
    if (size == sizeof(uint32_t)) {
        gather_words(place, n, from, to);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        memcpy(element_at(to, size, j), element_at_const(from, size, place[j]), size);
}

/* Rows lo to hi of the indices. */
static void gather_rows(void *data, int64_t lo, int64_t hi)
{
    const struct pointed *p = data;
    const struct tensor *in = &p->call->in[0];
    size_t size = dtype_size(in->dtype);
    int64_t width = p->index->rank ? p->index->dim[p->index->rank - 1] : 1, place[CHUNK];
    for (int64_t i = lo * width, n; i < hi * width; i += n) {
        void *to = element_at(p->call->out[0].data, size, i);
        n = pointed_run(p, i);
        if (pointed_stretch(p, i, n, place)) {
            memcpy(to, element_at_const(in->data, size, *place), (size_t)n * size);
            continue;
        }
        pointed_places(p, i, n, place);
        gather_run(size, place, n, in->data, to);
    }
}

void kern_GatherElements(struct kcall *call)
{
    const struct tensor *index = &call->in[1];
    if (tensor_elements(index) == 0)
        return;
    struct pointed p = pointed_at(call, &call->in[0], index);
    kenv_parallel_for(call->env, tensor_dims_product(index->dim, 0, index->rank - 1), 4 * index->dim[index->rank ? index->rank - 1 : 0],
                      gather_rows, &p);
}

static void scatter_run(enum combine how, enum dtype t, const int64_t *place, int64_t n, const void *from, void *to)
{
    size_t size = dtype_size(t);
    if (how == COMBINE_ADD && t == DT_F32)
        for (int64_t j = 0; j < n; j++)
            ((float *)to)[place[j]] += ((const float *)from)[j];
    else
        for (int64_t j = 0; j < n; j++)
            combine_elements(how, t, element_at(to, size, place[j]), element_at_const(from, size, j), 1);
}

void kern_ScatterElements(struct kcall *call)
{
    const struct tensor *data = &call->in[0], *index = &call->in[1], *updates = &call->in[2];
    struct tensor *out = &call->out[0];
    enum combine how = combine_of(call);
    int64_t all = tensor_elements(index), place[CHUNK];
    size_t size = dtype_size(data->dtype);
    if (out->data != data->data)
        copy_dense(call->env, out->data, data->data, tensor_bytes(out));
    if (all == 0)
        return;
    struct pointed p = pointed_at(call, data, index);
    if (tensor_elements(updates) != all)
        fail("%s: there are %lld updates for %lld indices", kcall_where(call), (long long)tensor_elements(updates), (long long)all);
    for (int64_t i = 0, n; i < all; i += n) {
        const void *from = element_at_const(updates->data, size, i);
        n = pointed_run(&p, i);
        if (pointed_stretch(&p, i, n, place)) {
            combine_elements(how, data->dtype, element_at(out->data, size, *place), from, n);
            continue;
        }
        pointed_places(&p, i, n, place);
        scatter_run(how, data->dtype, place, n, from, out->data);
    }
}

/* ---- OneHot ------------------------------------------------------------------------------------------------------------------ */
/* For any numeric type; a float that is no integer is no index of any size. */
static int64_t whole_element(const struct tensor *t, int64_t i)
{
    const void *at = element_at_const(t->data, dtype_size(t->dtype), i);
    int64_t k;
    double x;
    if (!dtype_is_float(t->dtype)) {
        convert_to_i64(t->dtype, at, 1, &k);
        return k;
    }
    convert_to_f64(t->dtype, at, 1, &x);
    return x > -0x1p62 && x < 0x1p62 ? (int64_t)x : INT64_MAX;
}

struct hot_rows {
    const struct tensor *x;
    struct tensor *y;
    const void *off, *on;
    int64_t depth, inner;
};

/* Blocks [depth, inner] lo to hi: off values, except one per line. */
static void hot_range(void *data, int64_t lo, int64_t hi)
{
    const struct hot_rows *r = data;
    size_t size = dtype_size(r->y->dtype);
    int64_t block = r->depth * r->inner;
    for (int64_t i = lo; i < hi; i++) {
        char *to = element_at(r->y->data, size, i * block);
        memcpy(to, r->off, size);
        for (int64_t done = 1, n; done < block; done += n) { /* doubles what is copied each time */
            n = done < block - done ? done : block - done;
            n = n < CHUNK ? n : CHUNK;
            memcpy(element_at(to, size, done), to, (size_t)n * size);
        }
        for (int64_t j = 0; j < r->inner; j++) {
            int64_t index = whole_element(r->x, i * r->inner + j);
            index = index < 0 ? index + r->depth : index;
            if (index >= 0 && index < r->depth)
                memcpy(element_at(to, size, index * r->inner + j), r->on, size);
        }
    }
}

void kern_OneHot(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *values = &call->in[2];
    struct tensor *y = &call->out[0];
    int axis = kernel_axis(call, y->rank);
    int64_t depth = y->dim[axis], inner = tensor_dims_product(y->dim, axis + 1, y->rank), n = tensor_elements(y);
    size_t size = dtype_size(y->dtype);
    if (tensor_elements(values) != 2 || values->dtype != y->dtype)
        fail("%s: expected two values of %s", kcall_where(call), dtype_name(y->dtype));
    struct hot_rows rows = {x, y, element_at_const(values->data, size, 0), element_at_const(values->data, size, 1), depth, inner};
    if (n > 0)
        kenv_parallel_for(call->env, n / inner / depth, inner * depth, hot_range, &rows);
}
