/* Solves an instance of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism with tpc's own solver:
 *
 *     iopddl INSTANCE.json [SECONDS]
 *
 * Each node takes one of its strategies. Nodes cost, edges cost by the pair of strategies, and each node uses memory during an interval of
 * time; at no time may the sum exceed usage_limit. Prints one JSON object: the strategy of each node (null: none is known), what the solver
 * thinks they cost, its lower bound, and seconds. tests/bench/iopddl.py checks it against the instance. */
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_USAGE ((int64_t)1 << 44)                 /* so that the sum over all nodes does not overflow */
#define NOT_ALLOWED ((json_int_t)1000000000000000000) /* costs from here on */

static const char *path;

static const json_t *array_of(const json_t *object, const char *key)
{
    const json_t *v = json_member(path, object, key, JSON_ARRAY);
    if (!v)
        fail("%s: expected '%s'", path, key);
    return v;
}

static const json_t *object_of(const json_t *object, const char *key)
{
    const json_t *v = json_member(path, object, key, JSON_OBJECT);
    if (!v)
        fail("%s: expected '%s'", path, key);
    return v;
}

static const json_t *row_of(const json_t *rows, size_t i, const char *what, size_t n)
{
    const json_t *row = json_array_get(rows, i);
    if (!json_is_array(row) || json_array_size(row) != n)
        fail("%s: expected %zu numbers in %s %zu", path, n, what, i);
    return row;
}

static int64_t number_at(const json_t *row, size_t k)
{
    const json_t *v = json_array_get(row, k);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        fail("%s: expected costs and usages that are integers of at least 0, found %s", path, json_kind(v));
    return json_integer_value(v);
}

static void fill(int64_t *cost, const json_t *row)
{
    for (size_t k = 0; k < json_array_size(row); k++) {
        int64_t c = number_at(row, k);
        cost[k] = c >= NOT_ALLOWED ? COST_NEVER : c;
    }
}

static void fill_usages(int64_t *amount, const json_t *row)
{
    for (size_t k = 0; k < json_array_size(row); k++) {
        amount[k] = number_at(row, k);
        if (amount[k] > MOST_USAGE)
            fail("%s: expected usages of at most %lld, found %lld", path, (long long)MOST_USAGE, (long long)amount[k]);
    }
}

static void read_nodes(struct problem *p, const json_t *nodes)
{
    const json_t *costs = array_of(nodes, "costs");
    if (json_array_size(costs) > 1 << 18)
        fail("%s: has %zu nodes, expected at most %d", path, json_array_size(costs), 1 << 18);
    for (size_t i = 0; i < json_array_size(costs); i++) {
        size_t n = json_array_size(json_array_get(costs, i));
        if (n < 1 || n > 1 << 16)
            fail("%s: node %zu has %zu strategies", path, i, n);
        fill(problem_unary(p, problem_variable(p, (int)n)), row_of(costs, i, "costs of node", n));
    }
}

static int node_at(const struct problem *p, const json_t *ends, size_t k)
{
    const json_t *v = json_array_get(ends, k);
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= p->size.n)
        fail("%s: an edge has no such node", path);
    return (int)json_integer_value(v);
}

static void read_edges(struct problem *p, const json_t *edges)
{
    const json_t *nodes = array_of(edges, "nodes"), *costs = array_of(edges, "costs");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *ends = row_of(nodes, i, "nodes of edge", 2);
        int a = node_at(p, ends, 0), b = node_at(p, ends, 1);
        if (a == b)
            fail("%s: edge %zu has one node", path, i);
        const json_t *row = row_of(costs, i, "costs of edge", (size_t)p->size.at[a] * (size_t)p->size.at[b]);
        fill(problem_pair(p, a, b), row);
    }
}

/* At most so late that counting all times is cheap. */
static int64_t time_at(const json_t *interval, size_t k)
{
    const json_t *v = json_array_get(interval, k);
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > 1 << 24)
        fail("%s: expected intervals of integers from 0 to %d", path, 1 << 24);
    return json_integer_value(v);
}

static bool is_used(const json_t *interval)
{
    return json_array_size(interval) == 2 && time_at(interval, 0) < time_at(interval, 1);
}

static void read_usages(struct problem *p, const json_t *nodes, int64_t limit)
{
    const json_t *intervals = array_of(nodes, "intervals"), *usages = array_of(nodes, "usages");
    int64_t end = 0;
    for (size_t i = 0; i < (size_t)p->size.n; i++) {
        const json_t *interval = json_array_get(intervals, i);
        end = is_used(interval) && time_at(interval, 1) > end ? time_at(interval, 1) : end;
    }
    int64_t *limits = problem_limits(p, (int)end);
    for (int64_t i = 0; i < end; i++)
        limits[i] = limit;
    for (size_t i = 0; i < (size_t)p->size.n; i++) {
        const json_t *interval = json_array_get(intervals, i);
        if (is_used(interval))
            fill_usages(problem_take(p, (int)i, (int)time_at(interval, 0), (int)time_at(interval, 1)),
                        row_of(usages, i, "usages of node", (size_t)p->size.at[i]));
    }
}

static struct problem *read_problem(struct arena *a)
{
    json_t *root = json_read(path);
    const json_t *of = object_of(root, "problem");
    struct problem *p = problem_new(a);
    read_nodes(p, object_of(of, "nodes"));
    read_edges(p, object_of(of, "edges"));
    const json_t *limit = json_member(path, of, "usage_limit", JSON_INTEGER);
    if (limit)
        read_usages(p, object_of(of, "nodes"), json_integer_value(limit));
    json_decref(root);
    return p;
}

static void print_answer(const struct problem *p, const struct solution *s, double seconds)
{
    printf("{\"cost\": %lld, \"bound\": %lld, \"proven\": %s, \"seconds\": %.1f, \"answer\": ", (long long)s->cost, (long long)s->bound,
           s->proven ? "true" : "false", seconds);
    for (int v = 0; s->cost < COST_NEVER && v < p->size.n; v++)
        printf("%s%d", v ? ", " : "[", s->value[v]);
    printf("%s}\n", s->cost < COST_NEVER ? "]" : "null");
}

static double start, seconds;

static bool enough(void)
{
    return clock_seconds() - start > seconds;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    char *end = "";
    seconds = argc == 3 ? strtod(argv[2], &end) : 300;
    if (argc < 2 || argc > 3 || *end || !(seconds >= 0)) {
        fprintf(stderr, "usage: iopddl INSTANCE.json [SECONDS]\n");
        return 2;
    }
    path = argv[1];
    start = clock_seconds();
    struct problem *p = read_problem(a);
    struct solution s = solve_exact(p, (struct solve_limits){.table = 1 << 22, .effort = INFINITY, .enough = enough}, NULL);
    print_answer(p, &s, clock_seconds() - start);
    arena_free(a);
    return 0;
}
