/* Real numbers as bytes with one scale (kern/core/byte_codes.c): the codes equal those by division, including ties, for any length. */
#include "kern/core/core.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

enum { MOST = 700 };

static int expected(const struct byte_scale *s, float x)
{
    float y = rintf(x / s->scale) + s->zero, least = s->is_signed ? -128 : 0;
    y = y > least ? y : least; /* NaN: the least */
    return (int)(y < least + 255 ? y : least + 255);
}

static void check_codes(const struct byte_scale *s, const float *x, int n)
{
    uint8_t code[MOST + 1];
    memset(code, 0x5a, sizeof code);
    byte_codes_encode(s, x, n, code);
    for (int i = 0; i < n; i++)
        ck_assert_msg((s->is_signed ? (int8_t)code[i] : code[i]) == expected(s, x[i]), "%.9g over %.9g", (double)x[i], (double)s->scale);
    ck_assert_int_eq(code[n], 0x5a);
}

/* Ties and their neighbours by one bit, infinities, NaN, and scales whose inverse is not a finite number. */
START_TEST(codes_are_quotients)
{
    static const float scale[] = {0.05f, 0.0039215689f, 1, 3, 0.1f, 7e-39f, 1e38f, 1e-45f, 3e-39f, INFINITY};
    float x[MOST];
    srand(1);
    for (int k = 0; k < 4 * COUNT(scale); k++) {
        struct byte_scale s = {scale[k / 4], k % 4 < 2 ? 0 : k % 2 ? -7 : 130, k % 2};
        for (int i = 0; i < MOST; i++) {
            float tie = ((float)(rand() % 1200 - 600) * 0.5f) * s.scale;
            x[i] = rand() % 3 ? tie : nextafterf(tie, rand() % 2 ? INFINITY : -INFINITY);
        }
        x[3] = NAN;
        x[4] = INFINITY;
        x[5] = -INFINITY;
        x[6] = 3e38f;
        for (int n = 0; n <= MOST; n += n < 70 ? 1 : 63)
            check_codes(&s, x, n);
    }
}
END_TEST

START_TEST(ranges_have_zero)
{
    float x[MOST], lo, hi;
    srand(2);
    for (int n = 0; n <= MOST; n += n < 150 ? 1 : 61) {
        float least = 0, most = 0, shift = (float)(rand() % 3 - 1) * 600;
        for (int i = 0; i < n; i++) {
            x[i] = rand() % 20 ? (float)(rand() % 1000 - 500) + shift : NAN;
            least = fminf(least, x[i]);
            most = fmaxf(most, x[i]);
        }
        byte_codes_range(x, n, &lo, &hi);
        ck_assert_msg(lo >= least && lo <= least && hi >= most && hi <= most, "%d: %g..%g", n, (double)lo, (double)hi);
    }
}
END_TEST

START_TEST(numbers_of_codes)
{
    uint8_t code[256], table[256], mapped[MOST], many[MOST];
    float y[256];
    for (int i = 0; i < 256; i++) {
        code[i] = (uint8_t)i;
        table[i] = (uint8_t)(i * 7 + 3);
    }
    for (int sign = 0; sign < 2; sign++) {
        struct byte_scale s = {0.37f, sign ? -5 : 77, sign};
        for (int n = 0; n <= 256; n += 5) {
            byte_codes_decode(&s, code, n, y);
            for (int i = 0; i < n; i++) {
                float want = ((float)(sign ? (int8_t)i : i) - s.zero) * s.scale;
                ck_assert(memcmp(&y[i], &want, sizeof want) == 0);
            }
        }
    }
    for (int i = 0; i < MOST; i++)
        many[i] = (uint8_t)(i * 31);
    byte_codes_map(many, MOST, table, mapped);
    for (int i = 0; i < MOST; i++)
        ck_assert_int_eq(mapped[i], table[many[i]]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("byte codes");
    TCase *t = unit_case(suite, "byte codes", NULL, NULL);
    tcase_add_test(t, codes_are_quotients);
    tcase_add_test(t, ranges_have_zero);
    tcase_add_test(t, numbers_of_codes);
    return unit_run(suite);
}
