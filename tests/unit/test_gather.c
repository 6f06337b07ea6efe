/* Gather, GatherND and ScatterND of rows of any number of bytes, by random indices from either end: each row is the indexed one, with
 * indices of i64 and of i32. */
#include "tests/unit/kernel.h"

enum { MOST = 400 };

static int64_t draw(int64_t n)
{
    return rand() % n;
}

static struct tensor draw_data(int rank, const int64_t *dim)
{
    enum dtype types[] = {DT_U8, DT_F16, DT_F32, DT_I64};
    struct tensor t = tensor_new(types[draw(COUNT(types))], rank, dim, NULL);
    for (size_t i = 0; i < tensor_bytes(&t); i++)
        ((uint8_t *)t.data)[i] = (uint8_t)draw(256);
    return t;
}

static int64_t from_end(int64_t index, int64_t n)
{
    return draw(2) ? index : index - n;
}

START_TEST(rows_that_indices_name)
{
    int64_t wide[MOST];
    int32_t narrow[MOST];
    srand((unsigned)_i);
    int64_t outer = 1 + draw(3), n = 1 + draw(40), inner = 1 + draw(draw(2) ? 4 : 40), count = 1 + draw(MOST - 1);
    struct tensor x = draw_data(3, (int64_t[]){outer, n, inner}), y[2];
    for (int i = 0; i < count; i++)
        narrow[i] = (int32_t)(wide[i] = from_end(draw(n), n));
    for (int k = 0; k < 2; k++) {
        struct tensor index = tensor_new(k ? DT_I32 : DT_I64, DIMS(count), k ? (void *)narrow : (void *)wide);
        struct node *gather = node_new("", "Gather");
        attr_set_int(gather, "axis", 1);
        y[k] = tensor_new(x.dtype, DIMS(outer, count, inner), NULL);
        run(gather, IN(x, index), &y[k]);
    }
    size_t row = (size_t)inner * dtype_size(x.dtype);
    for (int64_t i = 0; i < outer * count; i++) {
        int64_t at = i / count * n + (wide[i % count] + n) % n;
        ck_assert(memcmp((char *)y[0].data + (size_t)i * row, (char *)x.data + (size_t)at * row, row) == 0);
    }
    ck_assert(memcmp(y[0].data, y[1].data, tensor_bytes(&y[0])) == 0);
}
END_TEST

/* Tuples that differ: what is written is read again, and the rest stays. */
START_TEST(tuples_that_write_and_read)
{
    int64_t tuples[2 * MOST];
    srand((unsigned)_i);
    int64_t a = 1 + draw(20), b = 1 + draw(20), inner = 1 + draw(draw(2) ? 4 : 40), count = 0;
    bool written[MOST] = {false};
    for (int64_t i = 0; i < a * b; i++)
        if (draw(2) || count == 0) {
            tuples[2 * count] = from_end(i / b, a);
            tuples[2 * count++ + 1] = from_end(i % b, b);
            written[i] = true;
        }
    struct tensor x = draw_data(3, (int64_t[]){a, b, inner}), updates = tensor_new(x.dtype, DIMS(count, inner), NULL);
    struct tensor index = tensor_new(DT_I64, DIMS(count, 2), tuples), y = tensor_new(x.dtype, 3, x.dim, NULL),
                  again = tensor_new(x.dtype, DIMS(count, inner), NULL);
    memset(updates.data, 1, tensor_bytes(&updates));
    run(node_new("", "ScatterND"), IN(x, index, updates), &y);
    run(node_new("", "GatherND"), IN(y, index), &again);
    ck_assert(memcmp(again.data, updates.data, tensor_bytes(&again)) == 0);
    size_t row = (size_t)inner * dtype_size(x.dtype);
    for (int64_t i = 0; i < a * b; i++)
        ck_assert(written[i] || memcmp((char *)y.data + (size_t)i * row, (char *)x.data + (size_t)i * row, row) == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gather");
    TCase *rows = unit_case(suite, "gather", setup, teardown);
    tcase_add_loop_test(rows, rows_that_indices_name, 0, 200);
    tcase_add_loop_test(rows, tuples_that_write_and_read, 0, 200);
    return unit_run(suite);
}
