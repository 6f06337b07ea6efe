/* Results of exact sums: every kernel computes what one number at a time does, bit by bit, and writes nothing else. */
#include "kern/core/core.h"
#include "kern/spatial/spatial.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

enum { PLACES = 13, CHANNELS = 80, COUNT = PLACES * CHANNELS };

static uint32_t state;

static int64_t draw(int64_t n)
{
    state = state * 1664525 + 1013904223;
    return (int64_t)(state >> 8) % n;
}

static float real(void)
{
    return (float)(draw(2001) - 1000) / 250;
}

struct example {
    struct integer_results results;
    struct integer_columns columns;
    int64_t place, rows;
    int32_t sums[PLACES * RESULT_COLUMNS], seen[PLACES];
    float z[COUNT];
};

static void square(const struct result_function *f, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] * x[i] * f->scale;
}

static void make_example(struct example *e)
{
    memset(e, 0, sizeof *e);
    struct integer_results *r = &e->results;
    *r = (struct integer_results){.channels = CHANNELS, .lo = -INFINITY, .hi = INFINITY, .activates_last = draw(2), .per_scale = 7};
    r->least = draw(2) ? -128 : 0;
    r->most = r->least + 255;
    r->zero = r->least + (float)draw(256);
    if (draw(2))
        r->lo = -1;
    if (draw(3) == 0)
        r->hi = 1;
    if (draw(3) == 0)
        *r = (struct integer_results){.channels = CHANNELS, .lo = -INFINITY, .hi = INFINITY, .function = {square, .scale = 3},
                                      .activates_last = r->activates_last, .per_scale = 7, .least = r->least, .most = r->most, .zero = r->zero};
    e->columns.zeros = draw(2);
    e->columns.n = draw(2) ? RESULT_COLUMNS : 1 + draw(RESULT_COLUMNS);
    e->columns.from = draw(CHANNELS - e->columns.n + 1);
    e->rows = 1 + draw(PLACES);
    e->place = draw(PLACES - e->rows + 1);
    for (int j = 0; j < RESULT_COLUMNS; j++) {
        e->columns.start[j] = (int32_t)draw(1000);
        e->columns.zero[j] = e->columns.zeros ? (int32_t)draw(9) - 4 : 0;
        e->columns.factor[j] = draw(50) ? real() / 300 : draw(2) ? INFINITY : 1e9F; /* codes that are far out, and NaN */
        e->columns.bias[j] = real();
    }
    for (int i = 0; i < COUNT; i++)
        e->z[i] = real();
    for (int i = 0; i < PLACES * RESULT_COLUMNS; i++)
        e->sums[i] = (int32_t)(draw(2001) - 1500);
    for (int i = 0; i < PLACES; i++)
        e->seen[i] = (int32_t)draw(200);
    r->z = draw(2) ? e->z : NULL;
}

static float activated(const struct integer_results *r, float x)
{
    if (r->function.run)
        r->function.run(&r->function, &x, 1);
    x = x < r->lo ? r->lo : x;
    return x > r->hi ? r->hi : x;
}

static float number(const struct example *e, int64_t row, int64_t j)
{
    const struct integer_results *r = &e->results;
    int32_t sum = e->sums[row * RESULT_COLUMNS + j] + e->columns.start[j] - e->seen[row] * e->columns.zero[j];
    float x = (float)sum * e->columns.factor[j] + e->columns.bias[j];
    x = r->activates_last && r->z ? x : activated(r, x);
    x = r->z ? x + r->z[(e->place + row) * CHANNELS + e->columns.from + j] : x;
    return r->activates_last && r->z ? activated(r, x) : x;
}

static uint8_t code(const struct integer_results *r, float x)
{
    float y = rintf(x * r->per_scale) + r->zero;
    return (uint8_t)(int32_t)fminf(fmaxf(y, r->least), r->most); /* of a NaN, the least */
}

static void check_kernel(const struct results_kernel *k, struct example *e, bool codes)
{
    static float reals[COUNT], real_numbers[COUNT];
    static uint8_t bytes[COUNT], expected[COUNT];
    memset(reals, 77, sizeof reals);
    memset(bytes, 77, sizeof bytes);
    memcpy(real_numbers, reals, sizeof reals);
    memcpy(expected, bytes, sizeof bytes);
    for (int64_t i = 0; i < e->rows; i++)
        for (int64_t j = 0; j < e->columns.n; j++) {
            int64_t at = (e->place + i) * CHANNELS + e->columns.from + j;
            real_numbers[at] = codes ? real_numbers[at] : number(e, i, j);
            expected[at] = codes ? code(&e->results, number(e, i, j)) : expected[at];
        }
    e->results.codes = codes ? bytes : NULL;
    e->results.real = codes ? NULL : reals;
    integer_results_store(k, &e->results, &e->columns, e->place, e->rows, e->sums, e->seen);
    ck_assert(memcmp(bytes, expected, sizeof bytes) == 0);
    for (int i = 0; i < COUNT; i++)
        ck_assert(memcmp(&reals[i], &real_numbers[i], sizeof *reals) == 0 || (isnan(reals[i]) && isnan(real_numbers[i])));
}

START_TEST(every_kernel_makes_results)
{
    static struct example e;
    state = (uint32_t)_i;
    for (int round = 0; round < 300; round++) {
        make_example(&e);
        for (const struct results_kernel *k = integer_results_kernels; k->name; k++)
            for (int codes = 0; codes < 2 && k->runs(); codes++)
                check_kernel(k, &e, codes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("results");
    tcase_add_loop_test(unit_case(suite, "results", NULL, NULL), every_kernel_makes_results, 0, 4);
    return unit_run(suite);
}
