/* config_beside: the files next to a model: in its file's folder, or in the parent of a folder named onnx; for ranks, in their own folder;
 * for ranks of several graphs, also in the parent of their folders. */
#include "job/job.h"

static const char *folder_of(struct arena *a, const char *path)
{
    return path_is_folder(path) ? path : path_dir(a, path);
}

/* NULL: only folder_of. */
static const char *folder_above(struct arena *a, const struct job_options *o, const char *path)
{
    const char *real = o->paths.text.n > 1 && path_is_folder(path) ? path_real(a, path) : NULL;
    return real ? path_dir(a, real) : NULL;
}

const char *config_beside(struct arena *a, const struct job_options *o, enum model_text which)
{
    const char *found = NULL;
    for (int i = 0; i < o->paths.text.n && !found; i++) {
        const char *path = o->paths.text.at[i], *above = folder_above(a, o, path);
        found = model_text_beside(a, folder_of(a, path), which);
        found = found || !above ? found : model_text_beside(a, above, which);
    }
    return found;
}

struct config_limit config_beside_limit(struct arena *a, const struct job_options *o, const char *path, enum config_side side)
{
    struct config_limit limit = model_config_limit(a, folder_of(a, path), side);
    const char *above = folder_above(a, o, path);
    return limit.tokens < 0 && above ? model_config_limit(a, above, side) : limit;
}
