/* sandbox: which files a model may name. A file is judged by its real path, so a link counts as its target. It must be under the folder of
 * the model's name, under the folder of the model's real path (download caches keep model and data as links to blobs in one folder), or
 * under a folder that the user allowed. */
#include "base/base.h"

#include <string.h>

static bool is_under(const char *real, const char *folder)
{
    if (!folder)
        return false;
    size_t n = strlen(folder);
    while (n && folder[n - 1] == '/')
        n--;
    return strncmp(real, folder, n) == 0 && real[n] == '/';
}

bool sandbox_allows(struct arena *tmp, const char *real, struct folders allowed)
{
    for (int i = 0; i < allowed.n; i++)
        if (is_under(real, path_real(tmp, allowed.at[i])))
            return true;
    return false;
}

bool sandbox_is_beside(struct arena *tmp, const char *real, const char *model)
{
    const char *blob = path_real(tmp, model);
    return is_under(real, path_real(tmp, path_dir(tmp, model))) || (blob && is_under(real, path_dir(tmp, blob)));
}
