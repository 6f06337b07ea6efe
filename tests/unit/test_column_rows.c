/* Products of a few rows with an expert's matrix of f32: equal to plain loops', for any shape; and each row has the same bits as alone. */
#include "kern/core/core.h"
#include "kern/product/product.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

#include <string.h>

enum { MOST_M = 19, MOST_N = 30, MOST_K = 70 };

static float a[MOST_M * MOST_K], w[MOST_N * MOST_K];

START_TEST(rows_meet_columns)
{
    static float c[MOST_M * MOST_N + 1];
    state = (uint32_t)_i;
    for (int round = 0; round < 60; round++) {
        int64_t m = 1 + draw(MOST_M), n = 1 + draw(MOST_N), k = 1 + draw(MOST_K);
        draw_into(a, m * k); /* small integers: their sums are exact */
        draw_into(w, n * k);
        c[m * n] = 77;
        column_rows_product(&(struct column_rows){m, n, k, n, a, w, c});
        for (int64_t i = 0; i < m * n; i++) {
            float want = 0;
            for (int64_t l = 0; l < k; l++)
                want += a[i / n * k + l] * w[i % n * k + l];
            ck_assert_msg(c[i] >= want && c[i] <= want, "[%d, %d] x [%d, %d]: element %d is %g, not %g", (int)m, (int)k, (int)n, (int)k,
                          (int)i, (double)c[i], (double)want);
        }
        ck_assert(c[m * n] >= 77 && c[m * n] <= 77);
    }
}
END_TEST

START_TEST(rows_are_those_alone)
{
    static float all[MOST_M * MOST_N], one[MOST_N];
    state = (uint32_t)_i;
    for (int64_t m = 1; m <= MOST_M; m++) {
        int64_t n = 1 + draw(MOST_N), k = MOST_K - draw(20);
        draw_into(a, m * k);
        draw_into(w, n * k);
        for (int64_t i = 0; i < m * k; i++)
            a[i] /= 3;
        column_rows_product(&(struct column_rows){m, n, k, n, a, w, all});
        for (int64_t r = 0; r < m; r++) {
            column_rows_product(&(struct column_rows){1, n, k, n, a + r * k, w, one});
            ck_assert_msg(memcmp(one, all + r * n, (size_t)n * sizeof *one) == 0, "row %d of %d", (int)r, (int)m);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("column_rows");
    TCase *c = unit_case(suite, "column_rows", NULL, NULL);
    tcase_add_loop_test(c, rows_meet_columns, 0, 4);
    tcase_add_loop_test(c, rows_are_those_alone, 0, 4);
    return unit_run(suite);
}
