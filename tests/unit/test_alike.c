/* test_alike.c: ranks are alike exactly if localize gives them the same graph, but for the rank's number. Their graphs are printed and
 * compared. */
#include "op/op.h"
#include "passes/pass.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "tests/printed.h"
#include "tests/unit/main.h"

#include <stdlib.h>
#include <string.h>

/* What localize makes of rank r, as text, with another rank's number. */
static const char *text_as(struct arena *a, struct graph *g, int number)
{
    g->rank = number;
    for (int i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i]->op && g->nodes.at[i]->op->flags & OP_COLLECTIVE)
            attr_set_int(g->nodes.at[i], "rank", number);
    return graph_printed(a, g);
}

static void check_alike(struct arena *a, const struct compile *c)
{
    int ranks = c->graph->ranks;
    const char **text = NEWN(a, const char *, ranks);
    for (int r = 0; r < ranks; r++)
        text[r] = text_as(a, c->rank_graphs[r], 0);
    for (int r = 0; r < ranks; r++)
        for (int k = 0; k < r; k++)
            ck_assert_msg((c->alike[k] == c->alike[r]) == (strcmp(text[k], text[r]) == 0), "%s: ranks %d and %d of %d, alike %d and %d",
                          c->model_path, k, r, ranks, c->alike[k], c->alike[r]);
}

static const struct {
    const char *model;
    int ranks, kinds;
    const char *plan;
} cases[] = {
    {"samples/llama/model.onnx", 4, 1, NULL},
    {"samples/llama/model.onnx", 5, 4, NULL},
    {"samples/gpt2/model.onnx", 3, 2, NULL},
    {"samples/vit/model.onnx", 7, 4, NULL},
    {"samples/llama-genai-fp32/model.onnx", 12, 3, NULL},
    {"tests/pass/localize-rows.graph", 4, 3, "tests/pass/rows.json"},
};

/* On which splitting pays in models as small as samples. */
static struct machine slow_machine(void)
{
    struct machine m = machine_reference();
    m.flops /= 30, m.machine_flops /= 30, m.memory_bandwidth /= 30, m.machine_memory_bandwidth /= 30;
    return m;
}

START_TEST(same_graphs)
{
    const char *srcdir = getenv("srcdir") ? getenv("srcdir") : ".";
    struct arena *a = arena_new();
    const char *model = path_join(a, srcdir, cases[_i].model);
    struct options options = {.ranks = cases[_i].ranks, .model = model};
    options.machine = slow_machine();
    options.plan_file = cases[_i].plan ? plan_file_read(a, path_join(a, srcdir, cases[_i].plan)) : NULL;
    struct plan plan = {.ranks = options.ranks};
    struct bound_inputs fixed = {{NULL, 0, 0}};
    struct compile c = {.arena = a, .options = &options, .plan = &plan, .model_path = model, .fixed = &fixed};
    int kinds = 0;
    pass_run(&c, "load", "localize", NULL);
    for (int r = 0; r < options.ranks; r++)
        kinds += c.alike[r] == r;
    ck_assert_msg(kinds == cases[_i].kinds, "%s: %d kinds of %d ranks", model, kinds, options.ranks);
    check_alike(a, &c);
    arena_free(a);
}
END_TEST

/* Ranks that are alike have no graph of their own where nothing is written. */
START_TEST(one_graph_of_each_kind)
{
    const char *srcdir = getenv("srcdir") ? getenv("srcdir") : ".";
    struct arena *a = arena_new();
    const char *model = path_join(a, srcdir, "samples/llama/model.onnx");
    struct options options = {.ranks = PLAN_RANKS, .model = model};
    options.machine = machine_reference();
    struct plan plan = {.ranks = options.ranks};
    struct compile c = {.arena = a, .options = &options, .plan = &plan, .model_path = model, .plans_only = true};
    int made = 0;
    pass_run(&c, "load", "memory", NULL);
    for (int r = 0; r < options.ranks; r++) {
        made += c.rank_graphs[r] != NULL;
        ck_assert(c.rank_graphs[c.alike[r]] && plan.use[r].weights == plan.use[c.alike[r]].weights);
    }
    ck_assert_int_le(made, 8);
    arena_free(a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("alike");
    TCase *t = unit_case(suite, "alike", NULL, NULL);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, same_graphs, 0, COUNT(cases));
    tcase_add_test(t, one_graph_of_each_kind);
    return unit_run(suite);
}
