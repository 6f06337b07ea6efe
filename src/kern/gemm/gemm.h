/* kern/gemm: matrix products and convolutions: oneDNN's, and products with weights stored narrower than float32. */
#ifndef TPC_KERN_GEMM_H
#define TPC_KERN_GEMM_H

#include "kern/chunk/chunk.h"
#include "kern/core/core.h"

/* ---- dnnl.c, dnnl_product.c, dnnl_conv.c: the only files that use oneDNN ----------------------------------------------------- */
/* c[m, n] = alpha * a[m, k] b[k, n] + beta * c, row-major with leading dimensions; callable inside parallel loops. */
void dnnl_product(struct kenv *, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
/* tile_gemm.c: the same in our own tiles. On processors other than x86, where the library has only plain loops, dnnl_product calls it. */
void tile_gemm(struct kenv *, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
               int64_t ldb, float beta, float *c, int64_t ldc);
/* narrow.c: c[m, n] = a b with operands rounded to bf16, [k, m] and [n, k] if transposed; sums are float32. Uses ROOM_NARROW. */
struct narrow_kernel {
    enum isa isa;
    /* sums[TILE_ROWS][TILE] = a[steps][TILE_ROWS][4] panel[steps][TILE][4], summed over steps and 4 */
    void (*product)(int64_t steps, const uint16_t *a, const uint16_t *panel, float *sums);
    void (*convert)(int64_t n, const float *from, int64_t apart, uint16_t *to); /* to bf16, 4 numbers at a time */
};
extern const struct narrow_kernel narrow_kernels[]; /* fastest first, plain C last */
const struct narrow_kernel *narrow_best(void);
bool narrow_fast(void); /* whether it is faster than float32 */
void narrow_gemm(struct kenv *, const struct narrow_kernel *, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                 const float *b, float *c);
/* Whether dnnl_product multiplies bf16 faster than float32 on this processor. */
bool dnnl_narrows(void);
/* Whether there are products with packed weights of this type on this processor. Without AVX-512, weights are read unpacked; f16 and bf16
 * are multiplied in bf16, f16 only if kenv_narrows. */
bool dnnl_packs(const struct kenv *, enum dtype weight);
/* c[m, n] = a[m, k] w[k, n] (+ bias[n]) with a constant w, [n, k] if transposed: packed once, kept in *cache. If w is bf16, or
 * kenv_narrows, both operands are rounded to bf16, with float32 sums; else both are float32. False if this machine has no such
 * primitive. */
bool dnnl_product_packed(struct kenv *, void **cache, int64_t m, int64_t n, int64_t k, const struct tensor *a, const struct tensor *w,
                         bool transposed, const float *bias, float *c);
/* Packs w for a product, into *cache. True if w itself will not be read any more. */
bool dnnl_pack_weight(struct kenv *, void **cache, int64_t n, int64_t k, const struct tensor *w, bool transposed);
/* The function of a convolution's results; alpha, beta: a slope, or the bounds of CLIP. HARD_SIGMOID: alpha * x + beta within 0 and 1. Then
 * scale * x + shift. */
enum conv_activation {
    CONV_LINEAR,
    CONV_RELU,
    CONV_CLIP,
    CONV_SIGMOID,
    CONV_TANH,
    CONV_SWISH,
    CONV_HARD_SWISH,
    CONV_HARD_SIGMOID,
    CONV_GELU
};
struct conv_shape {
    int spatial;
    int64_t batch, groups, in, out, size[3], kernel[3], result[3], stride[3], dilation[3], before[3], after[3];
    bool last;                 /* x and y are channels-last */
    bool adds, activates_last; /* y initially holds an addend of the results, before or after the activation */
    enum conv_activation activation;
    float alpha, beta, scale, shift;
}; /* zeroed before it is filled */
/* w is read only if its packed form is not in *cache. factor: for each output channel of w, or NULL. False if there is no primitive for the
 * shape. */
bool dnnl_convolve(struct kenv *, void **cache, const struct conv_shape *, const float *x, const struct tensor *w, const float *factor,
                   const float *bias, float *y);

/* ---- packed_gemm.c: products with a weight stored narrower than float32 --------------------------------------------------------- */
/* A weight w[k, n] in any storage, k and n > 0. A panel is `width` columns of it in float32, from a multiple of width on; the last one has
 * fewer (count). */
struct panels {
    int64_t n, k, width;
    enum dtype dtype;
    const void *weight;
    bool by_column; /* a panel is [width, k], column-major; else [k, width] */
    bool tiled;     /* made by tiled_weight; row is NULL */
    void (*unpack)(const struct panels *, int64_t from, int64_t count, float *panel);
    void (*row)(const struct panels *, const float *a, int64_t from, int64_t count,
                float *c); /* c[count] = a[k] panel, without unpacking it */
};
#define PANEL_FEW_ROWS 4  /* up to this many rows, no panel is unpacked */
#define COLUMN_FEW_ROWS 8 /* the same by column; then a panel of a few columns is unpacked for several rows */
/* a[m, k] as [k, m], in ROOM_TURN_Q. */
const float *packed_gemm_transposed(struct kcall *, const float *a, int64_t m, int64_t k);
/* c[m, n] = a[m, k] w. Uses ROOM_THREADS and ROOM_TURN_Q. In deterministic mode a panel not by column is TILE wide. */
void packed_gemm(struct kcall *, const struct panels *, int64_t m, const float *a, float *c);
struct right right_weight(const struct panels *); /* TILE wide, or by column */
/* The product chunk by chunk, until the sums are complete. */
void packed_gemm_chunks(struct kcall *, const struct chunks *, const struct panels *, int64_t m, const float *a, float *c);

/* ---- tiled_weight.c ---- */
/* A constant weight [k, n], [n, k] if transposed, of f32, f16 or bf16, k > 0: packed at the first call, kept in call->cache. A panel is a
 * tile of TILE columns; f32 tiles are not converted, and unpack is NULL. */
const struct panels *tiled_weight(struct kcall *, const struct tensor *weight, int64_t n, int64_t k, bool transposed);
/* c[m, n] = a[m, k] w, m <= TILE_ROWS. */
void tiled_product(struct kenv *, const struct panels *, int64_t m, const float *a, float *c);

/* a[n] b[n], on this thread. */
float gemm_dot(const float *a, const float *b, int64_t n);

/* ---- column_rows.c: c[m, stride] = a[m, k] w^T, w: [count, k], on this thread ---- */
struct column_rows {
    int64_t m, count, k, stride;
    const float *a, *w;
    float *c;
};
void column_rows_product(const struct column_rows *);

/* ---- panel_row.c: c[m, n] = a[m, k] w + bias of up to PANEL_ROWS rows, w in panels with oneDNN's layout BA16a64b ---- */
enum { PANEL_COLUMNS = 64, PANEL_ROWS = 16, PANEL_GROUP = 6 /* rows per kernel call */ };
struct panel_row {
    int64_t m, n, k, padded; /* padded: k in the panels */
    const float *a, *w, *bias;
    float *c;
};
void panel_row_product(struct kenv *, const struct panel_row *);
struct panel_part {
    int64_t depth, rows, ahead; /* rows: elements of a per k; ahead: elements of w from here to those to prefetch */
    const float *a, *w;         /* [depth][rows]; [depth][PANEL_COLUMNS] */
    float *sums;                /* [..][PANEL_COLUMNS], added to */
};
struct panel_row_kernel {
    enum isa isa;
    void (*add)(int rows, const struct panel_part *); /* 1 to PANEL_GROUP rows */
};
extern const struct panel_row_kernel panel_row_kernels[]; /* fastest first, plain C last */
const struct panel_row_kernel *panel_row_best(void);

/* narrow_row.c: the same for up to NARROW_FEW_ROWS rows and a weight of bf16, in panels with layout BA16a64b2a: pairs of elements of k */
enum {
    NARROW_FEW_ROWS = 16,
    NARROW_ROWS = 6, /* most rows per kernel call; */
    NARROW_GROUP = 5 /* rows per call if there are few */
};
struct narrow_row {
    int64_t m, n, pairs, padded; /* pairs of k; padded: k in the panels */
    const uint16_t *a;           /* [m][pairs][2] */
    const uint16_t *w;
    const float *bias;
    float *c;
};
void narrow_row_product(struct kenv *, struct narrow_row *);
struct narrow_tile {
    int64_t pairs;
    const uint16_t *a; /* rows [pairs][2], a_row elements apart */
    int64_t a_row;
    const uint16_t *panel; /* [pairs][PANEL_COLUMNS][2] */
    float *c;              /* rows [PANEL_COLUMNS], c_row elements apart */
    int64_t c_row;
    bool more;     /* adds to c */
    int64_t ahead; /* bytes of the panel from here to those to prefetch */
};
struct narrow_row_kernel {
    enum isa isa;
    void (*sums)(int rows, const struct narrow_tile *);  /* 1 to NARROW_ROWS rows */
    void (*round)(const float *, int64_t n, uint16_t *); /* to bf16, to the nearest; subnormal numbers may become 0 */
};
extern const struct narrow_row_kernel narrow_row_kernels[]; /* fastest first, plain C last */
const struct narrow_row_kernel *narrow_row_best(void);
/* Rounds a weight [k, n], [n, k] if transposed, of any float type, to bf16 in such panels. */
void narrow_panels(struct kenv *, const struct tensor *weight, int64_t n, int64_t k, bool transposed, int64_t padded, uint16_t *to);
/* Rounds n elements of a tensor of floats, from element i on, to bf16. */
void narrow_stretch(const struct tensor *, int64_t i, int64_t n, uint16_t *to);
/* to[n][2] = a, b */
void narrow_join_pairs(const uint16_t *a, const uint16_t *b, int64_t n, uint16_t *to);
/* a[m, k] rounded to bf16 in rows of `width` elements, padded with zeros after k; a itself if it has this form. In ROOM_NARROW. */
const uint16_t *narrow_rows(struct kenv *, const struct tensor *a, int64_t m, int64_t k, int64_t width);

/* ---- narrow_tiles.c: the same for many rows, with tile registers ---------------------------------------------- */
enum { NARROW_TILE_ROWS = 16, NARROW_TILE_DEPTH = 32 /* of k: panels are padded to it */ };
struct narrow_tiles {
    int64_t m, n, k;
    const struct tensor *a; /* [m, k], [k, m] if transposed, of any float type; rounded in ROOM_NARROW */
    bool transposed;
    const uint16_t *w; /* panels, padded to NARROW_TILE_DEPTH */
    const float *bias; /* [n]; NULL: none */
    float *c;          /* [m, n] */
};
void narrow_tiles_product(struct kenv *, const struct narrow_tiles *);
bool narrow_tiles_fast(void); /* whether this processor has tile registers */
struct narrow_part {
    int64_t rows, columns, steps; /* steps of NARROW_TILE_DEPTH elements of k */
    const uint16_t *a;            /* groups of NARROW_TILE_ROWS rows, the last one padded: [steps][NARROW_TILE_ROWS][NARROW_TILE_DEPTH] */
    int64_t a_group;              /* elements from a group to the next */
    const uint16_t *panel;
    int64_t panels_apart; /* elements from a panel to the next */
    const float *bias;    /* [columns]; NULL: none */
    bool more;            /* adds to c, without the bias */
    float *c;             /* rows are c_row elements apart */
    int64_t c_row;
};
struct narrow_part_kernel {
    enum isa isa;
    void (*product)(const struct narrow_part *);
    /* Rounds row a[k] to its place in a group of rows, padded with zeros to depth, in whole steps. */
    void (*place)(const float *a, int64_t k, int64_t depth, uint16_t *to);
};
extern const struct narrow_part_kernel narrow_part_kernels[]; /* fastest first, plain C last */
const struct narrow_part_kernel *narrow_part_best(void);

/* ---- bytes.c: filters of signed bytes, for exact sums ---------------------------------------------------------------------- */
/* Groups of n columns of k elements, divided into equal runs. A group has tiles of BYTES_WIDTH columns, the last one of BYTES_WIDTH / 2 if
 * that is enough; a tile has words of 4 elements of a column, for all columns. Padding after column n and after each run is zero. */
enum { BYTES_WIDTH = 32, BYTES_ROWS = 6, BYTES_MOST = 33025 /* products whose sum is below 2^31 */ };
struct bytes {
    int64_t groups, n, k, tiles, runs, words; /* tiles per group, words per run */
    int64_t tile_bytes;                       /* of a whole tile */
    const int8_t *weight;
    const int32_t *sums; /* [groups][tiles][BYTES_WIDTH]: of the elements of a column, minus its zero point */
    const int32_t *zero; /* likewise: zero points; NULL: all are 0 */
};
/* The source of a filter: w[groups * n][k], a byte each. */
struct bytes_source {
    int64_t groups, n, k, run;
    bool is_signed;
    const uint8_t *w, *zero; /* zero: zeros of them, 1 or one per column; NULL: none */
    int64_t zeros, inner;    /* element i of a column is w[i % inner * (k / inner) + i / inner] */
};
/* keep: until kenv_free; else for this call only, in ROOM_PANELS. */
struct bytes bytes_pack(struct kcall *, const struct bytes_source *, bool keep);
/* The number of halves (BYTES_WIDTH / 2 columns) of a tile. */
int bytes_halves(const struct bytes *, int64_t tile);

/* ---- bytes_dot.c: sums[rows][BYTES_WIDTH] of a tile of 1 or 2 halves and rows <= BYTES_ROWS, for each instruction set ---- */
/* Run r of row i has `words` words at at[r * BYTES_ROWS + i] + offset; its bytes are XORed with flip. */
struct bytes_rows {
    const uint8_t *const *at;
    int64_t runs, words, offset;
    uint8_t flip;
};
struct bytes_kernel {
    enum isa isa;
    void (*dot)(const int8_t *tile, const struct bytes_rows *, int rows, int halves, int32_t *sums);
    void (*add)(const struct bytes_rows *, int64_t run, int rows, int32_t *sums); /* sums[rows]: of the first `run` bytes of all runs */
};
extern const struct bytes_kernel bytes_kernels[]; /* fastest first, plain C last */
const struct bytes_kernel *bytes_best(void);

/* ---- dequant.c: integers with scales and zero points, real = (q - zero) * scale --------------------------------------------------- */
/* Rows of `inner` elements (the last dimension). Element j of row r has scale (r / below % axis / block) * below + r % below, and so on:
 * see scaled_at. */
struct scaled {
    int64_t inner;               /* the last dimension */
    int64_t axis, block, blocks; /* size of the scales' axis; indices that share a scale; scales along the axis */
    int64_t below;               /* rows per index of the axis; 0: the axis is the last dimension */
    bool one, wide;              /* one scale for all; a scale for every element along the other dimensions */
    const float *scale, *zero;   /* zero NULL: none */
};
/* From attributes as in DequantizeLinear: x is operand `first`, followed by scale and zero point. Uses ROOM_A and ROOM_B. */
struct scaled scaled_of(struct kcall *, int first);
/* Scales and zero points of elements from..from + n of a row. */
void scaled_read(const struct scaled *, int64_t row, int64_t from, int64_t n, float *scale, float *zero);
/* The same elements of quantised q, decoded; n <= CHUNK. */
void scaled_decode(const struct scaled *, const struct tensor *q, int64_t row, int64_t from, int64_t n, float *out);
/* x[i] = (x[i] - zero[i]) * scale[i]. */
void scaled_apply(float *x, const float *scale, const float *zero, int64_t n);
/* n elements of any quantised storage, from element i on. */
void dequant_load(const struct tensor *q, int64_t i, int64_t n, float *out);

#endif
