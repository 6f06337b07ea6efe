/* reverse_sequence: ReverseSequence: steps of a row of the batch are blocks of the dimensions after both axes. */
#include "kern/core/core.h"

#include <string.h>

struct reversal {
    struct kcall *call;
    bool time_first;
    int64_t steps, batch;
    size_t block;
};

/* Rows lo..hi of the batch. */
static void reverse_range(void *data, int64_t lo, int64_t hi)
{
    const struct reversal *r = data;
    const struct kcall *call = r->call;
    for (int64_t b = lo; b < hi; b++) {
        int64_t length = kcall_index_at(call, &call->in[1], b);
        for (int64_t t = 0; t < r->steps; t++) {
            int64_t from = t < length ? length - 1 - t : t, row = r->time_first ? r->batch : 1, at = r->time_first ? b : b * r->steps;
            memcpy(element_at(call->out[0].data, r->block, at + t * row), element_at_const(call->in[0].data, r->block, at + from * row),
                   r->block);
        }
    }
}

void kern_ReverseSequence(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    struct reversal r = {.call = call, .time_first = attr_int(call->node, "time_axis") == 0};
    r.steps = x->dim[!r.time_first];
    r.batch = x->dim[r.time_first];
    r.block = dtype_size(x->dtype) * (size_t)tensor_dims_product(x->dim, 2, x->rank);
    for (int64_t b = 0; b < r.batch; b++) {
        int64_t n = kcall_index_at(call, &call->in[1], b);
        if (n < 0 || n > r.steps)
            fail("%s: sequence %lld has %lld steps, expected 0 to %lld", kcall_where(call), (long long)b, (long long)n, (long long)r.steps);
    }
    if (tensor_elements(x) > 0)
        kenv_parallel_for(call->env, r.batch, r.steps * (int64_t)r.block / 8 + 1, reverse_range, &r);
}
