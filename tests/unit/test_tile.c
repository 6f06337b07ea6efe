/* Tiles: every kernel's products equal plain loops', also with weights in tiles. Numbers are small integers: sums are exact. */
#include "base/half.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 40, MOST_K = 300, MOST_N = 100 };

static float dot(const float *a, const float *b, int64_t step, int64_t k)
{
    float sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum += a[l] * b[l * step];
    return sum;
}

static void check_tile(const struct tile_kernel *kernel, int rows, struct tile t, int64_t c_row)
{
    float before[TILE_ROWS * 2 * TILE], *c = t.c[0];
    memcpy(before, c, sizeof before);
    kernel->product(rows, &t);
    for (int64_t i = 0; i < TILE_ROWS * c_row; i++) {
        int64_t row = i / c_row, column = i % c_row;
        bool inside = row < rows && column < TILE;
        float want = inside ? dot(t.a[row], t.panel + column, TILE, t.k) : before[i];
        if (inside && t.more)
            want += before[i];
        ck_assert_msg(c[i] >= want && c[i] <= want, "%s, %d rows, k %d: element %d is %g, not %g", isa_name(kernel->isa), rows, (int)t.k,
                      (int)i, (double)c[i], (double)want);
    }
}

START_TEST(every_kernel_multiplies_tiles)
{
    static float a[TILE_ROWS * 60], panel[50 * TILE], c[TILE_ROWS * 2 * TILE];
    state = (uint32_t)_i;
    ISA_EACH(tile_kernel, kernel, tile_kernels)
    for (int rows = 1; rows <= TILE_ROWS; rows++)
        for (int round = 0; round < 20; round++) {
            draw_into(a, COUNT(a));
            draw_into(panel, COUNT(panel));
            draw_into(c, COUNT(c));
            struct tile t = {.panel = panel, .k = draw(50), .more = draw(2) == 1};
            int64_t c_row = TILE + draw(TILE);
            tile_at_rows(&t, rows, a, 50 + draw(10), c, c_row);
            check_tile(kernel, rows, t, c_row);
        }
}
END_TEST

START_TEST(every_kernel_multiplies_pairs)
{
    static float a[50], panel[2 * 50 * TILE + 100], c[2 * TILE];
    state = (uint32_t)_i;
    ISA_EACH(tile_kernel, kernel, tile_kernels)
    for (int round = 0; round < 20; round++) {
        float before[2 * TILE];
        struct tile t = {.panel = panel, .k = draw(50), .more = draw(2) == 1, .a = {a}, .c = {c}};
        int64_t apart = t.k * TILE + draw(100);
        draw_into(a, COUNT(a));
        draw_into(panel, COUNT(panel));
        draw_into(c, COUNT(c));
        memcpy(before, c, sizeof before);
        kernel->pair(&t, apart);
        for (int64_t i = 0; i < 2 * TILE; i++) {
            float want = dot(a, panel + i / TILE * apart + i % TILE, TILE, t.k) + (t.more ? before[i] : 0);
            ck_assert_msg(c[i] >= want && c[i] <= want, "%s, k %d: element %d is %g, not %g", isa_name(kernel->isa), (int)t.k, (int)i,
                          (double)c[i], (double)want);
        }
    }
}
END_TEST

/* Any bits. */
static float any_float(void)
{
    float x;
    uint32_t bits = (uint32_t)(draw(1 << 24) << 8 ^ draw(1 << 24));
    if (draw(4)) /* sums that cancel, and halves between two floats */
        bits = (bits & 0x80f00003) | (uint32_t)(120 + draw(14)) << 23;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Where a tile asks for it, each product and sum is rounded once, by every kernel. */
START_TEST(fused_tiles_round_once)
{
    static float a[TILE_ROWS * 8], panel[8 * TILE], c[TILE_ROWS * TILE], want[TILE_ROWS * TILE];
    state = (uint32_t)_i;
    for (int round = 0; round < 300; round++) {
        int rows = 1 + (int)draw(TILE_ROWS);
        struct tile t = {.panel = panel, .k = draw(8), .more = draw(2) == 1, .fused = true};
        for (int i = 0; i < COUNT(a); i++)
            a[i] = any_float();
        for (int i = 0; i < COUNT(panel); i++)
            panel[i] = any_float();
        draw_into(want, COUNT(want));
        ISA_EACH(tile_kernel, kernel, tile_kernels)
        {
            memcpy(c, want, sizeof c);
            tile_at_rows(&t, rows, a, 8, c, TILE);
            kernel->product(rows, &t);
            for (int i = 0; i < rows * TILE; i++) {
                float sum = 0;
                for (int64_t l = 0; l < t.k; l++)
                    sum = fmaf(t.a[i / TILE][l], panel[l * TILE + i % TILE], sum);
                sum = t.more ? want[i] + sum : sum;
                ck_assert_msg((isnan(sum) && isnan(c[i])) || memcmp(&sum, &c[i], sizeof sum) == 0, "%s: element %d is %a, not %a",
                              isa_name(kernel->isa), i, (double)c[i], (double)sum);
            }
        }
    }
}
END_TEST

/* c = alpha a b + beta c, whatever is transposed and lies between the rows, which stays. */
START_TEST(products_in_tiles)
{
    enum { ROOM = 400 * 100 };
    static float a[ROOM], b[ROOM], c[ROOM], before[ROOM];
    static const float factors[] = {0, 1, -0.5f, 2};
    struct kenv *env = kenv_new(2, false);
    state = (uint32_t)_i;
    for (int round = 0; round < 40; round++) {
        bool ta = draw(2), tb = draw(2);
        int64_t m = 1 + draw(20), n = 1 + draw(90), k = 1 + draw(draw(4) ? 40 : 390);
        int64_t lda = (ta ? m : k) + draw(3), ldb = (tb ? k : n) + draw(3), ldc = n + draw(3);
        float alpha = factors[1 + draw(3)], beta = factors[draw(4)];
        draw_into(a, ROOM);
        draw_into(b, ROOM);
        draw_into(c, ROOM);
        for (int i = 0; i < ROOM && !(beta < 0 || beta > 0); i++)
            c[i] = NAN; /* is not read */
        memcpy(before, c, sizeof c);
        tile_gemm(env, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        for (int64_t i = 0; i < m * ldc; i++) {
            int64_t row = i / ldc, column = i % ldc;
            float want = before[i], sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += column < n ? a[ta ? l * lda + row : row * lda + l] * b[tb ? column * ldb + l : l * ldb + column] : 0;
            if (column < n)
                want = alpha * sum + (beta < 0 || beta > 0 ? beta * before[i] : 0);
            ck_assert_msg((isnan(want) && isnan(c[i])) || (c[i] >= want && c[i] <= want), "%d %d: element %d %d is %g, not %g", ta, tb,
                          (int)row, (int)column, (double)c[i], (double)want);
        }
    }
    kenv_free(env);
}
END_TEST

/* These numbers are the same in bf16. */
START_TEST(products_in_bf16)
{
    enum { ROOM = 600 * 100 };
    static float a[ROOM], b[ROOM], c[ROOM];
    struct kenv *env = kenv_new(2, false);
    state = (uint32_t)_i;
    for (int round = 0; round < 10; round++)
        ISA_EACH(narrow_kernel, kernel, narrow_kernels)
        {
            bool ta = draw(2), tb = draw(2);
            int64_t m = 1 + draw(20), n = 1 + draw(90), k = 1 + draw(draw(2) ? 40 : 590);
            draw_into(a, ROOM);
            draw_into(b, ROOM);
            draw_into(c, ROOM);
            float behind = c[m * n];
            narrow_gemm(env, kernel, ta, tb, m, n, k, a, b, c);
            for (int64_t i = 0; i < m * n; i++) {
                int64_t row = i / n, column = i % n;
                float want = 0;
                for (int64_t l = 0; l < k; l++)
                    want += a[ta ? l * m + row : row * k + l] * b[tb ? column * k + l : l * n + column];
                if (!(c[i] >= want && c[i] <= want))
                    ck_abort_msg("%s, %d %d: element %d %d is %g, not %g", isa_name(kernel->isa), ta, tb, (int)row, (int)column,
                                 (double)c[i], (double)want);
            }
            ck_assert(c[m * n] >= behind && c[m * n] <= behind);
        }
    kenv_free(env);
}
END_TEST

/* Kernels round alike: to the nearest, a half to the even one. */
START_TEST(numbers_become_bf16)
{
    float x[8];
    uint16_t want[16], got[16];
    state = (uint32_t)_i;
    for (int round = 0; round < 200; round++) {
        int64_t n = 1 + draw(8);
        for (int i = 0; i < COUNT(x); i++)
            x[i] = any_float();
        for (int i = 0; i < COUNT(want); i++)
            want[i] = 0xabcd;
        for (int64_t i = 0; i < n; i++)
            want[i / 4 * 8 + i % 4] = f32_to_bf16(x[i]);
        ISA_EACH(narrow_kernel, kernel, narrow_kernels)
        {
            for (int i = 0; i < COUNT(got); i++)
                got[i] = 0xabcd;
            kernel->convert(n, x, 8, got);
            for (int i = 0; i < COUNT(got); i++)
                ck_assert_msg(got[i] == want[i] || isnan(x[i / 8 * 4 + i % 4]), "%s: %a is %x, not %x", isa_name(kernel->isa),
                              (double)x[i / 8 * 4 + i % 4], got[i], want[i]);
        }
    }
}
END_TEST

/* b[k, n], or its transpose, in a storage type. */
static void store(enum dtype t, const float *b, int64_t k, int64_t n, bool transposed, void *to)
{
    for (int64_t i = 0; i < k * n; i++)
        convert_from_f32(t, &b[transposed ? i % k * n + i / k : i], 1, element_at(to, dtype_size(t), i));
}

static void check_product(int threads, enum dtype t, int64_t m, int64_t n, int64_t k, bool transposed)
{
    static float a[MOST_ROWS * MOST_K], b[MOST_K * MOST_N], stored[MOST_K * MOST_N], c[MOST_ROWS * MOST_N];
    struct kenv *env = kenv_new(threads, false);
    struct tensor w = {.dtype = t, .rank = 2, .dim = {transposed ? n : k, transposed ? k : n}, .data = stored};
    void *cache = NULL;
    draw_into(a, m * k);
    draw_into(b, k * n);
    store(t, b, k, n, transposed, stored);
    struct kcall call = {.env = env, .cache = &cache};
    const struct panels *tiled = tiled_weight(&call, &w, n, k, transposed);
    memset(stored, 0, sizeof stored); /* the tiles are all that is read */
    packed_gemm(&call, tiled, m, a, c);
    for (int64_t i = 0; i < m * n; i++) {
        float want = dot(a + i / n * k, b + i % n, n, k);
        ck_assert_msg(c[i] >= want && c[i] <= want, "%s [%d, %d] x [%d, %d]: element %d is %g, not %g", dtype_name(t), (int)m, (int)k,
                      (int)k, (int)n, (int)i, (double)c[i], (double)want);
    }
    kenv_free(env);
}

START_TEST(weights_in_tiles_multiply)
{
    static const enum dtype types[] = {DT_F32, DT_F16, DT_BF16};
    state = (uint32_t)_i;
    for (int round = 0; round < 30; round++) {
        int64_t m = 1 + (round % 2 ? draw(TILE_ROWS) : draw(MOST_ROWS));
        check_product(1 + (int)draw(3), types[draw(COUNT(types))], m, 1 + draw(MOST_N), 1 + draw(MOST_K), draw(2) == 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tile");
    TCase *tile = unit_case(suite, "tile", NULL, NULL);
    tcase_add_loop_test(tile, every_kernel_multiplies_tiles, 0, 4);
    tcase_add_loop_test(tile, every_kernel_multiplies_pairs, 0, 4);
    tcase_add_loop_test(tile, fused_tiles_round_once, 0, 4);
    tcase_add_loop_test(tile, products_in_tiles, 0, 4);
    tcase_add_loop_test(tile, products_in_bf16, 0, 4);
    tcase_add_loop_test(tile, numbers_become_bf16, 0, 4);
    tcase_add_loop_test(tile, weights_in_tiles_multiply, 0, 4);
    return unit_run(suite);
}
