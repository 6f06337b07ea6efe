/* A model file of any bytes, as ONNX or as text: loaded, typed, folded, and planned for two ranks without its weights. */
#include "plan/input/input.h"
#include "plan/plan.h"
#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct options options = {.ranks = 2, .model = fuzz_file(arena, data, size), .dry_run = true, .machine = machine_reference()};
    fuzz_compile(arena, &options);
    arena_free(arena);
}
