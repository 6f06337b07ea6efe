/* attention_gradient: the gradients of attention's operands, given that of its result. Probabilities are recomputed in blocks of rows, so
 * no matrix of scores is stored (as in FlashAttention, Dao et al. 2022, which also has blocks of keys):
 *
 *   p = softmax(scale q k' + mask)    dv = p' dy    ds = p (dp - sum(dp p)), dp = dy v'    dq = k_scale ds k    dk' = q_scale q' ds */
#include "kern/attention/attention.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

struct attention_gradient {
    struct kcall *call;
    struct attention_core a;
    struct head_rows dy;
    float *dq, *dk, *dv; /* by head: [rows, size], [size, keys], [keys, value_size]; dk, dv NULL: not needed */
    float q_scale, k_scale;
    char *scratch;
    size_t scratch_each;
};

/* Computes ds from dp, in place. */
static SIMD void through_softmax(const float *restrict p, float *restrict dp, int64_t n)
{
    float sum = 0;
    _Pragma("omp simd reduction(+:sum)") for (int64_t j = 0; j < n; j++) sum += dp[j] * p[j];
    LOOP for (int64_t j = 0; j < n; j++) dp[j] = p[j] * (dp[j] - sum);
}

static void block_gradient(const struct attention_gradient *t, int64_t b, int64_t h, int64_t first, int64_t rows, float *p)
{
    const struct attention_core *a = &t->a;
    struct kenv *env = t->call->env;
    int64_t kv = h / (a->q_heads / a->kv_heads), head = b * a->q_heads + h,
            keys = attention_probabilities(t->call, a, b, h, first, rows, p);
    const float *q = head_rows_at(&a->q, b, h, first), *k = head_rows_at(&a->k, b, kv, 0), *v = head_rows_at(&a->v, b, kv, 0);
    const float *dy = head_rows_at(&t->dy, b, h, first);
    float *dp = p + ATTENTION_BLOCK * a->keys, *dq = t->dq + (head * a->rows + first) * a->size;
    if (keys == 0) {
        memset(dq, 0, (size_t)(rows * a->size) * sizeof *dq);
        return;
    }
    if (t->dv)
        dnnl_product(env, true, false, keys, a->value_size, rows, 1, p, keys, dy, t->dy.row, 1, t->dv + head * a->keys * a->value_size,
                     a->value_size);
    dnnl_product(env, false, true, rows, keys, a->value_size, 1, dy, t->dy.row, v, a->v.row, 0, dp, keys);
    for (int64_t i = 0; i < rows; i++)
        through_softmax(p + i * keys, dp + i * keys, keys);
    dnnl_product(env, false, false, rows, a->size, keys, t->k_scale, dp, keys, k, a->k.row, 0, dq, a->size);
    if (t->dk)
        dnnl_product(env, true, false, a->size, keys, rows, t->q_scale, q, a->q.row, dp, keys, 1, t->dk + head * a->size * a->keys,
                     a->keys);
}

/* Heads lo to hi of all batches. */
static void gradient_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct attention_gradient *t = data;
    const struct attention_core *a = &t->a;
    float *room = (float *)(void *)(t->scratch + (size_t)thread * t->scratch_each);
    for (int64_t i = lo; i < hi; i++) {
        if (t->dk)
            memset(t->dk + i * a->size * a->keys, 0, (size_t)(a->size * a->keys) * sizeof *t->dk);
        if (t->dv)
            memset(t->dv + i * a->keys * a->value_size, 0, (size_t)(a->keys * a->value_size) * sizeof *t->dv);
        for (int64_t first = 0; first < a->rows; first += ATTENTION_BLOCK) {
            int64_t rows = a->rows - first < ATTENTION_BLOCK ? a->rows - first : ATTENTION_BLOCK;
            block_gradient(t, i / a->q_heads, i % a->q_heads, first, rows, room);
        }
    }
}

static struct attention_core core_of(struct kcall *call, const int64_t *first)
{
    const struct tensor *dy = &call->in[3], *mask = kcall_in(call, 4), *seen = kcall_in(call, 5);
    struct attention_core a = fused_core(call, first);
    bool agree = dy->dim[3] == a.value_size && dy->dim[first[3] ? 1 : 2] == a.rows && dy->dim[first[3] ? 2 : 1] == a.q_heads;
    if (!agree || a.kv_heads < 1 || a.q_heads % a.kv_heads)
        fail("%s: queries, keys and values do not agree", kcall_where(call));
    if (mask || seen)
        fused_mask(call, &a, mask ? mask : seen);
    a.bias = mask ? mask->data : NULL;
    a.allowed = seen ? seen->data : NULL;
    return a;
}

/* In f32. */
void kern_AttentionGradient(struct kcall *call)
{
    const int64_t *first;
    require(attr_ints(call->graph, call->node, "rows_first", &first) == 4 && call->in[0].dtype == DT_F32);
    if (call->in[0].dim[first[0] ? 2 : 1] == 0) /* a rank without a head */
        return;
    struct tensor *dk = kcall_out(call, 1), *dv = kcall_out(call, 2);
    struct attention_gradient t = {.call = call,
                                   .a = core_of(call, first),
                                   .dy = fused_heads_f32(call->env, &call->in[3], first[3], ROOM_ROUTES),
                                   .dq = call->out[0].data,
                                   .dk = dk ? dk->data : NULL,
                                   .dv = dv ? dv->data : NULL,
                                   .q_scale = (float)attr_float(call->node, "q_scale"),
                                   .k_scale = (float)attr_float(call->node, "k_scale")};
    const struct attention_core *a = &t.a;
    t.scratch_each = (kcall_bytes(call, 2 * ATTENTION_BLOCK * a->keys + 16, sizeof(float)) + 63) & ~(size_t)63;
    t.scratch = kenv_scratch(call->env, kcall_bytes(call, kenv_threads(call->env), t.scratch_each));
    kenv_parallel_shares(call->env, a->batch * a->q_heads, 4 * a->rows * a->keys * (a->size + 8), gradient_range, &t);
}
