/* tensor_scatter: writes new entries to a cache along an axis, from an index per sequence of the batch. */
#include "kern/core/core.h"

#include <string.h>

void kern_TensorScatter(struct kcall *call)
{
    const struct tensor *past = &call->in[0], *update = &call->in[1], *index = kcall_in(call, 2);
    struct tensor *y = &call->out[0];
    int axis = kcall_axis(call, attr_int(call->node, "axis"), past->rank);
    bool circular = strcmp(attr_string(call->node, "mode"), "circular") == 0;
    int64_t room = past->dim[axis], n = update->dim[axis], outer = tensor_dims_product(past->dim, 0, axis);
    size_t row = kcall_bytes(call, tensor_dims_product(past->dim, axis + 1, past->rank), dtype_size(past->dtype));
    copy_dense(call->env, y->data, past->data, tensor_bytes(y));
    for (int64_t o = 0; o < outer; o++) {
        int64_t start = index ? kcall_index_at(call, index, o / (outer / past->dim[0])) : 0;
        if (start < 0 || n > room || (!circular && start > room - n))
            fail("%s: %lld entries from index %lld do not fit into %lld", kcall_where(call), (long long)n, (long long)start,
                 (long long)room);
        for (int64_t i = 0; i < n; i++)
            memcpy(element_at(y->data, row, o * room + (start % room + i) % room), element_at_const(update->data, row, o * n + i), row);
    }
}
