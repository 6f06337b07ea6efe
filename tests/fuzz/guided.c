/* The main of a fuzz target with libFuzzer (./configure --enable-fuzz): inputs are made by the branches that earlier ones took. The target
 * runs in a child and libFuzzer looks at the counters of the branches in the parent, so the child hands them over. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern uint8_t __start___sancov_cntrs[], __stop___sancov_cntrs[];
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *counters; /* shared with the child */

static size_t counter_count(void)
{
    return (size_t)(__stop___sancov_cntrs - __start___sancov_cntrs);
}

static void hand_over(void *data, int status)
{
    (void)data, (void)status;
    memcpy(counters, __start___sancov_cntrs, counter_count());
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    counters = mmap(NULL, counter_count(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counters == MAP_FAILED)
        fail("the counters cannot be shared");
    fuzz_at_end = hand_over;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!fuzz_survives(data, size))
        abort();
    memcpy(__start___sancov_cntrs, counters, counter_count());
    return 0;
}
