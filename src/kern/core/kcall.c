/* kcall: reads a call's operands and attributes. A size comes from the operand if the node still has it (source form), else from the
 * attribute it was folded into, evaluated for this call's symbols. */
#include "kern/core/core.h"

/* For a lookup that only checks the model's indices: the dimension that they index. */
static const struct attr *checked_dimension(const struct node *node)
{
    for (int i = 0; i < node->nattr; i++)
        if (strcmp(node->attr[i].name, "dimension") == 0 && node->attr[i].set)
            return &node->attr[i];
    return NULL;
}

static bool makes_nothing(const struct kcall *call)
{
    int made = 0;
    for (int k = 0; k < call->nout; k++) {
        made += call->node->out[k] != NULL;
        if (call->node->out[k] && tensor_elements(&call->out[k]))
            return false;
    }
    return made > 0 && !call->share && !checked_dimension(call->node);
}

void kern_run(struct kcall *call)
{
    const struct diag_subject before = node_work_on(call->graph, call->node);
    if (!makes_nothing(call))
        call->node->op->kernel(call);
    (void)diag_work_on(before);
}

const struct tensor *kcall_in(const struct kcall *call, int i)
{
    return i < call->nin && call->in[i].data ? &call->in[i] : NULL;
}

struct tensor *kcall_out(const struct kcall *call, int i)
{
    return i < call->nout && call->out[i].data ? &call->out[i] : NULL;
}

const char *kcall_where(const struct kcall *call)
{
    return node_where(call->graph, call->node);
}

void kcall_bad_type(const struct kcall *call, enum dtype dtype)
{
    fail("%s: there is no kernel for %s tensors", kcall_where(call), dtype_name(dtype));
}

size_t kcall_bytes(const struct kcall *call, int64_t count, size_t size)
{
    int64_t bytes;
    if (count < 0 || !i64_mul(count, (int64_t)size, &bytes))
        fail("%s: a size of %lld elements of %zu bytes does not fit in memory", kcall_where(call), (long long)count, size);
    return (size_t)bytes;
}

float *kcall_result_f32(const struct kcall *call, const struct tensor *t)
{
    return t->dtype == DT_F32 ? t->data : kenv_room(call->env, ROOM_C, kcall_bytes(call, tensor_elements(t), sizeof(float)));
}

void kcall_result_store(const float *from, struct tensor *t)
{
    if (t->dtype != DT_F32)
        convert_from_f32(t->dtype, from, tensor_elements(t), t->data);
}

static _Noreturn void out_of_range(const struct kcall *call, int operand, int64_t index, int64_t n, int axis)
{
    const struct attr *dimension = checked_dimension(call->node);
    fail("%s: %s has index %lld, which is out of range for dimension %lld of size %lld", graph_file(call->graph),
         node_lookup(call->graph, call->node, operand), (long long)index, (long long)(dimension ? dimension->i : axis), (long long)n);
}

int64_t kcall_index(const struct kcall *call, int operand, int64_t i, int64_t n, int axis)
{
    int64_t index = kcall_index_at(call, &call->in[operand], i);
    if (index < -n || index >= n)
        out_of_range(call, operand, index, n, axis);
    return index < 0 ? index + n : index;
}

int64_t kcall_label(const struct kcall *call, int operand, int64_t i, int64_t n, int axis)
{
    int64_t label = kcall_index_at(call, &call->in[operand], i);
    if (label < 0 || label >= n)
        out_of_range(call, operand, label, n, axis);
    return label;
}

int64_t kcall_index_at(const struct kcall *call, const struct tensor *t, int64_t i)
{
    if (t->dtype == DT_I64)
        return ((const int64_t *)t->data)[i];
    if (t->dtype == DT_I32)
        return ((const int32_t *)t->data)[i];
    fail("%s: an index or size tensor must be i64 or i32, not %s", kcall_where(call), dtype_name(t->dtype));
}

int kcall_dims(const struct kcall *call, const char *attr, int64_t *out, int max)
{
    const struct dim **dims;
    int n = attr_dims(call->node, attr, &dims);
    if (n > max)
        fail("%s: attribute %s has %d entries, at most %d are expected", kcall_where(call), attr, n, max);
    for (int i = 0; i < n; i++)
        if (!dim_is_int(dims[i], &out[i]) && !(call->bind && dim_eval(dims[i], call->bind, &out[i])))
            bug("%s: attribute %s uses a symbol without a value", kcall_where(call), attr);
    return n;
}

int kcall_sizes(const struct kcall *call, int operand, const char *attr, int64_t *out, int max)
{
    const struct tensor *t = kcall_in(call, operand);
    if (!t)
        return attr_is_set(call->node, attr) ? kcall_dims(call, attr, out, max) : -1;
    int64_t n = tensor_elements(t);
    if (n > max)
        fail("%s: operand %d has %lld entries, at most %d are expected", kcall_where(call), operand, (long long)n, max);
    for (int i = 0; i < n; i++)
        out[i] = kcall_index_at(call, t, i);
    return (int)n;
}

int kcall_axis(const struct kcall *call, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        fail("%s: axis %lld is out of range for rank %d", kcall_where(call), (long long)axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

void kcall_spatial(const struct kcall *call, const char *attr, int n, int64_t otherwise, int64_t *out)
{
    const int64_t *given = NULL;
    int count = attr_is_set(call->node, attr) ? attr_ints(call->graph, call->node, attr, &given) : 0;
    if (count && count != n)
        fail("%s: %s has %d entries where %d are expected", kcall_where(call), attr, count, n);
    for (int d = 0; d < n; d++) {
        out[d] = count ? given[d] : otherwise;
        if (out[d] < otherwise || out[d] > INT32_MAX)
            fail("%s: %s must not be %lld", kcall_where(call), attr, (long long)out[d]);
    }
}
