/* det: determinants of square matrices, by elimination with partial pivoting. */
#include "kern/core/core.h"

#include <math.h>

static double determinant(double *a, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
        for (int64_t j = k; pivot != k && j < n; j++) {
            double swap = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = swap;
        }
        det *= pivot == k ? a[k * n + k] : -a[k * n + k];
        if (a[k * n + k] == 0)
            return det;
        for (int64_t i = k + 1; i < n; i++) {
            double times = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= times * a[k * n + j];
        }
    }
    return det;
}

void kern_Det(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    int64_t n = x->dim[x->rank - 1], count = tensor_elements(&call->out[0]);
    double *a = kenv_scratch(call->env, kcall_bytes(call, n * n, sizeof *a));
    if (!dtype_is_float(x->dtype))
        kcall_bad_type(call, x->dtype);
    for (int64_t i = 0; i < count; i++) {
        convert_to_f64(x->dtype, element_at_const(x->data, dtype_size(x->dtype), i * n * n), n * n, a);
        double det = determinant(a, n);
        convert_from_f64(x->dtype, &det, 1, element_at(call->out[0].data, dtype_size(x->dtype), i));
    }
}
