/* gather_block: rows of a table of 4- or 8-bit integers in blocks with a scale and a zero point. */
#include "ir/operands.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

struct packed_table {
    struct kcall *call;
    struct tensor data, zeros; /* of elements: a byte may hold two */
    const struct tensor *scales;
    bool has_zeros;
    int64_t rows, width, block, blocks, zeros_each; /* rows per index; elements, scales and zero points per row */
    float zero;                                     /* without zero points */
};

static float zero_at(const struct packed_table *t, int64_t row, int64_t block)
{
    float zero = t->zero;
    if (t->has_zeros)
        dequant_load(&t->zeros, row * t->zeros_each + block, 1, &zero);
    return zero;
}

static void decode_row(const struct packed_table *t, int64_t row, void *to, enum dtype dtype)
{
    float part[CHUNK], scale;
    for (int64_t j = 0, n; j < t->width; j += n) {
        int64_t b = j / t->block, left = (b + 1) * t->block < t->width ? (b + 1) * t->block - j : t->width - j;
        float zero = zero_at(t, row, b);
        n = left < CHUNK ? left : CHUNK;
        dequant_load(&t->data, row * t->width + j, n, part);
        convert_to_f32(t->scales->dtype, element_at_const(t->scales->data, dtype_size(t->scales->dtype), row * t->blocks + b), 1, &scale);
        for (int64_t i = 0; i < n; i++)
            part[i] = (part[i] - zero) * scale;
        convert_from_f32(dtype, part, n, element_at(to, dtype_size(dtype), j));
    }
}

/* Rows lo..hi of the result. */
static void gather_block_range(void *data, int64_t lo, int64_t hi)
{
    const struct packed_table *t = data;
    const struct tensor *y = &t->call->out[0];
    for (int64_t i = lo; i < hi; i++) {
        int64_t at_row = kcall_index(t->call, IN_GatherBlockQuantized_indices, i / t->rows,
                                     t->call->in[IN_GatherBlockQuantized_data].dim[0], 0) *
                t->rows +
            i % t->rows;
        decode_row(t, at_row, element_at(y->data, dtype_size(y->dtype), i * t->width), y->dtype);
    }
}

/* A tensor of bytes with two elements each, as its elements. */
static struct tensor numbers_of(const struct tensor *t, int64_t per)
{
    struct tensor numbers = *t;
    if (per == 2) {
        numbers.dtype = DT_U4;
        numbers.packed = true;
    }
    return numbers;
}

void kern_GatherBlockQuantized(struct kcall *call)
{
    const struct tensor *x = &call->in[IN_GatherBlockQuantized_data], *zeros = kcall_in(call, IN_GatherBlockQuantized_zero_points);
    int64_t bits = attr_int(call->node, "bits"), per = x->dtype == DT_U8 ? 8 / bits : 1;
    struct packed_table t = {.call = call,
                             .data = numbers_of(x, per),
                             .scales = &call->in[IN_GatherBlockQuantized_scales],
                             .has_zeros = zeros,
                             .rows = tensor_dims_product(x->dim, 1, x->rank - 1),
                             .width = x->dim[x->rank - 1] * per,
                             .block = attr_int(call->node, "block_size"),
                             .zero = x->dtype == DT_U8 ? (float)(1 << (bits - 1)) : 0};
    t.blocks = t.scales->dim[t.scales->rank - 1];
    if (zeros) {
        t.zeros = numbers_of(zeros, per);
        t.zeros_each = zeros->dim[zeros->rank - 1] * per;
    }
    if (tensor_elements(&call->out[0]) > 0)
        kenv_parallel_for(call->env, tensor_elements(&call->in[IN_GatherBlockQuantized_indices]) * t.rows, 8 * t.width, gather_block_range,
                          &t);
}
