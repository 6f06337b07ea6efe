/* gather: reads and writes by index tensors. Negative indices count from the end; every index is checked before anything is copied. */
#include "kern/core/core.h"

#include <string.h>

struct gather {
    const struct tensor *data;
    struct tensor *out;
    const int64_t *index;
    int64_t count, n, inner;
};

/* Copies rows of n bytes to contiguous memory. */
static void gather_rows(const char *from, const int64_t *index, int64_t count, size_t n, char *to)
{
    enum { WORD = 4 };
    if (n == WORD)
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * WORD, from + index[i] * WORD, WORD);
    else
        for (int64_t i = 0; i < count; i++)
            copy_bytes(to + (size_t)i * n, from + (size_t)index[i] * n, n);
}

static void gather_range(void *data, int64_t lo, int64_t hi)
{
    const struct gather *g = data;
    size_t size = dtype_size(g->data->dtype), wide = dtype_size(g->out->dtype);
    for (int64_t r = lo, count; r < hi; r += count) {
        int64_t first = r % g->count, left = g->count - first;
        count = left < hi - r ? left : hi - r;
        const void *from = element_at_const(g->data->data, size, r / g->count * g->n * g->inner);
        void *to = element_at(g->out->data, wide, r * g->inner);
        if (size == wide)
            gather_rows(from, g->index + first, count, (size_t)g->inner * size, to);
        for (int64_t i = 0; size != wide && i < count; i++)
            convert_to_f32(g->data->dtype, element_at_const(from, size, g->index[first + i] * g->inner), g->inner,
                           (float *)to + i * g->inner);
    }
}

/* False: one is out of range, or they are not i64. */
static bool read_indices(const struct tensor *indices, int64_t n, int64_t count, int64_t *index)
{
    const int64_t *given = indices->data;
    bool within = indices->dtype == DT_I64;
    for (int64_t i = 0; within && i < count; i++) {
        index[i] = given[i] < 0 ? given[i] + n : given[i];
        within = index[i] >= 0 && index[i] < n;
    }
    return within;
}

/* Converts an f16 or bf16 table to f32 if the result is f32 (lower/quantized/fuse_weights.c). */
void kern_Gather(struct kcall *call)
{
    const struct tensor *data = &call->in[0], *indices = &call->in[1];
    int axis = kcall_axis(call, attr_int(call->node, "axis"), data->rank);
    int64_t count = tensor_elements(indices), outer = tensor_dims_product(data->dim, 0, axis);
    int64_t inner = tensor_dims_product(data->dim, axis + 1, data->rank);
    int64_t *index = kenv_scratch(call->env, kcall_bytes(call, count, sizeof *index));
    bool labels = attr_is_set(call->node, "labels"), known = !labels && read_indices(indices, data->dim[axis], count, index);
    for (int64_t i = 0; !known && i < count; i++)
        index[i] = (labels ? kcall_label : kcall_index)(call, 1, i, data->dim[axis], axis);
    if (tensor_elements(&call->out[0]) == 0)
        return;
    struct gather g = {data, &call->out[0], index, count, data->dim[axis], inner};
    kenv_parallel_for(call->env, outer * count, inner, gather_range, &g);
}

/* The position of an index tuple; -1: out of range. */
static int64_t position_within(const int64_t *tuple, const int64_t *dim, int depth)
{
    int64_t position = 0;
    for (int d = 0; d < depth; d++) {
        int64_t at = tuple[d] < 0 ? tuple[d] + dim[d] : tuple[d];
        if (at < 0 || at >= dim[d])
            return -1;
        position = position * dim[d] + at;
    }
    return position;
}

/* The position of index tuple number i, in slices of data, within one batch. */
static int64_t tuple_position(const struct kcall *call, const struct tensor *data, const struct tensor *indices, int64_t i, int depth,
                              int batch)
{
    int64_t position = -1;
    if (indices->dtype == DT_I64)
        position = position_within((const int64_t *)indices->data + i * depth, data->dim + batch, depth);
    if (position >= 0)
        return position;
    position = 0;
    for (int d = 0; d < depth; d++) {
        int64_t n = data->dim[batch + d];
        position = position * n + kcall_index(call, 1, i * depth + d, n, batch + d);
    }
    return position;
}

static int tuple_depth(const struct kcall *call, const struct tensor *data, const struct tensor *indices, int batch)
{
    if (indices->rank < 1 || batch < 0 || batch >= indices->rank || batch > data->rank)
        fail("%s: batch_dims %d does not fit indices of rank %d", kcall_where(call), batch, indices->rank);
    int64_t depth = indices->dim[indices->rank - 1];
    if (depth > data->rank - batch)
        fail("%s: index tuples of %lld entries are longer than the rank of the data", kcall_where(call), (long long)depth);
    return (int)depth;
}

void kern_GatherND(struct kcall *call)
{
    const struct tensor *data = &call->in[0], *indices = &call->in[1];
    int batch = (int)attr_int(call->node, "batch_dims"), depth = tuple_depth(call, data, indices, batch);
    size_t bytes = (size_t)tensor_dims_product(data->dim, batch + depth, data->rank) * dtype_size(data->dtype);
    int64_t tuples = tensor_dims_product(indices->dim, batch, indices->rank - 1), batches = tensor_dims_product(indices->dim, 0, batch);
    int64_t slices = tensor_dims_product(data->dim, batch, batch + depth);
    for (int64_t i = 0; bytes && i < tuples * batches; i++) {
        int64_t from = i / tuples * slices + tuple_position(call, data, indices, i, depth, batch);
        copy_bytes((char *)call->out[0].data + (size_t)i * bytes, (const char *)data->data + (size_t)from * bytes, bytes);
    }
}

/* ---- ScatterND --------------------------------------------------------------------------------------------------------- */
void kern_ScatterND(struct kcall *call)
{
    const struct tensor *data = &call->in[0], *indices = &call->in[1], *updates = &call->in[2];
    struct tensor *out = &call->out[0];
    enum combine how = combine_of(call);
    int depth = tuple_depth(call, data, indices, 0);
    int64_t inner = tensor_dims_product(data->dim, depth, data->rank), tuples = tensor_dims_product(indices->dim, 0, indices->rank - 1);
    size_t bytes = (size_t)inner * dtype_size(data->dtype);
    if (tensor_elements(updates) != tuples * inner || updates->dtype != data->dtype)
        fail("%s: updates must be %lld elements of %s", kcall_where(call), (long long)(tuples * inner), dtype_name(data->dtype));
    if (out->data != data->data)
        copy_dense(call->env, out->data, data->data, tensor_bytes(out));
    for (int64_t i = 0; bytes && i < tuples; i++) {
        char *to = (char *)out->data + (size_t)tuple_position(call, data, indices, i, depth, 0) * bytes;
        const char *from = (const char *)updates->data + (size_t)i * bytes;
        if (how == COMBINE_SET)
            copy_bytes(to, from, bytes);
        else
            combine_elements(how, data->dtype, to, from, inner);
    }
}
