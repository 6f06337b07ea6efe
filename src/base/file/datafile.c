/* datafile: finds installed files. It searches next to the running program first, so that a moved tree finds its own files, then under the
 * configured prefix, then in the build tree. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "base/base.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef PKGDATADIR
#define PKGDATADIR "/usr/local/share/tpc"
#endif

static const char *beside_program(struct arena *a, const char *folder)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0 || n == sizeof path)
        return NULL;
    return path_join(a, path_dir(a, arena_strndup(a, path, (size_t)n)), folder);
}

char *datafile_path(struct arena *a, const char *name)
{
    const char *const folder[] = {getenv("TPC_DATADIR"), beside_program(a, "../share/tpc"), PKGDATADIR, beside_program(a, "schemas")};
    for (size_t i = 0; i < sizeof folder / sizeof *folder; i++) {
        char *path = folder[i] ? path_join(a, folder[i], name) : NULL;
        if (path && path_exists(path))
            return path;
    }
    return NULL;
}
