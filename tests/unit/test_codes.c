/* Products by dots of 8-bit integers (kern/gemm/codes.c), for random shapes, widths of codes, blocks and zero points, by every kernel that
 * this machine runs: within what rounding to digits leaves of the product in double, and the same for all kernels. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

struct sample {
    int64_t m, n, k, block, blocks;
    int bits, digits, step;
    bool zeros;
    uint8_t *codes, *zero;
    float *scale, *a;
};

static uint32_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

static void sample_codes(const void *from, int64_t j, uint8_t *codes)
{
    const struct sample *s = from;
    memcpy(codes, s->codes + j * s->k, (size_t)s->k);
}

static void sample_scales(const void *from, int64_t j, float *scales)
{
    const struct sample *s = from;
    memcpy(scales, s->scale + j * s->blocks, (size_t)s->blocks * sizeof *scales);
}

static void sample_zeros(const void *from, int64_t j, uint8_t *zeros)
{
    const struct sample *s = from;
    memcpy(zeros, s->zero + j * s->blocks, (size_t)s->blocks);
}

static struct sample sample_new(struct arena *a, int number)
{
    static const int64_t blocks[] = {16, 32, 48, 64, 128};
    struct sample s = {.m = 1 + draw(15), .n = 1 + draw(80), .k = 1 + draw(300), .block = blocks[draw(5)], .bits = 2 << draw(3)};
    s.zeros = draw(2);
    s.digits = 1 + number % 3;
    s.step = s.block % 32 ? 16 : 32;
    s.blocks = (s.k + s.block - 1) / s.block;
    s.codes = arena_alloc(a, (size_t)(s.n * s.k));
    s.zero = arena_alloc(a, (size_t)(s.n * s.blocks));
    s.scale = arena_alloc(a, (size_t)(s.n * s.blocks) * sizeof *s.scale);
    s.a = arena_alloc(a, (size_t)(s.m * s.k) * sizeof *s.a);
    for (int64_t i = 0; i < s.n * s.k; i++)
        s.codes[i] = (uint8_t)draw(1u << s.bits);
    for (int64_t i = 0; i < s.n * s.blocks; i++) {
        s.zero[i] = (uint8_t)(s.zeros ? draw(1u << s.bits) : 1u << (s.bits - 1));
        s.scale[i] = ((float)draw(1000) - 500) * 1e-4f;
    }
    for (int64_t i = 0; i < s.m * s.k; i++)
        s.a[i] = ((float)draw(20001) - 10000) * (draw(20) ? 1e-4f : 3e-3f);
    return s;
}

/* c[i, j] in double, and by how much digits may miss it. */
static double exact(const struct sample *s, int64_t i, int64_t j, double *slack)
{
    static const double left[] = {0.5 / 127, 0.5 / 127 / 254, 0.5 / 127 / 254 / 254 + 0x1p-23};
    double sum = 0;
    *slack = 0;
    for (int64_t from = 0; from < s->k; from += s->step) {
        double most = 0, all = 0, bound = 0;
        for (int64_t l = from; l < s->k && l < from + s->step; l++) {
            int64_t block = j * s->blocks + l / s->block;
            double w = ((double)s->codes[j * s->k + l] - s->zero[block]) * s->scale[block], x = s->a[i * s->k + l];
            sum += w * x;
            all += fabs(w);
            bound += (double)s->codes[j * s->k + l] * fabs((double)s->scale[block]);
            most = fabs(x) > most ? fabs(x) : most;
        }
        *slack += most * (all * left[s->digits - 1] + bound * 0x1p-20); /* and for sums in float32 */
    }
    return sum;
}

static void check_product(const struct sample *s, const float *c, const char *kernel)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double slack, want = exact(s, i, j, &slack), found = c[i * s->n + j];
            ck_assert_msg(fabs(found - want) <= slack,
                          "%s: m %lld n %lld k %lld block %lld bits %d digits %d zeros %d: %g at %lld %lld, not %g", kernel,
                          (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->block, s->bits, s->digits, s->zeros, found,
                          (long long)i, (long long)j, want);
        }
}

static const struct codes *sample_pack(struct kenv *env, const struct sample *s)
{
    struct codes_source from = {.n = s->n,
                                .k = s->k,
                                .block = s->block,
                                .bits = s->bits,
                                .zero = 1 << (s->bits - 1),
                                .zeros = s->zeros,
                                .from = s,
                                .read_codes = sample_codes,
                                .read_scales = sample_scales,
                                .read_zeros = sample_zeros};
    return codes_pack(&(struct kcall){.env = env}, &from);
}

/* Products by another kernel than the fastest. */
static void product_by(const struct codes_kernel *kernel, const struct sample *s, const struct codes *w, const struct codes_rows *rows,
                       float *c)
{
    int each = CODES_ROWS / s->digits;
    for (int64_t tile = 0; tile * CODES_WIDTH < s->n; tile++)
        for (int64_t i = 0; i < s->m; i++) {
            float sums[CODES_ROWS * CODES_WIDTH];
            int64_t left = s->m - i / each * each, count = left < each ? left : each;
            kernel->dot(w, tile, rows, i / each, (int)count * s->digits, sums);
            for (int64_t j = 0; j < CODES_WIDTH && tile * CODES_WIDTH + j < s->n; j++) {
                c[i * s->n + tile * CODES_WIDTH + j] = 0;
                for (int d = 0; d < s->digits; d++)
                    c[i * s->n + tile * CODES_WIDTH + j] += sums[(i % each * s->digits + d) * CODES_WIDTH + j];
            }
        }
}

static struct codes_rows sample_rows(struct arena *a, const struct sample *s, const struct codes *w)
{
    int64_t groups = (s->m * s->digits + CODES_ROWS - 1) / CODES_ROWS;
    struct codes_rows to = {.rows = s->m * s->digits, .padded = w->blocks * w->block, .steps = w->blocks * w->block / w->step};
    to.digit = arena_alloc(a, (size_t)(groups * CODES_ROWS * to.padded));
    to.scale = arena_alloc(a, (size_t)(groups * CODES_ROWS * to.steps) * sizeof *to.scale);
    to.start = arena_alloc(a, (size_t)(groups * CODES_ROWS * to.steps) * sizeof *to.start);
    for (int64_t i = 0; i < s->m; i++)
        codes_row(w, &to, s->digits, i, s->a + i * s->k);
    return to;
}

START_TEST(every_kernel_is_within_the_digits)
{
    struct arena *a = arena_new();
    struct kenv *env = kenv_new(2, false);
    state = (uint32_t)_i;
    for (int k = 0; k < 30; k++) {
        struct sample s = sample_new(a, k);
        const struct codes *w = sample_pack(env, &s);
        struct codes_rows rows = sample_rows(a, &s, w);
        float *c = arena_alloc(a, (size_t)(s.m * s.n) * sizeof *c);
        codes_product(&(struct kcall){.env = env}, w, s.m, s.digits, s.a, c);
        check_product(&s, c, "product");
        for (const struct codes_kernel *kernel = codes_kernels; kernel == codes_kernels || strcmp(kernel[-1].name, "plain") != 0; kernel++)
            if (kernel->runs()) {
                product_by(kernel, &s, w, &rows, c);
                check_product(&s, c, kernel->name);
            }
    }
    kenv_free(env);
    arena_free(a);
}
END_TEST

/* One step of activations, times ones. */
static float product_of_row(int digits, const float *a, int64_t n)
{
    uint8_t codes[64], zero = 0;
    float scale[2] = {1, 1}, c;
    struct kenv *env = kenv_new(1, false);
    memset(codes, 2, sizeof codes);
    struct sample s = {
        .m = 1, .n = 1, .k = n, .block = 32, .blocks = (n + 31) / 32, .bits = 2, .codes = codes, .zero = &zero, .scale = scale};
    struct codes_source from = {
        .n = 1, .k = n, .block = 32, .bits = 2, .zero = 1, .from = &s, .read_codes = sample_codes, .read_scales = sample_scales};
    codes_product(&(struct kcall){.env = env}, codes_pack(&(struct kcall){.env = env}, &from), 1, digits, a, &c);
    kenv_free(env);
    return c;
}

START_TEST(special_numbers)
{
    for (int digits = 1; digits <= 3; digits++) {
        ck_assert(isnan(product_of_row(digits, (float[]){1, INFINITY, 2}, 3)));
        ck_assert(isnan(product_of_row(digits, (float[]){1, NAN, 2}, 3)));
        ck_assert(isnan(product_of_row(digits, (float[]){-INFINITY}, 1)));
        ck_assert(product_of_row(digits, (float[]){0, -0.0f, 1e-42f}, 3) <= 1e-40f);
        ck_assert_float_eq_tol(product_of_row(digits, (float[]){3e38f, -3e38f, 3e37f, 1e30f}, 4), 3e37f, digits == 1 ? 2e36f : 3e34f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codes");
    TCase *t = unit_case(suite, "codes", NULL, NULL);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, every_kernel_is_within_the_digits, 1, 9);
    tcase_add_test(t, special_numbers);
    return unit_run(suite);
}
