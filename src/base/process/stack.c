/* stack: gives the program's threads stacks of the usual size, independent of ulimit -s and of the C library's default (glibc: what ulimit
 * -s says, or 2 MiB if that is unlimited; musl: 128 KiB). This includes threads that libraries start. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/base.h"

#include <pthread.h>
#include <sys/resource.h>

enum { STACK_BYTES = 8 << 20, LEAST_BYTES = 1 << 20 };

/* The system checks the limit whenever the main thread's stack grows. */
static void raise_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_STACK, &r) != 0 || r.rlim_cur >= STACK_BYTES)
        return;
    const struct rlimit as_allowed = {r.rlim_max < STACK_BYTES ? r.rlim_max : STACK_BYTES, r.rlim_max};
    if (setrlimit(RLIMIT_STACK, &as_allowed) != 0 || as_allowed.rlim_cur < LEAST_BYTES)
        fail("the stack may take %llu KiB (ulimit -s), expected at least %d", (unsigned long long)r.rlim_max / 1024, LEAST_BYTES / 1024);
}

void stack_start(void)
{
    pthread_attr_t usual;
    size_t bytes = 0;
    raise_limit();
    if (pthread_getattr_default_np(&usual) != 0)
        return;
    if (pthread_attr_getstacksize(&usual, &bytes) == 0 && bytes < STACK_BYTES && pthread_attr_setstacksize(&usual, STACK_BYTES) == 0)
        (void)pthread_setattr_default_np(&usual);
    (void)pthread_attr_destroy(&usual);
}
