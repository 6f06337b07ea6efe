/* A model file of any bytes: loaded, typed, folded, and planned for two ranks without its weights, as by tpc-shard -n. */
#include <stdio.h>
#include <unistd.h>

#include "passes/pass.h"
#include "plan/plan.h"
#include "tests/fuzz/fuzz.h"

static void compile(struct arena *arena, const char *path)
{
    struct options options = {.ranks = 2, .model = path, .dry_run = true};
    options.machine = machine_reference();
    struct plan plan = {.ranks = options.ranks};
    struct compile c = {.arena = arena, .options = &options, .plan = &plan, .model_path = path};
    pass_run(&c, "load", "canon", NULL);
    plan_workloads(c.graph, &options, &plan);
    c.source = graph_copy(arena, c.graph);
    pass_run(&c, "choose", "memory", NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct arena *arena = arena_new();
    snprintf(path, sizeof path, "fuzz-%ld.onnx", (long)getpid());
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        fail("%s: cannot be written", path);
    compile(arena, path);
    unlink(path);
    arena_free(arena);
    return 0;
}
