/* fused_attention: attention fused from standard ops at load. Differs from Attention: a fully masked row is NaN, as in Softmax, or 0 if the
 * original ops guard against NaN. */
#include "kern/attention/attention.h"
#include "kern/core/core.h"

struct head_rows fused_heads(const struct tensor *t, bool rows_first)
{
    int64_t step[MAX_RANK];
    tensor_strides(t, step);
    return (struct head_rows){t->data, t->dtype, step[0], step[rows_first ? 2 : 1], step[rows_first ? 1 : 2]};
}

struct head_rows fused_heads_f32(struct kenv *env, const struct tensor *t, bool rows_first, enum room room)
{
    struct head_rows h = fused_heads(t, rows_first);
    h.at = tensor_f32(env, t, room);
    h.dtype = DT_F32;
    return h;
}

void fused_mask(const struct kcall *call, struct attention_core *a, const struct tensor *mask)
{
    int64_t want[4] = {a->batch, a->q_heads, a->rows, a->keys}, own[MAX_RANK];
    tensor_strides(mask, own);
    a->mask_keys = a->keys;
    for (int d = 0; d < 4; d++) {
        int e = d - (4 - mask->rank);
        bool repeated = e < 0 || mask->dim[e] == 1;
        if (!repeated && mask->dim[e] != want[d])
            fail("%s: the mask has size %lld where %lld is expected", kcall_where(call), (long long)mask->dim[e], (long long)want[d]);
        a->mask_step[d] = repeated ? 0 : own[e];
    }
}

struct attention_core fused_core(struct kcall *call, const int64_t *first)
{
    const struct tensor *q = &call->in[0], *k = &call->in[1], *v = &call->in[2];
    struct attention_core a = {.batch = q->dim[0],
                               .q_heads = q->dim[first[0] ? 2 : 1],
                               .kv_heads = k->dim[first[1] ? 2 : 1],
                               .rows = q->dim[first[0] ? 1 : 2],
                               .keys = k->dim[first[1] ? 1 : 2],
                               .size = q->dim[3],
                               .value_size = head_numbers(v),
                               .scale = (float)attr_float(call->node, "scale"),
                               .window = -1,
                               .nan_rows = true,
                               .nan_to_zero = attr_int(call->node, "guarded") != 0};
    if (v->dim[first[2] ? 2 : 1] != a.kv_heads || v->dim[first[2] ? 1 : 2] != a.keys || head_numbers(k) != a.size)
        fail("%s: keys and values do not agree", kcall_where(call));
    a.q = fused_heads_f32(call->env, q, first[0], ROOM_A);
    a.k = fused_heads(k, first[1]);
    a.v = fused_heads(v, first[2]);
    return a;
}

void kern_FusedAttention(struct kcall *call)
{
    const struct tensor *mask = kcall_in(call, 3);
    struct tensor *y = &call->out[0];
    const int64_t *first;
    require(attr_ints(call->graph, call->node, "rows_first", &first) == 4);
    int64_t size = y->dim[3], middle = y->dim[2] * size;
    struct attention_core a = fused_core(call, first);
    a.y = y;
    a.y_batch = y->dim[1] * middle;
    a.y_head = first[3] ? size : middle;
    a.y_row = first[3] ? middle : size;
    if (mask && tensor_elements(mask) > 0) {
        fused_mask(call, &a, mask);
        a.bias = tensor_f32(call->env, mask, ROOM_THREADS);
    }
    attention_core_run(call, &a);
}
