/* conv_read: the sizes of a convolution. Padding is computed here, so that all kernels use the same numbers. */
#include "kern/conv/conv.h"
#include "kern/core/core.h"

#include <string.h>

static void same_pads(struct conv *c, bool lower)
{
    for (int d = 0; d < c->spatial; d++) {
        int64_t total = (c->result[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d] + 1 - c->size[d];
        total = total < 0 ? 0 : total;
        c->before[d] = lower ? total - total / 2 : total / 2;
        c->after[d] = total - c->before[d];
    }
}

static void conv_pads(const struct kcall *call, struct conv *c)
{
    const char *how = attr_string(call->node, "auto_pad");
    int64_t pads[2 * MOST_SPATIAL];
    if (strcmp(how, "SAME_UPPER") == 0 || strcmp(how, "SAME_LOWER") == 0) {
        same_pads(c, strcmp(how, "SAME_LOWER") == 0);
        return;
    }
    if (strcmp(how, "VALID") == 0)
        memset(pads, 0, sizeof pads);
    else
        kcall_spatial(call, "pads", 2 * c->spatial, 0, pads);
    memcpy(c->before, pads, (size_t)c->spatial * sizeof *pads);
    memcpy(c->after, pads + c->spatial, (size_t)c->spatial * sizeof *pads);
}

void conv_read(const struct kcall *call, struct conv *c, bool last)
{
    const struct tensor *x = &call->in[0], *w = &call->in[1], *y = &call->out[0], *bias = kcall_in(call, 2);
    int first = last ? 1 : 2;
    if (x->rank < 3 || w->rank != x->rank)
        fail("%s: expected tensors of one rank of 3 or more, found %d and %d", kcall_where(call), x->rank, w->rank);
    *c = (struct conv){.spatial = x->rank - 2,
                       .last = last,
                       .batch = x->dim[0],
                       .in = x->dim[last ? x->rank - 1 : 1],
                       .out = w->dim[0],
                       .dtype = x->dtype,
                       .stored = w->dtype,
                       .x = x->data,
                       .w = w->data,
                       .y = y->data,
                       .bias = bias ? bias->data : NULL};
    c->groups = attr_int(call->node, "group");
    bool empty = c->out == 0 || c->in == 0;
    if (!empty && (c->groups < 1 || c->in != w->dim[1] * c->groups || c->out % c->groups))
        fail("%s: %lld channels in %lld groups do not fit a kernel of %lld x %lld", kcall_where(call), (long long)c->in,
             (long long)c->groups, (long long)c->out, (long long)w->dim[1]);
    kcall_spatial(call, "strides", c->spatial, 1, c->stride);
    kcall_spatial(call, "dilations", c->spatial, 1, c->dilation);
    memcpy(c->size, x->dim + first, (size_t)c->spatial * sizeof *c->size);
    memcpy(c->kernel, w->dim + 2, (size_t)c->spatial * sizeof *c->kernel);
    memcpy(c->result, y->dim + first, (size_t)c->spatial * sizeof *c->result);
    conv_pads(call, c);
}
