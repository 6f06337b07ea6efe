/* copier: copies into memory that other cores read. Writing a cache line that a distant core still holds is slow: the writer waits until
 * that core has given it up. Non-temporal stores do not wait, but send everything through memory. Which is faster depends on where the
 * system runs the ranks, and changes when it moves them. So both are timed from time to time, by size; cached stores may take up to twice
 * as long, because the reader gains that back. */
#include "run/comm/comm.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LEAST_BYTES = 8 << 10, GROWTH_BITS = 2, COMPARE_EACH = 64 };

#ifdef __SSE2__
/* Waits until other cores see the stores: a later barrier would wait for that, too. */
static void drain_stores(void)
{
    _mm_mfence();
}

static void copy_around(void *to, const void *from, size_t bytes)
{
    enum { LANES = 4 };
    __m128i *out = to;
    const __m128i *in = from;
    size_t n = bytes / sizeof *in / LANES * LANES;
    for (size_t i = 0; i < n; i += LANES) {
        __m128i a = _mm_loadu_si128(in + i), b = _mm_loadu_si128(in + i + 1), c = _mm_loadu_si128(in + i + 2),
                d = _mm_loadu_si128(in + i + 3);
        _mm_stream_si128(out + i, a);
        _mm_stream_si128(out + i + 1, b);
        _mm_stream_si128(out + i + 2, c);
        _mm_stream_si128(out + i + 3, d);
    }
    memcpy(out + n, in + n, bytes - n * sizeof *in);
}
#else
static void drain_stores(void)
{
}

static void copy_around(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
#endif

/* A single slow copy counts little. */
static void note_cost(double *cost, double now)
{
    const double rise = 1.125;
    *cost = *cost > 0 && now > *cost * rise ? *cost * rise : now;
}

void copier_copy(struct copier *c, void *to, const void *from, size_t bytes)
{
    int size = 0;
    if (bytes < LEAST_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    while (size < COPIER_SIZES - 1 && bytes >= (size_t)LEAST_BYTES << GROWTH_BITS * (size + 1))
        size++;
    double *cost = c->cost[size];
    bool around = cost[0] > 2 * cost[1];
    if (++c->copies % COMPARE_EACH == 0 || cost[1] <= 0)
        around = !around;
    double start = clock_seconds();
    if (around)
        copy_around(to, from, bytes);
    else
        memcpy(to, from, bytes);
    drain_stores();
    note_cost(&cost[around], (clock_seconds() - start) / (double)bytes);
}
