/* The pass manager: which orders of passes.def it accepts, that each accepted order makes the same files, and that it refuses the others.
 */
#include "op/canon/canon.h"
#include "passes/pass.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "tests/unit/main.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 32, ORDERS = 24 };

/* Pairs that may run in either order; every other pair runs as in the list. */
static const char *const free_pairs[][2] = {
    {"workloads", "configuration"},
    {"workloads", "keep_source"},
    {"workloads", "weight_dtype"},
    {"configuration", "keep_source"},
    {"configuration", "weight_dtype"},
    {"stages", "weight_dtype"},
    {"memory_limit", "weight_dtype"},
    {"explain", "annotate"},
    {"explain", "price"},
    {"annotate", "price"},
    {"cut_weights", "memory"},
};

static const struct pass *const list = pass_rows;
static int n; /* load to emit */

static void setup(void)
{
    while (list[n].name)
        n++;
    while (strcmp(list[n - 1].name, "emit") != 0)
        n--;
    require(n <= PASSES);
}

static bool is_free(const char *a, const char *b)
{
    if (strcmp(a, "compare") == 0) /* it plans on copies: at any time after memory_limit */
        return true;
    for (size_t i = 0; i < sizeof free_pairs / sizeof *free_pairs; i++)
        if (strcmp(free_pairs[i][0], a) == 0 && strcmp(free_pairs[i][1], b) == 0)
            return true;
    return false;
}

static bool step(bool *done, unsigned *have, int i)
{
    if (done[i] || pass_lacks(&list[i], *have))
        return false;
    done[i] = true;
    *have = pass_after(&list[i], *have);
    return true;
}

/* Runs all that may run, but for pass `without`, until pass `until` has run. */
static void advance(bool *done, unsigned *have, int without, int until)
{
    for (bool more = true; more && (until < 0 || !done[until]);) {
        more = false;
        for (int i = 0; i < n && (until < 0 || !done[until]); i++)
            if (i != without && step(done, have, i))
                more = true;
    }
}

/* Is there a complete order in which pass j comes before pass i? */
static bool may_precede(int j, int i)
{
    bool done[PASSES] = {false};
    unsigned have = 0;
    if (pass_lacks(&list[j], have))
        advance(done, &have, i, j);
    if (!done[j] && !step(done, &have, j))
        return false;
    advance(done, &have, -1, -1);
    for (int k = 0; k < n; k++)
        if (!done[k])
            return false;
    return true;
}

START_TEST(order_of_every_pair)
{
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            ck_assert_msg(may_precede(j, i) == is_free(list[i].name, list[j].name), "%s before %s is %s", list[j].name, list[i].name,
                          may_precede(j, i) ? "accepted" : "refused");
}
END_TEST

START_TEST(every_row_needs_and_gives)
{
    unsigned given = 0;
    for (int i = 0; i < n; i++) {
        ck_assert_msg(list[i].gives & ~given, "%s gives nothing new", list[i].name);
        ck_assert_msg(list[i].needs || i == 0, "%s needs nothing", list[i].name);
        given |= list[i].gives;
    }
}
END_TEST

/* A random order that the manager accepts: by what is lacking alone. */
static void random_order(int *order)
{
    do {
        bool done[PASSES] = {false};
        unsigned have = 0;
        for (int k = 0, tries = 0; k < n && tries < 4000; tries++) {
            order[k] = rand() % n;
            if (step(done, &have, order[k]))
                k++;
        }
        bool all = true;
        for (int i = 0; i < n; i++)
            all = all && done[i];
        if (all)
            return;
    } while (true);
}

static char *file_text(struct arena *a, const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    ck_assert_uint_lt(bytes, sizeof text - 1);
    fclose(file);
    return arena_strndup(a, text, bytes);
}

static char *files_of(struct arena *a, const int *order)
{
    const char *srcdir = getenv("srcdir") ? getenv("srcdir") : ".";
    char out[] = "/tmp/test_passes-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(out));
    struct arena *tmp = arena_new();
    const char *model = path_join(tmp, srcdir, "samples/gpt2/model.onnx");
    struct options options = {.ranks = 2, .model = model, .out = path_join(tmp, out, "ranks"), .memory = 3400000};
    options.machine = machine_reference();
    options.digest = digest_file(tmp, model);
    options.annotate = path_join(tmp, out, "annotated.onnx");
    options.price = true;
    VEC_PUSH(tmp, &options.compare, "none");
    digest_files_begin(tmp, 1, &options.digest);
    struct plan plan = {.ranks = 2};
    struct bound_inputs fixed = {{NULL, 0, 0}};
    struct compile c = {.arena = tmp, .options = &options, .plan = &plan, .model_path = model, .fixed = &fixed};
    for (int k = 0; k < n; k++)
        pass_run_one(&c, &list[order[k]]);
    ck_assert_int_eq(c.compared.list.n, 1);
    char *plan_text = file_text(a, path_join(tmp, options.out, "plan.json")),
         *manifest = file_text(a, path_join(tmp, options.out, "manifest.json"));
    char *all = arena_printf(a, "%s%s%g", plan_text, manifest, c.compared.list.at[0].seconds);
    ck_assert_int_eq(system(arena_printf(tmp, "rm -rf '%s'", out)), 0);
    arena_free(tmp);
    return all;
}

static const char *order_text(struct arena *a, const int *order)
{
    const char *text = "";
    for (int k = 0; k < n; k++)
        text = arena_printf(a, "%s %s", text, list[order[k]].name);
    return text;
}

START_TEST(accepted_orders_make_the_same_files)
{
    struct arena *a = arena_new();
    int order[PASSES], moved = 0;
    for (int k = 0; k < n; k++)
        order[k] = k;
    const char *want = files_of(a, order);
    srand(7);
    for (int i = 0; i < ORDERS; i++) {
        random_order(order);
        for (int k = 0; k < n; k++)
            moved += order[k] != k;
        const char *got = files_of(a, order);
        size_t at = 0;
        while (got[at] && got[at] == want[at])
            at++;
        ck_assert_msg(strcmp(got, want) == 0, "%s: %.80s", order_text(a, order), &got[at > 40 ? at - 40 : 0]);
    }
    ck_assert_int_gt(moved, ORDERS);
    arena_free(a);
}
END_TEST

/* bug() aborts. */
START_TEST(refused)
{
    struct arena *a = arena_new();
    struct compile c = {.arena = a, .graph = graph_new(a, alg_new(a), "g")};
    pass_run_one(&c, &list[_i + 1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("passes");
    TCase *t = unit_case(suite, "passes", NULL, NULL);
    tcase_set_timeout(t, 60);
    setup();
    tcase_add_test(t, order_of_every_pair);
    tcase_add_test(t, every_row_needs_and_gives);
    tcase_add_test(t, accepted_orders_make_the_same_files);
    tcase_add_loop_test_raise_signal(t, refused, SIGABRT, 0, n - 1);
    return unit_run(suite);
}
