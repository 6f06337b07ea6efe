/* reduce: reduces several ranks' tensors into one, always in rank order, so that every rank and every run gets the same bits. Floats are
 * summed in float32 (float64 for f64) and rounded once; integers wrap. Blocks of a few hundred elements keep the accumulators in the L1
 * cache. NaN wins a maximum or minimum. */
#include "base/half.h"
#include "kern/core/core.h"
#include "run/comm/comm.h"

enum { BLOCK = 256 };

#define SUM_PLAIN(a, b) ((a) + (b))
#define PROD_PLAIN(a, b) ((a) * (b))
#define SUM_WRAP(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define PROD_WRAP(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define SMALLER(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

/* Combines the first two, or the accumulator and one more. */
#define ADD_BLOCK(OP, LOAD)                                                          \
    if (r == 1)                                                                      \
        LOOP for (int i = 0; i < m; i++) acc[i] = OP(LOAD(first[i]), LOAD(from[i])); \
    else                                                                             \
        LOOP for (int i = 0; i < m; i++) acc[i] = OP(acc[i], LOAD(from[i]));         \
    break
/* T: storage; A: accumulator. */
#define REDUCTION(name, T, A, SUM, PROD, LOAD, STORE)                                                   \
    static SIMD void reduce_##name(void *out, const void *const *in, int nin, int64_t n, enum redop op) \
    {                                                                                                   \
        A acc[BLOCK];                                                                                   \
        T *to = out;                                                                                    \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                     \
            int m = (int)(n - at < BLOCK ? n - at : BLOCK);                                             \
            const T *first = (const T *)in[0] + at;                                                     \
            if (nin == 1)                                                                               \
                LOOP for (int i = 0; i < m; i++) acc[i] = LOAD(first[i]);                               \
            for (int r = 1; r < nin; r++) {                                                             \
                const T *from = (const T *)in[r] + at;                                                  \
                switch (op) {                                                                           \
                case RED_SUM: ADD_BLOCK(SUM, LOAD);                                                     \
                case RED_PROD: ADD_BLOCK(PROD, LOAD);                                                   \
                case RED_MAX: ADD_BLOCK(LARGER, LOAD);                                                  \
                case RED_MIN: ADD_BLOCK(SMALLER, LOAD);                                                 \
                case RED_NONE: bug("no reduction");                                                     \
                }                                                                                       \
            }                                                                                           \
            LOOP for (int i = 0; i < m; i++) to[at + i] = STORE(acc[i]);                                \
        }                                                                                               \
    }
#define AS_I64(x) ((int64_t)(x))
#define AS_U64(x) ((uint64_t)(x))
#define SAME(x) (x)
REDUCTION(f32, float, float, SUM_PLAIN, PROD_PLAIN, SAME, SAME)
REDUCTION(f64, double, double, SUM_PLAIN, PROD_PLAIN, SAME, SAME)
REDUCTION(f16, uint16_t, float, SUM_PLAIN, PROD_PLAIN, f16_to_f32, f32_to_f16)
REDUCTION(bf16, uint16_t, float, SUM_PLAIN, PROD_PLAIN, bf16_to_f32, f32_to_bf16)
REDUCTION(i8, int8_t, int64_t, SUM_WRAP, PROD_WRAP, AS_I64, (int8_t))
REDUCTION(u8, uint8_t, uint64_t, SUM_PLAIN, PROD_PLAIN, AS_U64, (uint8_t))
REDUCTION(i16, int16_t, int64_t, SUM_WRAP, PROD_WRAP, AS_I64, (int16_t))
REDUCTION(u16, uint16_t, uint64_t, SUM_PLAIN, PROD_PLAIN, AS_U64, (uint16_t))
REDUCTION(i32, int32_t, int64_t, SUM_WRAP, PROD_WRAP, AS_I64, (int32_t))
REDUCTION(u32, uint32_t, uint64_t, SUM_PLAIN, PROD_PLAIN, AS_U64, (uint32_t))
REDUCTION(i64, int64_t, int64_t, SUM_WRAP, PROD_WRAP, SAME, SAME)
REDUCTION(u64, uint64_t, uint64_t, SUM_PLAIN, PROD_PLAIN, SAME, SAME)

static void reduce_bool(void *out, const void *const *in, int nin, int64_t n, enum redop op)
{
    /* booleans: sum and max are OR, prod and min are AND */
    reduce_u8(out, in, nin, n, op == RED_SUM || op == RED_MAX ? RED_MAX : RED_MIN);
}

void comm_reduce(void *out, const void *const *in, int nin, int64_t n, enum dtype dtype, enum redop op)
{
    static void (*const by_type[])(void *, const void *const *, int, int64_t, enum redop) = {
        [DT_F32] = reduce_f32, [DT_F64] = reduce_f64, [DT_F16] = reduce_f16,   [DT_BF16] = reduce_bf16, [DT_I8] = reduce_i8,
        [DT_U8] = reduce_u8,   [DT_I16] = reduce_i16, [DT_U16] = reduce_u16,   [DT_I32] = reduce_i32,   [DT_U32] = reduce_u32,
        [DT_I64] = reduce_i64, [DT_U64] = reduce_u64, [DT_BOOL] = reduce_bool,
    };
    require((size_t)dtype < sizeof by_type / sizeof *by_type && by_type[dtype]);
    require(nin > 0 && op != RED_NONE);
    by_type[dtype](out, in, nin, n, op);
}
