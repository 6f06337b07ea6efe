/* Weights of 8 bits of recurrent nets (kern/recurrent/integers.c): sums equal plain loops', for random sizes, types and zero points. */
#include "kern/recurrent/recurrent.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

#include <string.h>

enum { MOST_ROWS = 15, MOST_K = 150, MOST_N = 90, MOST_WIDTH = 192 };
static int number(enum dtype t, uint8_t x)
{
    return t == DT_I8 ? (int8_t)x : x;
}

static void check(int64_t d, int64_t m, int64_t n, int64_t k, enum dtype type, int64_t zeros)
{
    static uint8_t weight[2 * MOST_K * MOST_N], zero[2 * MOST_N];
    static int8_t digit[MOST_ROWS * MOST_WIDTH];
    static float x[MOST_ROWS * MOST_K], c[MOST_ROWS * MOST_N], scale[MOST_N];
    float *row[MOST_ROWS];
    struct tensor w = {.dtype = type, .rank = 3, .dim = {2, k, n}, .data = weight};
    struct tensor z = {.dtype = type, .rank = zeros > 1 ? 2 : 1, .dim = {2, zeros}, .data = zero};
    struct kenv *env = kenv_new(2, false);
    struct rounding rounding = {1, (float)draw(256)};
    for (int64_t i = 0; i < 2 * k * n; i++)
        weight[i] = (uint8_t)draw(256);
    for (int64_t i = 0; i < 2 * zeros; i++)
        zero[i] = (uint8_t)draw(256);
    for (int64_t i = 0; i < m * k; i++)
        x[i] = (float)(draw(256) - (int)rounding.zero);
    for (int64_t j = 0; j < n; j++)
        scale[j] = draw(2) ? 1 : 0.5f;
    const struct codes *packed = integers_pack(&(struct kcall){.env = env}, &w, &z, d, n, k);
    int64_t width = integers_row(packed);
    for (int64_t i = 0; i < m; i++) {
        rounding_digits(rounding, k, width, x + i * k, digit + i * width);
        row[i] = c + i * n;
    }
    for (int64_t i = 0; i < m * n; i++)
        c[i] = 3;
    integers_product(packed, m, digit, (int)rounding.zero, 2, scale, row);
    for (int64_t i = 0; i < m * n; i++) {
        int64_t j = i % n, sum = 0, at = zeros > 1 ? d * n + j : d;
        for (int64_t l = 0; l < k; l++)
            sum += (int64_t)x[i / n * k + l] * (number(type, weight[(d * k + l) * n + j]) - number(type, zero[at]));
        ck_assert_msg(c[i] == 3 + (float)sum * (2 * scale[j]), "[%d, %d] x [%d, %d]: element %d is %g, not %g", (int)m, (int)k, (int)k,
                      (int)n, (int)i, (double)c[i], (double)(3 + (float)sum * (2 * scale[j])));
    }
    kenv_free(env);
}

START_TEST(integers_are_exact)
{
    state = (uint32_t)_i;
    for (int round = 0; round < 30; round++) {
        int64_t n = 2 + draw(MOST_N - 2);
        check(draw(2), 1 + draw(MOST_ROWS), n, draw(MOST_K), draw(2) ? DT_I8 : DT_U8, draw(2) ? n : 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("integers");
    tcase_add_loop_test(unit_case(suite, "integers", NULL, NULL), integers_are_exact, 0, 4);
    return unit_run(suite);
}
