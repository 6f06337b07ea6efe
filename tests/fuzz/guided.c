/* The main of a fuzz target with libFuzzer (./configure --enable-fuzz): inputs are made by the branches that earlier ones took.
 *
 * The target runs in a child, and libFuzzer looks at the counters of the branches in the parent: so their pages become shared. A page
 * that holds other data as well stays private. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

extern uint8_t __start___sancov_cntrs[], __stop___sancov_cntrs[];
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)__start___sancov_cntrs + page - 1) / page * page, to = (uintptr_t)__stop___sancov_cntrs / page * page;
    (void)argc, (void)argv;
    if (from < to && mmap((void *)from, to - from, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fail("the counters cannot be shared");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!fuzz_survives(data, size))
        abort();
    return 0;
}
