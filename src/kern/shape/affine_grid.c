/* affine_grid: theta times the position of every pixel, from -1 to 1, innermost dimension first. */
#include "kern/core/core.h"

/* Position of index i of n: the pixel's centre, between the outer edges or, with corners, between the centres of the outermost pixels. */
static double place_of(int64_t i, int64_t n, bool corners)
{
    if (corners)
        return n > 1 ? 2 * (double)i / (double)(n - 1) - 1 : 0;
    return (2 * (double)i + 1) / (double)n - 1;
}

void kern_AffineGrid(struct kcall *call)
{
    const struct tensor *theta = &call->in[0];
    struct tensor *y = &call->out[0];
    int n = y->rank - 2;
    int64_t pixels = tensor_dims_product(y->dim, 1, 1 + n);
    bool corners = attr_int(call->node, "align_corners") != 0;
    double row[3 * 4], place[4], result[3];
    if (!dtype_is_float(theta->dtype))
        kcall_bad_type(call, theta->dtype);
    for (int64_t i = 0; i < tensor_elements(y) / (n ? n : 1); i++) {
        int64_t left = i % pixels;
        convert_to_f64(theta->dtype, element_at_const(theta->data, dtype_size(theta->dtype), i / pixels * n * (n + 1)), n * (n + 1), row);
        for (int d = 0; d < n; d++) {
            place[d] = place_of(left % y->dim[n - d], y->dim[n - d], corners);
            left /= y->dim[n - d];
        }
        place[n] = 1;
        for (int k = 0; k < n; k++) {
            result[k] = 0;
            for (int j = 0; j <= n; j++)
                result[k] += row[k * (n + 1) + j] * place[j];
        }
        convert_from_f64(y->dtype, result, n, element_at(y->data, dtype_size(y->dtype), i * n));
    }
}
