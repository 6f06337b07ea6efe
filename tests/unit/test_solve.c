/* The solver against brute force on small random problems; the fit of collectives. */
#include "plan/cost/cost.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "tests/unit/main.h"

#include <stdlib.h>

static uint64_t state;

static int draw(int below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

static int64_t draw_cost(void)
{
    return draw(8) == 0 ? COST_NEVER : draw(50);
}

static struct problem *random_problem(struct arena *a, uint64_t seed)
{
    state = seed;
    struct problem *p = problem_new(a);
    int n = 2 + draw(6);
    for (int v = 0; v < n; v++) {
        int size = 1 + draw(4);
        int64_t *unary = problem_unary(p, problem_variable(p, size));
        for (int x = 0; x < size; x++)
            unary[x] = draw_cost();
    }
    for (int k = draw(12); k > 0; k--) {
        int u = draw(n), v = draw(n);
        if (u == v)
            continue;
        int64_t *pair = problem_pair(p, u, v);
        for (int x = 0; x < p->size.at[u] * p->size.at[v]; x++)
            pair[x] = draw_cost();
    }
    return p;
}

START_TEST(exact_equals_brute_force)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct arena *a = arena_new();
        struct problem *p = random_problem(a, seed);
        struct solution exact = solve_exact(p, solve_default, NULL), brute = solve_brute(p);
        ck_assert(exact.proven);
        ck_assert_int_eq(exact.cost, brute.cost);
        if (exact.cost < COST_NEVER)
            ck_assert_int_eq(problem_cost(p, exact.value), exact.cost);
        arena_free(a);
    }
}
END_TEST

/* So little that no problem is solved by elimination alone. */
static const struct solve_limits narrow = {.table = 4, .effort = 1e6}, none = {.table = 0, .effort = 1};

START_TEST(under_limits_the_minimum_lies_between_bound_and_cost)
{
    int proven = 0, open = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct arena *a = arena_new();
        struct problem *p = random_problem(a, seed);
        struct solution brute = solve_brute(p), limited = solve_exact(p, seed % 4 ? narrow : none, seed % 3 ? NULL : brute.value);
        ck_assert_int_le(limited.bound, brute.cost);
        ck_assert_int_ge(limited.cost, brute.cost);
        ck_assert_int_eq(problem_cost(p, limited.value), limited.cost);
        ck_assert_int_eq(limited.proven, limited.bound >= limited.cost);
        proven += limited.proven;
        open += !limited.proven;
        arena_free(a);
    }
    ck_assert_int_gt(proven, 1000);
    ck_assert_int_gt(open, 10);
}
END_TEST

/* A ring of variables, each beside the next three, and across at random: wide, but costs tell most values apart. */
static struct problem *wide_problem(struct arena *a, int n, int values, uint64_t seed)
{
    state = seed;
    struct problem *p = problem_new(a);
    for (int v = 0; v < n; v++) {
        int64_t *unary = problem_unary(p, problem_variable(p, values));
        for (int x = 0; x < values; x++)
            unary[x] = draw(1000);
    }
    for (int v = 0; v < n; v++)
        for (int k = 1; k <= 4; k++) {
            int u = k < 4 ? (v + k) % n : draw(n);
            int64_t *pair = u == v ? NULL : problem_pair(p, u, v);
            for (int x = 0; pair && x < values * values; x++)
                pair[x] = draw(300);
        }
    return p;
}

START_TEST(wide_problems_are_solved_or_bounded)
{
    struct arena *a = arena_new();
    struct problem *p = wide_problem(a, 300, 4, 7);
    int zero[300] = {0};
    struct solution s = solve_exact(p, solve_default, NULL), from = solve_exact(p, none, zero);
    ck_assert_int_eq(problem_cost(p, s.value), s.cost);
    ck_assert_int_gt(s.bound, s.cost - s.cost / 20);
    ck_assert_int_lt(s.cost, problem_cost(p, zero) * 3 / 4);
    ck_assert_int_le(from.cost, problem_cost(p, zero));
    ck_assert_int_le(from.bound, s.cost);
    arena_free(a);
}
END_TEST

/* a and c each prefer what b can't go with together. */
START_TEST(an_assignment_that_is_known_is_better_than_none)
{
    struct arena *arena = arena_new();
    struct problem *p = problem_new(arena);
    int a = problem_variable(p, 2), c = problem_variable(p, 2), b = problem_variable(p, 2);
    problem_unary(p, a)[0] = 5;
    problem_unary(p, c)[0] = 5;
    problem_pair(p, a, b)[1 * 2 + 0] = COST_NEVER;
    problem_pair(p, c, b)[1 * 2 + 1] = COST_NEVER;
    ck_assert_int_eq(solve_exact(p, solve_default, NULL).cost, 5);
    ck_assert_int_le(solve_exact(p, none, (int[]){0, 0, 0}).cost, 10);
    arena_free(arena);
}
END_TEST

/* Moving costs changes no sum. */
START_TEST(a_bound_keeps_every_sum)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct arena *a = arena_new();
        struct problem *p = random_problem(a, seed);
        struct bound *b = bound_new(p, a);
        struct solution brute = solve_brute(p);
        for (int i = 0; i < 4 && bound_sweep(b, &(struct known){NULL, COST_NEVER}); i++)
            ck_assert_int_le(bound_total(b), brute.cost);
        if (brute.cost < COST_NEVER) {
            ck_assert_int_eq(problem_cost(bound_problem(b, a), brute.value), brute.cost);
            ck_assert_int_eq(solve_brute(bound_problem(b, a)).cost, brute.cost);
        }
        arena_free(a);
    }
}
END_TEST

/* Times made from known constants give these constants back, also where messages of some sizes are slower. */
START_TEST(collectives_fit)
{
    static const enum collective kind[] = {COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCESCATTER, COLL_ALLTOALL, COLL_NONE};
    struct machine want = machine_reference(), got = want;
    struct timed_transfer at[80];
    int n = 0;
    want.hop_latency = 2e-6, want.collective_overhead = 5e-6, want.link_bandwidth = 3e9, want.reduce_seconds = 1e-10;
    want.link_slowdown[2] = 2.5, want.link_slowdown[3] = 3;
    for (double bytes = 64; bytes < 1e8; bytes *= 4)
        for (int k = 0; k < 5; k++, n++) {
            double seconds = kind[k] ? collective_seconds(&want, collective_transfer(&want, kind[k], WIRE_F32, 4, bytes))
                                     : collective_seconds(&want, (struct transfer){1, bytes, 0, 0}) - want.collective_overhead;
            at[n] = (struct timed_transfer){kind[k], bytes, seconds};
        }
    ck_assert_double_le(calibrate_fit(&got, 4, n, at), 0.01);
    ck_assert_double_eq_tol(got.hop_latency, 2e-6, 4e-8);
    ck_assert_double_eq_tol(got.collective_overhead, 5e-6, 1e-7);
    ck_assert_double_eq_tol(got.link_bandwidth, 3e9, 6e7);
    ck_assert_double_eq_tol(got.reduce_seconds, 1e-10, 2e-12);
    for (int k = 1; k < LINK_SIZES; k++)
        ck_assert_double_eq_tol(got.link_slowdown[k], want.link_slowdown[k], 0.1);
}
END_TEST

/* What sums take from a rank that computes; where none goes on meanwhile, nothing; and never less than is known without measurement. */
START_TEST(overlap_fits)
{
    struct machine got = machine_reference();
    struct timed_overlap at[] = {{3e-4, 6e-4, 2.9e-4}, {1e-3, 15e-4, 5e-4}, {4e-3, 4e-3, 14e-4}};
    calibrate_overlap(&got, 3, at);
    ck_assert_double_eq_tol(got.overlap_overhead, 2e-4, 1e-6);
    ck_assert_double_eq_tol(got.overlap_share, 0.3, 1e-3);
    ck_assert_double_eq_tol(got.overlap_slowdown, 1.5, 1e-6);
    at[0].taken = at[1].taken = at[2].taken = 1e-6;
    calibrate_overlap(&got, 3, at);
    ck_assert(got.overlap_overhead > 1e-5 && got.overlap_share < 1e-3);
    calibrate_overlap(&got, 0, NULL);
    ck_assert(got.overlap_overhead == 0 && got.overlap_share == 0 && got.overlap_slowdown >= 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("solve");
    TCase *c = unit_case(s, "solve", NULL, NULL);
    tcase_add_test(c, exact_equals_brute_force);
    tcase_add_test(c, under_limits_the_minimum_lies_between_bound_and_cost);
    tcase_add_test(c, wide_problems_are_solved_or_bounded);
    tcase_add_test(c, an_assignment_that_is_known_is_better_than_none);
    tcase_add_test(c, a_bound_keeps_every_sum);
    tcase_add_test(c, collectives_fit);
    tcase_add_test(c, overlap_fits);
    return unit_run(s);
}
