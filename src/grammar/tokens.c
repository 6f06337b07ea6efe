/* tokens: the bytes of tokens as a tree, in one list in byte order. */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 255 }; /* bytes of a token; a longer text needs several tokens */

struct sorted_token {
    const char *at;
    size_t n;
    int32_t column;
};

static int by_bytes(const void *x, const void *y)
{
    const struct sorted_token *a = x, *b = y;
    int order = memcmp(a->at, b->at, a->n < b->n ? a->n : b->n);
    if (order)
        return order;
    return a->n != b->n ? (a->n < b->n ? -1 : 1) : a->column < b->column ? -1 : 1;
}

static size_t shared(const struct sorted_token *a, const struct sorted_token *b)
{
    size_t n = 0;
    while (n < a->n && n < b->n && a->at[n] == b->at[n])
        n++;
    return n;
}

struct growing {
    struct token_node *node;
    uint32_t n, path[LONGEST]; /* nodes from the root to the last one */
    size_t depth;
};

/* Nodes deeper than this have no further children. */
static void close_nodes(struct growing *g, size_t depth)
{
    while (g->depth > depth)
        g->node[g->path[--g->depth]].behind = g->n;
}

static void add_token(struct growing *g, const struct sorted_token *t, size_t same, int32_t *same_bytes)
{
    close_nodes(g, same);
    for (; g->depth < t->n; g->depth++) {
        g->path[g->depth] = g->n;
        g->node[g->n++] = (struct token_node){.column = -1, .byte = (uint8_t)t->at[g->depth], .depth = (uint8_t)g->depth};
    }
    struct token_node *last = &g->node[g->path[t->n - 1]];
    same_bytes[t->column] = last->column;
    last->column = t->column;
}

struct token_tree *token_tree_new(struct arena *a, const struct grammar_token *token, int64_t columns)
{
    struct arena *tmp = arena_new();
    struct token_tree *t = NEW(a, struct token_tree);
    struct sorted_token *sorted = NEWN(tmp, struct sorted_token, columns + 1);
    int32_t *same = NEWN(a, int32_t, columns + 1);
    struct growing g = {0};
    int64_t n = 0, nodes = 0;
    require(columns <= INT32_MAX);
    for (int64_t i = 0; i < columns; i++)
        if (token[i].n && token[i].n <= LONGEST)
            sorted[n++] = (struct sorted_token){token[i].at, token[i].n, (int32_t)i};
    qsort(sorted, (size_t)n, sizeof *sorted, by_bytes);
    for (int64_t i = 0; i < n; i++)
        nodes += (int64_t)(sorted[i].n - (i ? shared(&sorted[i - 1], &sorted[i]) : 0));
    require(nodes < INT32_MAX);
    g.node = NEWN(a, struct token_node, nodes + 1);
    for (int64_t i = 0; i < n; i++)
        add_token(&g, &sorted[i], i ? shared(&sorted[i - 1], &sorted[i]) : 0, same);
    close_nodes(&g, 0);
    *t = (struct token_tree){.columns = columns, .nodes = g.n, .node = g.node, .same = same};
    arena_free(tmp);
    return t;
}

int64_t token_tree_columns(const struct token_tree *t)
{
    return t->columns;
}
