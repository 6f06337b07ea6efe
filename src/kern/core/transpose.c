/* transpose: matrices of 4-byte words, four rows and columns at a time in registers. */
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"

#include <string.h>

#if X86
enum { SIDE = 4 };
static void transpose_square(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + from_row);
    __m128 c = _mm_loadu_ps(from + 2 * from_row), d = _mm_loadu_ps(from + 3 * from_row);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + to_row, b);
    _mm_storeu_ps(to + 2 * to_row, c);
    _mm_storeu_ps(to + 3 * to_row, d);
}
#elif NEON
enum { SIDE = 4 };
static void transpose_square(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    float32x4x2_t a = vtrnq_f32(vld1q_f32(from), vld1q_f32(from + from_row));
    float32x4x2_t b = vtrnq_f32(vld1q_f32(from + 2 * from_row), vld1q_f32(from + 3 * from_row));
    vst1q_f32(to, vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0])));
    vst1q_f32(to + to_row, vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1])));
    vst1q_f32(to + 2 * to_row, vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0])));
    vst1q_f32(to + 3 * to_row, vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1])));
}
#else
enum { SIDE = 1 };
static void transpose_square(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    (void)from_row, (void)to_row;
    memcpy(to, from, sizeof *to);
}
#endif

static void transpose_part(int64_t rows, int64_t columns, const float *from, int64_t from_row, float *to, int64_t to_row)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            memcpy(to + j * to_row + i, from + i * from_row + j, sizeof *to);
}

void transpose_words(int64_t rows, int64_t columns, const void *from, int64_t from_row, void *to, int64_t to_row)
{
    const float *f = from;
    float *t = to;
    int64_t whole_rows = rows / SIDE * SIDE, whole_columns = columns / SIDE * SIDE;
    for (int64_t j = 0; j < whole_columns; j += SIDE)
        for (int64_t i = 0; i < whole_rows; i += SIDE)
            transpose_square(f + i * from_row + j, from_row, t + j * to_row + i, to_row);
    transpose_part(whole_rows, columns - whole_columns, f + whole_columns, from_row, t + whole_columns * to_row, to_row);
    transpose_part(rows - whole_rows, columns, f + whole_rows * from_row, from_row, t + whole_rows, to_row);
}
