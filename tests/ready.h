/* ready: for tests that run each trial in a process of its own. oneDNN takes 10 ms to make the code of its first product; what a process
 * starts has it already. */
#ifndef TPC_TESTS_READY_H
#define TPC_TESTS_READY_H

#include "kern/gemm/gemm.h"

static inline void ready_products(void)
{
    struct kenv *env = kenv_new(1, false);
    float a = 1, b = 1, c;
    dnnl_product(env, false, false, 1, 1, 1, 1, &a, 1, &b, 1, 0, &c, 1);
    kenv_free(env);
}

#endif
