/* sizes: resolves splits when a collective runs. A custom op sees its operands but not the graph's symbols: the dimension's global size
 * gives one size of a split, and the node has symbols if there are more. */
#include "ort/ort.h"

/* size: of the repetitions, the pattern and the inner elements. Returns the open one; -1: none, -2: several. */
static int open_size(const struct split *s, const struct bindings *b, int64_t size[3], int64_t *product)
{
    const struct dim *part[] = {s->outer, s->n, s->inner};
    int open = -1;
    *product = 1;
    for (int i = 0; i < 3; i++)
        if (!dim_eval(part[i], b, &size[i]))
            open = open == -1 ? i : -2;
        else if (size[i] < 0 || !i64_mul(*product, size[i], product))
            *product = -1;
    return open;
}

static const struct split *reading_split(struct alg *alg, const struct split *s, const struct bindings *b, int64_t total, const char **why)
{
    struct arena *a = alg_arena(alg);
    const struct interval **list = NEWN(a, const struct interval *, s->ranks);
    int *count = NEWN(a, int, s->ranks);
    int64_t size;
    *why = "several of its sizes are symbols, and the node does not give them";
    for (int r = 0; r < s->ranks; r++) {
        struct interval *at;
        if ((count[r] = split_pieces(a, s, r, false, b, &at)) < 0)
            return NULL;
        list[r] = at;
    }
    *why = "its size is another";
    return dim_eval(s->reads->size, b, &size) && size == total ? split_list(alg, s->ranks, size, count, list) : NULL;
}

const struct split *sizes_split(struct alg *alg, const struct split *s, const struct bindings *b, int64_t total, const char **why)
{
    if (s->reads)
        return reading_split(alg, s, b, total, why);
    int64_t size[3], known;
    int open = open_size(s, b, size, &known);
    *why = open == -2 ? "several of its sizes are symbols, and the node does not give them" : "its size is another";
    if (open == -2 || known < 0 || total < 0 || (open < 0 ? total != known : known == 0 ? total != 0 : total % known != 0))
        return NULL;
    if (open >= 0)
        size[open] = known ? total / known : 0;
    const struct split *pattern = s->balanced ? split_shared(alg, s->ranks, s->shares, dim_int(alg, size[1]))
                                              : split_list(alg, s->ranks, size[1], s->count, s->list);
    *why = "it has too many intervals";
    return split_scale(alg, pattern, dim_int(alg, size[0]), dim_int(alg, size[2]));
}
