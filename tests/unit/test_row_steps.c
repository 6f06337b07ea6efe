/* Softmax, norms and sums of rows (kern/reduce), for random numbers of rows of any length: results as in double, and the same bits wherever
 * a row lies. */
#include "kern/reduce/reduce.h"
#include "tests/unit/kernel.h"

#include <math.h>

enum { MOST = 6000 };
static float x[MOST], scale[MOST], bias[MOST], y[MOST], again[MOST];

static int64_t draw(int64_t n)
{
    return rand() % n;
}

/* Rows of n: their number. */
static int64_t draw_rows(int seed, int64_t *n)
{
    srand((unsigned)seed);
    *n = 1 + draw(draw(3) ? 70 : 1500);
    for (int i = 0; i < MOST; i++) {
        x[i] = (float)(draw(2001) - 1000) / 100;
        scale[i] = (float)draw(100) / 50;
        bias[i] = (float)draw(100) / 50 - 1;
    }
    return 1 + draw(MOST / *n);
}

static void near(double found, double want)
{
    ck_assert_msg(fabs(found - want) <= 4e-6 * (1 + fabs(want)), "%.9g, not %.9g", found, want);
}

static double mean_of(const float *row, int64_t n, double centre, bool squares)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += squares ? ((double)row[i] - centre) * ((double)row[i] - centre) : (double)row[i];
    return sum / (double)n;
}

START_TEST(softmax_is_that_of_double)
{
    int64_t n, rows = draw_rows(_i, &n);
    struct tensor of_all = tensor_new(DT_F32, DIMS(rows, n), x), all = tensor_new(DT_F32, DIMS(rows, n), NULL);
    run(node_new("", "Softmax"), IN(of_all), &all);
    const float *found = all.data;
    for (int64_t r = 0; r < rows; r++) {
        double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++)
            max = fmax(max, (double)x[r * n + i]);
        for (int64_t i = 0; i < n; i++)
            sum += exp((double)x[r * n + i] - max);
        for (int64_t i = 0; i < n; i++)
            near((double)found[r * n + i], exp((double)x[r * n + i] - max) / sum);
    }
    int64_t from = draw(rows);
    struct tensor of_some = tensor_new(DT_F32, DIMS(rows - from, n), x + from * n), some = tensor_new(DT_F32, DIMS(rows - from, n), NULL);
    run(node_new("", "Softmax"), IN(of_some), &some);
    ck_assert(memcmp(some.data, found + from * n, tensor_bytes(&some)) == 0);
}
END_TEST

START_TEST(norms_are_those_of_double)
{
    float mean[MOST], invstd[MOST];
    int64_t n, rows = draw_rows(_i, &n), from = draw(rows);
    struct norm_rows p = {draw(2), n, 1e-5f, x, scale, draw(2) ? bias : NULL, y, draw(2) ? mean : NULL, draw(2) ? invstd : NULL};
    norm_rows(&p, 0, rows);
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * n;
        double centre = p.centre ? mean_of(row, n, 0, false) : 0, inv = 1 / sqrt(mean_of(row, n, centre, true) + 1e-5);
        if (p.mean)
            near((double)mean[r], centre);
        if (p.invstd)
            near((double)invstd[r], inv);
        for (int64_t i = 0; i < n; i++)
            near((double)y[r * n + i], ((double)row[i] - centre) * inv * (double)scale[i] + (p.bias ? (double)bias[i] : 0));
    }
    p.y = again;
    norm_rows(&p, from, rows);
    ck_assert(memcmp(again + from * n, y + from * n, (size_t)((rows - from) * n) * sizeof *y) == 0);
}
END_TEST

START_TEST(sums_are_those_of_double)
{
    int64_t n, rows = draw_rows(_i, &n), from = draw(rows);
    sum_rows(x, n, rows, y);
    sum_rows(x + from * n, n, rows - from, again);
    ck_assert(memcmp(again, y + from, (size_t)(rows - from) * sizeof *y) == 0);
    for (int64_t r = 0; r < rows; r++)
        ck_assert(fabs((double)y[r] - (double)n * mean_of(x + r * n, n, 0, false)) <= 1e-5 * (double)n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("row steps");
    TCase *steps = unit_case(suite, "row steps", setup, teardown);
    tcase_add_loop_test(steps, softmax_is_that_of_double, 0, 60);
    tcase_add_loop_test(steps, norms_are_those_of_double, 0, 60);
    tcase_add_loop_test(steps, sums_are_those_of_double, 0, 60);
    return unit_run(suite);
}
