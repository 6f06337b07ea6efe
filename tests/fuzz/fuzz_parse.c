/* Text of any bytes as the text form of a graph: parsed, verified, printed. */
#include <stdio.h>

#include "ir/ir.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    FILE *to = fopen("/dev/null", "w");
    if (!to)
        fail("/dev/null: cannot be written");
    struct graph *g = graph_parse(arena, alg_new(arena), arena_strndup(arena, (const char *)data, size), "fuzz");
    graph_verify(g, "parsing");
    graph_print(g, to);
    fclose(to);
    arena_free(arena);
    return 0;
}
