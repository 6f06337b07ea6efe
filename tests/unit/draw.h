/* Small integers that a test draws from its seed, `state`. */
#ifndef TPC_TESTS_UNIT_DRAW_H
#define TPC_TESTS_UNIT_DRAW_H

#include <stdint.h>

static uint32_t state;

static inline int64_t draw(int64_t n)
{
    state = state * 1664525 + 1013904223;
    return (int64_t)(state >> 8) % n;
}

/* With numbers whose sums are exact. */
static inline void draw_into(float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(draw(17) - 8);
}

#endif
