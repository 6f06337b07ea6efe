/* isa: the instruction sets that kernels are written for, and how a table of kernels picks one. A row of a table begins with its set; the
 * fastest comes first, and plain C, which runs everywhere, last.
 *
 * To add a set: a row of ISA_SETS, a line of isa.c that detects it, and a row in the table of each kernel that uses it. */
#ifndef TPC_KERN_CORE_ISA_H
#define TPC_KERN_CORE_ISA_H

#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline)) /* for functions of several instruction sets */
#define UNROLL _Pragma("GCC unroll 16")

/* X(set, its name, the next lower set) */
#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#define NEON 0
#define ISA_SETS(X)                             \
    X(PLAIN, "plain", PLAIN)                    \
    X(AVX2, "avx2", PLAIN) /* with FMA, F16C */ \
    X(AVX2_VNNI, "avx2-vnni", AVX2)             \
    X(AVX512, "avx512", AVX2) /* with BW, VL */ \
    X(AVX512_VNNI, "avx512-vnni", AVX512)       \
    X(AVX512_BF16, "avx512-bf16", AVX512_VNNI)  \
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
/* A bit for each set that kernels may use: the processor's sets, limited by the environment variable TPC_ISA to the set that it names and
 * lower ones. Fails if it names no set, or one that the processor lacks. */
unsigned isa_find(void);
extern unsigned isa_found; /* the result of isa_find; 0: not called yet */
enum isa isa_most(void);   /* the highest of those sets */
bool isa_limited(void);    /* whether TPC_ISA limits the sets, so that a library must be told */

INLINE bool isa_runs(enum isa set)
{
    unsigned found = __atomic_load_n(&isa_found, __ATOMIC_RELAXED);
    return (found ? found : isa_find()) >> set & 1;
}

/* const struct TYPE *NAME(void): the first row of the table that runs on this processor. */
#define ISA_BEST(NAME, TYPE, TABLE)   \
    const struct TYPE *NAME(void)     \
    {                                 \
        const struct TYPE *k = TABLE; \
        while (!isa_runs(k->isa))     \
            k++;                      \
        return k;                     \
    }
/* All rows of a table that run on this processor. */
#define ISA_EACH(TYPE, k, TABLE)                                                                                    \
    for (const struct TYPE *k = TABLE, *last_##k = NULL; !last_##k; last_##k = k->isa == ISA_PLAIN ? k : NULL, k++) \
        if (isa_runs(k->isa))

#endif
