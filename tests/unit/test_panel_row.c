/* Products of a few rows with a weight of f32 in panels: equal to plain loops', for any shape and kernel; and each row has the same bits as
 * alone. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

#include <string.h>

enum { MOST_K = 200, MOST_N = 150, PANELS = (MOST_N + PANEL_COLUMNS - 1) / PANEL_COLUMNS, PADDED = 208 };

static float a[PANEL_ROWS * MOST_K], w[MOST_K * MOST_N], bias[MOST_N], panels[PANELS * PADDED * PANEL_COLUMNS];

/* Small integers, whose sums are exact, or fractions. */
static void fill(int64_t m, int64_t n, int64_t k, float by)
{
    draw_into(a, m * k);
    draw_into(w, k * n);
    draw_into(bias, n);
    memset(panels, 0, sizeof panels);
    for (int64_t i = 0; i < m * k; i++)
        a[i] *= by;
    for (int64_t i = 0; i < k * n; i++)
        panels[i % n / PANEL_COLUMNS * PANEL_COLUMNS * PADDED + i / n * PANEL_COLUMNS + i % n % PANEL_COLUMNS] = w[i];
}

START_TEST(rows_meet_panels)
{
    static float c[PANEL_ROWS * MOST_N + 1];
    state = (uint32_t)_i;
    for (int round = 0; round < 30; round++) {
        struct kenv *env = kenv_new(1 + (int)draw(2), false);
        int64_t m = 1 + draw(PANEL_ROWS), n = 1 + draw(MOST_N), k = 1 + draw(MOST_K);
        bool adds = draw(2);
        fill(m, n, k, 1);
        c[m * n] = 77;
        panel_row_product(env, &(struct panel_row){m, n, k, PADDED, a, panels, adds ? bias : NULL, c});
        for (int64_t i = 0; i < m * n; i++) {
            float want = adds ? bias[i % n] : 0;
            for (int64_t l = 0; l < k; l++)
                want += a[i / n * k + l] * w[l * n + i % n];
            ck_assert_msg(c[i] >= want && c[i] <= want, "[%d, %d] x [%d, %d]: element %d is %g, not %g", (int)m, (int)k, (int)k, (int)n,
                          (int)i, (double)c[i], (double)want);
        }
        ck_assert(c[m * n] >= 77 && c[m * n] <= 77);
        kenv_free(env);
    }
}
END_TEST

START_TEST(rows_are_those_alone)
{
    static float all[PANEL_ROWS * MOST_N], one[MOST_N];
    state = (uint32_t)_i;
    struct kenv *env = kenv_new(1, false);
    for (int64_t m = 1; m <= PANEL_ROWS; m++) {
        int64_t n = 1 + draw(MOST_N), k = MOST_K - draw(9);
        fill(m, n, k, 1 / 3.0f);
        panel_row_product(env, &(struct panel_row){m, n, k, PADDED, a, panels, bias, all});
        for (int64_t r = 0; r < m; r++) {
            panel_row_product(env, &(struct panel_row){1, n, k, PADDED, a + r * k, panels, bias, one});
            ck_assert_msg(memcmp(one, all + r * n, (size_t)n * sizeof *one) == 0, "row %d of %d", (int)r, (int)m);
        }
    }
    kenv_free(env);
}
END_TEST

START_TEST(every_kernel_adds)
{
    static float sums[PANEL_ROWS * PANEL_COLUMNS], want[PANEL_ROWS * PANEL_COLUMNS];
    state = (uint32_t)_i;
    ISA_EACH(panel_row_kernel, kernel, panel_row_kernels)
    for (int rows = 1; rows <= PANEL_GROUP; rows++) {
        struct panel_part t = {.depth = draw(70), .rows = rows + draw(5), .a = a, .w = panels, .sums = sums};
        fill(PANEL_ROWS, MOST_N, MOST_K, 1);
        draw_into(sums, COUNT(sums));
        memcpy(want, sums, sizeof want);
        for (int64_t l = 0; l < t.depth; l++)
            for (int i = 0; i < rows * PANEL_COLUMNS; i++)
                want[i] += a[l * t.rows + i / PANEL_COLUMNS] * panels[l * PANEL_COLUMNS + i % PANEL_COLUMNS];
        kernel->add(rows, &t);
        ck_assert_msg(memcmp(sums, want, sizeof want) == 0, "%s, %d rows", isa_name(kernel->isa), rows);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("panel_row");
    TCase *c = unit_case(suite, "panel_row", NULL, NULL);
    tcase_add_loop_test(c, rows_meet_panels, 0, 4);
    tcase_add_loop_test(c, rows_are_those_alone, 0, 4);
    tcase_add_loop_test(c, every_kernel_adds, 0, 8);
    return unit_run(suite);
}
