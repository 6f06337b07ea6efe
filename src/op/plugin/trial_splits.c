/* trial_splits: the ways to split a size for testing rules. */
#include "op/plugin/plugin.h"

#include <string.h>

struct trials {
    struct arena *arena;
    struct alg *alg;
    int n;
    const struct split **at;
};

static void add(struct trials *s, const struct split *split)
{
    require(s->n < TRIAL_SPLITS);
    if (split)
        s->at[s->n++] = split;
}

/* Ranks get indices in turn (strided), or rank 0 the outer quarters (segmented) or the upper half (swapped), or both the middle (overlap),
 * or one index is separate. */
static const struct split *split_of_kind(const struct trials *s, int64_t n, int ranks, const char *kind)
{
    struct interval *list[TRIAL_RANKS];
    int count[TRIAL_RANKS] = {0};
    for (int r = 0; r < ranks; r++)
        list[r] = NEWN(s->arena, struct interval, n + 1);
    for (int64_t i = 0; i < n; i++)
        for (int r = 0; r < ranks; r++) {
            bool mine = strcmp(kind, "strided") == 0 ? i % ranks == r
                : strcmp(kind, "segmented") == 0     ? (i < n / 4 || i >= n - n / 4) == (r == 0)
                : strcmp(kind, "overlap") == 0       ? (r == 0 ? i <= n / 2 : i >= n / 2)
                : strcmp(kind, "swapped") == 0       ? (i >= n / 2) == (r == 0)
                : strcmp(kind, "uneven") == 0        ? (i == 0) == (r == 0)
                                                     : r == ranks - 1;
            if (mine)
                list[r][count[r]++] = (struct interval){i, i + 1};
        }
    return split_list(s->alg, ranks, n, count, (const struct interval *const *)list);
}

/* A size that is a symbolic number of fours: splits the fours, inside the symbol or around it. */
static void add_within(struct trials *s, const struct dim *size)
{
    const struct dim *four = dim_int(s->alg, 4), *one = dim_int(s->alg, 1), *symbol = dim_quotient(s->alg, size, four);
    if (!symbol)
        return;
    add(s, split_scale(s->alg, split_even(s->alg, 2, four), symbol, one));
    add(s, split_scale(s->alg, split_even(s->alg, 3, four), one, symbol));
    add(s, split_scale(s->alg, split_of_kind(s, 4, 2, "strided"), symbol, one));
}

int trial_splits(struct arena *a, struct alg *alg, const struct dim *size, const struct split *out[TRIAL_SPLITS])
{
    struct trials s = {.arena = a, .alg = alg, .at = out};
    int64_t n;
    for (int ranks = 2; ranks <= 4; ranks++)
        add(&s, split_even(alg, ranks, size));
    if (!dim_is_int(size, &n)) {
        add_within(&s, size);
        return s.n;
    }
    add(&s, split_of_kind(&s, n, 2, "swapped"));
    add(&s, n + 2 <= TRIAL_RANKS ? split_even(alg, (int)n + 2, size) : NULL);
    add(&s, split_of_kind(&s, n, 2, "uneven"));
    add(&s, split_of_kind(&s, n, 2, "strided"));
    add(&s, split_of_kind(&s, n, 2, "segmented"));
    add(&s, split_of_kind(&s, n, 2, "overlap"));
    add(&s, split_of_kind(&s, n, 3, "last"));
    return s.n;
}
