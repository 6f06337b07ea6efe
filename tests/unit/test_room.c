/* test_room.c: what limits over time count of a plan is no more than what its fullest rank holds, on random plans of the samples. */
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "tests/unit/main.h"

#include <stdlib.h>

static const struct {
    const char *model, *train;
    int ranks;
    enum sp_mode sp;
    int64_t memory[2]; /* of each rank; 0: no limits by rank */
} cases[] = {
    {"samples/llama/model.onnx", NULL, 2, SP_OFF, {0}},
    {"samples/llama/model.onnx", NULL, 5, SP_ON, {0}},
    {"samples/gpt2/model.onnx", NULL, 3, SP_OFF, {0}},
    {"samples/gpt2/model.onnx", NULL, 4, SP_ON, {0}},
    {"samples/bert/model.onnx", NULL, 2, SP_OFF, {0}},
    {"samples/bert/model.onnx", NULL, 3, SP_ON, {0}},
    {"samples/vit/model.onnx", NULL, 2, SP_OFF, {0}},
    {"samples/vit/model.onnx", NULL, 7, SP_OFF, {0}},
    {"samples/qwen2/model.onnx", NULL, 4, SP_OFF, {0}},
    {"samples/llama-genai-int4/model.onnx", NULL, 4, SP_OFF, {0}},
    {"samples/t5-decoder_with_past/model.onnx", NULL, 2, SP_OFF, {0}},
    {"samples/gpt2/model.onnx", "*", 2, SP_OFF, {0}},
    {"samples/gpt2/model.onnx", NULL, 2, SP_OFF, {90000000, 30000000}},
    {"samples/qwen2/model.onnx", NULL, 2, SP_OFF, {100000000, 500000000}},
};
enum { SEEDS = 8 };

/* Weighed, where limits differ. */
static int64_t fullest(const struct options *o, const struct plan *p)
{
    int rank = memory_fullest(o, p->ranks, p->use);
    return limit_weighed(o, rank, memory_total(&p->use[rank]), true);
}

/* Seed 0: the cheapest plan. */
static void check_count(int which, uint64_t seed)
{
    const char *srcdir = getenv("srcdir") ? getenv("srcdir") : ".";
    struct arena *a = arena_new();
    const char *model = path_join(a, srcdir, cases[which].model);
    struct options options = {.ranks = cases[which].ranks, .model = model, .train = cases[which].train, .sp = cases[which].sp};
    options.machine = machine_reference();
    if (cases[which].memory[0]) {
        options.machine.memories = options.ranks;
        options.machine.memory = cases[which].memory;
        options.memory = machine_most_memory(&options.machine);
    }
    options.random_seed = seed;
    options.random_split_only = seed % 2;
    struct plan plan = {.ranks = options.ranks, .room.bytes = INT64_MAX / 4};
    struct compile c = {.arena = a, .options = &options, .plan = &plan, .model_path = model, .plans_only = true};
    pass_run(&c, "load", "memory", NULL);
    if (getenv("SHOW"))
        printf("%s %d ranks, seed %d: %lld of %lld\n", model, options.ranks, (int)seed, (long long)plan.counted,
               (long long)fullest(&options, &plan));
    ck_assert_int_gt(plan.counted, seed ? 0 : fullest(&options, &plan) / 2);
    ck_assert_msg(plan.counted <= fullest(&options, &plan), "%s on %d ranks, seed %d: counts %lld of %lld bytes", model, options.ranks,
                  (int)seed, (long long)plan.counted, (long long)fullest(&options, &plan));
    arena_free(a);
}

START_TEST(no_plan_holds_less)
{
    for (uint64_t seed = 0; seed <= SEEDS; seed++)
        check_count(_i, seed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("room");
    TCase *t = unit_case(suite, "room", NULL, NULL);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, no_plan_holds_less, 0, COUNT(cases));
    return unit_run(suite);
}
