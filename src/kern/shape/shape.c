/* shape: ops whose result depends on sizes: copies with another shape, Expand, constant fills, Range, and size expressions as a tensor. */
#include "kern/core/core.h"

#include <string.h>

void kern_Identity(struct kcall *call)
{
    require(tensor_bytes(&call->in[0]) == tensor_bytes(&call->out[0]));
    copy_dense(call->env, call->out[0].data, call->in[0].data, tensor_bytes(&call->out[0]));
}

void kern_Again(struct kcall *call)
{
    if (call->out[0].data != call->in[0].data)
        kern_Identity(call);
}

void kern_Expand(struct kcall *call)
{
    const struct tensor *in[1] = {&call->in[0]};
    struct tensor *out = &call->out[0];
    struct walk w;
    walk_broadcast(call, &w, out, 1, in);
    struct copy c = {.rank = w.rank, .size = dtype_size(out->dtype)};
    memcpy(c.dim, w.dim, sizeof w.dim);
    memcpy(c.to, w.stride[0], sizeof w.stride[0]);
    memcpy(c.from, w.stride[1], sizeof w.stride[1]);
    copy_strided(call->env, &c, out->data, in[0]->data);
}

/* The fill value: a one-element tensor attribute, float 0 by default. */
void kern_ConstantOfShape(struct kcall *call)
{
    struct tensor *out = &call->out[0];
    struct attr *value = node_attr(call->node, "value");
    uint64_t zero = 0;
    const void *from = &zero;
    if (value->set) {
        if (value->tensor->dtype != out->dtype || constant_elements(value->tensor) != 1)
            fail("%s: attribute value must hold one %s", kcall_where(call), dtype_name(out->dtype));
        from = constant_data(value->tensor, call->node->name);
    }
    struct copy c = {.rank = 1, .size = dtype_size(out->dtype), .dim = {tensor_elements(out)}, .to = {1}, .from = {0}};
    uint64_t aligned = 0;
    memcpy(&aligned, from, c.size);
    copy_strided(call->env, &c, out->data, &aligned);
}

/* start, limit and delta may be floating point as operands; as attributes they are integers. */
static void range_real(struct kcall *call, struct tensor *out)
{
    double start, delta, part[CHUNK];
    int64_t n = tensor_elements(out);
    convert_to_f64(call->in[0].dtype, call->in[0].data, 1, &start);
    convert_to_f64(call->in[2].dtype, call->in[2].data, 1, &delta);
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        for (int64_t j = 0; j < m; j++)
            part[j] = start + (double)(i + j) * delta;
        convert_from_f64(out->dtype, part, m, element_at(out->data, dtype_size(out->dtype), i));
    }
}

static int64_t range_bound(struct kcall *call, int operand, const char *attr)
{
    const struct tensor *t = kcall_in(call, operand);
    int64_t value = 0;
    if (t && tensor_elements(t) == 1)
        convert_to_i64(t->dtype, t->data, 1, &value);
    else if (t || kcall_dims(call, attr, &value, 1) != 1)
        fail("%s: %s must be one number", kcall_where(call), attr);
    return value;
}

void kern_Range(struct kcall *call)
{
    struct tensor *out = &call->out[0];
    if (dtype_is_float(out->dtype) && kcall_in(call, 0) && kcall_in(call, 2)) {
        range_real(call, out);
        return;
    }
    int64_t start = range_bound(call, 0, "start"), delta = range_bound(call, 2, "delta"), n = tensor_elements(out);
    for (int64_t i = 0; i < n; i++) {
        int64_t value = (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);
        convert_from_i64(out->dtype, &value, 1, element_at(out->data, dtype_size(out->dtype), i));
    }
}

void kern_Dims(struct kcall *call)
{
    struct tensor *out = &call->out[0];
    int64_t n = tensor_elements(out);
    int64_t *value = kenv_scratch(call->env, kcall_bytes(call, n, sizeof *value));
    if (kcall_dims(call, "dims", value, (int)n) != n)
        fail("%s: %lld sizes are expected", kcall_where(call), (long long)n);
    convert_from_i64(out->dtype, value, n, out->data);
}
