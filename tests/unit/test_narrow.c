/* Products in bf16 with a weight that is packed: every kernel's few rows equal plain loops', and so do the library's products, for any
 * shape and storage. Numbers are small integers: sums are exact. */
#include "base/half.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 40, MOST_K = 150, MOST_N = 150 };

static uint16_t bf16_drawn(void)
{
    return f32_to_bf16((float)(draw(17) - 8));
}

START_TEST(every_kernel_multiplies_few_rows)
{
    enum { PAIRS = 40, MOST_STEP = PANEL_COLUMNS + 9 };
    static uint16_t a[NARROW_ROWS * 2 * (PAIRS + 5)], panel[2 * PAIRS * PANEL_COLUMNS];
    static float c[NARROW_ROWS * MOST_STEP], before[NARROW_ROWS * MOST_STEP];
    state = (uint32_t)_i;
    ISA_EACH(narrow_row_kernel, kernel, narrow_row_kernels)
    for (int rows = 1; rows <= NARROW_ROWS; rows++) {
        struct narrow_tile t = {draw(PAIRS), a, 2 * (PAIRS + draw(5)), panel, c, PANEL_COLUMNS + draw(9), draw(2), 0};
        for (int i = 0; i < COUNT(a); i++)
            a[i] = bf16_drawn();
        for (int i = 0; i < COUNT(panel); i++)
            panel[i] = bf16_drawn();
        draw_into(before, COUNT(before));
        memcpy(c, before, sizeof c);
        kernel->sums(rows, &t);
        for (int i = 0; i < COUNT(c); i++) {
            int64_t r = i / t.c_row, j = i % t.c_row;
            bool inside = r < rows && j < PANEL_COLUMNS;
            float want = !inside || t.more ? before[i] : 0;
            for (int64_t l = 0; inside && l < 2 * t.pairs; l++)
                want += bf16_to_f32(a[r * t.a_row + l]) * bf16_to_f32(panel[(l / 2 * PANEL_COLUMNS + j) * 2 + l % 2]);
            ck_assert_msg(c[i] >= want && c[i] <= want, "%s, %d rows of %d pairs: number %d is %g, not %g", isa_name(kernel->isa), rows,
                          (int)t.pairs, i, (double)c[i], (double)want);
        }
    }
}
END_TEST

/* To the nearest, a half to the even one; nothing past the last. */
START_TEST(every_kernel_rounds)
{
    enum { MOST = 70 };
    float x[MOST];
    uint16_t got[MOST + 1];
    state = (uint32_t)_i;
    ISA_EACH(narrow_row_kernel, kernel, narrow_row_kernels)
    for (int round = 0; round < 200; round++) {
        int64_t n = draw(MOST + 1);
        for (int i = 0; i < MOST; i++) {
            union float_bits b = {.u = (uint32_t)draw(1 << 24) << 8 ^ (uint32_t)draw(1 << 24)};
            b.u = draw(3) ? b.u : (b.u & 0xffff0000) | 0x8000; /* between two numbers */
            x[i] = isnormal(b.f) || isinf(b.f) ? b.f : 0;
        }
        got[n] = 0xabcd;
        kernel->round(x, n, got);
        ck_assert_int_eq(got[n], 0xabcd);
        for (int64_t i = 0; i < n; i++)
            ck_assert_msg(got[i] == f32_to_bf16(x[i]), "%s: %a is %x, not %x", isa_name(kernel->isa), (double)x[i], got[i],
                          f32_to_bf16(x[i]));
    }
}
END_TEST

/* Numbers as a tensor of a type: x[rows, columns] or its transpose. */
static struct tensor stored(enum dtype t, const float *x, int64_t rows, int64_t columns, bool transposed, void *room)
{
    for (int64_t i = 0; i < rows * columns; i++)
        convert_from_f32(t, &x[transposed ? i % rows * columns + i / rows : i], 1, element_at(room, dtype_size(t), i));
    return (struct tensor){.dtype = t, .rank = 2, .dim = {transposed ? columns : rows, transposed ? rows : columns}, .data = room};
}

/* A weight [k, n] in panels. */
static void in_panels(const float *w, int64_t n, int64_t k, int64_t padded, uint16_t *to)
{
    memset(to, 0, (size_t)((n + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS * padded) * sizeof *to);
    for (int64_t i = 0; i < k * n; i++) {
        int64_t l = i / n, j = i % n, panel = j / PANEL_COLUMNS * PANEL_COLUMNS * padded;
        to[panel + (l / 2 * PANEL_COLUMNS + j % PANEL_COLUMNS) * 2 + l % 2] = f32_to_bf16(w[i]);
    }
}

/* From rows of k or of n, in any storage. */
static void check_panels(struct kenv *env, const float *w, int64_t n, int64_t k, int64_t padded, const uint16_t *want)
{
    static const enum dtype types[] = {DT_F32, DT_F16, DT_BF16};
    static float room[MOST_K * MOST_N];
    static uint16_t got[4 * PANEL_COLUMNS * 192];
    bool transposed = draw(2);
    struct tensor weight = stored(types[draw(COUNT(types))], w, k, n, transposed, room);
    int64_t all = (n + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS * padded;
    memset(got, 0xff, sizeof got);
    narrow_panels(env, &weight, n, k, transposed, padded, got);
    ck_assert_msg(memcmp(got, want, (size_t)all * sizeof *got) == 0, "%s [%d, %d]%s", dtype_name(weight.dtype), (int)k, (int)n,
                  transposed ? ", transposed" : "");
    ck_assert_int_eq(got[all], 0xffff);
}

/* Rows of any storage are rounded, and meet all columns; what was in their room is not read. */
START_TEST(few_rows_meet_panels)
{
    static const enum dtype types[] = {DT_F32, DT_F16, DT_BF16};
    enum { PADDED = 192, TURNED = 1 << 14 };
    static float a[NARROW_FEW_ROWS * MOST_K], room[NARROW_FEW_ROWS * MOST_K], w[MOST_K * MOST_N], bias[MOST_N], c[NARROW_FEW_ROWS * MOST_N];
    static uint16_t panels[3 * PANEL_COLUMNS * PADDED];
    state = (uint32_t)_i;
    for (int round = 0; round < 20; round++) {
        struct kenv *env = kenv_new(1 + (int)draw(2), false);
        int64_t m = 1 + draw(NARROW_FEW_ROWS), n = 1 + draw(MOST_N), k = 1 + draw(MOST_K), pairs = (k + 1) / 2;
        bool adds = draw(2);
        draw_into(a, m * k);
        draw_into(w, k * n);
        draw_into(bias, n);
        in_panels(w, n, k, PADDED, panels);
        check_panels(env, w, n, k, PADDED, panels);
        memset(kenv_room(env, ROOM_NARROW, TURNED), 0xff, TURNED);
        struct tensor left = stored(types[draw(COUNT(types))], a, m, k, false, room);
        const uint16_t *rows = narrow_rows(env, &left, m, k, 2 * pairs);
        narrow_row_product(env, &(struct narrow_row){m, n, pairs, PADDED, rows, panels, adds ? bias : NULL, c});
        for (int64_t i = 0; i < m * n; i++) {
            float want = adds ? bias[i % n] : 0;
            for (int64_t l = 0; l < k; l++)
                want += a[i / n * k + l] * w[l * n + i % n];
            ck_assert_msg(c[i] >= want && c[i] <= want, "%s [%d, %d] x [%d, %d]: element %d is %g, not %g", dtype_name(left.dtype), (int)m,
                          (int)k, (int)k, (int)n, (int)i, (double)c[i], (double)want);
        }
        kenv_free(env);
    }
}
END_TEST

START_TEST(every_kernel_rounds_into_tiles)
{
    enum { STEPS = 5, STEP = NARROW_TILE_DEPTH, APART = NARROW_TILE_ROWS * STEP };
    static float x[STEPS * STEP];
    static uint16_t to[STEPS * APART], want[STEPS * APART];
    state = (uint32_t)_i;
    ISA_EACH(narrow_part_kernel, kernel, narrow_part_kernels)
    for (int64_t steps = 0, k; steps <= STEPS; steps++) {
        k = steps * STEP - (steps ? draw(2 * STEP) : 0);
        k = k < 0 ? 0 : k;
        for (int i = 0; i < COUNT(x); i++)
            x[i] = (float)draw(1 << 20) / 777;
        memset(to, 0x77, sizeof to);
        memset(want, 0x77, sizeof want);
        for (int64_t i = 0; i < steps * STEP; i++)
            want[i / STEP * APART + i % STEP] = i < k ? f32_to_bf16(x[i]) : 0;
        kernel->place(x, k, steps * STEP, to);
        ck_assert_msg(memcmp(to, want, sizeof to) == 0, "%s, %d numbers of %d steps", isa_name(kernel->isa), (int)k, (int)steps);
    }
}
END_TEST

/* Where a block ends within a tile, only what is inside is written. */
START_TEST(every_kernel_multiplies_parts)
{
    enum {
        MOST = 70,
        PANELS = 3,
        GROUPS = (MOST + NARROW_TILE_ROWS - 1) / NARROW_TILE_ROWS,
        STEPS = 4,
        APART = PANELS * PANEL_COLUMNS + 9
    };
    static uint16_t a[GROUPS * (STEPS + 2) * NARROW_TILE_ROWS * NARROW_TILE_DEPTH],
        panel[PANELS * (STEPS + 1) * NARROW_TILE_DEPTH * PANEL_COLUMNS];
    static float c[MOST * APART], before[MOST * APART], bias[PANELS * PANEL_COLUMNS];
    state = (uint32_t)_i;
    ISA_EACH(narrow_part_kernel, kernel, narrow_part_kernels)
    for (int round = 0; round < 60; round++) {
        int64_t steps = 1 + draw(STEPS), rows = 1 + draw(MOST), columns = draw(2) ? PANEL_COLUMNS : 1 + draw(PANELS * PANEL_COLUMNS);
        int64_t apart = (steps + draw(2)) * NARROW_TILE_DEPTH * PANEL_COLUMNS;
        struct narrow_part p = {rows,
                                columns,
                                steps,
                                a,
                                (steps + draw(3)) * NARROW_TILE_ROWS * NARROW_TILE_DEPTH,
                                panel,
                                apart,
                                draw(2) ? bias : NULL,
                                draw(2),
                                c,
                                PANELS * PANEL_COLUMNS + draw(9)};
        for (int i = 0; i < COUNT(a); i++)
            a[i] = bf16_drawn();
        for (int i = 0; i < COUNT(panel); i++)
            panel[i] = bf16_drawn();
        draw_into(bias, COUNT(bias));
        draw_into(before, COUNT(before));
        memcpy(c, before, sizeof c);
        kernel->product(&p);
        for (int i = 0; i < COUNT(c); i++) {
            int64_t r = i / p.c_row, j = i % p.c_row;
            bool inside = r < rows && j < columns;
            const uint16_t *row = a + r / NARROW_TILE_ROWS * p.a_group + r % NARROW_TILE_ROWS * NARROW_TILE_DEPTH;
            float want = !inside || p.more ? before[i] : p.bias ? bias[j] : 0;
            for (int64_t l = 0; inside && l < steps * NARROW_TILE_DEPTH; l++)
                want += bf16_to_f32(row[l / NARROW_TILE_DEPTH * NARROW_TILE_ROWS * NARROW_TILE_DEPTH + l % NARROW_TILE_DEPTH]) *
                    bf16_to_f32(panel[j / PANEL_COLUMNS * apart + (l / 2 * PANEL_COLUMNS + j % PANEL_COLUMNS) * 2 + l % 2]);
            ck_assert_msg(c[i] >= want && c[i] <= want, "%s, [%d, %d] of %d steps: number %d is %g, not %g", isa_name(kernel->isa),
                          (int)rows, (int)columns, (int)steps, i, (double)c[i], (double)want);
        }
    }
}
END_TEST

/* Rows of any storage, or columns, in blocks and stretches, on any number of threads. */
START_TEST(many_rows_meet_panels)
{
    static const enum dtype types[] = {DT_F32, DT_F16, DT_BF16};
    enum { ROWS = 1100, N = 70, K = 1100, MOST = 40000, TURNED = 1 << 16 };
    static float a[MOST], room[MOST], w[MOST], bias[N], c[ROWS * N];
    static uint16_t panels[2 * PANEL_COLUMNS * (K + NARROW_TILE_DEPTH)];
    state = (uint32_t)_i;
    for (int round = 0; round < 12; round++) {
        struct kenv *env = kenv_new(1 + (int)draw(3), false);
        int64_t n = 1 + draw(N), k = 1 + draw(round % 3 ? 100 : K), most = MOST / k, m = 1 + draw((int)(most < ROWS ? most : ROWS));
        bool adds = draw(2), transposed = draw(2);
        n = k * n > MOST ? MOST / k : n;
        draw_into(a, m * k);
        draw_into(w, k * n);
        draw_into(bias, n);
        in_panels(w, n, k, (k + NARROW_TILE_DEPTH - 1) / NARROW_TILE_DEPTH * NARROW_TILE_DEPTH, panels);
        memset(kenv_room(env, ROOM_NARROW, TURNED), 0xff, TURNED);
        struct tensor left = stored(types[draw(COUNT(types))], a, m, k, transposed, room);
        narrow_tiles_product(env, &(struct narrow_tiles){m, n, k, &left, transposed, panels, adds ? bias : NULL, c});
        for (int64_t i = 0; i < m * n; i++) {
            float want = adds ? bias[i % n] : 0;
            for (int64_t l = 0; l < k; l++)
                want += a[i / n * k + l] * w[l * n + i % n];
            ck_assert_msg(c[i] >= want && c[i] <= want, "%s [%d, %d]%s x [%d, %d]: element %d is %g, not %g", dtype_name(left.dtype),
                          (int)m, (int)k, transposed ? ", transposed" : "", (int)k, (int)n, (int)i, (double)c[i], (double)want);
        }
        kenv_free(env);
    }
}
END_TEST

struct sizes {
    int64_t n, k;
    bool transposed;
};

static void check_rows(struct kenv *env, void **cache, const struct sizes *z, const float *w, const struct tensor *weight, enum dtype t,
                       int64_t m)
{
    static float a[MOST_ROWS * MOST_K], room[MOST_ROWS * MOST_K], bias[MOST_N], c[MOST_ROWS * MOST_N + 1];
    bool adds = draw(2);
    draw_into(a, m * z->k);
    draw_into(bias, z->n);
    draw_into(c, COUNT(c));
    struct tensor left = stored(t, a, m, z->k, false, room);
    float behind = c[m * z->n];
    ck_assert(dnnl_product_packed(env, cache, m, z->n, z->k, &left, weight, z->transposed, adds ? bias : NULL, c));
    for (int64_t i = 0; i < m * z->n; i++) {
        float want = adds ? bias[i % z->n] : 0;
        for (int64_t l = 0; l < z->k; l++)
            want += a[i / z->n * z->k + l] * w[l * z->n + i % z->n];
        ck_assert_msg(c[i] >= want && c[i] <= want, "%s x %s, [%d, %d] x [%d, %d]: element %d is %g, not %g", dtype_name(t),
                      dtype_name(weight->dtype), (int)m, (int)z->k, (int)z->k, (int)z->n, (int)i, (double)c[i], (double)want);
    }
    ck_assert(c[m * z->n] >= behind && c[m * z->n] <= behind);
}

/* One packed copy serves any number of rows: the weight itself may be gone. */
START_TEST(packed_weights_multiply)
{
    static const enum dtype types[] = {DT_F32, DT_F16, DT_BF16};
    static float w[MOST_K * MOST_N], room[MOST_K * MOST_N];
    state = (uint32_t)_i;
    for (int round = 0; round < 20 && dnnl_narrows(); round++) {
        struct kenv *env = kenv_new(1 + (int)draw(2), false);
        struct sizes z = {1 + draw(MOST_N), 1 + draw(MOST_K), draw(2)};
        void *cache = NULL;
        enum dtype t = types[draw(COUNT(types))];
        if (t != DT_BF16)
            kenv_narrow(env);
        draw_into(w, z.k * z.n);
        struct tensor weight = stored(t, w, z.k, z.n, z.transposed, room);
        if (dnnl_pack_weight(env, &cache, z.n, z.k, &weight, z.transposed))
            memset(room, 0x7f, sizeof room);
        for (int i = 0; i < 8; i++)
            check_rows(env, &cache, &z, w, &weight, types[draw(COUNT(types))], i < 5 ? 1 + i : 1 + draw(MOST_ROWS));
        kenv_free(env);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("narrow");
    TCase *narrow = unit_case(suite, "narrow", NULL, NULL);
    tcase_add_loop_test(narrow, every_kernel_multiplies_few_rows, 0, 4);
    tcase_add_loop_test(narrow, every_kernel_rounds, 0, 4);
    tcase_add_loop_test(narrow, few_rows_meet_panels, 0, 4);
    tcase_add_loop_test(narrow, every_kernel_multiplies_parts, 0, 4);
    tcase_add_loop_test(narrow, every_kernel_rounds_into_tiles, 0, 4);
    tcase_add_loop_test(narrow, many_rows_meet_panels, 0, 4);
    tcase_add_loop_test(narrow, packed_weights_multiply, 0, 4);
    return unit_run(suite);
}
