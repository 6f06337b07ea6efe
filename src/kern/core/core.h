/* kern/core: shared by all kernels: scratch and parallel loops, a call's operands and attributes, conversion of storage types, lines along
 * an axis, broadcasting walks, strided copies. Kernels of 16-bit tensors convert blocks to float32, compute, and convert back. */
#ifndef TPC_KERN_CORE_H
#define TPC_KERN_CORE_H

#include "kern/core/isa.h"
#include "kern/kern.h"
#include "kern/table.h"

#include <string.h>

/* Compiled for several instruction sets, chosen at load by the processor. "arch=haswell" would choose by model and exclude AMD. gcc knows
 * x86-64-v3 since version 12. Sanitizers do not survive the resolvers; musl's loader runs none. */
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
/* Runs body on [0, n) in one range per thread; cost: approximate operations per item, so that small work stays on one thread. */
void kenv_parallel_for(struct kenv *, int64_t n, int64_t cost, range_fn *body, void *data);
void kenv_parallel_shares(struct kenv *, int64_t n, int64_t cost, share_fn *body, void *data); /* threads have their own scratch */
/* Scratch by purpose, so that a kernel and its callees do not share one. Each slot only grows. */
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
/* A block kept until kenv_free. */
void *kenv_keep(struct kenv *, size_t bytes);
/* Memory for a packed weight, kept until kenv_free. */
void *kenv_weights(struct kenv *, size_t bytes);
/* Where the packed form of a constant matrix is stored, for all nodes and all graphs of the environment that read it in that form; zeroed
 * before it is filled. It lives as long as the environment. */
struct packed_key {
    const struct constant *weight, *scales, *zeros; /* scales and zeros: of a quantised weight */
    enum dtype dtype;
    int transposed, bits;
    int64_t n, k;
};
void **kenv_packed(struct kenv *, const struct packed_key *);
/* The slot for the state of the library that kernels use, initially NULL; kenv_free passes it to release. */
void **kenv_library(struct kenv *, void (*release)(void *));

/* ---- kcall.c ----------------------------------------------------------------------------------------------------- */
/* Operand i, or NULL if it is absent. */
const struct tensor *kcall_in(const struct kcall *, int i);
struct tensor *kcall_out(const struct kcall *, int i);
/* Sizes from operand i (int32 or int64) if present, else from the DIMS attribute; -1 if neither is given. */
int kcall_sizes(const struct kcall *, int operand, const char *attr, int64_t *out, int max);
const char *kcall_where(const struct kcall *);
/* An axis of a rank, negative counted from the end; fails if it is out of range. */
int kcall_axis(const struct kcall *, int64_t axis, int rank);
_Noreturn void kcall_bad_type(const struct kcall *, enum dtype);
/* A floating-point result in float32: the output itself, or ROOM_C, from which it is stored. */
float *kcall_result_f32(const struct kcall *, const struct tensor *);
void kcall_result_store(const float *from, struct tensor *);
/* An INTS attribute of n entries, one per spatial dimension (or two for pads), none below `otherwise`, which is the default. */
void kcall_spatial(const struct kcall *, const char *attr, int n, int64_t otherwise, int64_t *out);
/* Index number i of an operand into dimension `axis` of size n, negative counted from the end; or a label, which is not. Fails if it is out
 * of range; the error names the node and the indices of the model (attribute lookup) if this node comes from splitting a node of the
 * model. */
int64_t kcall_index(const struct kcall *, int operand, int64_t i, int64_t n, int axis);
int64_t kcall_label(const struct kcall *, int operand, int64_t i, int64_t n, int axis);
/* Element i of an int32 or int64 tensor. */
int64_t kcall_index_at(const struct kcall *, const struct tensor *, int64_t i);
int64_t tensor_dims_product(const int64_t *dim, int from, int to);
/* Product of sizes that a file may have chosen, in bytes; fails on overflow. */
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
/* The whole tensor as float32, with the same strides: itself, or a converted copy in `room`. */
const float *tensor_f32(struct kenv *, const struct tensor *, enum room);
/* A tensor of floats whose sizes are known from elsewhere. */
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
/* (code - zero) * scale, as in DequantizeLinear. */
void byte_codes_decode(const struct byte_scale *, const void *code, int64_t n, float *to);
/* x / scale rounded to even, + zero, saturated, as in QuantizeLinear; NaN becomes the least code. */
void byte_codes_encode(const struct byte_scale *, const float *x, int64_t n, void *code);
/* The least and the greatest of zero and the numbers x; ignores NaN. */
void byte_codes_range(const float *x, int64_t n, float *lo, float *hi);
/* The code of max(a op b, lo), whose operands are codes, or real numbers for b; in one pass, with the same bits as in several. Returns how
 * many of the n were computed: fewer if a result might round differently from a division, or if there is no instruction for it. */
enum byte_codes_op { BYTE_CODES_ADD, BYTE_CODES_SUB, BYTE_CODES_MUL };
struct byte_pair {
    enum byte_codes_op op;
    float lo; /* -inf: none */
    struct byte_scale a, b, y;
};
int64_t byte_codes_combine(const struct byte_pair *, const void *a, const void *b, const float *real, int64_t n, void *code);
/* to[i] = table[code[i]]; a table of 256 entries. */
void byte_codes_map(const uint8_t *code, int64_t n, const uint8_t *table, uint8_t *to);

/* ---- tile.c: products of a few rows with tiles of a matrix -------------------------------------------------------------------------- */
enum { TILE = 32, TILE_ROWS = 6 };
struct tile {
    const float *panel; /* [k, TILE] */
    int64_t k;
    bool more;  /* adds to c */
    bool fused; /* products and sums are rounded together, even without a processor instruction for that */
    const float *a[TILE_ROWS];
    float *c[TILE_ROWS];
};
/* c[rows][TILE] = a[rows][k] panel, for 1 to TILE_ROWS rows. */
void tile_product(int rows, const struct tile *);
/* c[2 TILE] = a[k] times two panels, the second `apart` floats after the first, for one row. One tile has too few independent sums to hide
 * the latency of multiply-adds. */
void tile_pair(const struct tile *, int64_t apart);
/* Sets rows that are a_row and c_row apart. */
static inline void tile_at_rows(struct tile *t, int rows, const float *a, int64_t a_row, float *c, int64_t c_row)
{
    for (int r = 0; r < rows; r++) {
        t->a[r] = a + r * a_row;
        t->c[r] = c + r * c_row;
    }
}
/* tile_fused.c: the same on a processor without multiply-adds, with the bits of those that have them. */
void tile_fused(int rows, const struct tile *);
struct tile_kernel {
    enum isa isa;
    void (*product)(int rows, const struct tile *);
    void (*pair)(const struct tile *, int64_t apart);
};
extern const struct tile_kernel tile_kernels[]; /* fastest first, plain C last */
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
/* Processes line number `line` of n elements in place, with space for n more after them; lines are numbered in the order of the other
 * dimensions. */
typedef void line_f32(void *data, int64_t line, float *x, int64_t n);
typedef void line_f64(void *data, int64_t line, double *x, int64_t n);
struct line_op {
    line_f32 *f32;
    line_f64 *f64;
    int64_t cost;
}; /* cost: approximate operations per element */
/* Applies op to every line of x, into y of the same shape; y NULL: op keeps what it needs. Floating-point storage only. Uses
 * ROOM_KERNEL. */
void axis_line_run(struct kcall *, const struct line_op *, void *data, const struct tensor *x, struct tensor *y, int axis);

/* ---- broadcast_walk.c: loops over broadcast operands ------------------------------------------------------------------------ */
#define WALK_MAX 8 /* result and operands: chains take up to 7 */
struct walk {
    int rank, n;
    int64_t dim[MAX_RANK], stride[WALK_MAX][MAX_RANK];
};
/* Operand 0 is the dense result; the others broadcast to it (fails on a mismatch). Adjacent dimensions are merged. */
void walk_broadcast(const struct kcall *, struct walk *, const struct tensor *out, int nin, const struct tensor *const *in);
/* How an operand continues in a row joined from several short ones, if not contiguously: it does not step, and its offset is that of the
 * first short row. */
struct joined {
    bool repeats;  /* it repeats the same elements */
    int64_t apart; /* or each short row's elements are this far apart */
    bool spreads;  /* with one element in each short row */
};
/* Joins rows of fewer than `most` elements with the following ones, if each operand continues or repeats, or `apart` is set. Returns the
 * elements per short row; 0: not joined. */
int64_t walk_join_rows(struct walk *, int64_t most, bool apart, struct joined *of);
/* row(data, element offset of each operand, elements): a piece of the innermost dimension. */
typedef void row_fn(void *data, const int64_t *offset, int64_t n);
void walk_run(struct kenv *, const struct walk *, int64_t cost, row_fn *, void *data);

/* ---- combine.c: combining an element with an update ----------------------------------------------------------- */
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
/* Elements that are in place already are not copied. */
void copy_strided(struct kenv *, const struct copy *, void *to, const void *from);
void copy_dense(struct kenv *, void *to, const void *from, size_t bytes);
/* Like memcpy, which takes longer to call than to copy a few bytes. */
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
/* Copies rows of n bytes with these row strides. */
void copy_rows(int64_t rows, size_t n, char *to, int64_t to_step, const char *from, int64_t from_step);
/* to[columns][rows] = from[rows][columns], elements of 4 bytes; row strides in elements. */
void transpose_words(int64_t rows, int64_t columns, const void *from, int64_t from_row, void *to, int64_t to_row);
/* Row-major strides of dim. */
void tensor_dense_strides(int rank, const int64_t *dim, int64_t *stride);

#endif
