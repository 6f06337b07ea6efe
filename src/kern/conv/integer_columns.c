/* integer_columns: what the files integer_*.c know of each channel and place of a convolution of 8-bit integers. */
#include "ir/operands.h"
#include "kern/conv/integer_conv.h"

#include <string.h>

float integer_float(const struct tensor *t, float otherwise)
{
    return t ? *(const float *)t->data : otherwise;
}

/* n numbers from number `from` on, from one per channel or one for all. */
static void floats_of(const struct tensor *t, int64_t from, int64_t n, float otherwise, float *to)
{
    bool many = t && tensor_elements(t) > 1;
    for (int64_t j = 0; j < n; j++)
        to[j] = many ? ((const float *)t->data)[from + j] : integer_float(t, otherwise);
}

void integer_conv_columns(const struct integer_conv *v, int64_t from, int64_t n, const int32_t *sums, const int32_t *zero,
                          struct integer_columns *to)
{
    float scale = integer_float(kcall_in(v->call, IN_IntegerConv_X_scale), 1);
    memset(to, 0, sizeof *to);
    to->from = from;
    to->n = n;
    to->zeros = zero != NULL;
    floats_of(kcall_in(v->call, IN_IntegerConv_factor), from, n, 1, to->factor);
    floats_of(kcall_in(v->call, IN_IntegerConv_B), from, n, -0.0f, to->bias); /* the neutral addend */
    for (int64_t j = 0; j < n; j++) {
        to->start[j] = -(int32_t)v->x_zero * sums[j];
        to->zero[j] = zero ? zero[j] : 0;
        to->factor[j] *= scale * v->per_unit;
        to->bias[j] *= v->per_unit;
    }
}

void integer_conv_start(const struct integer_conv *v, int64_t place, int64_t *at)
{
    for (int d = 2; d >= 0; d--) {
        at[d] = place % v->result[d] * v->stride[d] - v->before[d];
        place /= v->result[d];
    }
}
