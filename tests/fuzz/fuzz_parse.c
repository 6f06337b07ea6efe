/* Text of any bytes as the text form of a graph: parsed, verified, printed. */
#include "ir/ir.h"
#include "ir/text/text.h"
#include "op/op.h"
#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct graph *g = graph_parse(arena, alg_new(arena), arena_strndup(arena, (const char *)data, size), "fuzz", op_find);
    graph_verify(g, "parsing");
    graph_print(g, stdout);
    arena_free(arena);
}
