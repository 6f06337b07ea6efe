/* For tests of the planner's parts: the space of a small graph in text form, a random one of products and what stands between them, and
 * numbers by chance. */
#ifndef TESTS_UNIT_SPACE_H
#define TESTS_UNIT_SPACE_H

#include "ir/text/text.h"
#include "op/op.h"
#include "passes/pass.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <stdio.h>
#include <string.h>

static uint64_t chance_state;

static inline int chance(int below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((chance_state >> 33) % (uint64_t)below);
}

static inline struct options space_options(int ranks)
{
    struct options o = {.ranks = ranks, .machine = machine_reference()};
    return o;
}

/* The space of a graph whose sizes are numbers, under one workload. */
static inline struct space *space_of(struct arena *a, const char *body, const struct options *options)
{
    const char *text = arena_printf(a, "graph g { import \"\" \"23\"\n%s\n}", body);
    struct graph *g = graph_parse(a, alg_new(a), text, "test", op_find);
    struct compile c = {.arena = a, .graph = g};
    struct plan *plan = NEW(a, struct plan);
    pass_shapes(&c);
    g->properties |= PROP_TYPED;
    pass_canon(&c);
    plan->ranks = options->ranks;
    VEC_PUSH(a, &plan->workloads, ((struct workload){.weight = 1}));
    return space_new(a, g, options, plan);
}

static inline char *weight_text(struct arena *a, int k, int rows, int columns)
{
    char *text = arena_printf(a, "const w%d: f32[%d, %d] = [1", k, rows, columns), *end;
    size_t length = strlen(text);
    char *all = arena_alloc(a, length + (size_t)(rows * columns) * 3 + 3);
    end = all + sprintf(all, "%s", text);
    for (int i = 1; i < rows * columns; i++)
        end += sprintf(end, ", %d", i % 7);
    sprintf(end, "]\n");
    return all;
}

/* Two inputs of the same size, and nodes each of which reads values before it: products with weights (which may be shared), sums,
 * functions, and turned tables. Every value that nothing reads is an output. */
static inline char *random_graph(struct arena *a, uint64_t seed)
{
    enum { NODES = 6 };
    int rows[NODES + 2], columns[NODES + 2], n = 2;
    bool read[NODES + 2] = {false};
    chance_state = seed * 7919 + 1;
    rows[0] = rows[1] = 2 + chance(6);
    columns[0] = columns[1] = 2 + chance(6);
    char *text = arena_printf(a, "input v0: f32[%d, %d] input v1: f32[%d, %d]\n", rows[0], columns[0], rows[0], columns[0]);
    for (int nodes = 1 + chance(NODES); n < nodes + 2; n++) {
        int x = chance(n), y = chance(n), kind = chance(4), w = 2 + chance(7);
        const char *weight = "", *made;
        rows[n] = kind == 2 ? columns[x] : rows[x];
        columns[n] = kind == 0 ? w : kind == 2 ? rows[x] : columns[x];
        read[x] = true;
        if (kind == 0) {
            weight = weight_text(a, n, columns[x], w);
            made = arena_printf(a, "MatMul(v%d, w%d)", x, n);
        } else if (kind == 1 && rows[x] == rows[y] && columns[x] == columns[y]) {
            made = arena_printf(a, "Add(v%d, v%d)", x, y);
            read[y] = true;
        } else {
            made = kind == 2 ? arena_printf(a, "Transpose(v%d) {perm = [1, 0]}", x) : arena_printf(a, "Softmax(v%d)", x);
        }
        text = arena_printf(a, "%s%snode n%d: v%d: ? = %s\n", text, weight, n, n, made);
    }
    for (int i = 2; i < n; i++)
        if (!read[i])
            text = arena_printf(a, "%s output v%d\n", text, i);
    return text;
}

#endif
