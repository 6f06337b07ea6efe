/* nonzero: the coordinates of nonzero elements in row-major order, one row of the result per dimension. */
#include "kern/core/core.h"

static void put_position(const struct tensor *x, int64_t element, int64_t at, struct tensor *y)
{
    int64_t *to = y->data, n = y->dim[1];
    for (int d = x->rank - 1; d > 0; d--) {
        to[d * n + at] = element % x->dim[d];
        element /= x->dim[d];
    }
    to[at] = element;
}

void kern_NonZero(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    struct tensor *y = &call->out[0];
    int64_t n = tensor_elements(x), found = 0;
    double stretch[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        convert_to_f64(x->dtype, element_at_const(x->data, dtype_size(x->dtype), i), m, stretch);
        for (int64_t j = 0; j < m; j++) {
            if (stretch[j] == 0)
                continue;
            if (found == y->dim[1])
                fail("%s: more elements are not zero than the %lld of its result", kcall_where(call), (long long)found);
            put_position(x, i + j, found++, y);
        }
    }
    if (found != y->dim[1])
        fail("%s: %lld elements are not zero, its result has %lld", kcall_where(call), (long long)found, (long long)y->dim[1]);
}
