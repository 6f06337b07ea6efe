/* tensor_element: reads and writes single elements of tensors of any type, as doubles. */
#include "base/half.h"
#include "job/io/io.h"

/* For a string its number: equal strings have the same. */
double tensor_element(const struct tensor *t, int64_t i)
{
    switch (t->dtype) {
    case DT_F32: return ((const float *)t->data)[i];
    case DT_F64: return ((const double *)t->data)[i];
    case DT_F16: return (double)f16_to_f32(((const uint16_t *)t->data)[i]);
    case DT_BF16: return (double)bf16_to_f32(((const uint16_t *)t->data)[i]);
    case DT_I2:
    case DT_I4:
    case DT_I8: return ((const int8_t *)t->data)[i];
    case DT_U2:
    case DT_U4:
    case DT_U8:
    case DT_BOOL: return ((const uint8_t *)t->data)[i];
    case DT_I16: return ((const int16_t *)t->data)[i];
    case DT_U16: return ((const uint16_t *)t->data)[i];
    case DT_I32: return ((const int32_t *)t->data)[i];
    case DT_U32: return ((const uint32_t *)t->data)[i];
    case DT_STRING:
    case DT_I64: return (double)((const int64_t *)t->data)[i];
    case DT_U64: return (double)((const uint64_t *)t->data)[i];
    case DT_F4E2M1:
    case DT_F8E4M3FN:
    case DT_F8E4M3FNUZ:
    case DT_F8E5M2:
    case DT_F8E5M2FNUZ:
    case DT_F8E8M0: return (double)small_float_decode(t->dtype, ((const uint8_t *)t->data)[i]);
    case DT_NONE: break;
    }
    bug("a tensor of type %d has no numbers", (int)t->dtype);
}

void tensor_put(struct tensor *t, int64_t i, double x)
{
    float f = (float)x;
    switch (t->dtype) {
    case DT_F32: ((float *)t->data)[i] = f; return;
    case DT_F64: ((double *)t->data)[i] = x; return;
    case DT_F16: ((uint16_t *)t->data)[i] = f32_to_f16(f); return;
    case DT_BF16: ((uint16_t *)t->data)[i] = f32_to_bf16(f); return;
    case DT_I2:
    case DT_I4:
    case DT_I8:
    case DT_U2:
    case DT_U4:
    case DT_U8:
    case DT_BOOL: ((uint8_t *)t->data)[i] = (uint8_t)(int64_t)x; return;
    case DT_I16:
    case DT_U16: ((uint16_t *)t->data)[i] = (uint16_t)(int64_t)x; return;
    case DT_I32:
    case DT_U32: ((uint32_t *)t->data)[i] = (uint32_t)(int64_t)x; return;
    case DT_I64:
    case DT_U64: ((int64_t *)t->data)[i] = (int64_t)x; return;
    case DT_F4E2M1:
    case DT_F8E4M3FN:
    case DT_F8E4M3FNUZ:
    case DT_F8E5M2:
    case DT_F8E5M2FNUZ:
    case DT_F8E8M0: ((uint8_t *)t->data)[i] = small_float_encode(t->dtype, f, true); return;
    case DT_NONE:
    case DT_STRING: break; /* a number is no text */
    }
    bug("a tensor of type %d has no numbers", (int)t->dtype);
}
