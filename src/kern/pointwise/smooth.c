/* smooth: the functions of pointwise.def whose multiplications and additions may be contracted, in float32. They process whole vectors, the
 * last one padded, so an element has the same bits wherever it is. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif
#include "kern/core/core.h"
#include "kern/core/mathf.h"
#include "kern/pointwise/pointwise.h"

#include <string.h>

enum { LANES = 16 };

#define VECTOR_ROW(name, expr)
#define SCALAR_ROW(name, expr)
#define NEAR_ROW(name, expr)
#define SMOOTH_ROW(name, expr)                                       \
    SIMD void smooth_##name(const void *px, void *py, int64_t n)     \
    {                                                                \
        const float *in = px;                                        \
        float *out = py, part[LANES] = {0};                          \
        for (int64_t i = 0; i < n; i += LANES) {                     \
            bool all = n - i >= LANES;                               \
            const float *from = all ? in + i : part;                 \
            float *to = all ? out + i : part;                        \
            if (!all)                                                \
                memcpy(part, in + i, (size_t)(n - i) * sizeof *in);  \
            LOOP for (int l = 0; l < LANES; l++)                     \
            {                                                        \
                float x = from[l];                                   \
                to[l] = (expr);                                      \
            }                                                        \
            if (!all)                                                \
                memcpy(out + i, part, (size_t)(n - i) * sizeof *in); \
        }                                                            \
    }
#define UNARY(name, kernel, chain, cost, set, real32, real64) set##_ROW(name, real32)
#include "kern/pointwise/pointwise.def"
