/* f32 weights cast to f16 or bf16 on their way to a file. Rounding is to nearest even; a finite number that would become infinite is
 * refused. */
#include "base/half.h"
#include "onnx/write/write.h"

#include <math.h>
#include <string.h>

static _Noreturn void refuse_element(const char *path, const struct value *v, int64_t element, float f)
{
    fail("%s: element %lld of tensor '%s' is %g, which %s can't hold: choose another type for --weights", path ? path : "the model",
         (long long)element, v->name, (double)f, dtype_name(v->stored));
}

int64_t to_half_piece(const char *path, const struct value *v, int64_t offset, int64_t bytes, uint16_t *out)
{
    float piece[TO_HALF_PIECE];
    int64_t left = bytes / (int64_t)sizeof *piece, n = left < TO_HALF_PIECE ? left : TO_HALF_PIECE;
    bool f16 = v->stored == DT_F16, bad = false;
    memcpy(piece, (const uint8_t *)constant_data(v->constant, v->name) + offset, (size_t)n * sizeof *piece);
    for (int64_t i = 0; i < n; i++) {
        out[i] = f16 ? f32_to_f16(piece[i]) : f32_to_bf16(piece[i]);
        bad |= (out[i] & 0x7fff) == (f16 ? 0x7c00 : 0x7f80) && isfinite(piece[i]);
    }
    for (int64_t i = 0; bad && i < n; i++)
        if (isfinite(piece[i]) && !isfinite(f16 ? f16_to_f32(out[i]) : bf16_to_f32(out[i])))
            refuse_element(path, v, offset / (int64_t)sizeof *piece + i, piece[i]);
    return n;
}
