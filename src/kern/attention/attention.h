/* kern/attention: attention with grouped heads, masks and caches, and rotary embeddings. */
#ifndef TPC_KERN_ATTENTION_H
#define TPC_KERN_ATTENTION_H

#include "kern/core/core.h"

/* ---- attention_core.c: softmax(scale q k^T + bias) v for heads anywhere in memory ------------------------------------------------ */
struct head_rows {
    const void *at;
    enum dtype dtype; /* f32, f16, bf16, or i8: rows of codes and scales (coded_rows.c) */
    int64_t batch, head, row;
}; /* steps in elements, for i8 in bytes; columns are contiguous */
static inline const void *head_rows_at(const struct head_rows *h, int64_t batch, int64_t head, int64_t row)
{
    return element_at_const(h->at, dtype_size(h->dtype), batch * h->batch + head * h->head + row * h->row);
}
/* Elements per row of a tensor with 4 dimensions. */
static inline int64_t head_numbers(const struct tensor *t)
{
    return t->dtype == DT_I8 ? coded_rows_numbers(t->dim[3]) : t->dim[3];
}
struct attention_core {
    int64_t batch, q_heads, kv_heads, rows, keys, size, value_size;
    struct head_rows q, k, v; /* q: f32; k and v are widened as they are read */
    struct tensor *y;         /* written at y_step: batch, head, row */
    int64_t y_batch, y_head, y_row;
    float scale, softcap;
    bool causal;                     /* row i sees key j if j <= i + offset[batch] ... */
    int64_t window;                  /* ... and j > i + offset - window; -1: no window */
    const int64_t *offset, *limit;   /* per batch; limit: number of keys */
    const uint8_t *allowed;          /* boolean mask, or NULL */
    const float *bias;               /* float mask, or NULL */
    int64_t mask_step[4], mask_keys; /* batch, head, row, key; keys beyond mask_keys are masked */
    bool nan_rows, nan_to_zero;      /* a fully masked row is NaN, not 0; NaN probabilities become 0 */
    const float *sink;               /* per head: a score that only adds to the denominator; NULL: none */
    struct tensor *scores;           /* [batch, q_heads, rows, keys] or NULL; content: see mode */
    bool chunks;                     /* set by attention_core.c: deterministic */
    bool narrow;                     /* also set there if not given: products of many rows use bf16 */
    int mode;                        /* 0 scaled product, 1 after softcap, 2 with bias, 3 probabilities, 4 as 2, with 0 for unseen keys */
};
void attention_core_run(struct kcall *, struct attention_core *);
/* Probabilities of at most ATTENTION_BLOCK rows from `first` on, [rows, keys], in space for all keys. Returns the number of keys that any
 * of the rows sees. Not for --deterministic. */
enum { ATTENTION_BLOCK = 64 };
/* k and v are f32. */
int64_t attention_probabilities(struct kcall *, const struct attention_core *, int64_t batch, int64_t head, int64_t first, int64_t rows,
                                float *);

/* s = tanh(s / cap) * cap. */
void attention_cap(float *s, int64_t n, float cap);
/* ---- head_rows.c ---- */
/* The most heads sharing one head of keys that are computed together, such that every thread gets some. */
int64_t attention_together(const struct attention_core *, int threads);
/* Rows [from, from + n) of a head as f32 [n, size]: in place, or widened into scratch; *step: row stride. */
const float *attention_widened(const struct head_rows *, int64_t batch, int64_t head, int64_t from, int64_t n, int64_t size, float *room,
                               int64_t *step);

/* ---- attention_mask.c: keys that rows attend to ------------------------------------------------------------------------------ */
/* Keys [*lo, *hi) that row i may see by causality, window and length. */
void attention_visible(const struct attention_core *, int64_t batch, int64_t i, int64_t *lo, int64_t *hi);
/* A range [*lo, *hi) that contains all keys that any of these rows of a head sees, also by the mask. A float mask excludes a key only from
 * rows that keep another one: if all addends of a row are -inf, it excludes none. */
void attention_seen(const struct attention_core *, int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t *lo, int64_t *hi);
/* Masks the scores of row i with keys [from, from + n), which may exceed the keys that exist; true if the bias of some key is above
 * -inf. */
bool attention_mask(const struct attention_core *, int64_t batch, int64_t head, int64_t i, int64_t from, int64_t n, float *s);

/* ---- many_rows.c: prompts ------------------------------------------------------------------------------------------------------------ */
/* Not for --deterministic, nor if scores are an output. Softmax runs over blocks of keys, so a row's scores are never complete. */
void attention_many_rows(struct kcall *, const struct attention_core *);

/* ---- few_rows.c: 1, 2 or 4 queries with `count` rows of n numbers, `step` bytes apart, for each instruction set -------------- */
struct few_rows {
    const void *at;
    enum dtype dtype; /* f32, f16, bf16, or i8: codes and scales (coded_rows.c) */
    int64_t step, count, n;
};
#define FEW_QUERIES 4
struct few_kernel {
    enum isa isa;
    /* to[query][row] = scale * the dot product of the two. */
    void (*scores)(const struct few_rows *, int queries, const float *const *query, float scale, float *const *to);
    /* sum[query] += every row times weight[query][row]. */
    void (*values)(const struct few_rows *, int queries, const float *const *weight, float *const *sum);
};
extern const struct few_kernel few_kernels[]; /* fastest first, plain C last */
const struct few_kernel *few_best(void);

/* ---- fused_attention.c: operands of attention fused at load -------------------------------------------------------------- */
/* Everything except result and mask, from operands 0 to 2; first: by operand, whether rows precede heads. */
struct attention_core fused_core(struct kcall *, const int64_t *first);
struct head_rows fused_heads(const struct tensor *, bool rows_first);
struct head_rows fused_heads_f32(struct kenv *, const struct tensor *, bool rows_first, enum room);
/* Strides of a mask, right-aligned with [batch, heads, rows, keys]. */
void fused_mask(const struct kcall *, struct attention_core *, const struct tensor *mask);

/* ---- rotary.c ------------------------------------------------------------------------------------------------------------ */
/* Rotates the first 2 * half elements of a head: halves, or interleaved pairs. */
void rotary_head(float *x, const float *cosine, const float *sine, int64_t half, bool interleaved);

#endif
