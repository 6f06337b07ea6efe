/* depth_space: DepthToSpace and SpaceToDepth, one strided copy each. */
#include "kern/core/core.h"

#include <string.h>

enum { N, C, I, J, H, W, AXES };

/* Strides of a tensor in depth: channels are (i j c), or (c i j). */
static void deep_strides(const struct tensor *t, const int64_t *dim, bool together, int64_t *stride)
{
    int64_t own[MAX_RANK];
    tensor_strides(t, own);
    stride[N] = own[0];
    stride[C] = own[1] * (together ? dim[I] * dim[J] : 1);
    stride[J] = own[1] * (together ? 1 : dim[C]);
    stride[I] = stride[J] * dim[J];
    stride[H] = own[2];
    stride[W] = own[3];
}

static void wide_strides(const struct tensor *t, const int64_t *dim, int64_t *stride)
{
    int64_t own[MAX_RANK];
    tensor_strides(t, own);
    stride[N] = own[0];
    stride[C] = own[1];
    stride[I] = own[2];
    stride[J] = own[3];
    stride[H] = own[2] * dim[I];
    stride[W] = own[3] * dim[J];
}

static void depth_kernel(struct kcall *call, const struct tensor *deep, const struct tensor *wide)
{
    struct copy c = {.rank = AXES, .size = dtype_size(deep->dtype)};
    int64_t block = attr_int(call->node, "blocksize");
    bool together = strcmp(attr_string(call->node, "mode"), "CRD") == 0, widens = wide == &call->out[0];
    memcpy(c.dim, (int64_t[AXES]){wide->dim[0], wide->dim[1], block, block, deep->dim[2], deep->dim[3]}, AXES * sizeof *c.dim);
    if (!c.size)
        kcall_bad_type(call, deep->dtype);
    deep_strides(deep, c.dim, together, widens ? c.from : c.to);
    wide_strides(wide, c.dim, widens ? c.to : c.from);
    copy_strided(call->env, &c, call->out[0].data, call->in[0].data);
}

KERNEL_IS(DepthToSpace, depth_kernel(call, &call->in[0], &call->out[0]))
KERNEL_IS(SpaceToDepth, depth_kernel(call, &call->out[0], &call->in[0]))
