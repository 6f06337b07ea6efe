/* tensor: sizes and strides of the dense tensors that kernels work on. */
#include "kern/core/core.h"

int64_t tensor_dims_product(const int64_t *dim, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= dim[i];
    return n;
}

int64_t tensor_elements(const struct tensor *t)
{
    return tensor_dims_product(t->dim, 0, t->rank);
}

void tensor_strides(const struct tensor *t, int64_t *stride)
{
    int64_t n = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        stride[d] = n;
        n *= t->room && d == t->axis ? t->room : t->dim[d];
    }
}

size_t tensor_bytes(const struct tensor *t)
{
    int64_t bytes;
    bool known = (t->packed ? dtype_packed_bytes : dtype_bytes)(t->dtype, tensor_elements(t), &bytes);
    return known ? (size_t)bytes : 0;
}

struct tensor tensor_unpacked(struct arena *arena, const struct tensor *t)
{
    struct tensor out = *t;
    if (!t->packed)
        return out;
    out.packed = false;
    out.data = arena_alloc(arena, tensor_bytes(&out) + 1);
    dtype_unpack(t->dtype, t->data, 0, tensor_elements(t), out.data);
    return out;
}

void tensor_dense_strides(int rank, const int64_t *dim, int64_t *stride)
{
    int64_t n = 1;
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = n;
        n *= dim[d];
    }
}
