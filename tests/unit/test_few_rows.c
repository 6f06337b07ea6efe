/* Few queries with rows of every type (kern/attention/few_rows.c), for random sizes, by every kernel that this machine runs: dots and sums
 * as in double, whatever follows a row, and the same bits however many queries share the rows. */
#include "kern/attention/attention.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 40, MOST_NUMBERS = 300, MOST_BYTES = 1300 };
static const enum dtype types[] = {DT_F32, DT_F16, DT_BF16, DT_I8};
static uint32_t state;

static int draw(int below)
{
    state = state * 1664525u + 1013904223u;
    return (int)((uint64_t)state * (uint64_t)below >> 32);
}

static void fill(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = ((float)draw(2001) - 1000) * (draw(30) ? 1e-3f : 1e-7f);
}

struct sample {
    struct few_rows rows;
    char bytes[MOST_ROWS * MOST_BYTES];
    float wide[MOST_ROWS][MOST_NUMBERS], query[FEW_QUERIES][MOST_NUMBERS], weight[FEW_QUERIES][MOST_ROWS];
};

/* Rows with NaN bytes between them; nothing follows the last one. */
static void sample_make(struct sample *s, enum dtype type, int count, int n)
{
    int64_t bytes = type == DT_I8 ? coded_rows_bytes(n) : n * (int64_t)dtype_size(type);
    s->rows = (struct few_rows){.dtype = type, .step = bytes + draw(3) * 4, .count = count, .n = n};
    char *first = s->bytes + sizeof s->bytes - ((count - 1) * s->rows.step + bytes);
    s->rows.at = first;
    memset(s->bytes, 0xff, sizeof s->bytes);
    for (int r = 0; r < count; r++) {
        char *row = first + r * s->rows.step;
        fill(s->wide[r], n);
        if (type == DT_I8) {
            coded_rows_write(s->wide[r], n, row);
            coded_rows_read(row, 0, 1, n, s->wide[r]);
        } else {
            convert_from_f32(type, s->wide[r], n, row);
            convert_to_f32(type, row, n, s->wide[r]);
        }
    }
    for (int q = 0; q < FEW_QUERIES; q++) {
        fill(s->query[q], n);
        fill(s->weight[q], count);
    }
}

static void near(const struct few_kernel *kernel, const struct sample *s, const char *what, int q, int i, float found, double want)
{
    ck_assert_msg(fabs((double)found - want) <= 2e-6 * (double)(s->rows.n + s->rows.count),
                  "%s: %s of %lld rows of %lld %s: %g at %d %d, not %g", isa_name(kernel->isa), what, (long long)s->rows.count,
                  (long long)s->rows.n, dtype_name(s->rows.dtype), (double)found, q, i, want);
}

static void check_scores(const struct few_kernel *kernel, const struct sample *s)
{
    float all[3][FEW_QUERIES][MOST_ROWS];
    for (int k = 0; k < 3; k++)
        for (int q = 0; q < FEW_QUERIES; q += 1 << k) {
            const float *query[FEW_QUERIES];
            float *to[FEW_QUERIES];
            for (int i = 0; i < 1 << k; i++) {
                query[i] = s->query[q + i];
                to[i] = all[k][q + i];
            }
            kernel->scores(&s->rows, 1 << k, query, 0.5f, to);
        }
    for (int q = 0; q < FEW_QUERIES; q++)
        for (int r = 0; r < s->rows.count; r++) {
            double sum = 0;
            for (int i = 0; i < s->rows.n; i++)
                sum += 0.5 * (double)s->query[q][i] * (double)s->wide[r][i];
            near(kernel, s, "dots", q, r, all[0][q][r], sum);
            ck_assert(all[1][q][r] == all[0][q][r] && all[2][q][r] == all[0][q][r]);
        }
}

static void check_values(const struct few_kernel *kernel, const struct sample *s)
{
    float all[3][FEW_QUERIES][MOST_NUMBERS];
    for (int k = 0; k < 3; k++)
        for (int q = 0; q < FEW_QUERIES; q += 1 << k) {
            const float *weight[FEW_QUERIES];
            float *sum[FEW_QUERIES];
            for (int i = 0; i < 1 << k; i++) {
                weight[i] = s->weight[q + i];
                sum[i] = all[k][q + i];
                for (int j = 0; j < s->rows.n; j++)
                    sum[i][j] = (float)j;
            }
            kernel->values(&s->rows, 1 << k, weight, sum);
        }
    for (int q = 0; q < FEW_QUERIES; q++)
        for (int i = 0; i < s->rows.n; i++) {
            double sum = i;
            for (int r = 0; r < s->rows.count; r++)
                sum += (double)s->weight[q][r] * (double)s->wide[r][i];
            near(kernel, s, "sums", q, i, all[0][q][i], sum);
            ck_assert(all[1][q][i] == all[0][q][i] && all[2][q][i] == all[0][q][i]);
        }
}

static void each_kernel(void (*check)(const struct few_kernel *, const struct sample *), const struct sample *s)
{
    ISA_EACH(few_kernel, kernel, few_kernels)
    check(kernel, s);
}

START_TEST(every_kernel_adds_up)
{
    static struct sample s;
    state = (uint32_t)_i;
    for (int k = 0; k < 100; k++) {
        sample_make(&s, types[k % COUNT(types)], 1 + draw(MOST_ROWS), 1 + draw(draw(2) ? 20 : MOST_NUMBERS));
        each_kernel(check_scores, &s);
        each_kernel(check_values, &s);
    }
}
END_TEST

/* Row 1 has a number that is none, at place *where. */
static void check_none(const struct few_kernel *kernel, const struct sample *s)
{
    float dots[MOST_ROWS], sums[MOST_NUMBERS] = {0};
    kernel->scores(&s->rows, 1, (const float *[]){s->query[0]}, 1, (float *[]){dots});
    kernel->values(&s->rows, 1, (const float *[]){s->weight[0]}, (float *[]){sums});
    for (int r = 0; r < s->rows.count; r++)
        ck_assert_int_eq(isnan(dots[r]) != 0, r == 1);
    for (int i = 0; i < s->rows.n; i++)
        ck_assert_int_eq(isnan(sums[i]) != 0, isnan(s->wide[1][i]) != 0);
}

START_TEST(what_is_no_number_stays_so)
{
    static struct sample s;
    for (int k = 0; k < COUNT(types); k++)
        for (int n = 33; n < 75; n++) {
            sample_make(&s, types[k], 5, n);
            s.wide[1][n - 2] = NAN;
            char *row = (char *)(uintptr_t)s.rows.at + s.rows.step;
            if (types[k] == DT_I8) {
                coded_rows_write(s.wide[1], n, row);
                coded_rows_read(row, 0, 1, n, s.wide[1]);
            } else
                convert_from_f32(types[k], s.wide[1], n, row);
            each_kernel(check_none, &s);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("few rows");
    TCase *t = unit_case(suite, "few rows", NULL, NULL);
    tcase_add_loop_test(t, every_kernel_adds_up, 0, 4);
    tcase_add_test(t, what_is_no_number_stays_so);
    return unit_run(suite);
}
