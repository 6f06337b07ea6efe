/* drafter: the source of drafted tokens, from the options. */
#include "decode/small/small.h"

struct drafter *drafter_new(struct arena *a, struct comm *comm, const struct stage *s, const struct job_options *o, int threads)
{
    return o->draft ? small_drafter(a, comm, s, o, threads) : o->lookup ? lookup_drafter(a, o->lookup) : NULL;
}

void drafter_check(struct drafter *d, const struct history *h)
{
    if (d && d->check)
        d->check(d, h);
}

int64_t drafter_bytes(const struct drafter *d, int64_t rows, int64_t tokens)
{
    return d && d->bytes ? d->bytes(d, rows, tokens) : 0;
}

void drafter_end(struct drafter *d)
{
    if (d && d->end)
        d->end(d);
}
