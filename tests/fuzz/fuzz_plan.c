/* A plan file of any bytes, and a graph planned under it; after the word machine, a machine profile. */
#include "plan/input/input.h"
#include "plan/plan.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const char graph[] =
    "graph g {\n  opset 23  import \"\" \"23\"\n  input x: f32[B, 4]  input past: f32[B, 2, P, 2]\n"
    "  const up.weight: f32[4, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7]\n  const down.weight: f32[4, 2] = [1, 2, "
    "3, 4, 5, 6, 7, 8]\n"
    "  const heads: i64[4] = [0, 2, 1, 2]\n  node up: h: ? = MatMul(x, up.weight)\n  node act: a: ? = Relu(h)\n  node down: y: "
    "? = MatMul(a, down.weight)\n"
    "  node heads: new: ? = Reshape(h, heads)\n  node join: present: ? = Concat(past, new) {axis = 2}\n  output y  output present\n}\n";

void fuzz_one(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    const size_t word = strlen("machine");
    bool machine = size > word && memcmp(data, "machine", word) == 0;
    struct options options = {.ranks = 2, .dry_run = true};
    options.model = fuzz_file(arena, (const uint8_t *)graph, sizeof graph - 1);
    options.machine = machine ? machine_read(arena, fuzz_file(arena, data + word, size - word)) : machine_reference();
    options.plan_file = machine ? NULL : plan_file_read(arena, fuzz_file(arena, data, size));
    fuzz_compile(arena, &options);
    arena_free(arena);
}
