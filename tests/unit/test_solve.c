/* The solver against brute force on small random problems; the fit of collectives. */
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
        struct solution exact = solve_exact(p, 1 << 20, NULL), brute = solve_brute(p);
        ck_assert(exact.proven);
        ck_assert_int_eq(exact.cost, brute.cost);
        if (exact.cost < COST_NEVER)
            ck_assert_int_eq(problem_cost(p, exact.value), exact.cost);
        arena_free(a);
    }
}
END_TEST

START_TEST(a_small_cap_gives_an_assignment_that_is_not_proven)
{
    struct arena *a = arena_new();
    struct problem *p = problem_new(a);
    for (int v = 0; v < 5; v++)
        problem_variable(p, 3);
    for (int u = 0; u < 5; u++)
        for (int v = 0; v < u; v++) {
            int64_t *pair = problem_pair(p, u, v);
            for (int x = 0; x < 9; x++)
                pair[x] = (x * 7 + u + v) % 11;
        }
    struct solution capped = solve_exact(p, 4, NULL), exact = solve_exact(p, 1 << 20, NULL);
    ck_assert(!capped.proven);
    ck_assert(exact.proven);
    ck_assert_int_eq(problem_cost(p, capped.value), capped.cost);
    ck_assert_int_ge(capped.cost, exact.cost);
    arena_free(a);
}
END_TEST

/* a and c each prefer what b can't go with together. */
START_TEST(over_the_cap_an_assignment_that_is_known_is_better_than_none)
{
    struct arena *arena = arena_new();
    struct problem *p = problem_new(arena);
    int a = problem_variable(p, 2), c = problem_variable(p, 2), b = problem_variable(p, 2);
    problem_unary(p, a)[0] = 5;
    problem_unary(p, c)[0] = 5;
    problem_pair(p, a, b)[1 * 2 + 0] = COST_NEVER;
    problem_pair(p, c, b)[1 * 2 + 1] = COST_NEVER;
    ck_assert_int_eq(solve_exact(p, 1 << 20, NULL).cost, 5);
    ck_assert_int_ge(solve_exact(p, 0, NULL).cost, COST_NEVER);
    ck_assert_int_eq(solve_exact(p, 0, (int[]){0, 0, 0}).cost, 10);
    arena_free(arena);
}
END_TEST

/* Times made from known constants give these constants back. */
START_TEST(collectives_fit)
{
    static const enum collective kind[] = {COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCESCATTER, COLL_ALLTOALL, COLL_NONE};
    struct machine want = machine_reference(), got = want;
    struct timed_transfer at[50];
    int n = 0;
    want.hop_latency = 2e-6, want.collective_overhead = 5e-6, want.link_bandwidth = 3e9, want.reduce_seconds = 1e-10;
    for (double bytes = 64; bytes < 1e8; bytes *= 8)
        for (int k = 0; k < 5; k++, n++) {
            double seconds = kind[k] ? collective_seconds(&want, collective_transfer(&want, kind[k], 4, bytes))
                                     : want.hop_latency + bytes / want.link_bandwidth;
            at[n] = (struct timed_transfer){kind[k], bytes, seconds};
        }
    ck_assert_double_le(calibrate_fit(&got, 4, n, at), 0.01);
    ck_assert_double_eq_tol(got.hop_latency, 2e-6, 4e-8);
    ck_assert_double_eq_tol(got.collective_overhead, 5e-6, 1e-7);
    ck_assert_double_eq_tol(got.link_bandwidth, 3e9, 6e7);
    ck_assert_double_eq_tol(got.reduce_seconds, 1e-10, 2e-12);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("solve");
    TCase *c = unit_case(s, "solve", NULL, NULL);
    tcase_add_test(c, exact_equals_brute_force);
    tcase_add_test(c, a_small_cap_gives_an_assignment_that_is_not_proven);
    tcase_add_test(c, over_the_cap_an_assignment_that_is_known_is_better_than_none);
    tcase_add_test(c, collectives_fit);
    return unit_run(s);
}
