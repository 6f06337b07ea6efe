/* isa: instruction sets that kernels are written for, and how a table of them picks. A row has a name and runs(), whether this processor
 * has what it needs; the fastest comes first, and one that runs everywhere last. */
#ifndef TPC_KERN_CORE_ISA_H
#define TPC_KERN_CORE_ISA_H

#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline)) /* into functions of several instruction sets */
#define UNROLL _Pragma("GCC unroll 16")

INLINE bool isa_any(void)
{
    return true;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define X86 1

INLINE bool isa_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

INLINE bool isa_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

INLINE bool isa_avx512_vnni(void)
{
    return isa_avx512() && __builtin_cpu_supports("avx512vnni");
}
#else
#define X86 0
#endif

/* const struct TYPE *NAME(void): the first row of the table that runs here. */
#define ISA_BEST(NAME, TYPE, TABLE)   \
    const struct TYPE *NAME(void)     \
    {                                 \
        const struct TYPE *k = TABLE; \
        while (!k->runs())            \
            k++;                      \
        return k;                     \
    }

#endif
