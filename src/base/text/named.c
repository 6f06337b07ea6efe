/* named: the position of a name in a short list. */
#include "base/base.h"

#include <string.h>

int named_find(const char *name, int n, const void *first, size_t stride)
{
    for (int i = 0; i < n; i++) {
        const void *at = (const char *)first + (size_t)i * stride;
        if (strcmp(*(const char *const *)at, name) == 0)
            return i;
    }
    return -1;
}
