/* version: the versions of the kernels' libraries, for --version. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "kern/kern.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <stdio.h>
#include <string.h>

const char *kern_library(void)
{
    static char text[32];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

/* OpenMP has no function for this: _OPENMP is the date of the specification, and the linked symbols tell the library. */
const char *kern_openmp(void)
{
    static char text[128];
    Dl_info found;
    void *call = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    bool known = call && dladdr(call, &found) && found.dli_fname;
    snprintf(text, sizeof text, "%d (%s)", _OPENMP, known ? path_base(found.dli_fname) : "unknown library");
    return text;
}
