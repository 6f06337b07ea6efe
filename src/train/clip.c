/* clip: the norm of the gradient. Ranks hold copies of some elements, of replicated weights or overlapping shards; the pieces of
 * parameters.c exclude these, so that each element counts once. Sums of pieces do not depend on the number of threads. */
#include "kern/core/core.h"
#include "train/train.h"

enum { LANES = 16 };

/* With fixed lanes, so that the order of the sum is the same on every machine. */
SIMD static double square_sum(const float *g, int64_t n)
{
    double lane[LANES] = {0}, sum = 0;
    int64_t whole = n / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        LOOP for (int k = 0; k < LANES; k++) lane[k] += (double)g[i + k] * (double)g[i + k];
    }
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    for (int64_t i = whole; i < n; i++)
        sum += (double)g[i] * (double)g[i];
    return sum;
}

static void sum_pieces(void *data, int64_t lo, int64_t hi)
{
    const struct parameters *p = data;
    for (int64_t k = lo; k < hi; k++)
        p->partial[k] = square_sum(p->gradient + p->piece[k].from, p->piece[k].to - p->piece[k].from);
}

double clip_square(const struct parameters *p, struct kenv *env)
{
    double own = 0;
    kenv_parallel_for(env, p->pieces, 1 << 16, sum_pieces, (void *)(uintptr_t)p);
    for (int k = 0; k < p->pieces; k++)
        own += p->partial[k];
    return own;
}
