/* Swish after convolutions (kern/conv/conv_swish.c), for random sizes and numbers: results as in double, and the same bits at any position
 * and on any number of threads. */
#include "kern/conv/conv.h"
#include "kern/gemm/gemm.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

enum { MOST = 40000 };
static float number(void)
{
    static const float odd[] = {0, -0.0f, 200, -200, 1e30f, -1e30f, INFINITY};
    return draw(50) ? ((float)draw(20001) - 10000) * 1e-3f * (float)(1 + draw(3)) : odd[draw(COUNT(odd))];
}

static void check_number(const struct conv_shape *s, float x, const float *z, float found)
{
    double a = (double)x, e = exp(-(double)s->alpha * a), want = (double)s->scale * (isinf(e) ? 0 : a / (1 + e)) + (double)s->shift;
    want += z ? (double)*z : 0;
    bool same = isinf(want) ? isinf(found) : fabs((double)found - want) <= 1e-6 * (fabs(want) + fabs(a) + fabs((double)s->shift) + 1);
    ck_assert_msg(same, "of %g: %g, not %g", a, (double)found, want);
}

START_TEST(swish_is_that_of_double)
{
    static float x[MOST], z[MOST], y[MOST], again[MOST];
    state = (uint32_t)_i;
    for (int round = 0; round < 20; round++) {
        int64_t n = 1 + draw(draw(2) ? 200 : MOST - 100), from = draw(100);
        struct conv_shape s = {
            .activation = CONV_SWISH, .alpha = draw(2) ? 1 : 1.702f, .scale = draw(2) ? 1 : 0.3f, .shift = draw(2) ? 0 : 2};
        const float *more = draw(2) ? z : NULL;
        for (int64_t i = 0; i < n; i++) {
            x[i] = y[i] = number();
            z[i] = (float)draw(100);
        }
        struct kenv *one = kenv_new(1, false), *three = kenv_new(3, false);
        conv_swish(one, &s, n, more, y);
        from = from < n ? from : 0;
        memcpy(again, x + from, (size_t)(n - from) * sizeof *x);
        conv_swish(three, &s, n - from, more ? more + from : NULL, again);
        kenv_free(one);
        kenv_free(three);
        ck_assert_msg(memcmp(y + from, again, (size_t)(n - from) * sizeof *y) == 0, "other bits elsewhere");
        for (int64_t i = 0; i < n; i++)
            check_number(&s, x[i], more ? &more[i] : NULL, y[i]);
    }
}
END_TEST

START_TEST(swish_of_no_number_is_none)
{
    float y[3] = {1, NAN, 2};
    struct kenv *env = kenv_new(1, false);
    conv_swish(env, &(struct conv_shape){.activation = CONV_SWISH, .alpha = 1, .scale = 1}, 3, NULL, y);
    kenv_free(env);
    ck_assert(isnan(y[1]) && !isnan(y[0]) && !isnan(y[2]));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("swish");
    TCase *swish = unit_case(suite, "swish", NULL, NULL);
    tcase_add_loop_test(swish, swish_is_that_of_double, 0, 4);
    tcase_add_test(swish, swish_of_no_number_is_none);
    return unit_run(suite);
}
