/* intrinsics: of the instruction sets in isa.h. */
#ifndef TPC_KERN_CORE_INTRINSICS_H
#define TPC_KERN_CORE_INTRINSICS_H

#include "kern/core/isa.h"

#if X86
#include <immintrin.h>
#elif NEON
#include <arm_neon.h>
#endif

/* Whether functions with a target attribute may use intrinsics beyond base NEON; clang can since version 16. */
#if NEON && (!defined(__clang__) || __clang_major__ >= 16)
#define NEON_DOTS 1
#else
#define NEON_DOTS 0
#endif

#endif
