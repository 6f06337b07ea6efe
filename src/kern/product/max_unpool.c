/* max_unpool: elements back at the places that MaxPool took them from, zeros between. A place is an index into the whole tensor, flattened,
 * as the window's sizes make it; an output_shape that is larger leaves zeros behind it. */
#include "kern/core/core.h"

#include <string.h>

void kern_MaxUnpool(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *index = &call->in[1];
    struct tensor *y = &call->out[0];
    int n = x->rank - 2;
    int64_t size[MAX_RANK] = {x->dim[0], x->dim[1]}, step[MAX_RANK], kernel[MOST_SPATIAL], stride[MOST_SPATIAL], pad[2 * MOST_SPATIAL];
    kcall_spatial(call, "kernel_shape", n, 1, kernel);
    kcall_spatial(call, "strides", n, 1, stride);
    kcall_spatial(call, "pads", 2 * n, 0, pad);
    for (int d = 0; d < n; d++)
        size[2 + d] = (x->dim[2 + d] - 1) * stride[d] - pad[d] - pad[n + d] + kernel[d];
    tensor_dense_strides(y->rank, y->dim, step);
    memset(y->data, 0, tensor_bytes(y));
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        int64_t left = kcall_index_at(call, index, i), to = 0;
        bool inside = left >= 0;
        for (int d = x->rank - 1; inside && d >= 0; d--) {
            inside = size[d] > 0 && left % size[d] < y->dim[d];
            to += inside ? left % size[d] * step[d] : 0;
            left = inside ? left / size[d] : left;
        }
        if (!inside || left)
            fail("%s: index %lld is out of range", kcall_where(call), (long long)kcall_index_at(call, index, i));
        memcpy(element_at(y->data, dtype_size(x->dtype), to), element_at_const(x->data, dtype_size(x->dtype), i), dtype_size(x->dtype));
    }
}
