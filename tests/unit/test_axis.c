/* Axes: their ends are around what they are made for, and their ticks are few, round, and on them. */
#include "tests/unit/main.h"
#include "train/plot/chart.h"

#include <math.h>

/* Ticks in order, on the axis, at places that rise from 0 to 1. */
static void check_ticks(const struct axis *a, double least, double most)
{
    double slack = 1e-6 * (a->to - a->from);
    ck_assert_double_le(a->from, least + slack);
    ck_assert_double_ge(a->to, most - slack);
    ck_assert_double_lt(a->from, a->to);
    ck_assert_int_ge(a->ticks, 2);
    ck_assert_int_le(a->ticks, 14);
    ck_assert(fabs(axis_place(a, a->from)) < 1e-9 && fabs(axis_place(a, a->to) - 1) < 1e-9);
    for (int i = 0; i < a->ticks; i++) {
        double place = axis_place(a, a->tick[i]);
        ck_assert(place > -1e-6 && place < 1 + 1e-6 && (i == 0 || place > axis_place(a, a->tick[i - 1])));
    }
}

static bool is_round(double x)
{
    double power = x == 0 ? 1 : pow(10, floor(log10(fabs(x)) + 1e-9)), part = fabs(x) / power;
    return fabs(part * 100 - rint(part * 100)) < 1e-6;
}

START_TEST(linear_axes_are_round)
{
    for (double least = -37.5; least < 40; least += 3.1)
        for (double more = 1e-5; more < 1e6; more *= 2.7) {
            struct axis a = axis_linear(least, least + more, 6);
            check_ticks(&a, least, least + more);
            ck_assert(more < 1 || (is_round(a.tick[0]) && is_round(a.tick[1])));
        }
    struct axis one = axis_linear(-1, -1, 6), zero = axis_linear(0, 0, 6);
    check_ticks(&one, -1, -1);
    check_ticks(&zero, 0, 0);
}
END_TEST

START_TEST(logarithmic_axes_are_round)
{
    for (double least = 1e-9; least < 1e9; least *= 3.7)
        for (double factor = 1; factor < 1e30; factor *= 2.3) {
            struct axis a = axis_logarithmic(least, least * factor);
            check_ticks(&a, least, least * factor);
            ck_assert(a.from > least / 2.6 && a.to < fmax(least * factor * 2.6, a.from * 2.6));
        }
}
END_TEST

START_TEST(steps_are_whole)
{
    for (double first = 1; first < 1e6; first = first * 3 + 1)
        for (double more = 0; more < 1e7; more = more * 2 + 1) {
            struct axis a = axis_of_steps(first, first + more, 10);
            ck_assert_int_ge(a.ticks, 1);
            for (int i = 0; i < a.ticks; i++)
                ck_assert(a.tick[i] == rint(a.tick[i]) && a.tick[i] >= first && a.tick[i] <= first + more);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("axis");
    TCase *c = unit_case(suite, "axis", NULL, NULL);
    tcase_add_test(c, linear_axes_are_round);
    tcase_add_test(c, logarithmic_axes_are_round);
    tcase_add_test(c, steps_are_whole);
    return unit_run(suite);
}
