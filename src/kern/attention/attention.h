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
    struct head_rows q, k, v; /* q: f32; k and v are widened a few rows at a time, as they are read */
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
    int mode;                        /* 0 scaled product, 1 after softcap, 2 with bias, 3 probabilities, 4 as 2, unseen keys 0 */
};
void attention_core_run(struct kcall *, struct attention_core *);
/* Probabilities of at most ATTENTION_BLOCK rows from `first` on, [rows, keys] in room for all keys: those that some row sees; their number.
 * Not for --deterministic. */
enum { ATTENTION_BLOCK = 64 };
/* k and v of f32. */
int64_t attention_probabilities(struct kcall *, const struct attention_core *, int64_t batch, int64_t head, int64_t first, int64_t rows,
                                float *);

/* ---- coded_dots.c: a query of n numbers, times factor, with keys that are rows of codes, step bytes apart -------------------------- */
/* There are instructions for it, and n is whole blocks. */
bool coded_dots_run_here(int64_t n);
int64_t coded_dots_room(int64_t n); /* floats of a query that is made ready */
void coded_dots_query(const float *, int64_t n, float factor, float *query);
void coded_dots(const float *query, const void *rows, int64_t step, int64_t count, int64_t n, float *dots);
/* sum += up to CODED_TOGETHER rows of n numbers, each times its weight: the rows are turned once. */
#define CODED_TOGETHER 32
int64_t coded_sums_room(int64_t n); /* floats */
void coded_sums_rows(const void *rows, int64_t step, int64_t count, int64_t n, float *turned);
void coded_sums(const float *weight, const float *turned, int64_t count, int64_t n, float *sum);

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
