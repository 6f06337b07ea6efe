/* crop: CenterCropPad. Each dimension is cropped or padded with zeros, centred; for an odd difference the smaller part is at the start. */
#include "kern/core/core.h"

#include <string.h>

void kern_CenterCropPad(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *y = &call->out[0];
    struct copy c = {.rank = x->rank, .size = dtype_size(x->dtype)};
    int64_t from = 0, to = 0;
    tensor_dense_strides(x->rank, x->dim, c.from);
    tensor_dense_strides(y->rank, y->dim, c.to);
    for (int d = 0; d < x->rank; d++) {
        int64_t more = x->dim[d] - y->dim[d];
        c.dim[d] = more > 0 ? y->dim[d] : x->dim[d];
        from += more > 0 ? more / 2 * c.from[d] : 0;
        to += more < 0 ? -more / 2 * c.to[d] : 0;
    }
    memset(y->data, 0, tensor_bytes(y));
    if (tensor_elements(x) && tensor_elements(y))
        copy_strided(call->env, &c, element_at(y->data, c.size, to), element_at_const(x->data, c.size, from));
}
