/* softmax_rows: Softmax of float32 along the last dimension. Short rows are processed in blocks, all maxima of a block before its
 * exponentials, so that a row does not wait for the previous one. Exponentials may be contracted to multiply-adds: the result of an element
 * depends only on its row and its position there. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/reduce/reduce.h"

struct rows {
    const float *x;
    float *y;
    int64_t n;
};

enum { BLOCK_ROWS = 16, BLOCK = 1024 }; /* BLOCK: elements, for shorter rows */

static SIMD void max_rows(const float *x, int64_t n, int64_t rows, float *max)
{
    for (int64_t r = 0; r < rows; r++, x += n) {
        float m = -INFINITY;
        _Pragma("omp simd reduction(max:m)") for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
        max[r] = m;
    }
}

static SIMD void exponential_rows(const float *x, float *y, int64_t n, int64_t rows, const float *max, float *scale)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        float m = max[r], sum = 0;
        _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++)
        {
            float d = x[i] - m, e = mathf_exp2_near(d * MATHF_LOG2E);
            e = d < -87.0f ? 0 : e;
            y[i] = e;
            sum += e;
        }
        scale[r] = 1.0f / sum;
    }
}

static SIMD void scale_rows(float *y, int64_t n, int64_t rows, const float *scale)
{
    for (int64_t r = 0; r < rows; r++, y += n)
        LOOP for (int64_t i = 0; i < n; i++) y[i] *= scale[r];
}

static void softmax_of(const float *x, float *y, int64_t n, int64_t rows)
{
    float max[BLOCK_ROWS], scale[BLOCK_ROWS];
    int64_t most = n >= BLOCK ? 1 : BLOCK / n < BLOCK_ROWS ? BLOCK / n : BLOCK_ROWS;
    for (int64_t r = 0; r < rows; r += most) {
        int64_t count = rows - r < most ? rows - r : most;
        max_rows(x + r * n, n, count, max);
        exponential_rows(x + r * n, y + r * n, n, count, max, scale);
        scale_rows(y + r * n, n, count, scale);
    }
}

static void rows_range(void *data, int64_t lo, int64_t hi)
{
    const struct rows *r = data;
    softmax_of(r->x + lo * r->n, r->y + lo * r->n, r->n, hi - lo);
}

bool softmax_by_rows(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    int axis = kcall_axis(call, attr_int(call->node, "axis"), x->rank);
    struct rows r = {x->data, call->out[0].data, x->dim[axis]};
    if (x->dtype != DT_F32 || tensor_dims_product(x->dim, axis + 1, x->rank) != 1 || tensor_elements(x) == 0)
        return false;
    kenv_parallel_for(call->env, tensor_elements(x) / r.n, 4 * r.n, rows_range, &r);
    return true;
}
