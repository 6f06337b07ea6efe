/* Sines and cosines compared with float64's, and the first elements of lines: floats and integers. */
#include "tests/unit/kernel.h"

#include <math.h>
#include <stdlib.h>

#define ZEROS(dtype, dims) tensor_new(dtype, dims, NULL)

START_TEST(sines)
{
    enum { N = 4000 };
    float x[N + 6] = {0, INFINITY, NAN, 0x1p20f, -1e30f, 2e6f}, want[2][N + 6];
    srand((unsigned)_i);
    for (int i = 6; i < N + 6; i++)
        x[i] = (float)(rand() % 2000001 - 1000000) * (i % 3 ? 1e-5f : i % 2 ? 1e-3f : 1);
    for (int i = 0; i < N + 6; i++) {
        want[0][i] = (float)sin((double)x[i]);
        want[1][i] = (float)cos((double)x[i]);
    }
    for (int k = 0; k < 2; k++)
        for (int from = 0; from < 7; from += 6) { /* with and without those that are far */
            struct tensor y = ZEROS(DT_F32, DIMS(N + 6 - from));
            run(node_new("", k ? "Cos" : "Sin"), IN(tensor_new(DT_F32, DIMS(N + 6 - from), x + from)), &y);
            for (int i = 0; i < N + 6 - from; i++)
                ck_assert_msg(isnan(want[k][i + from]) ? isnan(((float *)y.data)[i])
                                                       : fabsf(((float *)y.data)[i] - want[k][i + from]) < 1.5e-7f,
                              "of %.9g it is %.9g", (double)x[i + from], (double)((float *)y.data)[i]);
        }
    struct tensor zero = tensor_new(DT_F32, DIMS(1), &(float){-0.0f}), y = ZEROS(DT_F32, DIMS(1));
    run(node_new("", "Sin"), IN(zero), &y);
    ck_assert(signbit(*(float *)y.data));
}
END_TEST

/* Lines of floats, which are compared as floats, and the same lines of integers: ties, both ends, any axis. */
START_TEST(first_of_lines)
{
    enum { ROWS = 9, WIDTH = 33, ALL = ROWS * WIDTH };
    int64_t whole[ALL];
    float real[ALL];
    srand((unsigned)_i);
    for (int i = 0; i < ALL; i++)
        real[i] = (float)(whole[i] = rand() % 40 - 20);
    int axis = _i % 2, n = axis ? WIDTH : ROWS, k = 1 + rand() % n;
    int64_t rows = axis ? ROWS : k, wide = axis ? k : WIDTH, lines = axis ? ROWS : WIDTH;
    struct tensor index[2], at[2];
    for (int t = 0; t < 2; t++) {
        struct node *top = graph_node(graph, op_find("", "TopK"), "top", 0, NULL, 2), *arg = node_new("", _i & 2 ? "ArgMax" : "ArgMin");
        struct tensor x = tensor_new(t ? DT_F32 : DT_I64, DIMS(ROWS, WIDTH), t ? (void *)real : (void *)whole);
        struct tensor out[2] = {ZEROS(x.dtype, DIMS(rows, wide)), ZEROS(DT_I64, DIMS(rows, wide))};
        attr_set_int(top, "axis", axis);
        attr_set_int(top, "largest", _i & 2);
        attr_set_int(arg, "axis", axis);
        attr_set_int(arg, "select_last_index", _i & 4);
        at[t] = ZEROS(DT_I64, DIMS(lines));
        struct kcall call = {.node = top, .graph = graph, .nin = 1, .nout = 2, .in = &x, .out = out, .env = env};
        top->op->kernel(&call);
        run(arg, IN(x), &at[t]);
        index[t] = out[1];
    }
    ck_assert_mem_eq(index[0].data, index[1].data, (size_t)(rows * wide) * sizeof(int64_t));
    ck_assert_mem_eq(at[0].data, at[1].data, (size_t)lines * sizeof(int64_t));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lines");
    TCase *tests = unit_case(suite, "lines", setup, teardown);
    tcase_add_loop_test(tests, sines, 0, 3);
    tcase_add_loop_test(tests, first_of_lines, 0, 40);
    return unit_run(suite);
}
