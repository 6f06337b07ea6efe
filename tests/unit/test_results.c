/* Results of exact sums: every kernel computes what one number at a time does, bit by bit, and writes nothing else. Products of sums are
 * exact, so that it is the same whether a product is rounded before a bias is added. */
#include "kern/conv/conv.h"
#include "kern/core/core.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

enum { PLACES = 13, CHANNELS = 80, COUNT = PLACES * CHANNELS };

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
    uint8_t codes[COUNT];
};

static void square(const struct result_function *f, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] * x[i] * f->scale;
}

static void choose_codes(struct example *e)
{
    struct integer_results *r = &e->results;
    r->is_signed = draw(2);
    r->per_scale = draw(2) ? 7 : 1;
    r->zero = (int32_t)draw(256) - (r->is_signed ? 128 : 0);
    r->least = (float)((r->is_signed ? -128 : 0) - r->zero);
    r->most = r->least + 255 - (float)draw(2) * 0.3F;
    r->least += (float)(draw(3) == 0) * 20;
}

static void choose_residual(struct example *e)
{
    struct result_residual *z = &e->results.residual;
    *z = (struct result_residual){
        .scale = 0.1F, .least = (float)-draw(256), .z_scale = 0.07F, .z_zero = (float)draw(256), .is_signed = draw(2)};
    z->most = z->least + 255;
    e->results.z_codes = e->codes;
    e->results.z = NULL;
    e->results.activates_last = true;
}

static void choose_columns(struct integer_columns *c)
{
    c->n = draw(2) ? RESULT_COLUMNS : 1 + draw(RESULT_COLUMNS);
    c->from = draw(CHANNELS - c->n + 1);
    c->zeros = draw(2);
    for (int j = 0; j < RESULT_COLUMNS; j++) {
        c->start[j] = (int32_t)draw(1000);
        c->zero[j] = c->zeros ? (int32_t)draw(9) - 4 : 0;
        c->factor[j] = draw(50) ? (float)(draw(41) - 20) / 1024 : draw(2) ? INFINITY : 0x1p30F; /* codes that are far out, and NaN */
        c->bias[j] = real();
    }
}

static void make_example(struct example *e)
{
    memset(e, 0, sizeof *e);
    struct integer_results *r = &e->results;
    *r = (struct integer_results){.channels = CHANNELS, .lo = -INFINITY, .hi = INFINITY, .activates_last = draw(2)};
    choose_codes(e);
    choose_columns(&e->columns);
    if (draw(3) == 0)
        r->function = (struct result_function){square, .scale = 3};
    else if (draw(2))
        r->lo = -1;
    if (!r->function.run && draw(3) == 0)
        r->hi = 1;
    e->rows = 1 + draw(PLACES);
    e->place = draw(PLACES - e->rows + 1);
    for (int i = 0; i < COUNT; i++) {
        e->z[i] = real();
        e->codes[i] = (uint8_t)draw(256);
    }
    for (int i = 0; i < PLACES * RESULT_COLUMNS; i++)
        e->sums[i] = (int32_t)(draw(2001) - 1500);
    for (int i = 0; i < PLACES; i++)
        e->seen[i] = (int32_t)draw(200);
    r->z = draw(2) ? e->z : NULL;
    if (!r->function.run && draw(3) == 0)
        choose_residual(e);
}

static float activated(const struct integer_results *r, float x)
{
    if (r->function.run)
        r->function.run(&r->function, &x, 1);
    x = x < r->lo ? r->lo : x;
    return x > r->hi ? r->hi : x;
}

static float summed(const struct result_residual *z, float x, uint8_t code)
{
    float rounded = rintf(fminf(fmaxf(x, z->least), z->most)); /* of a NaN, the least */
    return rounded * z->scale + ((float)(z->is_signed ? code ^ 0x80 : code) - z->z_zero) * z->z_scale;
}

static float number(const struct example *e, int64_t row, int64_t j)
{
    const struct integer_results *r = &e->results;
    int32_t sum = e->sums[row * RESULT_COLUMNS + j] + e->columns.start[j] - e->seen[row] * e->columns.zero[j];
    float x = (float)sum * e->columns.factor[j] + e->columns.bias[j];
    int64_t at = (e->place + row) * CHANNELS + e->columns.from + j;
    bool last = r->activates_last && (r->z || r->z_codes);
    x = last ? x : activated(r, x);
    x = r->z ? x + r->z[at] : r->z_codes ? summed(&r->residual, x, r->z_codes[at]) : x;
    return last ? activated(r, x) : x;
}

static uint8_t code(const struct integer_results *r, float x)
{
    return (uint8_t)((int32_t)rintf(fminf(fmaxf(x * r->per_scale, r->least), r->most)) + r->zero); /* of a NaN, the least */
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
    for (int round = 0; round < 200; round++) {
        make_example(&e);
        ISA_EACH(results_kernel, k, integer_results_kernels)
        for (int codes = e.results.z_codes != NULL; codes < 2; codes++)
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
