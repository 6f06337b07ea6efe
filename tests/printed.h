/* The text form of a graph, as a string. */
#ifndef TPC_TESTS_PRINTED_H
#define TPC_TESTS_PRINTED_H

#include "ir/ir.h"
#include "ir/text/text.h"

#include <stdlib.h>

static inline char *graph_printed(struct arena *arena, const struct graph *g)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        fail("no memory for the text of a graph");
    graph_print(g, to);
    if (fclose(to))
        fail("no memory for the text of a graph");
    char *copy = arena_strndup(arena, text, n);
    free(text);
    return copy;
}

#endif
