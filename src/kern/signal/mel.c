/* mel: MelWeightMatrix: bands are triangles between points evenly spaced on the mel scale, rounded down to frequencies of the transform. */
#include "kern/core/core.h"

#include <math.h>

static double mel_number(const struct kcall *call, int i)
{
    double number = 0;
    const struct tensor *t = &call->in[i];
    if (tensor_elements(t) != 1)
        fail("%s: operand %d has %lld elements, expected 1", kcall_where(call), i, (long long)tensor_elements(t));
    convert_to_f64(t->dtype, t->data, 1, &number);
    return number;
}

static int64_t mel_size(const struct kcall *call, int operand, const char *attr)
{
    int64_t n = 0;
    if (kcall_sizes(call, operand, attr, &n, 1) != 1 || n < 1 || n > INT32_MAX)
        fail("%s: operand %d is %lld, expected a positive number", kcall_where(call), operand, (long long)n);
    return n;
}

struct mel {
    double low, step, per_bin; /* per_bin: transform frequencies per hertz */
};

/* The frequency of point k. */
static double mel_point(const struct mel *m, int64_t k)
{
    return floor(700 * expm1(((double)k * m->step + m->low) / 2595 * log(10)) * m->per_bin);
}

/* A triangle; the part beyond the transform's frequencies has no row. */
static void put_band(struct tensor *y, int64_t band, double from, double centre, double to)
{
    for (int64_t j = 0; j < y->dim[0]; j++) {
        double at = (double)j, weight = 0;
        if (at >= centre && at < to)
            weight = (to - at) / (to - centre);
        else if (at >= from && at <= centre)
            weight = centre > from ? (at - from) / (centre - from) : 1;
        convert_from_f64(y->dtype, &weight, 1, element_at(y->data, dtype_size(y->dtype), j * y->dim[1] + band));
    }
}

void kern_MelWeightMatrix(struct kcall *call)
{
    struct tensor *y = &call->out[0];
    int64_t bands = mel_size(call, 0, "bands"), length = mel_size(call, 1, "length"), rate = mel_size(call, 2, "rate");
    double low = 2595 * log1p(mel_number(call, 3) / 700) / log(10), high = 2595 * log1p(mel_number(call, 4) / 700) / log(10);
    struct mel m = {low, (high - low) / (double)(bands + 2), (double)(length + 1) / (double)rate};
    require(y->dim[0] == length / 2 + 1 && y->dim[1] == bands);
    for (int64_t k = 0; k < bands; k++)
        put_band(y, k, mel_point(&m, k), mel_point(&m, k + 1), mel_point(&m, k + 2));
}
