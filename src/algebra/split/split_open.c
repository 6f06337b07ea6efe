/* split_open: the sizes of a split that are unknown until run time. */
#include "algebra/dim/cell.h"

#include <stdlib.h>
#include <string.h>

int split_open_sizes(const struct split *s)
{
    if (s->reads)
        return 2;
    return !dim_is_int(s->outer, NULL) + !dim_is_int(s->n, NULL) + !dim_is_int(s->inner, NULL);
}

struct symbol_list {
    struct arena *arena;
    VEC(const struct dim *) list;
};

static void note_symbol(void *symbols, const struct dim *d)
{
    struct symbol_list *s = symbols;
    VEC_PUSH(s->arena, &s->list, d);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct dim *const *)a)->name, (*(const struct dim *const *)b)->name);
}

int split_symbols(struct arena *a, int n, const struct split *const *split, const struct dim *const **out)
{
    struct symbol_list all = {.arena = a};
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const struct split *s = split[i];
        const struct dim *size[] = {s->outer, s->n, s->inner, s->reads ? s->reads->size : s->n};
        for (int k = 0; k < 4; k++)
            dim_each_symbol(size[k], note_symbol, &all);
    }
    if (all.list.n)
        qsort(all.list.at, (size_t)all.list.n, sizeof(const struct dim *), by_name);
    for (int i = 0; i < all.list.n; i++)
        if (kept == 0 || all.list.at[kept - 1] != all.list.at[i])
            all.list.at[kept++] = all.list.at[i];
    *out = all.list.at;
    return kept;
}
