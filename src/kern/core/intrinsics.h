/* intrinsics: those of the instruction sets in isa.h. */
#ifndef TPC_KERN_CORE_INTRINSICS_H
#define TPC_KERN_CORE_INTRINSICS_H

#include "kern/core/isa.h"

#if X86
#include <immintrin.h>
#elif NEON
#include <arm_neon.h>
#endif

#endif
