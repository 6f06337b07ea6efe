/* attention_core: scaled dot-product attention for every form of the attention ops, on float32 heads anywhere in memory.
 *
 * Work is shared by (batch, head, block of query rows). The scores of a block are computed by sgemm, masked, normalised in place and
 * multiplied with the values. Few rows are shared by groups of heads that read one head of keys: it is read once for all of them, a few
 * keys at a time, and widened in registers (few_rows.c). For sgemm, keys and values of 8 or 16 bits are widened a head at a time. Keys
 * beyond the causal edge of the block are skipped. So are keys at the end that a float mask excludes for every row while each row keeps
 * another key: their probability is 0. A row whose bias is -inf for every key gives 0, as ONNX defines Attention. */
#include "kern/attention/attention.h"
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/gemm/gemm.h"

#include <float.h>
#include <string.h>

#define MASKED -1e37f /* a bias not above it leaves a key nothing beside one above it */
#define BLOCK ATTENTION_BLOCK
#define FEW 4 /* rows for which sgemm does not pay */
#define KEYS_TOGETHER 32
struct task {
    struct attention_core *a;
    struct kcall *call;
    int64_t blocks, together; /* together: heads of a group for few rows */
    char *scratch;
    size_t scratch_each;
};
/* One block: rows [first, first + rows) of head h in batch b, against keys [0, keys). */
struct score_block {
    int64_t b, h, kv, first, rows, keys;
    const float *key, *value; /* of f32, rows key_row and value_row apart */
    int64_t key_row, value_row;
    float *scores, *out, *panel; /* panel: room for chunk_product_here */
};

static SIMD void cap_scores(float *x, int64_t n, float cap)
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

/* In one order of keys; those that give nothing at the end change nothing. */
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

/* ---- masks ----------------------------------------------------------------------------------------------------------------- */
/* Keys [*lo, *hi) that row i of batch b may see by causality, window and length. */
static void visible(const struct attention_core *a, int64_t b, int64_t i, int64_t *lo, int64_t *hi)
{
    *lo = 0;
    *hi = a->limit ? a->limit[b] : a->keys;
    int64_t edge = i + (a->offset ? a->offset[b] : 0) + 1;
    if (a->causal && edge < *hi)
        *hi = edge;
    if (a->window >= 0 && edge - a->window > 0)
        *lo = edge - a->window;
    if (*hi > a->keys)
        *hi = a->keys;
    if (*hi < 0)
        *hi = 0;
    if (*lo > *hi)
        *lo = *hi;
}

/* s += bias; true when some bias is above -inf. */
static SIMD bool add_score_bias(float *s, const float *bias, int64_t step, int64_t n)
{
    int any = 0;
    if (step == 1) {
        _Pragma("omp simd reduction(|:any)") for (int64_t j = 0; j < n; j++)
        {
            s[j] += bias[j];
            any |= !(bias[j] < -FLT_MAX);
        }
        return any;
    }
    for (int64_t j = 0; j < n; j++) {
        s[j] += bias[j * step];
        any |= !(bias[j * step] < -FLT_MAX);
    }
    return any;
}

/* Keys up to the last one that the bias does not mask, or a few more. */
static SIMD int64_t unmasked_end(const float *bias, int64_t n)
{
    enum { STRIDE = 32 };
    for (int64_t end = n; end > 0; end -= STRIDE) {
        int64_t from = end > STRIDE ? end - STRIDE : 0;
        int any = 0;
        _Pragma("omp simd reduction(|:any)") for (int64_t j = from; j < end; j++) any |= !(bias[j] <= MASKED);
        if (any)
            return end;
    }
    return 0;
}

/* Adds the masks to a row of scores; true when some key's bias is above -inf. */
static bool mask_row(const struct attention_core *a, const struct score_block *k, int64_t i, float *s)
{
    int64_t lo, hi, mask = k->b * a->mask_step[0] + k->h * a->mask_step[1] + i * a->mask_step[2], step = a->mask_step[3];
    bool masked = a->allowed || a->bias, any = false;
    visible(a, k->b, i, &lo, &hi);
    if (masked && hi > a->mask_keys)
        hi = a->mask_keys > lo ? a->mask_keys : lo;
    if (hi > k->keys)
        hi = k->keys;
    for (int64_t j = 0; j < lo; j++)
        s[j] = -INFINITY;
    for (int64_t j = hi; j < k->keys; j++)
        s[j] = -INFINITY;
    for (int64_t j = lo; a->allowed && j < hi; j++) {
        s[j] = a->allowed[mask + j * step] ? s[j] : -INFINITY;
        any = any || a->allowed[mask + j * step];
    }
    if (a->bias && add_score_bias(s + lo, a->bias + mask + lo * step, step, hi - lo))
        any = true;
    return masked ? any : hi > lo;
}

static void save_scores(const struct attention_core *a, const struct score_block *k, int64_t i, const float *s, int mode)
{
    if (!a->scores || a->mode != mode)
        return;
    int64_t row = (k->b * a->q_heads + k->h) * a->rows + i;
    convert_from_f32(a->scores->dtype, s, a->keys, element_at(a->scores->data, dtype_size(a->scores->dtype), row * a->keys));
}

/* Mode 4: with bias, and 0 for the keys that a row does not see. */
static void save_seen(const struct attention_core *a, const struct score_block *k, int64_t i, const float *s)
{
    int64_t lo, hi, row = (k->b * a->q_heads + k->h) * a->rows + i;
    if (!a->scores || a->mode != 4)
        return;
    enum dtype t = a->scores->dtype;
    char *to = element_at(a->scores->data, dtype_size(t), row * a->keys);
    visible(a, k->b, i, &lo, &hi);
    memset(to, 0, (size_t)a->keys * dtype_size(t));
    convert_from_f32(t, s + lo, hi - lo, element_at(to, dtype_size(t), lo));
}

/* ---- one block ------------------------------------------------------------------------------------------------------------------ */
/* c[m, n] = alpha * a[m, k] b, b of [n, k] when transposed; size: k when nothing is left out. */
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
            cap_scores(s, k->keys, a->softcap);
        save_scores(a, k, i, s, 1);
        bool any = mask_row(a, k, i, s);
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

/* Where the results of a block are made: in y, if that is f32. */
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

/* Keys of the first n up to the last one that a float mask leaves to some row; n where it takes all of them from a row. */
static int64_t biased_keys(const struct attention_core *a, const struct score_block *k, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = k->first; i < k->first + k->rows; i++) {
        int64_t end = unmasked_end(a->bias + k->b * a->mask_step[0] + k->h * a->mask_step[1] + i * a->mask_step[2],
                                   n < a->mask_keys ? n : a->mask_keys);
        if (end == 0)
            return n;
        most = end > most ? end : most;
    }
    return most;
}

/* Keys that some row of the block sees; all of them when scores are an output. */
static int64_t block_keys(const struct attention_core *a, const struct score_block *k)
{
    int64_t lo, hi;
    if (a->scores)
        return a->keys;
    visible(a, k->b, k->first + k->rows - 1, &lo, &hi);
    return a->bias && a->mask_step[3] == 1 && !a->causal && a->window < 0 ? biased_keys(a, k, hi) : hi;
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

/* All n rows of a head, as f32: themselves, or widened into room. */
static const float *widened_rows(const struct head_rows *h, int64_t b, int64_t head, int64_t n, int64_t size, float *room, int64_t *step)
{
    const void *rows = head_rows_at(h, b, head, 0);
    *step = h->dtype == DT_F32 ? h->row : size;
    if (h->dtype == DT_F32)
        return rows;
    if (h->dtype == DT_I8)
        coded_rows_read(rows, h->row, n, size, room);
    else if (h->row == size)
        convert_to_f32(h->dtype, rows, n * size, room);
    else
        for (int64_t i = 0; i < n; i++)
            convert_to_f32(h->dtype, head_rows_at(h, b, head, i), size, room + i * size);
    return room;
}

/* ---- many rows: a block of one head ----------------------------------------------------------------------------------------------- */

static bool is_wide(const struct attention_core *a)
{
    return a->k.dtype == DT_F32 && a->v.dtype == DT_F32;
}

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
            k.key = widened_rows(&a->k, k.b, k.kv, a->keys, a->size, wide, &k.key_row);
            k.value = widened_rows(&a->v, k.b, k.kv, a->keys, a->value_size, wide + a->keys * a->size, &k.value_row);
        }
        block_scores(a, t->call, &k);
        block_probabilities(a, &k);
        block_values(a, t->call, &k);
    }
}

/* ---- few rows: some heads that read one head of keys ------------------------------------------------------------------------------- */

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

/* Of `left` queries, those that meet the keys together. */
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

/* The most heads of a group, such that every thread has some. */
static int64_t heads_together(const struct attention_core *a, int threads)
{
    int64_t group = a->q_heads / a->kv_heads, parts = 1;
    while (parts < group && (group % parts || a->batch * a->kv_heads * parts < threads))
        parts++;
    return group / parts;
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
    int64_t rows = a->rows < BLOCK ? a->rows : BLOCK;
    if (a->rows <= FEW && !a->chunks) {
        t.together = heads_together(a, kenv_threads(call->env));
        take_scratch(&t, t.together * a->rows * (a->keys + a->value_size));
        kenv_parallel_for(call->env, a->batch * a->q_heads / t.together, t.together * a->rows * a->keys * (a->size + 8), group_range, &t);
        return;
    }
    int64_t panel = a->chunks ? 2 * TILE * (a->keys > a->size ? a->keys : a->size) : 0;
    int64_t wide = is_wide(a) ? 0 : a->keys * (a->size + a->value_size);
    take_scratch(&t, BLOCK * (a->keys + a->value_size) + panel + wide);
    kenv_parallel_for(call->env, a->batch * a->q_heads * t.blocks, rows * a->keys * (a->size + 8), attend_range, &t);
}
