/* shares: unequal parts of a dimension, for machines of unequal speed, and equal parts. Rank r begins at n * from[r] / sum, rounded to the
 * nearest index; with equal parts, the first n mod ranks have one more index. */
#include "algebra/dim/cell.h"

#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;

static const struct shares *interned(struct alg *alg, const struct shares *s)
{
    for (int i = 0; i < alg->shares.n; i++) {
        const struct shares *known = alg->shares.at[i];
        if (known->ranks == s->ranks && memcmp(known->from, s->from, (size_t)(s->ranks + 1) * sizeof *s->from) == 0)
            return known;
    }
    struct shares *own = NEW(alg->arena, struct shares);
    *own = *s;
    VEC_PUSH(alg->arena, &alg->shares, own);
    return own;
}

const struct shares *alg_shares(struct alg *alg, int ranks, const int64_t *share)
{
    int64_t *from = NEWN(alg->arena, int64_t, ranks + 1), divisor = 0;
    bool equal = true;
    require(ranks >= 1 && ranks <= PLAN_RANKS);
    for (int r = 0; r < ranks; r++) {
        require(share[r] >= 0 && share[r] <= SHARES_SUM);
        divisor = i64_gcd(divisor, share[r]);
        equal = equal && share[r] == share[0];
    }
    require(divisor > 0);
    for (int r = 0; r < ranks; r++)
        from[r + 1] = from[r] + share[r] / divisor;
    require(from[ranks] <= SHARES_SUM);
    return equal ? NULL : interned(alg, &(struct shares){ranks, from[ranks], from});
}

int64_t share_start(const struct shares *s, int ranks, int64_t n, int rank)
{
    int64_t q = n / ranks, more = n % ranks;
    if (s)
        return (int64_t)(((wide)n * s->from[rank] + s->sum / 2) / s->sum);
    return rank * q + (rank < more ? rank : more);
}

static const struct dim *even_extent(struct alg *alg, int ranks, const struct dim *n, int rank)
{
    return dim_div(alg, dim_add(alg, n, dim_int(alg, ranks - 1 - rank)), dim_int(alg, ranks));
}

const struct dim *share_start_dim(struct alg *alg, const struct shares *s, int ranks, const struct dim *n, int rank)
{
    const struct dim *start = dim_int(alg, 0);
    if (s)
        return dim_div(alg, dim_add(alg, dim_mul(alg, n, dim_int(alg, s->from[rank])), dim_int(alg, s->sum / 2)), dim_int(alg, s->sum));
    for (int r = 0; r < rank; r++)
        start = dim_add(alg, start, even_extent(alg, ranks, n, r));
    return start;
}

const struct dim *share_extent_dim(struct alg *alg, const struct shares *s, int ranks, const struct dim *n, int rank)
{
    if (!s)
        return even_extent(alg, ranks, n, rank);
    return dim_sub(alg, share_start_dim(alg, s, ranks, n, rank + 1), share_start_dim(alg, s, ranks, n, rank));
}

/* The one that would finish first with one more item. */
static int next_to_serve(int n, const double *share, const int64_t *held)
{
    double first = INFINITY;
    int best = 0;
    for (int r = 0; r < n; r++) {
        double done = share[r] > 0 ? (double)(held[r] + 1) / share[r] : INFINITY;
        if (done < first) {
            first = done;
            best = r;
        }
    }
    return best;
}

void shares_deal(int n, const double *share, int64_t items, int64_t *held)
{
    double sum = 0;
    int64_t left = items;
    for (int r = 0; r < n; r++)
        sum += share[r];
    for (int r = 0; r < n; r++)
        left -= held[r] = (int64_t)((double)items * share[r] / sum);
    for (; left > 0; left--)
        held[next_to_serve(n, share, held)]++;
}
