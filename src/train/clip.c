/* clip: the norm of the whole gradient. Ranks hold copies of some elements, of whole weights or of parts; the pieces of parameters.c leave
 * these out, so that each element counts once. Sums of pieces do not depend on the number of threads. */
#include "kern/core/core.h"
#include "train/train.h"

static void sum_pieces(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct parameters *p = data;
    (void)thread;
    for (int64_t k = lo; k < hi; k++) {
        double sum = 0;
        for (int64_t i = p->piece[k].from; i < p->piece[k].to; i++)
            sum += (double)p->gradient[i] * (double)p->gradient[i];
        p->partial[k] = sum;
    }
}

double clip_square(const struct replicas *t, const struct parameters *p, struct kenv *env)
{
    double own = 0, all;
    kenv_parallel_for(env, p->pieces, 1 << 16, sum_pieces, (void *)(uintptr_t)p);
    for (int k = 0; k < p->pieces; k++)
        own += p->partial[k];
    t->all->id = 0;
    t->all->name = "norm of the gradient";
    t->all->allreduce(t->all, &own, &all, 1, DT_F64, RED_SUM);
    return all;
}
