/* codes: products with weights of 2, 4 or 8 bits in blocks. */
#ifndef TPC_KERN_CODES_H
#define TPC_KERN_CODES_H

#include "kern/gemm/gemm.h"

/* ---- codes.c: products with a weight of 2, 4 or 8 bits in blocks, by 8-bit dot products --------------------------------------- */
/* The weight is stored in tiles of CODES_WIDTH columns. A tile has consecutive blocks of `block` elements of k: the scales of the columns,
 * then words of 4 elements (8 bits), 8 or 16 of a column, for all columns. Columns beyond n and elements beyond k are zeros. */
enum { CODES_WIDTH = 32, CODES_STEP = 32, CODES_ROWS = 6 };
struct codes {
    int64_t n, k, blocks;
    int64_t block, step; /* elements that share a scale; elements of a row of activations that share one */
    int bits, zero;      /* zero: of all blocks if zeros is NULL */
    size_t block_bytes;
    const char *weight;
    const uint8_t *zeros; /* [n / CODES_WIDTH][blocks][CODES_WIDTH] */
    const int32_t *sums;  /* of each column, minus its zero point: for codes_integers */
};
/* The source of a weight. Column j: k codes, below 2^bits; a scale and a zero point per block. */
struct codes_source {
    int64_t n, k, block;
    int bits, zero;
    bool zeros;    /* read_zeros is called */
    bool integers; /* for codes_integers: one block, and read_scales is not called */
    const void *from;
    void (*read_codes)(const void *from, int64_t j, uint8_t *codes);
    void (*read_scales)(const void *from, int64_t j, float *scales);
    void (*read_zeros)(const void *from, int64_t j, uint8_t *zeros);
};
const struct codes *codes_pack(struct kcall *, const struct codes_source *);
/* For this call only. Uses ROOM_PANELS. */
struct codes codes_pack_once(struct kcall *, const struct codes_source *);
/* c[m, n] = a[m, k] w. a is rounded, by steps, to `digits` digits of 8 bits: with 1, 2 and 3 digits the last one is about 2^-7, 2^-13 and
 * 2^-20 of the step's largest number. Sums of a step are exact. Uses ROOM_B. */
void codes_product(struct kcall *, const struct codes *, int64_t m, int digits, const float *a, float *c);
/* Rows of integers of 8 bits. */
struct codes_integers {
    int64_t m;
    bool is_signed;
    const uint8_t *a, *zero; /* zero: for row i, element i % zeros; NULL: none */
    int64_t zeros;
};
struct codes_result {
    int32_t *whole;
    float *real; /* whole NULL: sum * scale[j * step] + bias[j] */
    const float *scale, *bias;
    int64_t step;
};
/* Exact [m, n] sums of (a - its zero point) (w - its zero point), modulo 2^32. Uses ROOM_B. */
void codes_sums(struct kcall *, const struct codes *, const struct codes_integers *, const struct codes_result *);
/* A sum of products a w, minus the contributions of the zero points s of the row and t of the column: t sum a + s sum (w - t). Modulo
 * 2^32. */
static inline int32_t codes_less_zeros(int32_t sum, int32_t row_sum, int32_t row_zero, int32_t column_sum, int32_t column_zero)
{
    uint32_t zeros = (uint32_t)row_zero * (uint32_t)column_sum + (uint32_t)row_sum * (uint32_t)column_zero;
    return (int32_t)((uint32_t)sum - zeros);
}
/* Whether three digits are faster than float32 on this processor. */
bool codes_fast(void);

/* ---- rows.c: rows of activations as digits. Each digit of a row is a row here; CODES_ROWS of them are a group ---- */
struct codes_rows {
    int64_t rows, each;    /* each: rows per group, at most CODES_ROWS; whole rows of activations */
    int64_t padded, steps; /* numbers and steps of a row */
    int8_t *digit;         /* [groups][padded / 4][CODES_ROWS][4] */
    float *scale;          /* [groups][steps][CODES_ROWS] */
    int32_t *start;        /* the same: minus the zero point times the sum of the digits; minus the sum if zero points differ */
};
/* Row i of a[k] becomes rows i * digits ..; digits divides CODES_ROWS. */
void codes_row(const struct codes *, const struct codes_rows *, int digits, int64_t i, const float *a);

/* ---- dot.c: sums[rows][CODES_WIDTH] of a tile and a group, rows lying `apart`, for each instruction set; rows <= CODES_ROWS ---- */
struct codes_kernel {
    enum isa isa;
    bool fast; /* whether three digits are faster than float32 with it */
    void (*dot)(const struct codes *, int64_t tile, const struct codes_rows *, int64_t group, int rows, float *sums, int64_t apart);
};
extern const struct codes_kernel codes_kernels[]; /* fastest first, plain C last */
const struct codes_kernel *codes_best(void);
/* The same for all elements of a weight with one block, without digits: digit[rows][block]. */
struct codes_whole_kernel {
    enum isa isa;
    int rows, least; /* most rows of a call; rows of a product from which it is faster than the next kernel */
    bool bytes;      /* codes have 8 bits */
    void (*whole)(const struct codes *, int64_t tile, const int8_t *digit, int rows, int32_t *sums, int64_t apart);
};
enum { CODES_WHOLE_ROWS = 32 }; /* the most of them */
extern const struct codes_whole_kernel codes_whole_kernels[];
const struct codes_whole_kernel *codes_whole_best(const struct codes *, int64_t rows);
#if X86
void codes_amx_whole(const struct codes *, int64_t tile, const int8_t *digit, int rows, int32_t *sums, int64_t apart);
#endif

/* ---- panel.c: a tile of the weight as a panel of bf16, and products with it, for each instruction set ---- */
/* A panel is [steps][halves of CODES_WIDTH][CODES_DEPTH / 2][CODES_WIDTH / 2][2]: pairs of elements of k. */
enum { CODES_DEPTH = NARROW_TILE_DEPTH, CODES_TILE_ROWS = NARROW_TILE_ROWS };
struct codes_part {
    const struct codes *w;
    int64_t tile, from, n; /* elements from..from + n of k, multiples of 16; n 0: none */
    uint16_t *panel;
};
struct codes_panel {
    int64_t rows, steps, group; /* steps of CODES_DEPTH elements of k; group: elements of a from CODES_TILE_ROWS rows to the next */
    const uint16_t *a;          /* [groups][..][CODES_TILE_ROWS][CODES_DEPTH] */
    const uint16_t *panel;
    float *sums; /* rows of CODES_WIDTH, `apart` */
    int64_t apart;
    bool more;              /* is added to the sums */
    struct codes_part next; /* is decoded meanwhile */
    const char *soon;       /* soon_bytes to prefetch; they may be beyond the weight */
    int64_t soon_bytes;
};
struct codes_panel_kernel {
    enum isa isa;
    int64_t least; /* rows from which it is faster than integer dot products */
    void (*decode)(const struct codes_part *);
    void (*multiply)(const struct codes_panel *);
};
extern const struct codes_panel_kernel codes_panel_kernels[]; /* fastest first, plain C last */
const struct codes_panel_kernel *codes_panel_best(void);

/* ---- many.c: products of many rows with such a weight, both rounded to bf16: each number by 2^-8 of itself at most ---- */
bool codes_many_pays(int64_t m);
/* By a kernel of panel.c. Uses ROOM_B and ROOM_THREADS. */
void codes_many(struct kcall *, const struct codes_panel_kernel *, const struct codes *, int64_t m, const float *a, float *c);

#endif
