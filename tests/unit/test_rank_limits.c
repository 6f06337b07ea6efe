/* test_rank_limits.c: what each rank may hold, and shares that keep to it. */
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "tests/unit/main.h"

static const int64_t memory[] = {800, 400, 800};

static struct options limited(const double *speed)
{
    struct options o = {.ranks = 3, .memory = 800};
    o.machine.memories = 3;
    o.machine.memory = memory;
    o.machine.speeds = speed ? 3 : 0;
    o.machine.speed = speed;
    return o;
}

static void expect_shares(const struct options *o, double whole, const double *other, const double *part)
{
    struct arena *a = arena_new();
    const int64_t *share = limit_shares(a, o, whole, other);
    int64_t sum = share[0] + share[1] + share[2];
    for (int r = 0; r < 3; r++)
        ck_assert_double_eq_tol((double)share[r] / (double)sum, part[r], 1e-3);
    arena_free(a);
}

START_TEST(ranks_with_room_share_by_speed)
{
    struct options o = limited((const double[]){1, 1, 0.5});
    expect_shares(&o, 1000, (const double[]){0, 0, 0}, (const double[]){0.4, 0.4, 0.2});
    expect_shares(&o, 1000, (const double[]){0, 300, 0}, (const double[]){0.6, 0.1, 0.3});
    expect_shares(&o, 1000, (const double[]){300, 300, 0}, (const double[]){0.5, 0.1, 0.4});
    expect_shares(&o, 1000, (const double[]){0, 500, 0}, (const double[]){2 / 3.0, 0, 1 / 3.0});
}
END_TEST

START_TEST(without_room_they_share_by_what_they_may_hold)
{
    struct options o = limited(NULL);
    expect_shares(&o, 1000, (const double[]){0, 0, 0}, (const double[]){1 / 3.0, 1 / 3.0, 1 / 3.0});
    expect_shares(&o, 10000, (const double[]){0, 0, 0}, (const double[]){0.4, 0.2, 0.4});
    expect_shares(&o, 10000, (const double[]){800, 200, 200}, (const double[]){0, 0.25, 0.75});
}
END_TEST

START_TEST(bytes_weigh_as_limits_differ)
{
    struct options o = limited(NULL), all = {.ranks = 3, .memory = 800};
    ck_assert(limits_differ(&o, 3) && !limits_differ(&all, 3) && !limits_differ(&o, 1));
    ck_assert_int_eq(limit_weighed(&o, 0, 401, true), 401);
    ck_assert_int_eq(limit_weighed(&o, 1, 401, true), 802);
    o.memory = 900;
    ck_assert_int_eq(limit_weighed(&o, 1, 401, false), 902);
    ck_assert_int_eq(limit_weighed(&o, 1, 401, true), 903);
    ck_assert_int_eq(limit_weighed(&o, 1, (int64_t)1 << 60, true), LIMIT_MOST);
    ck_assert(limit_weight(&(struct options){.ranks = 3}, 1) == 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rank_limits");
    TCase *t = unit_case(suite, "limits", NULL, NULL);
    tcase_add_test(t, ranks_with_room_share_by_speed);
    tcase_add_test(t, without_room_they_share_by_what_they_may_hold);
    tcase_add_test(t, bytes_weigh_as_limits_differ);
    return unit_run(suite);
}
