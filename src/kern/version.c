/* The version of the kernel library, for --version. */
#include "kern/kern.h"

#include <dnnl.h>
#include <stdio.h>

const char *kern_library(void)
{
    static char text[32];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
