/* What tpc-shard -n does with a model, for the targets that need a plan. */
#include "passes/pass.h"
#include "plan/plan.h"
#include "tests/fuzz/fuzz.h"

void fuzz_compile(struct arena *arena, const struct options *options)
{
    struct plan plan = {.ranks = options->ranks};
    struct compile c = {.arena = arena, .options = options, .plan = &plan, .model_path = options->model};
    pass_run(&c, "load", "canon", NULL);
    plan_workloads(c.graph, options, &plan);
    plan_configuration(c.graph, options, &plan);
    c.source = graph_copy(arena, c.graph);
    pass_run(&c, "store", "memory", NULL);
}
