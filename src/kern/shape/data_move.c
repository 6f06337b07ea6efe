/* data_move: ops that only move elements. Each is one strided copy, or one per part. */
#include "kern/core/core.h"

#include <string.h>

static struct copy dense_copy(const struct tensor *shape)
{
    struct copy c = {.rank = shape->rank, .size = dtype_size(shape->dtype)};
    memcpy(c.dim, shape->dim, (size_t)shape->rank * sizeof *c.dim);
    return c;
}

void kern_Transpose(struct kcall *call)
{
    const struct tensor *in = &call->in[0];
    struct copy c = dense_copy(&call->out[0]);
    int64_t stride[MAX_RANK];
    const int64_t *perm = NULL;
    tensor_strides(in, stride);
    tensor_dense_strides(c.rank, c.dim, c.to);
    if (attr_is_set(call->node, "perm") && attr_ints(call->graph, call->node, "perm", &perm) != in->rank)
        fail("%s: perm must have %d entries", kcall_where(call), in->rank);
    for (int d = 0; d < in->rank; d++) {
        int from = perm ? kcall_axis(call, perm[d], in->rank) : in->rank - 1 - d;
        require(in->dim[from] == c.dim[d]);
        c.from[d] = stride[from];
    }
    copy_strided(call->env, &c, call->out[0].data, in->data);
}

/* First index of a slice of n indices: negative counted from the end, then clamped. */
static int64_t slice_start(int64_t start, int64_t n, int64_t step)
{
    if (start < 0)
        start = start < -n ? (step > 0 ? 0 : -1) : start + n;
    int64_t top = step > 0 ? n : n - 1;
    return start > top ? top : start;
}

void kern_Slice(struct kcall *call)
{
    const struct tensor *in = &call->in[0];
    struct copy c = dense_copy(&call->out[0]);
    int64_t starts[MAX_RANK], axes[MAX_RANK], steps[MAX_RANK], offset = 0;
    int n = kcall_sizes(call, 1, "starts", starts, MAX_RANK), naxes = kcall_sizes(call, 3, "axes", axes, MAX_RANK);
    int nsteps = kcall_sizes(call, 4, "steps", steps, MAX_RANK);
    if (n < 0 || (naxes >= 0 && naxes != n) || (nsteps >= 0 && nsteps != n) || n > in->rank)
        fail("%s: starts, axes and steps must have one length, at most %d", kcall_where(call), in->rank);
    tensor_strides(in, c.from);
    tensor_dense_strides(c.rank, c.dim, c.to);
    for (int i = 0; i < n; i++) {
        int d = kcall_axis(call, naxes < 0 ? i : axes[i], in->rank);
        int64_t step = nsteps < 0 ? 1 : steps[i], start = slice_start(starts[i], in->dim[d], step), last, span;
        if (c.dim[d] == 0)
            continue;
        if (!i64_mul(c.dim[d] - 1, step, &span) || !i64_add(start, span, &last) || start < 0 || start >= in->dim[d] || last < 0 ||
            last >= in->dim[d])
            fail("%s: the slice of dimension %d leaves its %lld elements", kcall_where(call), d, (long long)in->dim[d]);
        offset += start * c.from[d];
        c.from[d] = c.dim[d] > 1 ? c.from[d] * step : c.from[d];
    }
    copy_strided(call->env, &c, call->out[0].data, element_at_const(in->data, c.size, offset));
}

/* Every dimension becomes a pair: the copies, then the elements. */
void kern_Tile(struct kcall *call)
{
    const struct tensor *in = &call->in[0], *out = &call->out[0];
    struct copy c = {.rank = 2 * in->rank, .size = dtype_size(in->dtype)};
    int64_t from[MAX_RANK], to[MAX_RANK];
    tensor_dense_strides(in->rank, in->dim, from);
    tensor_dense_strides(out->rank, out->dim, to);
    for (int d = 0; d < in->rank; d++) {
        int64_t copies = in->dim[d] ? out->dim[d] / in->dim[d] : 0;
        require(copies * in->dim[d] == out->dim[d]);
        c.dim[2 * d] = copies;
        c.to[2 * d] = to[d] * in->dim[d];
        c.from[2 * d] = 0;
        c.dim[2 * d + 1] = in->dim[d];
        c.to[2 * d + 1] = to[d];
        c.from[2 * d + 1] = from[d];
    }
    copy_strided(call->env, &c, out->data, in->data);
}

/* Repeats every index of an axis `times` times in a row. */
static void repeat_times(struct kcall *call, int axis, int64_t times)
{
    const struct tensor *in = &call->in[0], *out = &call->out[0];
    int64_t outer = tensor_dims_product(in->dim, 0, axis), inner = tensor_dims_product(in->dim, axis + 1, in->rank), n = in->dim[axis];
    require(times >= 0 && out->dim[axis] == n * times);
    struct copy c = {
        .rank = 3, .size = dtype_size(in->dtype), .dim = {outer * n, times, inner}, .to = {times * inner, inner, 1}, .from = {inner, 0, 1}};
    copy_strided(call->env, &c, out->data, in->data);
}

void kern_Repeat(struct kcall *call)
{
    const struct tensor *in = &call->in[0], *out = &call->out[0];
    int axis = kcall_axis(call, attr_int(call->node, "axis"), in->rank);
    if (!attr_is_set(call->node, "index")) {
        repeat_times(call, axis, attr_int(call->node, "repeats"));
        return;
    }
    int64_t count = out->dim[axis], outer = tensor_dims_product(in->dim, 0, axis), inner = tensor_dims_product(in->dim, axis + 1, in->rank);
    int64_t *index = kenv_scratch(call->env, kcall_bytes(call, count, sizeof *index));
    size_t size = dtype_size(in->dtype);
    require(kcall_dims(call, "index", index, (int)count) == count);
    for (int64_t i = 0; i < count; i++) {
        if (index[i] < 0 || index[i] >= in->dim[axis])
            fail("%s: index %lld is out of range for %lld elements", kcall_where(call), (long long)index[i], (long long)in->dim[axis]);
        struct copy c = {.rank = 2, .size = size, .dim = {outer, inner}, .to = {count * inner, 1}, .from = {in->dim[axis] * inner, 1}};
        copy_strided(call->env, &c, element_at(out->data, size, i * inner), element_at_const(in->data, size, index[i] * inner));
    }
}

/* ---- Trilu ------------------------------------------------------------------------------------------------------------- */
struct trilu {
    const char *x;
    char *y;
    size_t size;
    int64_t rows, columns, k;
    bool upper;
};

static void trilu_range(void *data, int64_t lo, int64_t hi)
{
    const struct trilu *t = data;
    for (int64_t r = lo; r < hi; r++) {
        int64_t i = r % t->rows, edge = i + t->k + !t->upper; /* upper keeps columns >= i + k, lower columns <= i + k */
        edge = edge < 0 ? 0 : edge > t->columns ? t->columns : edge;
        int64_t from = t->upper ? edge : 0, to = t->upper ? t->columns : edge;
        size_t row = (size_t)t->columns * t->size;
        memset(t->y + (size_t)r * row, 0, row);
        memcpy(t->y + (size_t)r * row + (size_t)from * t->size, t->x + (size_t)r * row + (size_t)from * t->size,
               (size_t)(to - from) * t->size);
    }
}

void kern_Trilu(struct kcall *call)
{
    const struct tensor *in = &call->in[0];
    int64_t k = 0;
    if (in->rank < 2)
        fail("%s: expected a tensor of rank 2 or more, found rank %d", kcall_where(call), in->rank);
    kcall_sizes(call, 1, "k", &k, 1);
    int64_t rows = in->dim[in->rank - 2], columns = in->dim[in->rank - 1], limit = rows + columns + 1;
    k = k > limit ? limit : k < -limit ? -limit : k;
    struct trilu t = {in->data, call->out[0].data, dtype_size(in->dtype), rows, columns, k, attr_int(call->node, "upper") != 0};
    kenv_parallel_for(call->env, tensor_dims_product(in->dim, 0, in->rank - 1), columns, trilu_range, &t);
}
