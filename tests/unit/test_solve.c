/* The solver against brute force on small random problems; the fit of collectives. */
#include "plan/cost/cost.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "tests/unit/main.h"

#include <stdlib.h>
#include <string.h>

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
static const struct solve_limits narrow = {.table = 4, .effort = 1e6}, none = {.table = 0, .effort = 1},
                                 solve_small = {.table = 1 << 12, .effort = 1e6};

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
    ck_assert_int_gt(open, 3);
}
END_TEST

/* A ring of variables, each adjacent to the next three, with random chords: wide, but costs tell most values apart. */
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

/* Limits that some assignments keep, or none. */
static struct problem *limited_problem(struct arena *a, uint64_t seed)
{
    struct problem *p = random_problem(a, seed);
    int points = 1 + draw(6);
    int64_t *limit = problem_limits(p, points);
    for (int i = 0; i < points; i++)
        limit[i] = draw(60);
    for (int k = draw(10); k > 0; k--) {
        int v = draw(p->size.n), from = draw(points), to = from + 1 + draw(points - from);
        int64_t *amount = problem_take(p, v, from, to);
        for (int x = 0; x < p->size.at[v]; x++)
            amount[x] = draw(20);
    }
    return p;
}

START_TEST(limits_are_kept_and_the_minimum_lies_between_bound_and_cost)
{
    int proven = 0, found = 0, never = 0;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct arena *a = arena_new();
        struct problem *p = limited_problem(a, seed);
        struct solution brute = solve_brute(p), s = solve_exact(p, seed % 3 ? narrow : solve_small, seed % 5 ? NULL : brute.value);
        ck_assert_int_le(s.bound, brute.cost);
        ck_assert_int_ge(s.cost, brute.cost);
        ck_assert_int_eq(s.proven, s.bound >= s.cost);
        if (s.cost < COST_NEVER) {
            ck_assert(problem_fits(p, s.value));
            ck_assert_int_eq(problem_cost(p, s.value), s.cost);
        }
        proven += s.proven;
        found += s.cost == brute.cost;
        never += brute.cost == COST_NEVER;
        arena_free(a);
    }
    ck_assert_int_gt(proven, 1300);
    ck_assert_int_gt(found, 1450);
    ck_assert_int_gt(never, 100);
    ck_assert_int_lt(never, 1000);
}
END_TEST

/* Each reduction keeps the minimum, and every assignment of the smaller problem is one of the larger. */
START_TEST(a_reduction_keeps_the_minimum)
{
    int smaller = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct arena *a = arena_new();
        struct problem *p = limited_problem(a, seed);
        struct solution brute = solve_brute(p);
        struct reduced r = reduce(p, a, NULL, 3, seed % 2);
        if (r.possible) {
            struct solution s = solve_brute(r.p);
            int value[16];
            for (int v = 0; v < p->size.n; v++)
                value[v] = r.value[v][r.var[v] < 0 ? 0 : s.value[r.var[v]]];
            ck_assert_int_eq(s.cost, brute.cost < COST_NEVER ? 3 * brute.cost : COST_NEVER);
            if (s.cost < COST_NEVER) {
                ck_assert(problem_fits(p, value));
                ck_assert_int_eq(problem_cost(p, value), brute.cost);
            }
            smaller += r.p->size.n < p->size.n || r.p->points < p->points;
        } else
            ck_assert_int_eq(brute.cost, COST_NEVER);
        arena_free(a);
    }
    ck_assert_int_gt(smaller, 300);
}
END_TEST

static uint64_t table_digest(const struct problem *p)
{
    uint64_t h = 1;
    for (int i = 0; i < p->tables.n; i++)
        for (int64_t k = 0, n = problem_entries(p, &p->tables.at[i]); k < n; k++)
            h = (h ^ (uint64_t)p->tables.at[i].cost[k]) * 0x9E3779B97F4A7C15u;
    return h;
}

/* Smaller problems share tables with those that they come from, and leave them as they are. */
START_TEST(smaller_problems_change_no_table)
{
    int left = 0, shared = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct arena *a = arena_new();
        struct problem *p = random_problem(a, seed);
        struct elimination *e = elimination_new(p, a);
        uint64_t whole = table_digest(p);
        (void)elimination_run(e, 4, 1e6);
        struct problem *rest = elimination_rest(e, a);
        const struct problem *larger = seed % 3 ? p : rest;
        uint64_t digest = table_digest(larger);
        struct reduced r = reduce(larger, a, NULL, 1, seed % 2);
        int64_t least = solve_brute(p).cost;
        ck_assert_int_eq(least, solve_brute(rest).cost);
        ck_assert_int_eq(least, r.possible ? solve_brute(r.p).cost : COST_NEVER);
        ck_assert(table_digest(p) == whole && table_digest(larger) == digest);
        left += rest->tables.n > 4;
        for (int i = 0; r.possible && i < r.p->tables.n; i++)
            for (int k = 0; k < larger->tables.n; k++)
                shared += r.p->tables.at[i].cost == larger->tables.at[k].cost;
        arena_free(a);
    }
    ck_assert_int_gt(left, 100);
    ck_assert_int_gt(shared, 100);
}
END_TEST

/* Whatever the prices are, the bound is one. */
START_TEST(prices_keep_the_bound)
{
    int higher = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct arena *a = arena_new();
        struct problem *p = limited_problem(a, seed);
        struct bound *b = bound_new(p, a);
        struct solution brute = solve_brute(p);
        struct prices *prices = prices_new(p, a, NULL, 0);
        int value[16];
        bool open = bound_sweep(b, &(struct known){NULL, COST_NEVER});
        int64_t first = bound_total(b), most = first;
        for (int i = 0; i < 20 && open; i++) {
            bound_decode(b, value);
            prices_move(prices, value, (double)bound_total(b), (double)bound_total(b) + 20);
            prices_charge(prices, b);
            open = bound_sweep(b, &(struct known){NULL, COST_NEVER});
            ck_assert_int_le(bound_total(b), brute.cost);
            most = bound_total(b) > most ? bound_total(b) : most;
        }
        prices_release(prices, b);
        if (brute.cost < COST_NEVER)
            ck_assert_int_eq(problem_cost(bound_problem(b, a), brute.value), brute.cost);
        higher += most > first;
        arena_free(a);
    }
    ck_assert_int_gt(higher, 50);
}
END_TEST

START_TEST(wide_problems_are_solved_or_bounded)
{
    struct arena *a = arena_new();
    struct problem *p = wide_problem(a, 300, 4, 7);
    int zero[300] = {0};
    struct solution s = solve_exact(p, (struct solve_limits){.table = 1 << 22, .effort = 1e8}, NULL), from = solve_exact(p, none, zero);
    ck_assert_int_eq(problem_cost(p, s.value), s.cost);
    ck_assert_int_gt(s.bound, s.cost - s.cost / 20);
    ck_assert_int_lt(s.cost, problem_cost(p, zero) * 3 / 4);
    ck_assert_int_le(from.cost, problem_cost(p, zero));
    ck_assert_int_le(from.bound, s.cost);
    arena_free(a);
}
END_TEST

/* a and c each prefer what b can't go with together. */
/* Within a parallel region, another one has one thread. */
START_TEST(threads_change_no_solution)
{
    struct arena *a = arena_new();
    struct problem *p = wide_problem(a, 300, 4, 11);
    struct solve_limits some = {.table = 1 << 10, .effort = 2e7};
    struct solution two = solve_exact(p, some, NULL), one = {0};
#pragma omp parallel num_threads(2)
#pragma omp single
    one = solve_exact(p, some, NULL);
    ck_assert_int_eq(one.cost, two.cost);
    ck_assert_int_eq(one.bound, two.bound);
    ck_assert_int_eq(memcmp(one.value, two.value, sizeof(int) * 300), 0);
    arena_free(a);
}
END_TEST

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

/* Counts the values that are slow; no assignment that is found with one of them costs less. */
static int try_slow(struct problem *p, struct arena *a, const struct known *known)
{
    bool **slow = slow_values(p, a, known);
    int all = 0;
    for (int v = 0; v < p->size.n; v++)
        for (int x = 0; x < p->size.at[v]; x++) {
            int64_t *others = slow[v][x] && all++ % 4 == 0 ? problem_unary(p, v) : NULL;
            ck_assert(!slow[v][x] || x != known->value[v]);
            for (int y = 0; others && y < p->size.at[v]; y++)
                others[y] = y == x ? 0 : COST_NEVER;
            if (others) {
                ck_assert_int_ge(solve_exact(p, solve_small, NULL).cost, known->cost);
                memset(others, 0, sizeof *others * (size_t)p->size.at[v]);
            }
        }
    return all;
}

START_TEST(nothing_cheap_has_a_slow_value)
{
    int small = 0, wide = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct arena *a = arena_new();
        struct problem *p = random_problem(a, seed);
        struct solution best = solve_brute(p);
        if (best.cost < COST_NEVER)
            small += try_slow(p, a, &(struct known){best.value, best.cost + 1 + draw(20)});
        arena_free(a);
    }
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct arena *a = arena_new();
        struct problem *p = wide_problem(a, 24, 6, seed);
        for (int v = 0; v < 24; v++) {
            int64_t *unary = problem_unary(p, v), *pair = problem_pair(p, v, problem_variable(p, 3)); /* makes a small table */
            for (int x = 0; x < 6; x++)
                unary[x] = draw(2000);
            for (int x = 0; x < 6 * 3; x++)
                pair[x] = draw(300);
        }
        struct solution best = solve_exact(p, solve_default, NULL);
        wide += try_slow(p, a, &(struct known){best.value, best.cost + 1 + best.cost / 1000});
        arena_free(a);
    }
    ck_assert_int_gt(small, 300);
    ck_assert_int_gt(wide, 30);
}
END_TEST

/* Times made from known constants give these constants back, also where messages of some sizes are slower. */
START_TEST(collectives_fit)
{
    static const enum collective kind[] = {COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCESCATTER, COLL_ALLTOALL, COLL_NONE};
    struct link want = machine_reference().level[0], got = want;
    struct timed_transfer at[80];
    int n = 0;
    want.latency = 2e-6, want.overhead = 5e-6, want.bandwidth = 3e9, want.reduce_seconds = 1e-10;
    want.slowdown[2] = 2.5, want.slowdown[3] = 3;
    for (double bytes = 64; bytes < 1e8; bytes *= 4)
        for (int k = 0; k < 5; k++, n++) {
            double seconds = kind[k] ? cost_link_seconds(&want, cost_link_transfer(&want, kind[k], (struct coding){0}, 4, bytes))
                                     : cost_link_seconds(&want, (struct transfer){1, bytes, 0, 0}) - want.overhead;
            at[n] = (struct timed_transfer){kind[k], bytes, seconds};
        }
    ck_assert_double_le(calibrate_fit(&got, 4, n, at), 0.01);
    ck_assert_double_eq_tol(got.latency, 2e-6, 4e-8);
    ck_assert_double_eq_tol(got.overhead, 5e-6, 1e-7);
    ck_assert_double_eq_tol(got.bandwidth, 3e9, 6e7);
    ck_assert_double_eq_tol(got.reduce_seconds, 1e-10, 2e-12);
    for (int k = 1; k < LINK_SIZES; k++)
        ck_assert_double_eq_tol(got.slowdown[k], want.slowdown[k], 0.1);
}
END_TEST

/* Two ranks of a machine, machines of a rack, racks. */
static struct machine with_levels(double unit_bandwidth)
{
    struct machine m = machine_reference();
    m.machine_ranks = 2;
    m.levels = 2;
    m.level[0].bandwidth = 10e9, m.level[0].latency = 1e-6, m.level[0].overhead = 1e-6;
    m.level[1] = (struct link){.ranks = 2, .bandwidth = 1e9, .unit_bandwidth = unit_bandwidth, .latency = 20e-6, .overhead = 5e-6};
    for (int k = 0; k < LINK_SIZES; k++)
        m.level[1].slowdown[k] = 1;
    return m;
}

/* Two ranks stay within their machine. Sums of more go through it: only what a machine has added up leaves it, and ranks share its card. */
START_TEST(collectives_run_by_level)
{
    struct machine m = with_levels(1e9), flat = m;
    const double bytes = 1e6;
    flat.levels = 1;
    struct sent sum = {.kind = COLL_ALLREDUCE, .ranks = 2, .bytes = bytes};
    ck_assert_double_eq(collective_seconds(&m, &sum), collective_seconds(&flat, &sum));
    sum.ranks = 8;
    double within = 1e-6 + 1e-6 + 0.5 * bytes / 10e9, between = 5e-6 + 4 * 20e-6 + 1.5 * (bytes / 2) / 0.5e9;
    ck_assert_double_eq_tol(collective_seconds(&m, &sum), 2 * within + between, 1e-12);
    struct sent half = sum; /* 16-bit sums are rounded once: all ranks are in one exchange */
    half.at_once = true;
    ck_assert_double_gt(collective_seconds(&m, &half), 1.5 * collective_seconds(&m, &sum));
    half.ranks = sum.ranks = 7; /* equal to those of machines that are not full */
    ck_assert_double_eq(collective_seconds(&m, &half), collective_seconds(&m, &sum));
    struct machine wide = with_levels(2e9), wider = with_levels(20e9);
    sum.ranks = 8;
    ck_assert_double_eq_tol(collective_seconds(&wide, &sum), 2 * within + between - 1.5 * (bytes / 2) / 1e9, 1e-12);
    ck_assert_double_eq(collective_seconds(&wide, &sum), collective_seconds(&wider, &sum));
}
END_TEST

/* Of the data that a rank sends to seven others, one part stays within its machine. */
START_TEST(exchanges_use_every_level)
{
    struct machine m = with_levels(1e9);
    const double bytes = 64e6;
    struct sent all = {.kind = COLL_ALLTOALL, .ranks = 8, .bytes = bytes};
    double sent = bytes * 7 / 64, want = 5e-6 + 1e-6 + 2 * 20e-6 + sent * (1 / 7.0 / 10e9 + 6 / 7.0 / 0.5e9);
    ck_assert_double_eq_tol(collective_seconds(&m, &all), want, 1e-12);
    all.kind = COLL_ALLGATHER;
    double between = 5e-6 + 2 * 20e-6 + 0.75 * (bytes / 2) / 0.5e9, within = 1e-6 + 1e-6 + 0.5 * (bytes / 4) / 10e9;
    ck_assert_double_eq_tol(collective_seconds(&m, &all), between + 4 * within, 1e-12);
    all.kind = COLL_REDUCESCATTER;
    ck_assert_double_eq_tol(collective_seconds(&m, &all), between + 4 * within, 1e-12);
    m.levels = 3; /* the same links between racks: nothing changes but the name */
    m.level[2] = m.level[1];
    m.level[2].ranks = 4, m.level[2].unit_bandwidth = 2e9;
    ck_assert_double_eq_tol(collective_seconds(&m, &all), between + 4 * within, 1e-12);
    m.level[2].unit_bandwidth = 1e9; /* half as wide: two thirds of what leaves a machine pass it */
    ck_assert_double_eq_tol(collective_seconds(&m, &all), between + 4 * within + 0.75 * (bytes / 2) * 2 / 3 / 0.5e9, 1e-12);
}
END_TEST

/* The time that sums take from a computing rank; none if no sum overlaps; and never less than known without measurement. */
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
    tcase_add_test(c, limits_are_kept_and_the_minimum_lies_between_bound_and_cost);
    tcase_add_test(c, a_reduction_keeps_the_minimum);
    tcase_add_test(c, smaller_problems_change_no_table);
    tcase_add_test(c, prices_keep_the_bound);
    tcase_add_test(c, wide_problems_are_solved_or_bounded);
    tcase_add_test(c, threads_change_no_solution);
    tcase_add_test(c, an_assignment_that_is_known_is_better_than_none);
    tcase_add_test(c, a_bound_keeps_every_sum);
    tcase_add_test(c, nothing_cheap_has_a_slow_value);
    tcase_add_test(c, collectives_fit);
    tcase_add_test(c, collectives_run_by_level);
    tcase_add_test(c, exchanges_use_every_level);
    tcase_add_test(c, overlap_fits);
    return unit_run(s);
}
