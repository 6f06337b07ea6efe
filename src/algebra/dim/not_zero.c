/* not_zero: facts for usual sizes. Every size of an input may be 0, but most are 0 only if there is nothing to compute. If a size of 0
 * would give another graph (x[-n:] is all of x), the graph is made for at least 1, under an assumption with the reason.
 *
 * Facts for usual sizes are found by writing each symbol n whose usual size is 1 as n + 1. */
#include "algebra/dim/cell.h"

enum { MOST_SYMBOLS = 16 };

struct raised {
    struct alg *alg;
    const struct dim *only; /* NULL: every possible symbol */
};

static bool may_be_raised(const struct dim *symbol)
{
    return !symbol->data && symbol->lo == 0 && symbol->usual > 0;
}

static const struct dim *raised_symbol(void *data, const struct dim *symbol)
{
    const struct raised *r = data;
    bool raise = may_be_raised(symbol) && (!r->only || r->only == symbol);
    return raise ? dim_add(r->alg, symbol, dim_int(r->alg, 1)) : symbol;
}

static const struct dim *raise(struct alg *alg, const struct dim *d, const struct dim *only)
{
    return dim_replace(alg, d, raised_symbol, &(struct raised){alg, only});
}

int64_t dim_usual_lo(struct alg *alg, const struct dim *d)
{
    return raise(alg, dim_fresh(alg, d), NULL)->lo;
}

struct raised_symbols {
    const struct dim *at[MOST_SYMBOLS];
    int n;
};

static void note_raised(void *data, const struct dim *symbol)
{
    struct raised_symbols *list = data;
    for (int i = 0; i < list->n; i++)
        if (list->at[i] == symbol)
            return;
    if (may_be_raised(symbol) && list->n < MOST_SYMBOLS)
        list->at[list->n++] = symbol;
}

static bool assume_not_zero(struct alg *alg, int n, const struct dim *const *symbol, const char *why)
{
    const struct dim *one = dim_int(alg, 1);
    for (int i = 0; i < n; i++)
        if (alg_equate(alg, dim_min(alg, symbol[i], one), one, why) == EQ_FALSE)
            return false;
    return true;
}

const struct dim *dim_of_not_zero(const struct dim *left, const struct dim *right)
{
    bool is = dim_equals(right, 1) && left->kind == DIM_MIN && left->n == 2 && dim_equals(left->arg[1], 1);
    return is ? left->arg[0] : NULL;
}

bool alg_assume_ge(struct alg *alg, const struct dim *a, const struct dim *b, const char *why)
{
    if (dim_ge(alg, a, b))
        return true;
    struct raised_symbols list = {.n = 0};
    const struct dim *gap = dim_sub(alg, a, b), *zero = dim_int(alg, 0);
    dim_each_symbol(gap, note_raised, &list);
    for (int i = 0; i < list.n; i++)
        if (dim_ge(alg, raise(alg, gap, list.at[i]), zero))
            return assume_not_zero(alg, 1, &list.at[i], why) && dim_ge(alg, a, b);
    bool usual = list.n > 1 && dim_ge(alg, raise(alg, gap, NULL), zero);
    return usual && assume_not_zero(alg, list.n, list.at, why) && dim_ge(alg, a, b);
}
