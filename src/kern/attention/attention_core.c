/* attention_core: scaled dot-product attention for every form of the attention ops, on float32 heads anywhere in memory.
 *
 * Prompts run in many_rows.c. For few rows, the query heads that share one head of keys are computed together: the keys are read once for
 * all of them, a few at a time, and widened in registers (few_rows.c). If scores are an output, and for --deterministic, the scores of a
 * block of rows of one head with all keys are computed, masked, normalised in place and multiplied with the values; keys and values of 8 or
 * 16 bits are then widened a head at a time. A row whose bias is -inf for every key gives 0, as in ONNX Attention. */
#include "kern/attention/attention.h"
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/gemm/gemm.h"

#include <float.h>
#include <string.h>

#define BLOCK ATTENTION_BLOCK
#define FEW 4 /* rows for which packing does not pay off */
#define KEYS_TOGETHER 32
struct task {
    struct attention_core *a;
    struct kcall *call;
    int64_t blocks, together; /* together: heads of a group that are computed together */
    char *scratch;
    size_t scratch_each;
};
/* One block: rows [first, first + rows) of head h in batch b, with keys [0, keys). */
struct score_block {
    int64_t b, h, kv, first, rows, keys;
    const float *key, *value; /* of f32, rows key_row and value_row apart */
    int64_t key_row, value_row;
    float *scores, *out, *panel; /* panel: scratch of chunk_product_here */
};

SIMD void attention_cap(float *x, int64_t n, float cap)
{
    LOOP for (int64_t i = 0; i < n; i++) x[i] = mathf_tanh(x[i] / cap) * cap;
}

static SIMD void normalise(float *x, int64_t n, const float *sink)
{
    float max = sink ? *sink : -INFINITY, sum = 0;
    _Pragma("omp simd reduction(max:max)") for (int64_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++)
    {
        x[i] = mathf_exp(x[i] - max);
        sum += x[i];
    }
    if (sink)
        sum += mathf_exp(*sink - max);
    float scale = 1.0f / sum;
    LOOP for (int64_t i = 0; i < n; i++) x[i] *= scale;
}

/* In a fixed order of keys; trailing keys of probability 0 do not change the sum. */
static SIMD void normalise_chunks(float *x, int64_t n, const float *sink)
{
    float max = sink ? *sink : -INFINITY;
    _Pragma("omp simd reduction(max:max)") for (int64_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    LOOP for (int64_t i = 0; i < n; i++) x[i] = mathf_exp(x[i] - max);
    float scale = 1.0f / (chunk_sum_f32(x, n) + (sink ? mathf_exp(*sink - max) : 0));
    LOOP for (int64_t i = 0; i < n; i++) x[i] *= scale;
}

static SIMD void nan_to_zero(float *x, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) x[i] = x[i] != x[i] ? 0 : x[i];
}

static void save_scores(const struct attention_core *a, const struct score_block *k, int64_t i, const float *s, int mode)
{
    if (!a->scores || a->mode != mode)
        return;
    int64_t row = (k->b * a->q_heads + k->h) * a->rows + i;
    convert_from_f32(a->scores->dtype, s, a->keys, element_at(a->scores->data, dtype_size(a->scores->dtype), row * a->keys));
}

/* Mode 4: with bias, and 0 for keys that a row does not see. */
static void save_seen(const struct attention_core *a, const struct score_block *k, int64_t i, const float *s)
{
    int64_t lo, hi, row = (k->b * a->q_heads + k->h) * a->rows + i;
    if (!a->scores || a->mode != 4)
        return;
    enum dtype t = a->scores->dtype;
    char *to = element_at(a->scores->data, dtype_size(t), row * a->keys);
    attention_visible(a, k->b, i, &lo, &hi);
    memset(to, 0, (size_t)a->keys * dtype_size(t));
    convert_from_f32(t, s + lo, hi - lo, element_at(to, dtype_size(t), lo));
}

/* ---- one block ------------------------------------------------------------------------------------------------------------------ */
/* c[m, n] = alpha * a[m, k] b, b of [n, k] if transposed; size: k without skipped keys. */
static void score_product(struct kcall *call, const struct score_block *block, bool transposed, int64_t m, int64_t n, int64_t k,
                          int64_t size, float alpha, const float *a, int64_t a_row, const float *b, int64_t b_row, float *c, int64_t c_row)
{
    struct chunks chunks = {.width = chunk_width(size), .unit = 1, .whole = true, .n = k > 0, .all = {0, 0, k}};
    struct right right = right_strided(b, k, transposed ? 1 : b_row, transposed ? b_row : 1);
    if (!kenv_deterministic(call->env)) {
        dnnl_product(call->env, false, transposed, m, n, k, alpha, a, a_row, b, b_row, 0.0f, c, c_row);
        return;
    }
    chunk_product_here(&(struct chunk_product){&chunks, m, n, a, a_row, &right, c, c_row, 0}, block->panel);
    for (int64_t i = 0; (alpha < 1 || alpha > 1) && i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * c_row + j] *= alpha;
}

static void block_scores(const struct attention_core *a, struct kcall *call, const struct score_block *k)
{
    const float *q = head_rows_at(&a->q, k->b, k->h, k->first);
    if (a->size == 0)
        memset(k->scores, 0, (size_t)(k->rows * k->keys) * sizeof *k->scores);
    else if (k->keys > 0)
        score_product(call, k, true, k->rows, k->keys, a->size, a->size, a->scale, q, a->q.row, k->key, k->key_row, k->scores, k->keys);
}

static void block_probabilities(const struct attention_core *a, const struct score_block *k)
{
    for (int64_t r = 0; r < k->rows; r++) {
        float *s = k->scores + r * k->keys;
        int64_t i = k->first + r;
        save_scores(a, k, i, s, 0);
        if (a->softcap > 0)
            attention_cap(s, k->keys, a->softcap);
        save_scores(a, k, i, s, 1);
        bool any = attention_mask(a, k->b, k->h, i, 0, k->keys, s);
        save_scores(a, k, i, s, 2);
        save_seen(a, k, i, s);
        if (any || a->nan_rows)
            (a->chunks ? normalise_chunks : normalise)(s, k->keys, a->sink ? a->sink + k->h : NULL);
        for (int64_t j = 0; !any && !a->nan_rows && j < k->keys; j++)
            s[j] = 0;
        if (a->nan_to_zero)
            nan_to_zero(s, k->keys);
        save_scores(a, k, i, s, 3);
    }
}

/* Where a block's results are computed: in y, if that is f32. */
static float *results_of(const struct attention_core *a, const struct score_block *k, int64_t *step)
{
    int64_t to = k->b * a->y_batch + k->h * a->y_head + k->first * a->y_row;
    *step = a->y->dtype == DT_F32 ? a->y_row : a->value_size;
    return a->y->dtype == DT_F32 ? (float *)a->y->data + to : k->out;
}

static void store_results(const struct attention_core *a, const struct score_block *k)
{
    enum dtype t = a->y->dtype;
    int64_t to = k->b * a->y_batch + k->h * a->y_head + k->first * a->y_row;
    for (int64_t i = 0; t != DT_F32 && i < k->rows; i++)
        convert_from_f32(t, k->out + i * a->value_size, a->value_size, element_at(a->y->data, dtype_size(t), to + i * a->y_row));
}

static void block_values(const struct attention_core *a, struct kcall *call, const struct score_block *k)
{
    int64_t step;
    float *out = results_of(a, k, &step);
    score_product(call, k, false, k->rows, a->value_size, k->keys, a->keys, 1.0f, k->scores, k->keys, k->value, k->value_row, out, step);
    store_results(a, k);
}

/* The number of keys that any row of the block sees; all keys if scores are an output. */
static int64_t block_keys(const struct attention_core *a, const struct score_block *k)
{
    int64_t lo, hi;
    if (a->scores)
        return a->keys;
    attention_seen(a, k->b, k->h, k->first, k->rows, &lo, &hi);
    return hi;
}

int64_t attention_probabilities(struct kcall *call, const struct attention_core *a, int64_t batch, int64_t head, int64_t first,
                                int64_t rows, float *to)
{
    struct score_block k = {.b = batch, .h = head, .kv = head / (a->q_heads / a->kv_heads), .first = first, .rows = rows, .scores = to};
    require(a->k.dtype == DT_F32 && a->v.dtype == DT_F32);
    k.key = head_rows_at(&a->k, batch, k.kv, 0);
    k.key_row = a->k.row;
    k.keys = block_keys(a, &k);
    block_scores(a, call, &k);
    block_probabilities(a, &k);
    return k.keys;
}

/* ---- all scores: a block of one head ----------------------------------------------------------------------------------------------- */

static void attend_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct task *t = data;
    const struct attention_core *a = t->a;
    int64_t head = -1;
    struct score_block k = {.scores = (float *)(void *)(t->scratch + (size_t)thread * t->scratch_each)};
    k.out = k.scores + BLOCK * a->keys;
    k.panel = k.out + BLOCK * a->value_size;
    float *wide = k.panel + (a->chunks ? 2 * TILE * (a->keys > a->size ? a->keys : a->size) : 0);
    for (int64_t i = lo; i < hi; i++) {
        k.first = i % t->blocks * BLOCK;
        k.h = i / t->blocks % a->q_heads;
        k.b = i / t->blocks / a->q_heads;
        k.rows = a->rows - k.first < BLOCK ? a->rows - k.first : BLOCK;
        k.kv = k.h / (a->q_heads / a->kv_heads);
        k.keys = block_keys(a, &k);
        if (head != k.b * a->kv_heads + k.kv) {
            head = k.b * a->kv_heads + k.kv;
            k.key = attention_widened(&a->k, k.b, k.kv, 0, a->keys, a->size, wide, &k.key_row);
            k.value = attention_widened(&a->v, k.b, k.kv, 0, a->keys, a->value_size, wide + a->keys * a->size, &k.value_row);
        }
        block_scores(a, t->call, &k);
        block_probabilities(a, &k);
        block_values(a, t->call, &k);
    }
}

/* ---- few rows: query heads that share one head of keys ------------------------------------------------------------------------------- */

/* Head i of a group. */
static struct score_block head_block(const struct attention_core *a, const struct score_block *group, int64_t i)
{
    struct score_block k = *group;
    k.h += i;
    k.scores += i * k.rows * k.keys;
    k.out += i * k.rows * a->value_size;
    return k;
}

/* Up to KEYS_TOGETHER of a group's keys or values, from key j on. */
static struct few_rows rows_from(const struct head_rows *h, const struct score_block *group, int64_t j, int64_t size)
{
    int64_t left = group->keys - j;
    return (struct few_rows){.at = head_rows_at(h, group->b, group->kv, j),
                             .dtype = h->dtype,
                             .step = h->row * (int64_t)dtype_size(h->dtype),
                             .count = left < KEYS_TOGETHER ? left : KEYS_TOGETHER,
                             .n = size};
}

/* Of `left` queries, how many to process together. */
static int queries_together(int64_t left)
{
    return left >= FEW_QUERIES ? FEW_QUERIES : left >= 2 ? 2 : 1;
}

static void group_scores(const struct attention_core *a, const struct score_block *group, int64_t heads)
{
    const struct few_kernel *kernel = few_best();
    const float *query[FEW_QUERIES];
    float *to[FEW_QUERIES];
    for (int64_t j = 0; j < group->keys; j += KEYS_TOGETHER) {
        struct few_rows keys = rows_from(&a->k, group, j, a->size);
        for (int64_t r = 0, some; r < heads * group->rows; r += some) {
            some = queries_together(heads * group->rows - r);
            for (int64_t i = 0; i < some; i++) {
                query[i] = head_rows_at(&a->q, group->b, group->h + (r + i) / group->rows, (r + i) % group->rows);
                to[i] = group->scores + (r + i) * group->keys + j;
            }
            kernel->scores(&keys, (int)some, query, a->scale, to);
        }
    }
}

static void clear_results(const struct attention_core *a, const struct score_block *k)
{
    int64_t step;
    float *out = results_of(a, k, &step);
    for (int64_t i = 0; i < k->rows; i++)
        memset(out + i * step, 0, (size_t)a->value_size * sizeof *out);
}

static void group_values(const struct attention_core *a, const struct score_block *group, int64_t heads)
{
    const struct few_kernel *kernel = few_best();
    const float *weight[FEW_QUERIES];
    float *sum[FEW_QUERIES];
    for (int64_t j = 0; j < group->keys; j += KEYS_TOGETHER) {
        struct few_rows values = rows_from(&a->v, group, j, a->value_size);
        for (int64_t r = 0, some; r < heads * group->rows; r += some) {
            some = queries_together(heads * group->rows - r);
            for (int64_t i = 0; i < some; i++) {
                struct score_block k = head_block(a, group, (r + i) / group->rows);
                int64_t step;
                sum[i] = results_of(a, &k, &step);
                sum[i] += (r + i) % group->rows * step;
                weight[i] = group->scores + (r + i) * group->keys + j;
            }
            kernel->values(&values, (int)some, weight, sum);
        }
    }
}

static void group_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct task *t = data;
    const struct attention_core *a = t->a;
    int64_t heads = t->together;
    for (int64_t i = lo; i < hi; i++) {
        struct score_block k = {.h = i * heads % a->q_heads, .b = i * heads / a->q_heads, .rows = a->rows};
        k.kv = k.h / (a->q_heads / a->kv_heads);
        for (int64_t h = 0; h < heads; h++) {
            struct score_block one = k;
            one.h += h;
            int64_t keys = block_keys(a, &one);
            k.keys = keys > k.keys ? keys : k.keys;
        }
        k.scores = (float *)(void *)(t->scratch + (size_t)thread * t->scratch_each);
        k.out = k.scores + heads * k.rows * a->keys;
        group_scores(a, &k, heads);
        for (int64_t h = 0; h < heads; h++) {
            struct score_block one = head_block(a, &k, h);
            block_probabilities(a, &one);
            clear_results(a, &one);
        }
        group_values(a, &k, heads);
        for (int64_t h = 0; h < heads; h++) {
            struct score_block one = head_block(a, &k, h);
            store_results(a, &one);
        }
    }
}

/* ---- both -------------------------------------------------------------------------------------------------------------------------- */

static void take_scratch(struct task *t, int64_t floats)
{
    struct kenv *env = t->call->env;
    t->scratch_each = (kcall_bytes(t->call, floats + 16, sizeof(float)) + 63) & ~(size_t)63;
    t->scratch = kenv_scratch(env, kcall_bytes(t->call, kenv_threads(env), t->scratch_each));
}

void attention_core_run(struct kcall *call, struct attention_core *a)
{
    struct task t = {.a = a, .call = call, .blocks = (a->rows + BLOCK - 1) / BLOCK};
    if (a->batch * a->q_heads * a->rows == 0)
        return;
    if (a->kv_heads < 1 || a->q_heads % a->kv_heads)
        fail("%s: %lld query heads do not share %lld key heads evenly", kcall_where(call), (long long)a->q_heads, (long long)a->kv_heads);
    a->chunks = kenv_deterministic(call->env);
    a->narrow |= X86 && (kenv_narrows_computed(call->env) || (a->k.dtype == DT_BF16 && a->v.dtype == DT_BF16 && dnnl_narrows()));
    int64_t rows = a->rows < BLOCK ? a->rows : BLOCK;
    if (a->rows <= FEW && !a->chunks) {
        t.together = attention_together(a, kenv_threads(call->env));
        take_scratch(&t, t.together * a->rows * (a->keys + a->value_size));
        kenv_parallel_shares(call->env, a->batch * a->q_heads / t.together, t.together * a->rows * a->keys * (a->size + 8), group_range,
                             &t);
        return;
    }
    if (!a->chunks && !a->scores) {
        attention_many_rows(call, a);
        return;
    }
    int64_t panel = a->chunks ? 2 * TILE * (a->keys > a->size ? a->keys : a->size) : 0;
    int64_t wide = (a->k.dtype == DT_F32 && a->v.dtype == DT_F32) ? 0 : a->keys * (a->size + a->value_size);
    take_scratch(&t, BLOCK * (a->keys + a->value_size) + panel + wide);
    kenv_parallel_shares(call->env, a->batch * a->q_heads * t.blocks, rows * a->keys * (a->size + 8), attend_range, &t);
}
