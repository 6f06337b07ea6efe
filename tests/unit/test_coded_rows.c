/* Rows of codes (kern/core/coded_rows.c), and attention that reads them: what it gives for the numbers that they stand for. */
#include "kern/attention/attention.h"
#include "tests/unit/kernel.h"

#include <math.h>
#include <string.h>

static struct tensor made(enum dtype dtype, int rank, const int64_t *dim)
{
    return tensor_new(dtype, rank, dim, NULL);
}

/* As rows of codes: within half a scale, the same when coded again, with what is no number kept. */
START_TEST(rows_of_codes)
{
    enum { ROWS = 3, SIZE = 45, BYTES = 49 };
    struct tensor x = made(DT_F32, DIMS(ROWS, SIZE)), c = made(DT_I8, DIMS(ROWS, BYTES)), y = made(DT_F32, DIMS(ROWS, SIZE));
    struct tensor again = made(DT_I8, DIMS(ROWS, BYTES));
    float *got = y.data, *at = x.data;
    ck_assert_int_eq(coded_rows_bytes(SIZE), BYTES);
    for (int64_t n = 0; n < 200; n++)
        ck_assert_int_eq(coded_rows_numbers(coded_rows_bytes(n)), n);
    for (int i = 0; i < ROWS * SIZE; i++)
        at[i] = i < SIZE ? sinf((float)(i * i)) * 1e-6f : i < 2 * SIZE ? cosf((float)i) * 1e30f : 0;
    at[2 * SIZE + 40] = INFINITY;
    run(node_new("tpc", "QuantizeRows"), IN(x), &c);
    run(node_new("tpc", "DequantizeRows"), IN(c), &y);
    for (int i = 0; i < 2 * SIZE; i++)
        ck_assert_float_le(fabsf(got[i] - at[i]), (i < SIZE ? 1e-6f : 1e30f) * 0.505f / 127);
    for (int i = 2 * SIZE; i < ROWS * SIZE; i++)
        ck_assert_int_eq(isnan(got[i]) != 0, i >= 2 * SIZE + 32);
    run(node_new("tpc", "QuantizeRows"), IN(y), &again);
    ck_assert_mem_eq(again.data, c.data, (size_t)(2 * BYTES));
}
END_TEST

/* Keys and values as codes give what the numbers give that they stand for. */
static void codes_attend(int64_t rows, int64_t size, bool no_number)
{
    enum { KEYS = 70 };
    struct tensor q = made(DT_F32, DIMS(1, 2, rows, size)), k = made(DT_F32, DIMS(1, 1, KEYS, size));
    struct tensor wide = made(DT_F32, DIMS(1, 1, KEYS, size)), codes = made(DT_I8, DIMS(1, 1, KEYS, coded_rows_bytes(size)));
    struct tensor y = made(DT_F32, DIMS(1, 2, rows, size)), want = made(DT_F32, DIMS(1, 2, rows, size));
    struct node *node = node_new("tpc", "FusedAttention");
    attr_set_ints(graph, node, "rows_first", 4, (const int64_t[]){0, 0, 0, 0});
    for (int64_t i = 0; i < tensor_elements(&q); i++)
        ((float *)q.data)[i] = 0.3f + sinf((float)i);
    for (int64_t i = 0; i < KEYS * size; i++)
        ((float *)k.data)[i] = cosf((float)(i * i % 97)) * (float)(1 + i / size % 5) / 5;
    if (no_number)
        ((float *)k.data)[5] = INFINITY;
    run(node_new("tpc", "QuantizeRows"), IN(k), &codes);
    run(node_new("tpc", "DequantizeRows"), IN(codes), &wide);
    run(node, IN(q, wide, wide), &want);
    run(node, IN(q, codes, codes), &y);
    for (int64_t i = 0; i < tensor_elements(&y); i++) {
        float got = ((float *)y.data)[i], x = ((float *)want.data)[i];
        ck_assert_msg(no_number ? isnan(got) && isnan(x) : fabsf(got - x) < 5e-4f, "element %d is %g, not %g", (int)i, (double)got,
                      (double)x);
    }
}

START_TEST(attention_of_codes)
{
    static const int64_t rows[] = {1, 3, 70}, size[] = {40, 64, 96};
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) {
            codes_attend(rows[r], size[s], false);
            codes_attend(rows[r], size[s], true);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coded rows");
    TCase *t = unit_case(suite, "coded rows", setup, teardown);
    tcase_add_test(t, rows_of_codes);
    tcase_add_test(t, attention_of_codes);
    return unit_run(suite);
}
