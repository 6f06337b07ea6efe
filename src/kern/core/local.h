/* local: what the kernels share and nobody else sees: parallel loops, scratch, conversion of storage types, broadcasting walks, strided
 * copies, matrix products. Kernels of reduced-precision tensors convert short stretches to float32, work there, and convert back. */
#ifndef TPC_KERN_LOCAL_H
#define TPC_KERN_LOCAL_H

#include "kern/kern.h"
#include "kern/table.h"

/* Compiled for several instruction sets, chosen at load. Sanitizers don't survive the resolvers. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SIMD __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define SIMD
#endif
#define LOOP _Pragma("omp simd")

#define MOST_SPATIAL (MAX_RANK - 2)
#define CHUNK 512 /* elements converted at a time */

/* The integer types, by enum dtype and C type; X(dtype, type, short name). */
#define INT_TYPES(X)        \
    X(DT_I8, int8_t, i8)    \
    X(DT_U8, uint8_t, u8)   \
    X(DT_I16, int16_t, i16) \
    X(DT_U16, uint16_t, u16) X(DT_I32, int32_t, i32) X(DT_U32, uint32_t, u32) X(DT_I64, int64_t, i64) X(DT_U64, uint64_t, u64)

/* ---- env.c ----------------------------------------------------------------------------------------------------- */
typedef void range_fn(void *data, int thread, int64_t lo, int64_t hi);
/* Runs body on [0, n) in one range per thread; cost: rough operations per item, so that small work stays on one thread. */
void parallel_for(struct kenv *, int64_t n, int64_t cost, range_fn *body, void *data);
/* Scratch by purpose, so that a kernel and what it calls don't share one. Each slot only grows. */
enum room {
    ROOM_KERNEL,
    ROOM_THREADS,
    ROOM_A,
    ROOM_B,
    ROOM_C,
    ROOM_DNNL,
    ROOM_JOIN,
    ROOM_TURN_Q,
    ROOM_TURN_K,
    ROOM_LIMITS,
    ROOM_SINK,
    ROOM_ROUTES,
    ROOM_PANELS,
    ROOM_TERMS,
    ROOM_COUNT
};
void *kenv_room(struct kenv *, enum room, size_t bytes);
/* Blocks kept until kenv_free. */
void *kenv_keep(struct kenv *, size_t bytes);
/* Room for a packed weight, kept until kenv_free. */
void *kenv_weights(struct kenv *, size_t bytes);
/* The slot for the state of the library under the kernels, NULL at first; kenv_free hands it to release. */
void **kenv_library(struct kenv *, void (*release)(void *));

/* ---- kcall.c ----------------------------------------------------------------------------------------------------- */
/* Operand i when it is there, else NULL. */
const struct tensor *call_in(const struct kcall *, int i);
struct tensor *call_out(const struct kcall *, int i);
/* Sizes from operand i (int32 or int64) where present, else from the DIMS attribute; -1 when neither is given. */
int call_sizes(const struct kcall *, int operand, const char *attr, int64_t *out, int max);
const char *call_where(const struct kcall *);
/* An axis of a rank, negative counted from the end; out of range is a failure. */
int call_axis(const struct kcall *, int64_t axis, int rank);
_Noreturn void call_bad_type(const struct kcall *, enum dtype);
/* A floating-point result in float32: the output itself, or ROOM_C, from which it is stored. */
float *call_result_f32(const struct kcall *, const struct tensor *);
void call_result_store(const float *from, struct tensor *);
/* An INTS attribute of n entries, one per spatial dimension (or two for pads), none below `otherwise`, which stands where it is not given.
 */
void call_spatial(const struct kcall *, const char *attr, int n, int64_t otherwise, int64_t *out);
/* An index into dimension `axis` of size n, negative counted from the end; out of range is a failure. */
int64_t call_index(const struct kcall *, int64_t index, int64_t n, int axis);
/* Element i of an int32 or int64 tensor. */
int64_t index_at(const struct kcall *, const struct tensor *, int64_t i);
int64_t dims_product(const int64_t *dim, int from, int to);
/* Product of sizes that a file may have chosen, in bytes of float; overflow is a failure. */
size_t call_bytes(const struct kcall *, int64_t count, size_t size);

/* ---- convert.c -------------------------------------------------------------------------------------------------- */
void load_f32(enum dtype, const void *src, int64_t n, float *dst); /* floating-point storage only */
void store_f32(enum dtype, const float *src, int64_t n, void *dst);
/* Any numeric or boolean storage. Stores to integers saturate (from double) or wrap (from int64). */
void load_f64(enum dtype, const void *src, int64_t n, double *dst);
void store_f64(enum dtype, const double *src, int64_t n, void *dst);
void load_i64(enum dtype, const void *src, int64_t n, int64_t *dst);
void store_i64(enum dtype, const int64_t *src, int64_t n, void *dst);
bool is_small_float(enum dtype); /* f16, bf16: work in float32 */
/* The whole tensor as float32, with the same strides: itself, or converted into room. */
const float *tensor_f32(struct kenv *, const struct tensor *, enum room);
static inline const void *at_const(const void *p, size_t size, int64_t i)
{
    return (const char *)p + size * (size_t)i;
}
static inline void *at(void *p, size_t size, int64_t i)
{
    return (char *)p + size * (size_t)i;
}

/* ---- axis_line.c: lines along one axis, each brought to float32 (f64: float64) in scratch ------------------------------------- */
/* Work on line number `line` of n elements, in place, with room for n more behind them; lines are counted in the order of the other
 * dimensions. */
typedef void line_f32(void *data, int64_t line, float *x, int64_t n);
typedef void line_f64(void *data, int64_t line, double *x, int64_t n);
struct line_op {
    line_f32 *f32;
    line_f64 *f64;
    int64_t cost;
}; /* cost: rough operations per element */
/* Every line of x through op into y of the same shape; y NULL: op keeps what it needs. Floating-point storage only. Uses ROOM_KERNEL. */
void lines_run(struct kcall *, const struct line_op *, void *data, const struct tensor *x, struct tensor *y, int axis);

/* ---- softmax.c: one line, in place */
void log_softmax_f32(float *x, int64_t n);
void log_softmax_f64(double *x, int64_t n);
void log_softmax_chunks(float *x, int64_t n); /* in one order; room for n more behind them */

/* ---- broadcast_walk.c: loops over broadcast operands ------------------------------------------------------------------------ */
#define WALK_MAX 8 /* result and operands: chains take up to 7 */
struct walk {
    int rank, n;
    int64_t dim[MAX_RANK], stride[WALK_MAX][MAX_RANK];
};
/* Operand 0 is the dense result; the others broadcast to it (a mismatch is a failure). Adjoining dimensions are merged. */
void walk_broadcast(const struct kcall *, struct walk *, const struct tensor *out, int nin, const struct tensor *const *in);
/* row(data, element offset of each operand, elements): a stretch of the innermost dimension. */
typedef void row_fn(void *data, const int64_t *offset, int64_t n);
void walk_run(struct kenv *, const struct walk *, int64_t cost, row_fn *, void *data);

/* ---- copy.c: strided copies ------------------------------------------------------------------------------------- */
#define COPY_RANK (2 * MAX_RANK)
struct copy {
    int rank;
    size_t size;
    int64_t dim[COPY_RANK], to[COPY_RANK], from[COPY_RANK];
}; /* strides in elements */
/* Elements that are where they should be already are not touched. */
void copy_strided(struct kenv *, const struct copy *, void *to, const void *from);
void copy_dense(struct kenv *, void *to, const void *from, size_t bytes);
/* Row-major strides of dim. */
void dense_strides(int rank, const int64_t *dim, int64_t *stride);

/* ---- dnnl.c: the only file that sees oneDNN ------------------------------------------------------------------------- */
/* c[m, n] = alpha * a[m, k] b[k, n] + beta * c, row-major with leading dimensions; callable inside parallel loops. */
void dnnl_product(struct kenv *, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
/* c[m, n] = a[m, k] w[k, n] (+ bias[n]) with a constant w, [n, k] when transposed: packed once, kept in *cache. False when
 * this machine has no such primitive. */
bool dnnl_product_packed(struct kenv *, void **cache, int64_t m, int64_t n, int64_t k, const float *a, const float *w, bool transposed,
                         const float *bias, float *c);
/* Packs w as a product will want it, into *cache. True when w itself will not be read any more. */
bool dnnl_pack_weight(struct kenv *, void **cache, int64_t n, int64_t k, const float *w, bool transposed);
struct conv_shape {
    int spatial;
    int64_t batch, groups, in, out, size[3], kernel[3], result[3], stride[3], dilation[3], before[3], after[3];
};
/* False when the shape has no such primitive. */
bool dnnl_convolve(struct kenv *, void **cache, const struct conv_shape *, const float *x, const float *w, const float *bias, float *y);

/* ---- packed_gemm.c: products with a weight stored narrower than float32 --------------------------------------------------------- */
/* A weight w[k, n] in any storage, k and n > 0. A panel is `width` columns of it in float32, counted from a multiple of width; the last
 * one has fewer (count). */
struct panels {
    int64_t n, k, width;
    enum dtype dtype;
    const void *weight;
    bool by_column; /* a panel is [width, k], its columns one after another; else [k, width] */
    void (*unpack)(const struct panels *, int64_t from, int64_t count, float *panel);
    void (*row)(const struct panels *, const float *a, int64_t from, int64_t count,
                float *c); /* c[count] = a[k] panel, without making it */
};
#define PANEL_FEW_ROWS 4 /* up to so many rows no panel is made */
/* a[m, k] as [k, m], in ROOM_TURN_Q. */
const float *turned_rows(struct kcall *, const float *a, int64_t m, int64_t k);
/* c[m, n] = a[m, k] w. Uses ROOM_THREADS and ROOM_TURN_Q. In deterministic mode a panel not by column is CHUNK_TILE wide. */
void panel_product(struct kcall *, const struct panels *, int64_t m, const float *a, float *c);
/* A constant weight [k, n], [n, k] when transposed, of f16 or bf16, or of f32 for products by chunks (its panels lie there unpacked: unpack
 * is NULL): packed at the first call, kept in call->cache. */
const struct panels *panel_pack(struct kcall *, const struct tensor *weight, int64_t n, int64_t k, bool transposed);

/* ---- matmul_nbits.c: a weight of 2, 4 or 8 bits in blocks
 * ------------------------------------------------------------------------------------ */
/* blocks: u8 [n, blocks, bytes]; scales, zeros (NULL: half of the range): of each block; groups: the scale of every number (NULL: its
 * block's) */
struct nbits_weight {
    const struct tensor *blocks, *scales, *zeros, *groups;
    int64_t bits;
};
/* c[m, n] = a[m, k] w^T. Uses ROOM_B and what panel_product does. */
void nbits_product(struct kcall *, const struct nbits_weight *, int64_t m, int64_t k, const float *a, float *c);

/* ---- expert_gemm.c: one matrix of every expert, [experts, n, k], in any storage --------------------------------------------------------
 */
/* Integers of `bits` bits in bytes where there are scales: per row, or per block of a row. */
struct experts {
    struct panels panels; /* first: columns of the product are rows of the matrix */
    const struct tensor *weight, *scales, *zeros, *bias;
    int64_t bits, block, expert;
};
/* c[m, n] = a[m, k] w^T + bias, of the expert that is set. */
void expert_product(struct kcall *, const struct experts *, int64_t m, const float *a, float *c);

/* ---- dequant.c: integers with scales and zero points, real = (q - zero) * scale --------------------------------------------------- */
/* Rows of `inner` numbers (the last dimension). Number j of row r has scale (r / below % axis / block) * below + r % below, and so on:
 * see scaled_at. */
struct scaled {
    int64_t inner;               /* the last dimension */
    int64_t axis, block, blocks; /* size of the axis of the scales, indices that share one, scales along it */
    int64_t below;               /* rows per index of the axis; 0: the axis is the last dimension */
    bool one, wide;              /* one scale for all; a scale for every number along the other dimensions */
    const float *scale, *zero;   /* zero NULL: none */
};
/* Of attributes as DequantizeLinear has them: x is operand `first`, then come the scale and the zero point. Uses ROOM_A and ROOM_B. */
struct scaled scaled_of(struct kcall *, int first);
/* Scales and zero points of numbers from..from + n of a row. */
void scaled_read(const struct scaled *, int64_t row, int64_t from, int64_t n, float *scale, float *zero);
/* The same numbers of integers q, decoded; n <= CHUNK. */
void scaled_decode(const struct scaled *, enum dtype, const void *q, int64_t row, int64_t from, int64_t n, float *out);
/* n integers of any storage, from number i on. */
void load_integers(enum dtype, const void *q, int64_t i, int64_t n, float *out);

/* ---- attention_core.c: softmax(scale q k^T + bias) v for heads anywhere in memory ------------------------------------------------ */
struct heads {
    const float *at;
    int64_t batch, head, row;
}; /* steps in elements; columns are contiguous */
struct attend {
    int64_t batch, q_heads, kv_heads, rows, keys, size, value_size;
    struct heads q, k, v;
    struct tensor *y; /* written at y_step: batch, head, row */
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
void attend(struct kcall *, struct attend *);

/* ---- rotary.c ------------------------------------------------------------------------------------------------------------ */
/* Rotates the first 2 * half elements of a head: halves, or neighbours when interleaved. */
void rotate_head(float *x, const float *cosine, const float *sine, int64_t half, bool interleaved);
#endif
