/* texts: the files next to a model that go with the ranks. */
#include "plan/folder/folder.h"

#include <string.h>

static bool is_alike(const char *path, struct map as)
{
    if (path_is_folder(path) || path_is_special(path))
        return false;
    struct map file = map_file(path);
    bool alike = file.bytes == as.bytes && (!as.bytes || memcmp(file.at, as.at, as.bytes) == 0);
    map_close(file);
    return alike;
}

struct text_list folder_copy_texts(struct arena *a, const char *model, const char *dir)
{
    struct text_list made = {{NULL, 0, 0}};
    for (int i = 0; i < MODEL_TEXTS; i++) {
        const char *from = model_text_beside(a, path_dir(a, model), (enum model_text)i);
        const char *to = path_join(a, dir, model_texts[i]);
        struct out out;
        if (!from)
            continue;
        struct map file = map_file(from);
        if (path_exists(to)) {
            if (!is_alike(to, file))
                diag_tell("%s stays as it is: it differs from %s", to, from);
            map_close(file);
            continue;
        }
        out_open(&out, to);
        out_put(&out, file.at, file.bytes);
        (void)out_close(&out);
        map_close(file);
        VEC_PUSH(a, &made.text, to);
    }
    return made;
}
