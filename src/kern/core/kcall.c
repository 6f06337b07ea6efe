/* kcall: reading a call's operands and attributes. A size comes from the operand where the node still has it (source form) and else
 * from the attribute it was folded into, evaluated for this call's symbols. */
#include "kern/core/core.h"

const struct tensor *call_in(const struct kcall *call, int i)
{
    return i < call->nin && call->in[i].data ? &call->in[i] : NULL;
}

struct tensor *call_out(const struct kcall *call, int i)
{
    return i < call->nout && call->out[i].data ? &call->out[i] : NULL;
}

const char *call_where(const struct kcall *call)
{
    return node_where(call->graph, call->node);
}

void call_bad_type(const struct kcall *call, enum dtype dtype)
{
    fail("%s: there is no kernel for %s tensors", call_where(call), dtype_name(dtype));
}

size_t call_bytes(const struct kcall *call, int64_t count, size_t size)
{
    int64_t bytes;
    if (count < 0 || !mul_i64(count, (int64_t)size, &bytes))
        fail("%s: a size of %lld elements of %zu bytes does not fit in memory", call_where(call), (long long)count, size);
    return (size_t)bytes;
}

float *call_result_f32(const struct kcall *call, const struct tensor *t)
{
    return t->dtype == DT_F32 ? t->data : kenv_room(call->env, ROOM_C, call_bytes(call, tensor_elements(t), sizeof(float)));
}

void call_result_store(const float *from, struct tensor *t)
{
    if (t->dtype != DT_F32)
        store_f32(t->dtype, from, tensor_elements(t), t->data);
}

int64_t call_index(const struct kcall *call, int64_t index, int64_t n, int axis)
{
    if (index < -n || index >= n)
        fail("%s: index %lld is out of range for dimension %d of size %lld", call_where(call), (long long)index, axis, (long long)n);
    return index < 0 ? index + n : index;
}

int64_t index_at(const struct kcall *call, const struct tensor *t, int64_t i)
{
    if (t->dtype == DT_I64)
        return ((const int64_t *)t->data)[i];
    if (t->dtype == DT_I32)
        return ((const int32_t *)t->data)[i];
    fail("%s: an index or size tensor must be i64 or i32, not %s", call_where(call), dtype_name(t->dtype));
}

int call_dims(const struct kcall *call, const char *attr, int64_t *out, int max)
{
    const struct dim **dims;
    int n = attr_dims(call->node, attr, &dims);
    if (n > max)
        fail("%s: attribute %s has %d entries, at most %d are expected", call_where(call), attr, n, max);
    for (int i = 0; i < n; i++)
        if (!dim_is_int(dims[i], &out[i]) && !(call->bind && dim_eval(dims[i], call->bind, &out[i])))
            bug("%s: attribute %s uses a symbol without a value", call_where(call), attr);
    return n;
}

int call_sizes(const struct kcall *call, int operand, const char *attr, int64_t *out, int max)
{
    const struct tensor *t = call_in(call, operand);
    if (!t)
        return attr_is_set(call->node, attr) ? call_dims(call, attr, out, max) : -1;
    int64_t n = tensor_elements(t);
    if (n > max)
        fail("%s: operand %d has %lld entries, at most %d are expected", call_where(call), operand, (long long)n, max);
    for (int i = 0; i < n; i++)
        out[i] = index_at(call, t, i);
    return (int)n;
}

int call_axis(const struct kcall *call, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        fail("%s: axis %lld is out of range for rank %d", call_where(call), (long long)axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

void call_spatial(const struct kcall *call, const char *attr, int n, int64_t otherwise, int64_t *out)
{
    const int64_t *given = NULL;
    int count = attr_is_set(call->node, attr) ? attr_ints(call->graph, call->node, attr, &given) : 0;
    if (count && count != n)
        fail("%s: %s has %d entries where %d are expected", call_where(call), attr, count, n);
    for (int d = 0; d < n; d++) {
        out[d] = count ? given[d] : otherwise;
        if (out[d] < otherwise || out[d] > INT32_MAX)
            fail("%s: %s must not be %lld", call_where(call), attr, (long long)out[d]);
    }
}
