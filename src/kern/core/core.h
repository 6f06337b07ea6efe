/* kern/core: what all kernels share: scratch and parallel loops, a call's operands and attributes, conversion of storage types, lines along
 * an axis, broadcasting walks, strided copies. Kernels of 16-bit tensors convert short stretches to float32, work there and convert back.
 */
#ifndef TPC_KERN_CORE_H
#define TPC_KERN_CORE_H

#include "kern/core/isa.h"
#include "kern/kern.h"
#include "kern/table.h"

#include <string.h>

/* Compiled for several instruction sets, chosen at load by what the processor has. "arch=haswell" would choose by its model: no AMD. gcc
 * tells x86-64-v3 since its version 12. Sanitizers don't survive the resolvers; of other C libraries, musl's loader runs none. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#if __GNUC__ >= 12
#define SIMD __attribute__((target_clones("avx512f", "arch=x86-64-v3", "default")))
#else
#define SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define SIMD
#endif
#define LOOP _Pragma("omp simd")
#define MOST_SPATIAL (MAX_RANK - 2)
#define CHUNK 512 /* elements converted at a time */

/* The integer types: X(enum dtype, C type, short name, ...). */
/* clang-format off */
#define INT_TYPES(X, ...)                 \
    X(DT_I8, int8_t, i8, __VA_ARGS__)     \
    X(DT_U8, uint8_t, u8, __VA_ARGS__)    \
    X(DT_I16, int16_t, i16, __VA_ARGS__)  \
    X(DT_U16, uint16_t, u16, __VA_ARGS__) \
    X(DT_I32, int32_t, i32, __VA_ARGS__)  \
    X(DT_U32, uint32_t, u32, __VA_ARGS__) \
    X(DT_I64, int64_t, i64, __VA_ARGS__)  \
    X(DT_U64, uint64_t, u64, __VA_ARGS__)
/* clang-format on */

/* ---- env.c ----------------------------------------------------------------------------------------------------- */
typedef void range_fn(void *data, int64_t lo, int64_t hi);
typedef void share_fn(void *data, int thread, int64_t lo, int64_t hi);
/* Runs body on [0, n) in one range per thread; cost: rough operations per item, so that small work stays on one thread. */
void kenv_parallel_for(struct kenv *, int64_t n, int64_t cost, range_fn *body, void *data);
void kenv_parallel_shares(struct kenv *, int64_t n, int64_t cost, share_fn *body, void *data); /* threads have scratch of their own */
/* Scratch by purpose, so that a kernel and what it calls don't share one. Each slot only grows. */
enum room {
    ROOM_KERNEL,
    ROOM_THREADS,
    ROOM_A,
    ROOM_B,
    ROOM_C,
    ROOM_DNNL,
    ROOM_NARROW,
    ROOM_JOIN,
    ROOM_TURN_Q,
    ROOM_TURN_K,
    ROOM_LIMITS,
    ROOM_SINK,
    ROOM_ROUTES,
    ROOM_PANELS,
    ROOM_PARTIALS,
    ROOM_COUNT
};
void *kenv_room(struct kenv *, enum room, size_t bytes);
/* Blocks kept until kenv_free. */
void *kenv_keep(struct kenv *, size_t bytes);
/* Room for a packed weight, kept until kenv_free. */
void *kenv_weights(struct kenv *, size_t bytes);
/* Where the packed form of a constant matrix is kept, for all nodes and all graphs of the environment that read it so; zeroed before it is
 * filled. It lives as long as the environment. */
struct packed_key {
    const struct constant *weight, *scales, *zeros; /* scales and zeros: of a quantised weight */
    enum dtype dtype;
    int transposed, bits;
    int64_t n, k;
};
void **kenv_packed(struct kenv *, const struct packed_key *);
/* The slot for the state of the library under the kernels, NULL at first; kenv_free hands it to release. */
void **kenv_library(struct kenv *, void (*release)(void *));

/* ---- kcall.c ----------------------------------------------------------------------------------------------------- */
/* Operand i when it is there, else NULL. */
const struct tensor *kcall_in(const struct kcall *, int i);
struct tensor *kcall_out(const struct kcall *, int i);
/* Sizes from operand i (int32 or int64) where present, else from the DIMS attribute; -1 when neither is given. */
int kcall_sizes(const struct kcall *, int operand, const char *attr, int64_t *out, int max);
const char *kcall_where(const struct kcall *);
/* An axis of a rank, negative counted from the end; out of range is a failure. */
int kcall_axis(const struct kcall *, int64_t axis, int rank);
_Noreturn void kcall_bad_type(const struct kcall *, enum dtype);
/* A floating-point result in float32: the output itself, or ROOM_C, from which it is stored. */
float *kcall_result_f32(const struct kcall *, const struct tensor *);
void kcall_result_store(const float *from, struct tensor *);
/* An INTS attribute of n entries, one per spatial dimension (or two for pads), none below `otherwise`, the value if it is not given.
 */
void kcall_spatial(const struct kcall *, const char *attr, int n, int64_t otherwise, int64_t *out);
/* Index number i of an operand into dimension `axis` of size n, negative counted from the end; a label, which is not. Out of range is a
 * failure, which is told of the node and the indices of the model (attribute lookup) where this node is of the model's split form. */
int64_t kcall_index(const struct kcall *, int operand, int64_t i, int64_t n, int axis);
int64_t kcall_label(const struct kcall *, int operand, int64_t i, int64_t n, int axis);
/* Element i of an int32 or int64 tensor. */
int64_t kcall_index_at(const struct kcall *, const struct tensor *, int64_t i);
int64_t tensor_dims_product(const int64_t *dim, int from, int to);
/* Product of sizes that a file may have chosen, in bytes of float; overflow is a failure. */
size_t kcall_bytes(const struct kcall *, int64_t count, size_t size);

/* ---- convert.c -------------------------------------------------------------------------------------------------- */
void convert_to_f32(enum dtype, const void *src, int64_t n, float *dst); /* floating-point storage only */
void convert_from_f32(enum dtype, const float *src, int64_t n, void *dst);
/* Any numeric or boolean storage. Stores to integers saturate (from double) or wrap (from int64). */
void convert_to_f64(enum dtype, const void *src, int64_t n, double *dst);
void convert_from_f64(enum dtype, const double *src, int64_t n, void *dst);
void convert_to_i64(enum dtype, const void *src, int64_t n, int64_t *dst);
void convert_from_i64(enum dtype, const int64_t *src, int64_t n, void *dst);
/* Integers modulo 2^64. */
void convert_to_u64(enum dtype, const void *src, int64_t n, uint64_t *dst);
void convert_from_u64(enum dtype, const uint64_t *src, int64_t n, void *dst);
bool dtype_fits_f32(enum dtype); /* f32, f16, bf16 */
/* The whole tensor as float32, with the same strides: itself, or converted into room. */
const float *tensor_f32(struct kenv *, const struct tensor *, enum room);
/* Numbers as an operand whose sizes are told beside it. */
static inline struct tensor tensor_of_floats(const float *x)
{
    return (struct tensor){.dtype = DT_F32, .data = (void *)(uintptr_t)x};
}
static inline const void *element_at_const(const void *p, size_t size, int64_t i)
{
    return (const char *)p + size * (size_t)i;
}
static inline void *element_at(void *p, size_t size, int64_t i)
{
    return (char *)p + size * (size_t)i;
}

/* ---- byte_codes.c: real numbers as bytes of one scale ---------------------------------------------------------------------------- */
struct byte_scale {
    float scale, zero;
    bool is_signed; /* codes are int8, not uint8 */
};
/* (code - zero) * scale, as DequantizeLinear has it. */
void byte_codes_decode(const struct byte_scale *, const void *code, int64_t n, float *to);
/* x / scale rounded to even, + zero, saturated, as QuantizeLinear has it; NaN becomes the least code. */
void byte_codes_encode(const struct byte_scale *, const float *x, int64_t n, void *code);
/* The least and the greatest number, of zero and those of x; NaN is none. */
void byte_codes_range(const float *x, int64_t n, float *lo, float *hi);
/* The code of max(a op b, lo), whose operands are codes, or for b real numbers; in one pass, to the bit as in several. Returns how many of
 * the n were made: where this is not sure to round as a division does, or there is no instruction for it, fewer. */
enum byte_codes_op { BYTE_CODES_ADD, BYTE_CODES_SUB, BYTE_CODES_MUL };
struct byte_pair {
    enum byte_codes_op op;
    float lo; /* -inf: none */
    struct byte_scale a, b, y;
};
int64_t byte_codes_combine(const struct byte_pair *, const void *a, const void *b, const float *real, int64_t n, void *code);
/* to[i] = table[code[i]]; a table of 256. */
void byte_codes_map(const uint8_t *code, int64_t n, const uint8_t *table, uint8_t *to);

/* ---- tile.c: products of a few rows with tiles of a matrix -------------------------------------------------------------------------- */
enum { TILE = 32, TILE_ROWS = 6 };
struct tile {
    const float *panel; /* [k, TILE] */
    int64_t k;
    bool more;  /* is added to c */
    bool fused; /* products and sums must be rounded together, whatever this processor has */
    const float *a[TILE_ROWS];
    float *c[TILE_ROWS];
};
/* c[rows][TILE] = a[rows][k] panel, for 1 to TILE_ROWS rows. */
void tile_product(int rows, const struct tile *);
/* c[2 TILE] = a[k] times two panels, the second one `apart` numbers behind the first, for one row. One tile has too few sums to keep a
 * processor busy while each multiply-add waits for the one before. */
void tile_pair(const struct tile *, int64_t apart);
/* Rows that lie a_row and c_row apart. */
static inline void tile_at_rows(struct tile *t, int rows, const float *a, int64_t a_row, float *c, int64_t c_row)
{
    for (int r = 0; r < rows; r++) {
        t->a[r] = a + r * a_row;
        t->c[r] = c + r * c_row;
    }
}
/* tile_fused.c: the same for a processor without multiply-adds, to the bit of those that have them. */
void tile_fused(int rows, const struct tile *);
struct tile_kernel {
    enum isa isa;
    void (*product)(int rows, const struct tile *);
    void (*pair)(const struct tile *, int64_t apart);
};
extern const struct tile_kernel tile_kernels[]; /* the fastest first, plain C last */
const struct tile_kernel *tile_best(void);

/* ---- coded_rows.c: rows of n numbers as codes of 8 bits with scales: bytes, elements of an i8 tensor ------------------------------- */
#define CODED_BLOCK 32
#define CODED_SCALE 2
int64_t coded_rows_bytes(int64_t n);
int64_t coded_rows_numbers(int64_t bytes);
void coded_rows_write(const float *, int64_t n, void *row);
/* Rows that are step bytes apart. */
void coded_rows_read(const void *rows, int64_t step, int64_t count, int64_t n, float *);
/* count numbers of a row of n, from the start of a block on. */
void coded_rows_piece(const void *row, int64_t n, int64_t from, int64_t count, float *);

/* ---- axis_line.c: lines along one axis, each converted to float32 (f64: float64) in scratch ------------------------------------- */
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
void axis_line_run(struct kcall *, const struct line_op *, void *data, const struct tensor *x, struct tensor *y, int axis);

/* ---- broadcast_walk.c: loops over broadcast operands ------------------------------------------------------------------------ */
#define WALK_MAX 8 /* result and operands: chains take up to 7 */
struct walk {
    int rank, n;
    int64_t dim[MAX_RANK], stride[WALK_MAX][MAX_RANK];
};
/* Operand 0 is the dense result; the others broadcast to it (a mismatch is a failure). Adjoining dimensions are merged. */
void walk_broadcast(const struct kcall *, struct walk *, const struct tensor *out, int nin, const struct tensor *const *in);
/* What an operand has in a row that several short ones became, if it does not go on there. It does not step, and its offset is that of the
 * first. */
struct joined {
    bool repeats;  /* the same elements again and again */
    int64_t apart; /* or those of each short row so far behind those before */
    bool spreads;  /* and one element in each */
};
/* Rows of fewer than `most` elements become one with those that follow, if each operand goes on or repeats, or `apart` is set. Returns how
 * many elements they had; 0: they stay. */
int64_t walk_join_rows(struct walk *, int64_t most, bool apart, struct joined *of);
/* row(data, element offset of each operand, elements): a stretch of the innermost dimension. */
typedef void row_fn(void *data, const int64_t *offset, int64_t n);
void walk_run(struct kenv *, const struct walk *, int64_t cost, row_fn *, void *data);

/* ---- combine.c: an element and the one that a scatter brings to it ----------------------------------------------------------- */
enum combine { COMBINE_SET, COMBINE_ADD, COMBINE_MUL, COMBINE_MAX, COMBINE_MIN };
/* Attribute `reduction` of a node. */
enum combine combine_of(const struct kcall *);
void combine_elements(enum combine, enum dtype, void *to, const void *from, int64_t n);

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
/* memcpy, which takes longer to call than to copy a few bytes. */
static inline void copy_bytes(char *to, const char *from, size_t n)
{
    enum { PIECE = 16, SHORT = 96 };
    if (n > SHORT) {
        memcpy(to, from, n);
    } else if (n >= PIECE) {
        for (size_t i = 0; i + PIECE < n; i += PIECE)
            memcpy(to + i, from + i, PIECE);
        memcpy(to + n - PIECE, from + n - PIECE, PIECE);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}
/* Rows of n bytes, so many bytes from one to the next. */
void copy_rows(int64_t rows, size_t n, char *to, int64_t to_step, const char *from, int64_t from_step);
/* to[columns][rows] = from[rows][columns], of 4 bytes each; steps from row to row in elements. */
void transpose_words(int64_t rows, int64_t columns, const void *from, int64_t from_row, void *to, int64_t to_row);
/* Row-major strides of dim. */
void tensor_dense_strides(int rank, const int64_t *dim, int64_t *stride);

#endif
