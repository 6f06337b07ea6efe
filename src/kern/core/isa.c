/* isa: the instruction sets of this processor, and those that TPC_ISA allows. */
#include "kern/core/isa.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "TPC_ISA"

unsigned isa_found;

#define ISA_NAME(SET, name, base) name,
#define ISA_BASE(SET, name, base) ISA_##base,
static const char *const names[] = {ISA_SETS(ISA_NAME)};
static const enum isa bases[] = {ISA_SETS(ISA_BASE)};

const char *isa_name(enum isa set)
{
    return names[set];
}

/* ---- the processor: a bit for each set, whether or not it has the lower ones --------------------------------------- */
#define BIT(set, there) ((there) ? 1U << ISA_##set : 0)

#if X86
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { F16C = 1 << 29, AVX_VNNI = 1 << 4, BF16 = 1 << 5, TILE_BF16 = 1 << 22, TILE_INT8 = 1 << 25, TILE_STATE = 3 << 17 };
enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 }; /* of Linux's asm/prctl.h */

static unsigned leaf(unsigned number, unsigned part, char which)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(number, part, &a, &b, &c, &d))
        return 0;
    return which == 'a' ? a : which == 'c' ? c : d;
}

/* Whether the system saves tile registers and this process may use them. Linux requires a request (since 5.16), once for all threads.
 * Called only on processors with tiles. */
static bool keeps_tiles(void)
{
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
#ifdef __linux__
    if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) != 0)
        return false;
#endif
    return (low & TILE_STATE) == TILE_STATE;
}

/* Virtual machines may have AVX2 without FMA or F16C, which are older. */
static unsigned of_processor(void)
{
    const unsigned tiles = TILE_BF16 | TILE_INT8;
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && leaf(1, 0, 'c') & F16C;
    bool avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return BIT(AVX2, avx2) | BIT(AVX2_VNNI, leaf(7, 1, 'a') & AVX_VNNI) | BIT(AVX512, avx512) |
        BIT(AVX512_VNNI, __builtin_cpu_supports("avx512vnni")) | BIT(AVX512_BF16, leaf(7, 1, 'a') & BF16) |
        BIT(AMX, (leaf(7, 0, 'd') & tiles) == tiles && __builtin_cpu_supports("avx512vbmi") && keeps_tiles());
}
#elif NEON
#include <sys/auxv.h>

enum { DOT = 1 << 20 /* HWCAP_ASIMDDP */, I8MM = 1 << 13 /* HWCAP2_I8MM */, BF16 = 1 << 14 /* HWCAP2_BF16 */ };

static unsigned of_processor(void)
{
    return BIT(NEON, true) | BIT(NEON_DOT, getauxval(AT_HWCAP) & DOT) | BIT(NEON_I8MM, getauxval(AT_HWCAP2) & I8MM) |
        BIT(NEON_BF16, getauxval(AT_HWCAP2) & BF16);
}
#else
static unsigned of_processor(void)
{
    return 0;
}
#endif

/* ---- what is left -------------------------------------------------------------------------------------------------------------------- */

/* A set and all lower ones. */
static unsigned chain(enum isa set)
{
    unsigned bits = 1U << set;
    while (set != bases[set])
        bits |= 1U << (set = bases[set]);
    return bits;
}

static unsigned whole_chains(unsigned has)
{
    unsigned whole = 0;
    has |= 1U << ISA_PLAIN;
    for (int set = 0; set < ISA_COUNT; set++)
        if ((chain((enum isa)set) & ~has) == 0)
            whole |= 1U << set;
    return whole;
}

/* "plain, avx2" */
static void list_sets(unsigned sets, char *text, size_t room)
{
    size_t used = 0;
    for (int set = 0; set < ISA_COUNT; set++)
        if (sets >> set & 1 && used < room)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", names[set]);
}

unsigned isa_find(void)
{
    const char *wanted = getenv(VARIABLE);
    unsigned has = whole_chains(of_processor()), found = wanted ? 0 : has;
    for (int set = 0; set < ISA_COUNT && wanted; set++)
        if (strcmp(wanted, names[set]) == 0)
            found = has & (has >> set & 1 ? chain((enum isa)set) : 0);
    if (!found) {
        char text[256];
        list_sets(has, text, sizeof text);
        fail(VARIABLE " is '%s', expected an instruction set of this processor: %s", wanted, text);
    }
    __atomic_store_n(&isa_found, found, __ATOMIC_RELAXED);
    return found;
}

enum isa isa_most(void)
{
    int set = ISA_COUNT - 1;
    while (!isa_runs((enum isa)set))
        set--;
    return (enum isa)set;
}

bool isa_limited(void)
{
    return getenv(VARIABLE) || isa_most() == ISA_PLAIN;
}
