/* What tpc-shard -n does with a model, for the targets that need a plan. */
#include "passes/pass.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "tests/fuzz/fuzz.h"

void fuzz_compile(struct arena *arena, const struct options *options)
{
    struct plan plan = {.ranks = options->ranks};
    struct compile c = {.arena = arena, .options = options, .plan = &plan, .model_path = options->model};
    pass_run(&c, "load", "memory", NULL);
}
