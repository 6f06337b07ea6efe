/* integers: products of rows of 8-bit digits with 8-bit weights, packed in tiles (codes/codes.c). Sums are exact; zero points are
 * subtracted through the sums of rows and columns. */
#include "kern/codes/codes.h"
#include "kern/recurrent/recurrent.h"

#include <string.h>

struct packed_source {
    const uint8_t *w, *zero; /* of the direction */
    int64_t n, k, zeros;
    uint8_t bias; /* makes signed numbers unsigned */
};

static void read_codes(const void *from, int64_t j, uint8_t *codes)
{
    const struct packed_source *s = from;
    for (int64_t l = 0; l < s->k; l++)
        codes[l] = s->w[l * s->n + j] ^ s->bias;
}

static void read_zeros(const void *from, int64_t j, uint8_t *zeros)
{
    const struct packed_source *s = from;
    *zeros = s->zero[s->zeros > 1 ? j : 0] ^ s->bias;
}

const struct codes *integers_pack(struct kcall *call, const struct tensor *w, const struct tensor *zero, int64_t d, int64_t n, int64_t k)
{
    int64_t zeros = zero->rank == 2 && zero->dim[1] == n ? n : 1, steps = k > 0 ? (k + CODES_STEP - 1) / CODES_STEP : 1;
    struct packed_source s = {.w = (const uint8_t *)w->data + d * n * k,
                              .zero = (const uint8_t *)zero->data + d * zeros,
                              .n = n,
                              .k = k,
                              .zeros = zeros,
                              .bias = w->dtype == DT_I8 ? 0x80 : 0};
    return codes_pack(call,
                      &(struct codes_source){.n = n,
                                             .k = k,
                                             .block = steps * CODES_STEP,
                                             .bits = 8,
                                             .zeros = true,
                                             .integers = true,
                                             .from = &s,
                                             .read_codes = read_codes,
                                             .read_zeros = read_zeros});
}

int64_t integers_row(const struct codes *w)
{
    return w->block;
}

static SIMD int32_t sum_of(const int8_t *digit, int64_t n)
{
    int32_t sum = 0;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++) sum += digit[i];
    return sum;
}

/* n columns of a tile. */
static SIMD void add_scaled(const struct codes *w, int64_t from, int64_t n, const int32_t *sum, int32_t row, int32_t zero, float step,
                            const float *scale, float *c)
{
    LOOP for (int64_t j = 0; j < n; j++)
    {
        int32_t exact = codes_less_zeros(sum[j], row, zero, w->sums[from + j], w->zeros[from + j]);
        c[from + j] += (float)exact * (step * scale[from + j]);
    }
}

void integers_product(const struct codes *w, int64_t m, const int8_t *digit, int zero, float step, const float *scale, float *const *c)
{
    const struct codes_whole_kernel *kernel = codes_whole_best(w, m);
    int32_t sums[CODES_WHOLE_ROWS * CODES_WIDTH], row[CODES_WHOLE_ROWS];
    for (int64_t first = 0; first < m; first += kernel->rows) {
        int64_t rows = m - first < kernel->rows ? m - first : kernel->rows;
        for (int64_t i = 0; i < rows; i++)
            row[i] = sum_of(digit + (first + i) * w->block, w->block);
        for (int64_t from = 0; from < w->n; from += CODES_WIDTH) {
            kernel->whole(w, from / CODES_WIDTH, digit + first * w->block, (int)rows, sums, CODES_WIDTH);
            for (int64_t i = 0; i < rows; i++)
                add_scaled(w, from, w->n - from < CODES_WIDTH ? w->n - from : CODES_WIDTH, sums + i * CODES_WIDTH, row[i], zero - 128, step,
                           scale, c[first + i]);
        }
    }
}
