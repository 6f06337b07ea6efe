/* isa: the instruction sets that kernels are written for, and how a table of kernels picks one. A row of a table begins with its set; the
 * fastest comes first, and plain C, which runs everywhere, last.
 *
 * A set more: a row of ISA_SETS, a line of isa.c that asks the processor for it, and a row in the table of each kernel that uses it. */
#ifndef TPC_KERN_CORE_ISA_H
#define TPC_KERN_CORE_ISA_H

#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline)) /* into functions of several instruction sets */
#define UNROLL _Pragma("GCC unroll 16")

/* X(set, its name, the set that it adds to) */
#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#define NEON 0
#define ISA_SETS(X)                            \
    X(PLAIN, "plain", PLAIN)                   \
    X(AVX2, "avx2", PLAIN) /* FMA, F16C too */ \
    X(AVX2_VNNI, "avx2-vnni", AVX2)            \
    X(AVX512, "avx512", AVX2) /* BW, VL too */ \
    X(AVX512_VNNI, "avx512-vnni", AVX512)      \
    X(AVX512_BF16, "avx512-bf16", AVX512_VNNI) \
    X(AMX, "amx", AVX512_BF16)
#elif defined(__aarch64__) && defined(__GNUC__)
#define X86 0
#define NEON 1
#define ISA_SETS(X)                     \
    X(PLAIN, "plain", PLAIN)            \
    X(NEON, "neon", PLAIN)              \
    X(NEON_DOT, "neon-dot", NEON)       \
    X(NEON_I8MM, "neon-i8mm", NEON_DOT) \
    X(NEON_BF16, "neon-bf16", NEON_I8MM)
#else
#define X86 0
#define NEON 0
#define ISA_SETS(X) X(PLAIN, "plain", PLAIN)
#endif

#define ISA_ENUM(SET, name, base) ISA_##SET,
enum isa { ISA_SETS(ISA_ENUM) ISA_COUNT };
#undef ISA_ENUM

const char *isa_name(enum isa);
/* A bit for each set that kernels may use: those of this processor, of which the environment variable TPC_ISA leaves the one that it names
 * and those under it. Fails where that is no set, or none of this processor. */
unsigned isa_find(void);
extern unsigned isa_found; /* what isa_find answered; 0: it was not asked yet */
enum isa isa_most(void);   /* of those sets, the last */
bool isa_limited(void);    /* must a library be told of it? Its own choice may be another */

INLINE bool isa_runs(enum isa set)
{
    unsigned found = __atomic_load_n(&isa_found, __ATOMIC_RELAXED);
    return (found ? found : isa_find()) >> set & 1;
}

/* const struct TYPE *NAME(void): the first row of the table that runs here. */
#define ISA_BEST(NAME, TYPE, TABLE)   \
    const struct TYPE *NAME(void)     \
    {                                 \
        const struct TYPE *k = TABLE; \
        while (!isa_runs(k->isa))     \
            k++;                      \
        return k;                     \
    }
/* All rows of a table that run here. */
#define ISA_EACH(TYPE, k, TABLE)                                                                                    \
    for (const struct TYPE *k = TABLE, *last_##k = NULL; !last_##k; last_##k = k->isa == ISA_PLAIN ? k : NULL, k++) \
        if (isa_runs(k->isa))

#endif
