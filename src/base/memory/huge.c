/* huge: pages of 2 MiB for large blocks that are used in full. Small pages cost address translation, and stop the prefetcher at each page
 * end. */
#include "base/base.h"

#include <sys/mman.h>

void huge_pages(void *at, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    size_t skip = (HUGE_PAGE - (uintptr_t)at % HUGE_PAGE) % HUGE_PAGE;
    if (bytes > skip && bytes - skip >= HUGE_PAGE)
        (void)madvise((char *)at + skip, (bytes - skip) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)at;
    (void)bytes;
#endif
}

void *huge_alloc(struct arena *a, size_t bytes)
{
    if (bytes < HUGE_PAGE || bytes > SIZE_MAX / 2)
        return arena_alloc(a, bytes);
    char *at = arena_alloc(a, bytes + HUGE_PAGE);
    at += (HUGE_PAGE - (uintptr_t)at % HUGE_PAGE) % HUGE_PAGE;
    huge_pages(at, bytes);
    return at;
}
