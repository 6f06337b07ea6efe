/* kern/attention: attention with grouped heads, masks and caches, and rotary embeddings. */
#ifndef TPC_KERN_ATTENTION_H
#define TPC_KERN_ATTENTION_H

#include "kern/core/core.h"

/* ---- attention_core.c: softmax(scale q k^T + bias) v for heads anywhere in memory ------------------------------------------------ */
struct head_rows {
    const void *at;
    enum dtype dtype; /* f32, f16, bf16, or i8: rows of codes and scales, of coded_rows.c */
    int64_t batch, head, row;
}; /* steps in elements, of i8 in bytes; columns are contiguous */
static inline const void *head_rows_at(const struct head_rows *h, int64_t batch, int64_t head, int64_t row)
{
    return element_at_const(h->at, dtype_size(h->dtype), batch * h->batch + head * h->head + row * h->row);
}
/* Of a row of a tensor with 4 dimensions. */
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
    bool causal;                     /* key j is seen by row i when j <= i + offset[batch] ... */
    int64_t window;                  /* ... and j > i + offset - window; -1: no window */
    const int64_t *offset, *limit;   /* per batch; limit: keys that exist */
    const uint8_t *allowed;          /* boolean mask, or NULL */
    const float *bias;               /* float mask, or NULL */
    int64_t mask_step[4], mask_keys; /* batch, head, row, key; keys beyond mask_keys are masked */
    bool nan_rows, nan_to_zero;      /* a fully masked row is NaN, not 0; NaN probabilities become 0 */
    const float *sink;               /* per head: a score that only adds to the denominator; NULL: none */
    struct tensor *scores;           /* [batch, q_heads, rows, keys] or NULL; what: by mode */
    bool chunks;                     /* set by attend: deterministic */
    bool narrow;                     /* so is this, unless it is given: products of many rows are of bf16 */
    int mode;                        /* 0 scaled product, 1 after softcap, 2 with bias, 3 probabilities, 4 as 2, unseen keys 0 */
};
void attention_core_run(struct kcall *, struct attention_core *);
/* Probabilities of at most ATTENTION_BLOCK rows from `first` on, [rows, keys] in room for all keys: those that some row sees; their number.
 * Not for --deterministic. */
enum { ATTENTION_BLOCK = 64 };
/* k and v of f32. */
int64_t attention_probabilities(struct kcall *, const struct attention_core *, int64_t batch, int64_t head, int64_t first, int64_t rows,
                                float *);

/* The most heads that read one head of keys and are computed together, such that every thread has some. */
int64_t attention_together(const struct attention_core *, int threads);
/* s = tanh(s / cap) * cap. */
void attention_cap(float *s, int64_t n, float cap);
/* Rows [from, from + n) of a head, [n, size] of f32: themselves, or widened into room; *step: from row to row. */
const float *attention_widened(const struct head_rows *, int64_t batch, int64_t head, int64_t from, int64_t n, int64_t size, float *room,
                               int64_t *step);

/* ---- attention_mask.c: keys that rows see ------------------------------------------------------------------------------------------ */
/* Keys [*lo, *hi) that row i may see by causality, window and length. */
void attention_visible(const struct attention_core *, int64_t batch, int64_t i, int64_t *lo, int64_t *hi);
/* Keys [*lo, *hi) beyond which no one of these rows of a head sees any, nor may by the mask. A float mask excludes a key from a row that
 * keeps another one: where it takes all keys from a row, it takes none. */
void attention_seen(const struct attention_core *, int64_t batch, int64_t head, int64_t first, int64_t rows, int64_t *lo, int64_t *hi);
/* Masks the scores of row i with keys [from, from + n), of which there may be fewer; true if the bias of some key is above -inf. */
bool attention_mask(const struct attention_core *, int64_t batch, int64_t head, int64_t i, int64_t from, int64_t n, float *s);

/* ---- many_rows.c: prompts ------------------------------------------------------------------------------------------------------------ */
/* Not for --deterministic, nor where scores are an output. Softmax is over blocks of keys, so no row has scores with all of them. */
void attention_many_rows(struct kcall *, const struct attention_core *);

/* ---- few_rows.c: 1, 2 or 4 queries with `count` rows of n numbers that lie `step` bytes apart, for each instruction set -------------- */
struct few_rows {
    const void *at;
    enum dtype dtype; /* f32, f16, bf16, or i8: codes and scales, of coded_rows.c */
    int64_t step, count, n;
};
#define FEW_QUERIES 4
struct few_kernel {
    enum isa isa;
    /* to[query][row] = the dot of the two, times scale. */
    void (*scores)(const struct few_rows *, int queries, const float *const *query, float scale, float *const *to);
    /* sum[query] += every row times weight[query][row]. */
    void (*values)(const struct few_rows *, int queries, const float *const *weight, float *const *sum);
};
extern const struct few_kernel few_kernels[]; /* the fastest first, plain C last */
const struct few_kernel *few_best(void);

/* ---- fused_attention.c: operands of attention that was fused at load -------------------------------------------------------------- */
/* All but result and mask, of operands 0 to 2; first: by operand, its rows come before its heads. */
struct attention_core fused_core(struct kcall *, const int64_t *first);
struct head_rows fused_heads(const struct tensor *, bool rows_first);
struct head_rows fused_heads_f32(struct kenv *, const struct tensor *, bool rows_first, enum room);
/* Steps of a mask, right-aligned with [batch, heads, rows, keys]. */
void fused_mask(const struct kcall *, struct attention_core *, const struct tensor *mask);

/* ---- rotary.c ------------------------------------------------------------------------------------------------------------ */
/* Rotates the first 2 * half elements of a head: halves, or neighbours when interleaved. */
void rotary_head(float *x, const float *cosine, const float *sine, int64_t half, bool interleaved);

#endif
