/* compress: the slices along an axis for which a condition holds; without an axis, elements of the flattened tensor. */
#include "kern/core/core.h"
#include "kern/index/index.h"

#include <string.h>

int64_t index_compressed(struct kcall *call)
{
    const struct tensor *condition = &call->in[1];
    const uint8_t *holds = condition->data;
    int64_t count = 0;
    for (int64_t i = 0; i < tensor_elements(condition); i++)
        count += holds[i] != 0;
    return count;
}

/* If the condition is shorter than the axis, the rest is dropped. */
void kern_Compress(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *condition = &call->in[1];
    const struct tensor *y = &call->out[0];
    bool flat = !attr_is_set(call->node, "axis");
    int axis = flat ? 0 : kcall_axis(call, attr_int(call->node, "axis"), x->rank);
    size_t size = dtype_size(x->dtype);
    int64_t n = flat ? tensor_elements(x) : x->dim[axis], inner = flat ? 1 : tensor_dims_product(x->dim, axis + 1, x->rank), at = 0;
    const uint8_t *holds = condition->data;
    if (index_compressed(call) != y->dim[flat ? 0 : axis])
        fail("%s: its result has another size than the condition selects", kcall_where(call));
    for (int64_t i = n; i < tensor_elements(condition); i++)
        if (holds[i])
            fail("%s: the condition asks for element %lld of %lld", kcall_where(call), (long long)i, (long long)n);
    for (int64_t o = 0; o < (flat ? 1 : tensor_dims_product(x->dim, 0, axis)); o++)
        for (int64_t i = 0; i < tensor_elements(condition); i++)
            if (holds[i]) {
                memcpy(element_at(y->data, size, at * inner), element_at_const(x->data, size, (o * n + i) * inner), (size_t)inner * size);
                at++;
            }
}
