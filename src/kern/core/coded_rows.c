/* coded_rows: rows of f32 in a quarter of the bytes, for a KV cache. Each block of CODED_BLOCK numbers has a scale, its largest magnitude /
 * 127 in bf16; a code is the number divided by the scale, rounded. A row is its codes, then its scales. Decoding and encoding again changes
 * nothing. */
#include "base/half.h"
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

int64_t coded_rows_bytes(int64_t n)
{
    return n + (n + CODED_BLOCK - 1) / CODED_BLOCK * CODED_SCALE;
}

int64_t coded_rows_numbers(int64_t bytes)
{
    const int whole = CODED_BLOCK + CODED_SCALE;
    return bytes / whole * CODED_BLOCK + (bytes % whole > CODED_SCALE ? bytes % whole - CODED_SCALE : 0);
}

INLINE float scale_at(const int8_t *row, int64_t n, int64_t block)
{
    uint16_t half;
    memcpy(&half, row + n + block * CODED_SCALE, sizeof half);
    return bf16_to_f32(half);
}

/* NaN for a block that contains infinity or NaN. */
static SIMD uint16_t scale_of(const float *x, int64_t n)
{
    float most = 0, none = 0;
    _Pragma("omp simd reduction(max:most)") for (int64_t i = 0; i < n; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    _Pragma("omp simd reduction(+:none)") for (int64_t i = 0; i < n; i++) none += x[i] - x[i];
    return f32_to_bf16(most / 127 + none);
}

static SIMD void write_codes(const float *x, int64_t n, float scale, int8_t *to)
{
    float inverse = scale > 0 ? 1 / scale : 0;
    LOOP for (int64_t i = 0; i < n; i++)
    {
        float code = x[i] * inverse;
        code = code < 127 ? code : 127;
        code = code > -127 ? code : -127;
        to[i] = (int8_t)(int32_t)(code + (code < 0 ? -0.5f : 0.5f));
    }
}

void coded_rows_write(const float *x, int64_t n, void *row)
{
    int8_t *to = row;
    for (int64_t i = 0, b = 0; i < n; i += CODED_BLOCK, b++) {
        int64_t some = n - i < CODED_BLOCK ? n - i : CODED_BLOCK;
        uint16_t scale = scale_of(x + i, some);
        write_codes(x + i, some, bf16_to_f32(scale), to + i);
        memcpy(to + n + b * CODED_SCALE, &scale, sizeof scale);
    }
}

INLINE void read_block(const int8_t *codes, int64_t n, float scale, float *to)
{
    LOOP for (int64_t i = 0; i < n; i++) to[i] = scale * (float)codes[i];
}

SIMD void coded_rows_piece(const void *row, int64_t n, int64_t from, int64_t count, float *x)
{
    const int8_t *codes = (const int8_t *)row + from;
    int64_t i = 0, b = from / CODED_BLOCK;
    for (; i + CODED_BLOCK <= count; i += CODED_BLOCK, b++)
        read_block(codes + i, CODED_BLOCK, scale_at(row, n, b), x + i);
    if (i < count)
        read_block(codes + i, count - i, scale_at(row, n, b), x + i);
}

void coded_rows_read(const void *rows, int64_t step, int64_t count, int64_t n, float *x)
{
    for (int64_t j = 0; j < count; j++)
        coded_rows_piece((const char *)rows + j * step, n, 0, n, x + j * n);
}

/* ---- as nodes ------------------------------------------------------------------------------------------------------------------------ */

struct rows_task {
    const struct tensor *from;
    struct tensor *to;
    int64_t numbers, from_step[MAX_RANK], to_step[MAX_RANK];
};

static void rows_range(void *data, int64_t lo, int64_t hi)
{
    const struct rows_task *t = data;
    for (int64_t r = lo; r < hi; r++) {
        int64_t rest = r, from = 0, to = 0;
        for (int d = t->from->rank - 2; d >= 0; d--) {
            int64_t i = rest % t->from->dim[d];
            rest /= t->from->dim[d];
            from += i * t->from_step[d];
            to += i * t->to_step[d];
        }
        if (t->to->dtype == DT_F32)
            coded_rows_read((const int8_t *)t->from->data + from, 0, 1, t->numbers, (float *)t->to->data + to);
        else
            coded_rows_write((const float *)t->from->data + from, t->numbers, (int8_t *)t->to->data + to);
    }
}

static void convert_rows(struct kcall *call)
{
    struct rows_task t = {.from = &call->in[0], .to = &call->out[0]};
    const struct tensor *wide = t.to->dtype == DT_F32 ? t.to : t.from;
    t.numbers = wide->dim[wide->rank - 1];
    tensor_strides(t.from, t.from_step);
    tensor_strides(t.to, t.to_step);
    if (tensor_elements(wide))
        kenv_parallel_for(call->env, tensor_elements(wide) / t.numbers, 4 * t.numbers, rows_range, &t);
}

KERNEL_IS(QuantizeRows, convert_rows(call))
KERNEL_IS(DequantizeRows, convert_rows(call))
