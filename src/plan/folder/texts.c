/* texts: the files beside a model that say how text becomes token ids and where a text ends. They travel with the ranks. */
#include "plan/folder/folder.h"

#include <string.h>

const char *const folder_texts[FOLDER_TEXTS] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                                "generation_config.json", "genai_config.json"};

/* Beside the model, or, of a model in a folder "onnx" of an export, above it. NULL: not there. */
static const char *find_text(struct arena *a, const char *model, const char *name)
{
    const char *dir = path_dir(a, model), *path = path_join(a, dir, name);
    if (path_exists(path))
        return path;
    if (strcmp(path_base(dir), "onnx") != 0)
        return NULL;
    path = path_join(a, path_dir(a, dir), name);
    return path_exists(path) ? path : NULL;
}

struct text_list folder_copy_texts(struct arena *a, const char *model, const char *dir)
{
    struct text_list made = {{NULL, 0, 0}};
    for (int i = 0; i < FOLDER_TEXTS; i++) {
        const char *from = find_text(a, model, folder_texts[i]);
        const char *to = path_join(a, dir, folder_texts[i]);
        struct out out;
        if (!from || path_exists(to))
            continue;
        struct map file = map_file(from);
        out_open(&out, to);
        out_put(&out, file.at, file.bytes);
        (void)out_close(&out);
        map_close(file);
        VEC_PUSH(a, &made.text, to);
    }
    return made;
}
